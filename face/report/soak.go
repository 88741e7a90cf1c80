package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"strandline/face/api"
	"strandline/finding"
	"strandline/units"
)

// Soak is the document of `strandline soak`.
type Soak struct{ *api.Soak }

// Text prints the verdict, the waves, and what was found.
func (d *Soak) Text(w io.Writer, s Style) {
	if !s.Verbose {
		d.brief(w, s)
		return
	}
	word, text := d.headline()
	fmt.Fprintln(w, verdictInk(s, word)+s.bold(": "+Line(text)))
	fmt.Fprintln(w, s.dim("  "+Line(d.Basis())))
	if ended := d.Ended(); ended != "" && d.gates() {
		printWrapped(w, s, "  ", ended)
	}
	for _, m := range d.Missing {
		printWrapped(w, s, "  ", m)
	}
	fmt.Fprintln(w)
	d.table(w)
	d.processes(w)
	for i := range d.Findings {
		f := &d.Findings[i]
		fmt.Fprintln(w)
		if f.Severity == finding.Info {
			writeNote(w, s, f, "")
			continue
		}
		writeFinding(w, s, f, "")
	}
	if d.Reclaim != nil {
		fmt.Fprintln(w)
		printWrapped(w, s, "", d.reclaimed())
	}
	writeNotes(w, s, "note", d.Notes)
}

// brief prints the verdict, the course of memory, what to do and why.
func (d *Soak) brief(w io.Writer, s Style) {
	b := newBrief(w, s, d.Findings, func(*finding.Finding) string { return "" })
	word, text := d.headline()
	list := weighty(d.Findings)
	judged := d.gates() && len(list) > 0
	if judged {
		b.findings(word, list, list[0].Basis)
	} else {
		b.verdict(word, text)
	}
	if ended := d.Ended(); ended != "" && d.gates() {
		b.line("", ended)
	}
	for _, m := range d.Missing {
		b.line("", m)
	}
	if !judged {
		b.list(d.Findings)
	}
	if d.Reclaim != nil {
		b.line("NOTE", d.reclaimed())
	}
	b.line("RUN", d.Basis())
	b.notes(d.Notes)
	b.moreLine("waves, processes")
}

// reclaimed is what the command after each wave released.
func (d *Soak) reclaimed() string {
	released := "nothing"
	if d.Reclaim.ReleasedBytes > 0 {
		released = units.Bytes(d.Reclaim.ReleasedBytes)
	}
	return fmt.Sprintf("%s released %s after each wave; without it the verdict would be %s", d.Reclaim.Command, released, d.Reclaim.Without)
}

// headline is the verdict, or what kept the experiment from one.
func (d *Soak) headline() (word, text string) {
	text = d.sentence()
	switch {
	case d.Verdict == finding.Leaking:
	case d.Verdict == finding.Over:
		text = "above the limit"
	case d.Failed != "":
		text = d.Failed
	case d.Interrupted:
		text = d.Ended()
	case d.Verdict == finding.Unknown:
		text = "cannot be judged"
	default:
		text = cmp.Or(text, "no leak")
	}
	return d.Word(), text
}

// gates reports whether the verdict is one against the server, whatever came after.
func (d *Soak) gates() bool { return d.Verdict == finding.Leaking || d.Verdict == finding.Over }

// Word is what came of the experiment, in a word.
func (d *Soak) Word() string {
	switch {
	case d.gates():
	case d.Failed != "":
		return "FAILED"
	case d.Interrupted:
		return "INTERRUPTED"
	}
	return strings.ToUpper(string(d.Verdict))
}

// Ended states what ended the experiment before it was through, "" if nothing did.
func (d *Soak) Ended() string {
	switch n := len(d.Waves) - 1; {
	case d.Failed != "":
		return d.Failed
	case d.Interrupted && n < 1:
		return "interrupted before the first wave"
	case d.Interrupted && d.Waves[n].HostBytes == nil:
		return fmt.Sprintf("interrupted in wave %d", n)
	case d.Interrupted:
		return fmt.Sprintf("interrupted after wave %d", n)
	}
	return ""
}

