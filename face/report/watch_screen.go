package report

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"strandline/finding"
	"strandline/host/proc/procfs"
	"strandline/host/sampling/sample"
	"strandline/judge/samples"
	"strandline/units"
)

// A WatchScreen is what `strandline watch` shows on a terminal at a moment.
type WatchScreen struct {
	Sample   *sample.Sample // nil before the first one
	Findings []finding.Finding
	Rows     map[sample.ID]samples.Row
	Order    string    // by which the processes are sorted: one of [Orders]
	Selected sample.ID // the process that the cursor is on
	Top      int       // the first process that is shown
	// Detail is the process that is looked at; nil if all are.
	Detail *WatchDetail
}

// A WatchDetail is one process and its mappings.
type WatchDetail struct {
	ID       sample.ID
	Before   []procfs.Usage // when it was opened
	Now      []procfs.Usage
	Problem  string // why the mappings cannot be read
	Scrolled int    // lines
}

// Orders are the orders of the processes.
var Orders = []string{"device", "host", "growth", "pid"}

// Processes are those of the sample in their order.
func (d *WatchScreen) Processes() []*sample.Process {
	if d.Sample == nil {
		return nil
	}
	var out []*sample.Process
	for i := range d.Sample.Processes {
		out = append(out, &d.Sample.Processes[i])
	}
	weight := func(p *sample.Process) int64 {
		switch d.Order {
		case "host":
			if p.Host != nil {
				return p.Host.Resident()
			}
			return 0
		case "growth":
			t := d.Rows[p.ID()].Trend
			if len(t) == 0 {
				return 0
			}
			return t[len(t)-1] - t[0]
		case "pid":
			return 0
		}
		n := onDevices(p)
		if n == 0 && p.Host != nil {
			return p.Host.Resident() - 1<<62 // behind those on devices
		}
		return n
	}
	slices.SortStableFunc(out, func(a, b *sample.Process) int { return cmp.Compare(weight(b), weight(a)) })
	return out
}

func onDevices(p *sample.Process) (n int64) {
	for _, s := range p.Devices {
		if s.Used != nil {
			n += *s.Used
		}
	}
	return n
}

// headLines is how many lines are above the first process.
const headLines = 3

// ProcessAt is the process that a line of the screen shows; nil if none.
func (d *WatchScreen) ProcessAt(line int) *sample.Process {
	all := d.Processes()
	if i := d.Top + line - headLines; line >= headLines && i < len(all) && d.Detail == nil {
		return all[i]
	}
	return nil
}

// Room is how many processes a screen with so many rows shows.
func (d *WatchScreen) Room(rows int) int {
	devices := 0
	if d.Sample != nil {
		devices = len(d.Sample.Devices)
		if d.Sample.Load != nil {
			devices++
		}
	}
	return max(rows-headLines-devices-2, 1)
}

// Lines are the lines of the screen.
func (d *WatchScreen) Lines(s Style, rows, columns int) []string {
	var lines []string
	if d.Sample == nil {
		lines = []string{"waiting for the first sample"}
	} else if p := d.detailed(); p != nil {
		s.Width = columns
		lines = d.detail(s, p)
		lines = lines[min(d.Detail.Scrolled, max(len(lines)-1, 0)):]
	} else {
		lines = d.overview(s, rows)
	}
	keys := "↑↓ choose  enter look closer  s sort by " + d.Order + "  q end"
	if d.Detail != nil {
		keys = "↑↓ scroll  esc back  q end"
	}
	room := max(rows-1, 1)
	lines = lines[:min(len(lines), room)]
	for len(lines) < room {
		lines = append(lines, "")
	}
	return finished(append(lines, s.dim(keys)), columns)
}

// finished are lines cut to the columns, with their colors.
func finished(lines []string, columns int) []string {
	for i, line := range lines {
		line, _ = Fit(line, columns)
		var b bytes.Buffer
		PrintableWriter(&b).Write([]byte(line))
		lines[i] = b.String()
	}
	return lines
}

// detailed is the process that is looked at, if it still lives.
func (d *WatchScreen) detailed() *sample.Process {
	if d.Detail == nil {
		return nil
	}
	for i := range d.Sample.Processes {
		if p := &d.Sample.Processes[i]; p.ID() == d.Detail.ID {
			return p
		}
	}
	return nil
}

