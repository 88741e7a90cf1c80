package report

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"strings"

	"strandline/face/api"
	"strandline/finding"
	"strandline/host/sampling/sample"
	"strandline/judge/samples"
	"strandline/units"
)

// Watch is the document of `strandline watch`.
type Watch struct{ api.Watch }

// NewWatch makes the document of so many samples, of which last is the last; it is nil
// if there was none.
func NewWatch(last *sample.Sample, samples int, findings []finding.Finding) *Watch {
	d := &Watch{api.Watch{Schema: api.WatchSchema, Samples: samples, Findings: findings}}
	if last == nil {
		last = &sample.Sample{Processes: []sample.Process{}, Devices: []sample.Device{}, Groups: []sample.Group{}}
	}
	d.Load = last.Load
	d.Duration, d.Processes, d.Devices, d.Note, d.Groups, d.Machine = last.Seconds, last.Processes, last.Devices, last.DevicesNote, last.Groups, last.Machine
	return d
}

// Diagnosis is the document of `strandline diagnose` for a recording of a watch.
func (d *Watch) Diagnosis(file string) *Diagnosis {
	out := &Diagnosis{Diagnosis: api.Diagnosis{Schema: api.DiagnoseSchema, Verdict: samples.Verdict(d.Findings, d.Samples), Findings: d.Findings}}
	basis := fmt.Sprintf("watched for %s, %s", units.Seconds(d.Duration), count(d.Samples, "sample"))
	out.Processes = []api.Process{{Files: []string{file}, Basis: []string{basis}}}
	return out
}

// JSONLine writes a document as one line of JSON. Characters that a terminal would act
// on are escaped.
func JSONLine(w io.Writer, doc any) error {
	var text bytes.Buffer
	enc := json.NewEncoder(&text)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(doc); err != nil {
		return err
	}
	line := bytes.TrimSuffix(text.Bytes(), []byte("\n"))
	_, err := w.Write(append(escaped(line), '\n'))
	return err
}

// Text prints who holds what, and the findings.
func (d *Watch) Text(w io.Writer, s Style) {
	fmt.Fprintln(w, d.headline(s))
	if len(d.Processes) > 0 {
		fmt.Fprintln(w)
		d.table().write(w, "  ")
	}
	for i := range d.Processes {
		p := &d.Processes[i]
		for k := range p.Pausable {
			fmt.Fprintf(w, "  pid %d: %s\n", p.PID, Line(tagLine(&p.Pausable[k])))
		}
	}
	for i := range d.Devices {
		fmt.Fprintln(w, "  "+Line(watchedDevice(&d.Devices[i])))
	}
	if d.Note != "" {
		fmt.Fprintln(w, s.dim("  devices: "+Line(d.Note)))
	}
	if d.Load != nil {
		fmt.Fprintln(w, "  "+Line(loadLine(d.Load)))
	}
	if !s.Verbose && len(d.Findings) > 0 {
		fmt.Fprintln(w)
		newBrief(w, s, d.Findings, func(*finding.Finding) string { return "" }).list(d.Findings)
		return
	}
	for i := range d.Findings {
		f := &d.Findings[i]
		fmt.Fprintln(w)
		writeFinding(w, s, f, "")
	}
}

func (d *Watch) headline(s Style) string {
	problems := 0
	for _, f := range d.Findings {
		if f.Severity == finding.Problem {
			problems++
		}
	}
	verdict := samples.Verdict(d.Findings, d.Samples)
	text := api.Watched(len(d.Processes), d.Duration, d.Samples)
	switch {
	case problems > 0:
		return s.red(strings.ToUpper(string(verdict))+": "+count(problems, "problem")) + "  " + text
	case verdict == finding.Unknown && d.Samples > 0 && len(d.Findings) > 0 && d.Findings[0].Severity == finding.Warning:
		return s.yellow("UNKNOWN") + ": the growth may be no leak  " + text
	case verdict == finding.Unknown:
		return s.yellow("UNKNOWN") + ": too few samples to judge  " + text
	}
	return s.green("OK") + "  " + text
}

func (d *Watch) table() *table {
	t := &table{right: map[int]bool{0: true, 2: true, 3: true, 4: true, 5: true}}
	t.row("pid", "command", "anonymous", "file", "shared", "device", "of it: allocated, cached, other")
	for i := range d.Processes {
		p := &d.Processes[i]
		host := []string{"–", "–", "–"}
		if h := p.Host; h != nil {
			host = []string{units.Bytes(h.Anonymous), units.Bytes(h.File), units.Bytes(h.Shared)}
		}
		first := []string{fmt.Sprint(p.PID), shortened(program(p.Command), 40) + stateNote(p)}
		shares := p.Devices
		if len(shares) == 0 {
			t.row(append(append(first, host...), "", "")...)
		}
		for k := range shares {
			t.row(append(append(first, host...), fmt.Sprintf("%d: %s", shares[k].Device, sizeOr(shares[k].Used)), deviceSplit(&shares[k]))...)
			first, host = []string{"", ""}, []string{"", "", ""}
		}
	}
	return t
}

