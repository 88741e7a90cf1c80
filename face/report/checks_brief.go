package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"strandline/face/api"
	"strandline/finding"
	"strandline/pausable/state"
	"strandline/units"
)

// brief prints what is off, and the failure that the log ends with.
func (d Checked) brief(w io.Writer, s Style) {
	b := &brief{w: w, s: s}
	word := "OK"
	switch {
	case d.Model == nil:
		word = "LOG"
	case d.Off != nil:
		word = "OFF"
	case d.Failure != nil:
		word = "FAILED"
	}
	text := d.sentence()
	for _, off := range []string{" is off", " are off"} { // as the word states
		text = strings.Replace(text, off+":", ":", 1)
	}
	b.verdict(word, text)
	t := table{right: map[int]bool{1: true, 2: true, 3: true}}
	var same []string
	for _, r := range d.Rows {
		planned, observed, off := checkedCells(&r)
		if r.Planned != nil && r.Off == 0 {
			same = append(same, r.Component)
			continue
		}
		if d.Model == nil {
			t.row(r.Component, observed)
			continue
		}
		t.row(r.Component, observed, "planned "+planned, off)
	}
	t.write(w, "   ")
	if f := d.Failure; f != nil {
		b.line("WHY", fmt.Sprintf("line %s: %s", units.Count(f.Line), Line(f.Text)))
	}
	if len(same) > 0 {
		b.line("", "as planned: "+strings.Join(same, ", "))
	}
	b.notes(d.Notes)
	b.moreLine("the model, lines, causes")
}

// brief prints the worst finding on each process, its phases beyond the plan, and what
// stays behind.
func (d HandOvers) brief(w io.Writer, s Style) {
	for i := range d.Processes {
		p := handOverProcess{&d.Processes[i]}
		subject := func(*finding.Finding) string {
			if len(d.Processes) > 1 {
				return fmt.Sprintf("process %d", p.PID)
			}
			return ""
		}
		b := newBrief(w, s, p.Findings, subject)
		list := weighty(p.Findings)
		beyond := slices.DeleteFunc(p.phases(), func(text string) bool { return !strings.Contains(text, " more") })
		switch {
		case len(list) > 0:
			b.findings(api.Word(list[0]), list, "")
		case len(beyond) > 0:
			b.verdict("OVER", p.title())
		default:
			b.verdict("OK", "within the plan: "+p.title())
		}
		label := "OVER"
		for _, text := range beyond {
			b.line(label, text)
			label = ""
		}
		if a := p.account(); a != nil && (len(list) == 0 || api.WhyOf(list[0]) == "") {
			b.line("WHY", api.Sum(a))
		}
		b.notes(p.Notes)
		b.moreLine("phases, hand-overs, the rest")
	}
}

// phases are the phases of the plan, each in a line.
func (p handOverProcess) phases() (out []string) {
	for _, row := range p.tables()[0].rows[1:] {
		out = append(out, fmt.Sprintf("%s: %s used, %s planned, %s", row[0], row[2], row[1], row[3]))
	}
	return out
}

// account is what is used while the fewest tags are active; nil if that is not known.
func (p handOverProcess) account() *finding.Account {
	if p.Behind == nil {
		return nil
	}
	split := &p.Behind.Split
	a := &finding.Account{Bytes: split.Used, Name: "while paused"}
	for _, t := range split.Tags {
		a.Add(t.Held, Line(t.Tag))
	}
	if split.Tensors != nil {
		a.Add(*split.Tensors, "tensors in no region")
		a.Add(*split.Pools, "graph pools")
		a.Add(*split.Cache, "cache")
	}
	for _, l := range split.Libraries {
		a.Add(l.Bytes, Line(l.Library))
	}
	if !a.Rest("contexts and others") {
		return nil
	}
	return a
}