func (d *WatchScreen) overview(s Style, rows int) []string {
	problems := 0
	for _, f := range d.Findings {
		if f.Severity == finding.Problem {
			problems++
		}
	}
	head := s.green("no leak so far")
	if problems > 0 {
		head = s.red(count(problems, "problem"))
	}
	all := d.Processes()
	lines := []string{
		fmt.Sprintf("strandline watch  %s  %s  %s", Line(d.Sample.Time.Format("15:04:05")), count(len(all), "process"), head), "",
	}
	device, split := d.columns()
	lines = append(lines, s.bold("  "+screenRow("PID", "COMMAND", "HOST", device, "DEVICE", split, "ALLOCATED, CACHED, OTHER", "")+"VERDICT"))
	room := d.Room(rows)
	for i := d.Top; i < len(all) && i < d.Top+room; i++ {
		lines = append(lines, d.row(s, all[i]))
	}
	lines = append(lines, "")
	for i := range d.Sample.Devices {
		lines = append(lines, Line(watchedDevice(&d.Sample.Devices[i])))
	}
	if d.Sample.Load != nil {
		lines = append(lines, Line(loadLine(d.Sample.Load)))
	}
	if d.Sample.DevicesNote != "" {
		lines = append(lines, s.dim("devices: "+Line(d.Sample.DevicesNote)))
	}
	return lines
}

// columns reports whether any process has memory of devices, and whether its parts are
// known of any: a column that would be empty takes room from the verdict.
func (d *WatchScreen) columns() (device, split bool) {
	for i := range d.Sample.Processes {
		for _, share := range d.Sample.Processes[i].Devices {
			device, split = true, split || share.Allocated != nil
		}
	}
	return device, split
}

// screenRow are the cells of a process before its verdict.
func screenRow(pid, command, host string, device bool, used string, split bool, parts, curve string) string {
	text := fmt.Sprintf("%8s  %-20s %10s ", pid, command, host)
	if device {
		text += fmt.Sprintf("%10s ", used)
	}
	if split {
		text += fmt.Sprintf(" %-28s ", parts)
	}
	return text + fmt.Sprintf(" %-*s  ", samples.RowPoints, curve)
}

func (d *WatchScreen) row(s Style, p *sample.Process) string {
	r := d.Rows[p.ID()]
	host, device, split := "–", "", ""
	if p.Host != nil {
		host = units.Bytes(p.Host.Resident())
	}
	if n := onDevices(p); n > 0 {
		device = units.Bytes(n)
	}
	if len(p.Devices) > 0 {
		split = deviceSplit(&p.Devices[0])
	}
	mark := "  "
	if p.ID() == d.Selected {
		mark = s.bold("> ")
	}
	verdict := r.Verdict
	if r.Left != "" {
		verdict += ", full " + r.Left
	}
	switch r.Severity {
	case finding.Problem:
		verdict = s.red(Line(verdict))
	case finding.Warning:
		verdict = s.yellow(Line(verdict))
	}
	if n := pausedBytes(p); n > 0 {
		verdict = strings.TrimSuffix(units.Bytes(n)+" paused; "+verdict, "; ")
	}
	devices, parts := d.columns()
	command := shortened(shortened(program(p.Command), 20)+stateNote(p), 20)
	text := screenRow(strconv.Itoa(p.PID), command, host, devices, device, parts, split, spark(r.Trend))
	return mark + text + verdict
}

// spark is a sparkline of a row.
func spark(values []int64) string {
	if len(values) < 2 {
		return ""
	}
	return curve(values, slices.Min(values), slices.Max(values))
}

