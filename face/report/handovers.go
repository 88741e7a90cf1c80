package report

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"strandline/face/api"
	"strandline/units"
)

// HandOvers is the document of `strandline plan rl --check`.
type HandOvers struct{ *api.HandOvers }

// Text prints phases, hand-overs, what stays behind, and what was found.
func (d HandOvers) Text(w io.Writer, s Style) {
	if !s.Verbose {
		d.brief(w, s)
		return
	}
	for i := range d.Processes {
		if i > 0 {
			fmt.Fprintln(w)
		}
		p := handOverProcess{&d.Processes[i]}
		fmt.Fprintln(w, s.bold(p.title()))
		for _, t := range p.tables() {
			fmt.Fprintln(w)
			out := table{right: t.right}
			for _, row := range t.rows {
				out.row(row...)
			}
			out.write(w, "  ")
		}
		fmt.Fprintln(w)
		for _, text := range p.remainderLines() {
			fmt.Fprintln(w, text)
		}
		notes(w, s, p.Notes)
		for i := range p.Findings {
			fmt.Fprintln(w)
			writeFinding(w, s, &p.Findings[i], "")
		}
	}
}

// Markdown writes the same for a ticket.
func (d HandOvers) Markdown(w io.Writer) {
	for i := range d.Processes {
		p := handOverProcess{&d.Processes[i]}
		fmt.Fprintf(w, "**%s**\n", cell(p.title()))
		for _, t := range p.tables() {
			fmt.Fprintln(w)
			for k, row := range t.rows {
				cells := make([]string, len(row))
				for j := range row {
					cells[j] = cell(row[j])
				}
				fmt.Fprintf(w, "| %s |\n", strings.Join(cells, " | "))
				if k == 0 {
					fmt.Fprintln(w, "|"+strings.Repeat(" --- |", len(row)))
				}
			}
		}
		fmt.Fprintln(w)
		for _, text := range p.remainderLines() {
			fmt.Fprintln(w, "- "+cell(strings.TrimSpace(text)))
		}
		for i := range p.Findings {
			fmt.Fprintln(w, "- "+cell(p.Findings[i].Title))
		}
	}
}

// handOverProcess prints a process.
type handOverProcess struct{ *api.HandOverProcess }

func (p handOverProcess) title() string {
	on := fmt.Sprintf("process %d on device %d of %s", p.PID, p.Device, units.Bytes(p.Total))
	switch {
	case p.ByCalls && p.Total == 0:
		on = fmt.Sprintf("process %d, by its calls of the driver", p.PID)
	case p.ByCalls:
		on = fmt.Sprintf("process %d on a device of %s, by its calls of the driver", p.PID, units.Bytes(p.Total))
	}
	return fmt.Sprintf("%s, beside \"%s\"", on, p.Way)
}

type rows struct {
	right map[int]bool
	rows  [][]string
}

// tables are those of phases and of hand-overs.
func (p handOverProcess) tables() []rows {
	phases := rows{map[int]bool{1: true, 2: true, 4: true}, [][]string{{"phase", "planned", "used", "", "lasts", "tags"}}}
	for i := range p.Phases {
		ph := &p.Phases[i]
		planned := sizeRange(ph.Low, ph.High)
		if ph.Measured == nil {
			phases.rows = append(phases.rows, []string{Line(ph.Name), planned, "not seen", "", "", ""})
			continue
		}
		verdict := ""
		if ph.Beyond > 0 {
			verdict = units.Bytes(ph.Beyond) + " more"
		}
		phases.rows = append(phases.rows, []string{Line(ph.Name), planned, sizeRange(ph.Measured.Used[0], ph.Measured.Used[1]), verdict,
			units.Seconds(ph.Measured.Seconds), tagSizes(ph.Measured.Most.Tags, ph.Tags)})
	}
	for i := range p.Unplanned {
		m := &p.Unplanned[i]
		phases.rows = append(phases.rows, []string{"between", "not planned", sizeRange(m.Used[0], m.Used[1]), "", units.Seconds(m.Seconds), tagSizes(m.Most.Tags, nil)})
	}
	return []rows{phases, p.steps()}
}