// brief prints what was done, the tags, and who holds the devices where memory is missing.
func (d *Mem) brief(w io.Writer, s Style) {
	b := newBrief(w, s, d.Findings, func(*finding.Finding) string { return "" })
	d.briefVerdict(b)
	for i := range d.Steps {
		step := &d.Steps[i]
		fits := "fits"
		if !step.Fits {
			fits = "does not fit"
		}
		b.line("", fmt.Sprintf("%d  %s: %s%s", i+1, Line(stepName(step)), fits, stepText(step)))
	}
	if len(d.Steps) == 0 {
		var lines []string
		for i := range d.Tags {
			tag := &d.Tags[i]
			text := fmt.Sprintf("%s  %s, %s", Line(tag.Name), units.Bytes(tag.Bytes), tag.State)
			if tag.BackupBytes > 0 {
				text += fmt.Sprintf(", %s kept %s", units.Bytes(tag.BackupBytes), tag.Backup)
			}
			lines = append(lines, text)
		}
		b.numbered(lines)
	}
	if d.Failure != nil || slices.ContainsFunc(d.Steps, missing) {
		d.holdersBrief(b)
	}
	if d.Doing != nil {
		b.line("NOTE", fmt.Sprintf("a %s is under way: %s of %s is copied", d.Doing.Do, units.Bytes(d.Doing.Done), units.Bytes(d.Doing.Total)))
	}
	if d.NotFreed > 0 {
		b.line("NOTE", units.Bytes(d.NotFreed)+" that the program freed are still held: the driver refused to release them")
	}
	if d.Note != "" {
		b.line("NOTE", "who holds the devices is not known: "+d.Note)
	}
	b.list(d.Findings)
	b.moreLine("blocks, backups, the holders of each device")
}

// briefVerdict prints what was done, or would be, and what is free now.
func (d *Mem) briefVerdict(b *brief) {
	var held int64
	for i := range d.Tags {
		held += d.Tags[i].Held
	}
	var free []string
	for i := range d.Devices {
		v := &d.Devices[i]
		text := fmt.Sprintf("device %d: %s of %s free", v.Device.Index, units.Bytes(v.Free), units.Bytes(v.Total))
		if v.Released != nil {
			text += fmt.Sprintf(" (%s)", units.SignedBytes(*v.Released))
		}
		free = append(free, text)
	}
	now := fmt.Sprintf("process %d holds %s in %s", d.PID, units.Bytes(held), count(len(d.Tags), "tag"))
	if len(d.Tags) == 0 {
		now = fmt.Sprintf("process %d has freed all its pausable memory", d.PID)
	}
	word := map[string]string{state.Pause: "PAUSED", state.Resume: "RESUMED"}[d.Do]
	switch {
	case d.Failure != nil:
		b.verdict("REFUSED", "the "+d.Do+": "+Line(d.Failure.Text))
		b.line("", now)
	case word != "":
		b.verdict(word, fmt.Sprintf("in %s; %s", units.Seconds(*d.Seconds), now))
	case slices.ContainsFunc(d.Steps, missing):
		b.verdict("SHORT", "the steps do not fit: "+now)
	case d.Do == "plan":
		b.verdict("FITS", d.peak())
	default:
		b.verdict("HELD", now)
	}
	for _, text := range free {
		b.line("", text)
	}
}

// missing reports whether a step does not fit.
func missing(step api.MemStep) bool { return !step.Fits }

// holdersBrief prints the processes that hold the most of the devices.
func (d *Mem) holdersBrief(b *brief) {
	for i := range d.Devices {
		for k, h := range d.Devices[i].Holders {
			if k == maxNotes {
				b.left += len(d.Devices[i].Holders) - maxNotes
				break
			}
			size, who := "?", Line(h.Command)
			if h.Bytes != nil {
				size = units.Bytes(*h.Bytes)
			}
			if h.PID == d.PID {
				who = "this process"
			} else if h.Pausing {
				who += " (pausable: strandline mem status)"
			}
			b.line("", fmt.Sprintf("%s  %d  %s", size, h.PID, who))
		}
	}
}

// notes prints the first few notes, and counts the rest for [brief.more].
func (b *brief) notes(list []string) {
	few := list[:min(len(list), maxNotes)]
	for _, n := range few {
		b.line("NOTE", n)
	}
	b.left += len(list) - len(few)
}