func (d *WatchScreen) detail(s Style, p *sample.Process) []string {
	lines := []string{s.bold(fmt.Sprintf("pid %d  %s", p.PID, Line(p.Command)))}
	add := func(format string, args ...any) { lines = append(lines, "  "+Line(fmt.Sprintf(format, args...))) }
	add("%s%s", p.State, where(p))
	if h := p.Host; h != nil {
		add("host      %s: anonymous %s, file %s, shared %s, swapped %s", units.Bytes(h.Resident()), units.Bytes(h.Anonymous), units.Bytes(h.File), units.Bytes(h.Shared), units.Bytes(h.Swapped))
	}
	for i := range p.Devices {
		share := &p.Devices[i]
		text := sizeOr(share.Used)
		if share.Allocated != nil {
			text += fmt.Sprintf(": allocated %s, cached %s, other %s", sizeOr(share.Allocated), sizeOr(share.Cached), sizeOr(share.Other))
		}
		add("device %d  %s", share.Device, text)
	}
	for i := range p.Pausable {
		add("%s", tagLine(&p.Pausable[i]))
	}
	for i := range d.Sample.Groups {
		if g := &d.Sample.Groups[i]; g.Name == p.Group {
			add("%s", groupLine(g))
		}
	}
	own := fmt.Sprintf("pid %d ", p.PID)
	for i := range d.Findings {
		if f := &d.Findings[i]; strings.HasPrefix(f.Process+" ", own) {
			var b bytes.Buffer
			writeFinding(&b, s, f, "")
			lines = append(lines, "")
			lines = append(lines, strings.Split(strings.TrimRight(b.String(), "\n"), "\n")...)
		}
	}
	lines = append(lines, "")
	return append(lines, d.mappings(s)...)
}

// groupLine is a control group in a line.
func groupLine(g *sample.Group) string {
	switch {
	case g.Note != "":
		return "group     use and limit not known: " + g.Note
	case g.Limit != nil && g.Used != nil:
		return fmt.Sprintf("group     %s of %s, %s left", units.Bytes(*g.Used), units.Bytes(*g.Limit), units.Bytes(max(*g.Limit-*g.Used, 0)))
	}
	return fmt.Sprintf("group     %s, no limit", sizeOr(g.Used))
}

// where states where a process runs.
func where(p *sample.Process) (text string) {
	if p.Container != nil {
		text += ", container " + *p.Container
	}
	for _, part := range []struct{ name, value string }{{"pod", p.Pod}, {"Slurm job", p.Job}, {"Ray actor", p.Actor}, {"control group", p.Group}} {
		if part.value != "" {
			text += ", " + part.name + " " + part.value
		}
	}
	return text
}

// mappings are those that grew most since the process was opened, then the largest.
func (d *WatchScreen) mappings(s Style) []string {
	if d.Detail.Problem != "" {
		return []string{s.dim("  mappings: " + Line(d.Detail.Problem))}
	}
	if len(d.Detail.Now) == 0 {
		return []string{s.dim("  reading the mappings")}
	}
	type row struct {
		u      *procfs.Usage
		growth int64
	}
	var rows []row
	for i := range d.Detail.Now {
		u := &d.Detail.Now[i]
		if u.RSS > 0 {
			rows = append(rows, row{u, int64(u.RSS) - residentIn(d.Detail.Before, u)})
		}
	}
	slices.SortStableFunc(rows, func(a, b row) int {
		return cmp.Or(cmp.Compare(b.growth, a.growth), cmp.Compare(b.u.RSS, a.u.RSS))
	})
	t := &table{right: map[int]bool{1: true, 2: true, 3: true}}
	t.row("mapping", "size", "resident", "since opened", "")
	const maxMappings = 200
	for _, r := range rows[:min(len(rows), maxMappings)] {
		t.row(fmt.Sprintf("%x-%x", r.u.Start, r.u.End), units.Bytes(int64(r.u.Size())), units.Bytes(int64(r.u.RSS)), units.SignedBytes(r.growth), r.u.Path)
	}
	var b bytes.Buffer
	t.write(&b, "  ")
	return strings.Split(strings.TrimRight(b.String(), "\n"), "\n")
}

// residentIn is what was resident in the addresses of a mapping. The kernel joins
// neighbors, so that a mapping is known by its addresses and not by its beginning.
func residentIn(before []procfs.Usage, u *procfs.Usage) (n int64) {
	for i := range before {
		b := &before[i]
		if low, high := max(b.Start, u.Start), min(b.End, u.End); low < high {
			n += int64(float64(b.RSS) * float64(high-low) / float64(b.Size()))
		}
	}
	return n
}