// stateNote is what is unusual about a process.
func stateNote(p *sample.Process) string {
	if p.State == sample.Zombie || p.State == sample.NotVisible || p.Host == nil {
		return " (" + p.State + ")"
	}
	return ""
}

func shortened(text string, maxLen int) string {
	text = Line(text)
	if r := []rune(text); len(r) > maxLen {
		return string(r[:maxLen-1]) + "…"
	}
	return text
}

// sizeOr is a size, or a question mark where it is not known.
func sizeOr(n *int64) string {
	if n == nil {
		return "?"
	}
	return units.Bytes(*n)
}

// deviceSplit is a share of a device by what it is; empty where that is not known.
func deviceSplit(s *sample.DeviceShare) string {
	if s.Allocated == nil {
		return ""
	}
	return sizeOr(s.Allocated) + ", " + sizeOr(s.Cached) + ", " + sizeOr(s.Other)
}

// tagLine is pausable memory of one name, in a line.
func tagLine(t *sample.Tag) string {
	text := fmt.Sprintf("pausable %s: %s of %s held, %s", t.Tag, units.Bytes(t.Held), units.Bytes(t.Bytes), t.State)
	if t.BackupBytes > 0 {
		text += fmt.Sprintf(", %s in a backup (%s)", units.Bytes(t.BackupBytes), t.Backup)
	}
	return text
}

// pausedBytes is what of a process's memory is paused.
func pausedBytes(p *sample.Process) (n int64) {
	for i := range p.Pausable {
		n += p.Pausable[i].Bytes - p.Pausable[i].Held
	}
	return n
}

// watchedDevice is what a device holds, in a line.
func watchedDevice(d *sample.Device) string {
	if d.Used == nil {
		return fmt.Sprintf("%s: %s", d.Label(), d.Note)
	}
	text := fmt.Sprintf("%s: %s of %s used", d.Label(), sizeOr(d.Used), sizeOr(d.Total))
	if n := d.Unowned; n != nil && *n > 0 {
		text += ", " + units.Bytes(*n) + " by processes that have ended"
	}
	if n := d.Remainder; n != nil {
		text += ", " + units.Bytes(*n) + " not attributed to any process"
	}
	if n := d.Reserved; n != nil && *n > 0 {
		text += ", " + units.Bytes(*n) + " reserved by the driver"
	}
	if d.Note != "" {
		text += "; " + d.Note
	}
	return text
}

// loadLine is what an engine does, in a line.
func loadLine(l *sample.Load) string {
	if l.Note != "" {
		return "engine: " + l.Note
	}
	var parts []string
	add := func(n *int64, what string) {
		if n != nil {
			parts = append(parts, units.Count(*n)+" "+what)
		}
	}
	add(l.Running, "running")
	add(l.Waiting, "waiting")
	add(l.Requests, "finished")
	if l.KVCache != nil {
		parts = append(parts, fmt.Sprintf("KV cache %.0f%% full", 100**l.KVCache))
	}
	return l.Engine + ": requests " + strings.Join(parts, ", ")
}

// SampleLine is a process in a line of a log.
func SampleLine(s *sample.Sample, p *sample.Process) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s pid %d %s", s.Time.Format("15:04:05"), p.PID, shortened(p.Name, 20))
	if h := p.Host; h != nil {
		fmt.Fprintf(&b, "  host %s (anonymous %s, file %s, shared %s)", units.Bytes(h.Resident()), units.Bytes(h.Anonymous), units.Bytes(h.File), units.Bytes(h.Shared))
	} else {
		b.WriteString("  " + p.State)
	}
	for i := range p.Devices {
		d := &p.Devices[i]
		fmt.Fprintf(&b, "  device %d %s", d.Device, sizeOr(d.Used))
		if d.Allocated != nil {
			fmt.Fprintf(&b, " (allocated %s, cached %s, other %s)", sizeOr(d.Allocated), sizeOr(d.Cached), sizeOr(d.Other))
		}
	}
	if n := pausedBytes(p); n > 0 {
		fmt.Fprintf(&b, "  paused %s", units.Bytes(n))
	}
	return b.String()
}