// GrowthText is the growth of a request, "" if it is not known.
func (d *Soak) GrowthText() string {
	if g := d.Growth; g != nil {
		return fmt.Sprintf("%s a request (%s to %s)", units.SignedBytes(g.BytesPerRequest), units.SignedBytes(g.Low), units.SignedBytes(g.High))
	}
	return ""
}

// sentence is the verdict with its figure.
func (d *Soak) sentence() string {
	g := d.Growth
	if g == nil {
		return ""
	}
	if d.Verdict == finding.Leaking || g.Allowed {
		text := fmt.Sprintf("%s a request (%s to %s)", units.Bytes(g.BytesPerRequest), units.SignedBytes(g.Low), units.SignedBytes(g.High))
		if t := g.BytesPerToken; t != nil {
			text += fmt.Sprintf(", %s a token", units.Bytes(int64(*t)))
			if g.LowPerToken != nil && g.HighPerToken != nil {
				text += fmt.Sprintf(" (%s to %s)", units.SignedBytes(int64(*g.LowPerToken)), units.SignedBytes(int64(*g.HighPerToken)))
			}
		}
		if g.Allowed {
			text = "grows by " + text + ", no more than is allowed"
		}
		return text
	}
	last := d.last()
	if last == nil {
		return ""
	}
	text := "memory levels off at " + units.Bytes(*last.HostBytes) + " on the host"
	for _, v := range last.Devices {
		text += fmt.Sprintf(", %s on device %d", units.Bytes(v.Bytes), v.Device)
	}
	return text + fmt.Sprintf("; more than %s a request is ruled out", units.Bytes(max(g.High, 0)))
}

// last is the last wave after which memory was read; nil if there is none.
func (d *Soak) last() (last *api.SoakWave) {
	for i := range d.Waves {
		if d.Waves[i].HostBytes != nil {
			last = &d.Waves[i]
		}
	}
	return last
}

// Basis states what was sent, and for how long.
func (d *Soak) Basis() string {
	text := fmt.Sprintf("%s, %s: %s, %s", d.URL, d.Model, count(max(len(d.Waves)-1, 0), "wave"), count(int(d.Load.Requests), "request"))
	if d.Load.Failed > 0 {
		text += fmt.Sprintf(" (%s failed)", units.Count(d.Load.Failed))
	}
	text += " in " + units.Duration(time.Duration(d.Seconds*float64(time.Second)))
	if d.Stopped {
		text += ", stopped because the answer is clear"
	}
	if l := d.Load.TTFT; l != nil {
		text += "; TTFT " + latency(l)
	}
	if l := d.Load.TPOT; l != nil {
		text += ", TPOT " + latency(l)
	}
	return text
}

// latency is half of the times and 19 of 20.
func latency(l *api.SoakLatency) string {
	return fmt.Sprintf("%s/%s ms", milliseconds(l.P50), milliseconds(l.P95))
}

func milliseconds(ms float64) string {
	if ms < 10 {
		return fmt.Sprintf("%.1f", ms)
	}
	return fmt.Sprintf("%.0f", ms)
}

// table shows the waves.
func (d *Soak) table(w io.Writer) {
	devices := map[int]bool{}
	engine := false
	for i := range d.Waves {
		for _, v := range d.Waves[i].Devices {
			devices[v.Device] = true
		}
		engine = engine || d.Waves[i].Engine != nil && d.Waves[i].Engine.KVCache != nil
	}
	order := slices.Sorted(maps.Keys(devices))
	t := &table{right: map[int]bool{}}
	head := []string{"wave", "requests", "failed", "TTFT p50/p95", "TPOT p50/p95", "host", "change"}
	for _, v := range order {
		head = append(head, fmt.Sprintf("device %d", v), "change")
	}
	if engine {
		head = append(head, "KV cache")
	}
	for i := range head {
		t.right[i] = true
	}
	t.row(append(head, "")...)
	var before *api.SoakWave
	for i := range d.Waves {
		x := &d.Waves[i]
		cells := append([]string{units.Count(int64(x.Wave))}, loadCells(x.Load)...)
		cells = append(cells, level(x, (*api.SoakWave).Host), change(before, (*api.SoakWave).Host, x))
		for _, v := range order {
			device := func(w *api.SoakWave) (int64, bool) { return deviceBytes(w.Devices, v) }
			cells = append(cells, level(x, device), change(before, device, x))
		}
		if engine {
			cell := ""
			if x.Engine != nil && x.Engine.KVCache != nil {
				cell = units.Percent(*x.Engine.KVCache)
			}
			cells = append(cells, cell)
		}
		t.row(append(cells, waveNote(x))...)
		if x.HostBytes != nil {
			before = x
		}
	}
	t.write(w, "  ")
}