// steps is the table of hand-overs. By calls alone it is not known what was copied: how long
// all of it would take over the link stands beside it.
func (p handOverProcess) steps() rows {
	head := []string{"hand-over", "times", "copied", "seconds", "a second", "of the link"}
	if p.ByCalls {
		head = []string{"hand-over", "times", "moved", "seconds", "as a copy"}
	}
	out := rows{map[int]bool{1: true, 2: true, 3: true, 4: true, 5: true}, [][]string{head}}
	for _, h := range p.HandOvers {
		name := h.Do + " all"
		if h.Tag != nil {
			name = h.Do + " " + Line(*h.Tag)
		}
		if h.Refused > 0 {
			name += fmt.Sprintf(" (refused %d times)", h.Refused)
		}
		row := []string{name, fmt.Sprint(h.Times), units.Bytes(h.Moved), units.Seconds(h.Seconds), ""}
		switch {
		case h.Bytes == nil && p.Speed != nil:
			row[4] = units.Seconds(float64(h.Moved) / *p.Speed)
		case h.Bytes != nil:
			row[2] = units.Bytes(*h.Bytes)
			row = append(row, "")
			if rate := float64(*h.Bytes) / h.Seconds; rate > 0 && h.Seconds > 0 {
				row[4] = fmt.Sprintf("%.3g GB", rate/1e9)
				if p.Speed != nil {
					row[5] = fmt.Sprintf("%.0f%% of %.3g GB/s", 100*rate / *p.Speed, *p.Speed/1e9)
				}
			}
		}
		out.rows = append(out.rows, row)
	}
	return out
}

// tagSizes are the tags that are active, each with what is planned of it.
func tagSizes(tags []api.HandOverHeld, planned []api.PlannedPart) string {
	var out []string
	for _, t := range tags {
		text := Line(t.Tag) + " " + units.Bytes(t.Held)
		if i := slices.IndexFunc(planned, func(c api.PlannedPart) bool { return c.Name == t.Tag }); i >= 0 {
			text += " (" + sizeRange(planned[i].Low, planned[i].High) + ")"
		}
		out = append(out, text)
	}
	return strings.Join(out, ", ")
}

// remainderLines describes what stays on the device while the fewest tags are active, and whose it is.
func (p handOverProcess) remainderLines() (out []string) {
	b := p.Behind
	if b == nil {
		return nil
	}
	when := "while everything is paused"
	if len(b.Active) > 0 {
		when = "while only " + strings.Join(b.Active, ", ") + " is active"
	}
	out = append(out, fmt.Sprintf("%s is used %s", units.Bytes(b.Split.Used), Line(when)))
	add := func(n int64, what string) {
		if n > 0 {
			out = append(out, fmt.Sprintf("  %10s  %s", units.Bytes(n), what))
		}
	}
	for _, t := range b.Split.Tags {
		add(t.Held, "tag "+Line(t.Tag))
	}
	if b.Split.Tensors != nil {
		add(*b.Split.Tensors, "tensors in no region")
		add(*b.Split.Cache, "PyTorch's cache, which no tensor uses")
		add(*b.Split.Pools, "pools of CUDA graphs, or of the program's own")
	}
	rest, n := "contexts, NCCL, kernels, and other processes", b.Split.Rest
	if b.Split.Libraries != nil {
		for _, l := range b.Split.Libraries {
			add(l.Bytes, Line(l.Library))
			n -= l.Bytes
		}
		rest = "contexts, kernels, other processes, and earlier allocations"
	} else if b.Split.Tensors == nil {
		rest = "tensors and caches in no region, " + rest
	}
	if b.High > 0 {
		rest += fmt.Sprintf(" (planned: contexts and NCCL %s)", sizeRange(b.Low, b.High))
	}
	add(n, rest)
	return out
}