func loadCells(l *api.SoakLoad) []string {
	if l == nil {
		return []string{"", "", "", ""}
	}
	cells := []string{units.Count(l.Requests), units.Count(l.Failed), "", ""}
	if l.TTFT != nil {
		cells[2] = latency(l.TTFT)
	}
	if l.TPOT != nil {
		cells[3] = latency(l.TPOT)
	}
	return cells
}

// level is what a wave holds, "?" where that is not known.
func level(w *api.SoakWave, of func(*api.SoakWave) (int64, bool)) string {
	if bytes, ok := of(w); ok {
		return units.Bytes(bytes)
	}
	return "?"
}

func deviceBytes(devices []api.SoakDevice, index int) (int64, bool) {
	for _, d := range devices {
		if d.Device == index {
			return d.Bytes, true
		}
	}
	return 0, false
}

// change is by how much a level changed since the wave before.
func change(before *api.SoakWave, level func(*api.SoakWave) (int64, bool), now *api.SoakWave) string {
	if before == nil {
		return ""
	}
	was, ok := level(before)
	is, known := level(now)
	if !ok || !known {
		return ""
	}
	return units.SignedBytes(is - was)
}

// waveNote states what is special about a wave.
func waveNote(w *api.SoakWave) string {
	var parts []string
	for _, p := range []struct {
		yes  bool
		text string
	}{
		{w.Wave == 0, "before the load"}, {w.WarmUp && w.Wave > 0, "warm-up"}, {w.Repeats > 0, fmt.Sprintf("repeats wave %d", w.Repeats)},
		{w.Restarted, "the server restarted"}, {w.Ended && !w.Restarted, "the server ended"}, {w.Unjudged && !w.Ended, "not judged"}, {w.Falling, "still falling"},
	} {
		if p.yes {
			parts = append(parts, p.text)
		}
	}
	return strings.Join(parts, ", ")
}

// SoakProgress is a wave that has ended, in a line, with the verdict so far and the growth
// that it rests on, in words.
func SoakProgress(w *api.SoakWave, verdict finding.Verdict, growth string) string {
	text := fmt.Sprintf("wave %d: host %s", w.Wave, level(w, (*api.SoakWave).Host))
	for _, d := range w.Devices {
		text += fmt.Sprintf(", device %d %s", d.Device, units.Bytes(d.Bytes))
	}
	if l := w.Load; l != nil {
		text += fmt.Sprintf("; %s in %s", count(int(l.Requests), "request"), units.Duration(time.Duration(l.Seconds*float64(time.Second))))
		if l.Failed > 0 {
			text += fmt.Sprintf(", %s failed (%s)", units.Count(l.Failed), l.Example)
		}
		if n := l.Errors["rate_limited"]; n > 0 {
			text += fmt.Sprintf(", asked to wait %s (429)", units.Plural(n, "time"))
		}
		if l.TTFT != nil {
			text += ", TTFT " + latency(l.TTFT)
		}
		if l.TPOT != nil {
			text += ", TPOT " + latency(l.TPOT)
		}
	}
	if note := waveNote(w); note != "" {
		text += " (" + note + ")"
	}
	text += "; so far: " + cmp.Or(string(verdict), "unknown")
	if growth != "" {
		text += ", " + growth
	}
	return text
}
