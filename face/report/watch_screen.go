package report

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"strandline/finding"
	"strandline/host/proc/procfs"
	"strandline/host/sampling/sample"
	"strandline/internal/sorts"
	"strandline/judge/samples"
	"strandline/units"
)

// A WatchScreen is what `strandline watch` shows on a terminal at a moment.
type WatchScreen struct {
	Sample   *sample.Sample // nil before the first one
	Findings []finding.Finding
	Rows     map[sample.ID]samples.Row
	Order    string    // by which the processes are sorted: one of [Orders]
	Tree     bool      // children stand below their parents
	Filter   string    // only processes whose command or ID contains it are shown
	Typing   bool      // the filter is being typed
	Help     bool      // the keys are listed
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

// Orders are the orders of the processes: by each column.
var Orders = []string{"device", "host", "growth", "verdict", "pid", "command"}

// Processes are those of the sample that pass the filter, in their order.
func (d *WatchScreen) Processes() []*sample.Process {
	if d.Sample == nil {
		return nil
	}
	var out []*sample.Process
	for i := range d.Sample.Processes {
		if p := &d.Sample.Processes[i]; d.passes(p) {
			out = append(out, p)
		}
	}
	sorts.StableBy(out, func(a, b *sample.Process) int {
		switch d.Order {
		case "pid":
			return cmp.Compare(a.PID, b.PID)
		case "command":
			return cmp.Compare(program(a.Command), program(b.Command))
		}
		return cmp.Compare(d.weight(b), d.weight(a))
	})
	if d.Tree {
		return asTree(out)
	}
	return out
}

// passes reports whether a process passes the filter.
func (d *WatchScreen) passes(p *sample.Process) bool {
	text := strconv.Itoa(p.PID) + " " + strings.ToLower(p.Command)
	return strings.Contains(text, strings.ToLower(d.Filter))
}

// weight is what the processes are sorted by, the largest first.
func (d *WatchScreen) weight(p *sample.Process) int64 {
	host := int64(0)
	if p.Host != nil {
		host = p.Host.Resident()
	}
	row := d.Rows[p.ID()]
	switch d.Order {
	case "host":
		return host
	case "growth":
		return growth(row.Trend)
	case "verdict":
		return int64(slices.Index([]finding.Severity{"", finding.Info, finding.Warning, finding.Problem}, row.Severity))
	}
	if n := onDevices(p); n > 0 {
		return n
	}
	return host - 1<<62 // behind those on devices
}

// growth is how much a course grew, bytes.
func growth(course []int64) int64 {
	if len(course) == 0 {
		return 0
	}
	return course[len(course)-1] - course[0]
}

// asTree puts processes below their parents, and keeps the order otherwise.
func asTree(all []*sample.Process) []*sample.Process {
	below := map[int][]*sample.Process{}
	seen := map[int]bool{}
	for _, p := range all {
		seen[p.PID] = true
	}
	for _, p := range all {
		parent := p.Parent
		if !seen[parent] || parent == p.PID {
			parent = 0
		}
		below[parent] = append(below[parent], p)
	}
	out := make([]*sample.Process, 0, len(all))
	var add func(parent int)
	add = func(parent int) {
		children := below[parent]
		delete(below, parent) // a recording can state a circle
		for _, p := range children {
			out = append(out, p)
			if p.PID != 0 {
				add(p.PID)
			}
		}
	}
	add(0)
	for _, p := range all { // those of a circle
		add(p.Parent)
	}
	return out
}

// depth is how many of a process's ancestors are shown.
func (d *WatchScreen) depth(p *sample.Process) (n int) {
	if !d.Tree {
		return 0
	}
	const maxDepth = 8
	for n < maxDepth {
		i := slices.IndexFunc(d.Sample.Processes, func(q sample.Process) bool { return q.PID == p.Parent })
		if i < 0 || d.Sample.Processes[i].PID == p.PID {
			return n
		}
		if p = &d.Sample.Processes[i]; !d.passes(p) {
			return n
		}
		n++
	}
	return n
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

// watchHelp lists the keys.
var watchHelp = []string{
	"↑ ↓ j k     choose a process      enter  look closer      esc  back",
	"s S         sort by the next, by the previous column",
	"t           tree: children below their parents",
	"/           filter by command or process ID; esc clears it",
	"? q         this help, the end; Ctrl-C ends with exit status 130",
	"",
	"The curve is a process's recent memory: on devices, or else on the host.",
	"A verdict names the growth, its rate, and when a limit is reached.",
}

// Lines are the lines of the screen.
func (d *WatchScreen) Lines(s Style, rows, columns int) []string {
	var lines []string
	s.Width = columns
	if d.Help {
		lines = append([]string{s.bold("Keys"), ""}, watchHelp...)
	} else if d.Sample == nil {
		lines = []string{"waiting for the first sample"}
	} else if p := d.detailed(); p != nil {
		lines = d.detail(s, p)
		lines = lines[min(d.Detail.Scrolled, max(len(lines)-1, 0)):]
	} else {
		lines = d.overview(s, rows)
	}
	keys := "? keys  ↑↓ choose  enter closer  s by " + d.Order + "  t tree  / filter  q end"
	switch {
	case d.Help:
		keys = "any key goes back"
	case d.Typing:
		keys = "/" + Line(d.Filter) + "_"
	case d.Detail != nil:
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
		lines[i], _ = Fit(line, columns)
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
	l := d.layout(s.Width, all)
	lines := []string{
		fmt.Sprintf("strandline watch  %s  %s  %s", Line(d.Sample.Time.Format("15:04:05")), count(len(all), "process"), head),
		s.dim(d.totals(all)),
		s.bold("  " + l.cells("PID", "COMMAND", "HOST", "DEVICE", "ALLOCATED, CACHED, OTHER", "") + "VERDICT"),
	}
	room := d.Room(rows)
	for i := d.Top; i < len(all) && i < d.Top+room; i++ {
		lines = append(lines, d.row(s, l, all[i]))
	}
	lines = append(lines, d.cutVerdict(l, s.Width, all)...)
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

// cutVerdict is the verdict of the chosen process where its row has no room for it.
func (d *WatchScreen) cutVerdict(l layout, columns int, all []*sample.Process) []string {
	for _, p := range all {
		v := d.verdict(p)
		if p.ID() == d.Selected && columns > 0 && 2+ansi.StringWidth(l.cells("", "", "", "", "", "")+v) > columns {
			return append([]string{""}, wrap(fmt.Sprintf("pid %d: %s", p.PID, v), columns)...)
		}
	}
	return nil
}

// totals sums up the processes that are shown.
func (d *WatchScreen) totals(all []*sample.Process) string {
	var host, device int64
	for _, p := range all {
		if p.Host != nil {
			host += p.Host.Resident()
		}
		device += onDevices(p)
	}
	text := "together: host " + units.Bytes(host)
	if device > 0 {
		text += ", device " + units.Bytes(device)
	}
	if d.Filter != "" {
		text += ", filter /" + Line(d.Filter)
	}
	return text
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

// A layout is which columns a screen has room for.
type layout struct {
	command                    int // columns
	host, device, parts, curve bool
}

// layout leaves columns out until the verdicts fit: the curve first, then the parts.
func (d *WatchScreen) layout(columns int, all []*sample.Process) layout {
	device, parts := d.columns()
	l := layout{command: 20, host: true, device: device, parts: parts, curve: true}
	verdict := len("VERDICT")
	for _, p := range all {
		verdict = max(verdict, ansi.StringWidth(d.verdict(p)))
	}
	for _, leaveOut := range []func(){
		func() { l.curve = false },
		func() { l.parts = false },
		func() { l.command = 12 },
		func() { l.host = !device },
	} {
		if columns == 0 || 2+ansi.StringWidth(l.cells("", "", "", "", "", ""))+verdict <= columns {
			break
		}
		leaveOut()
	}
	return l
}

// cells are those of a process before its verdict.
func (l layout) cells(pid, command, host, used, parts, curve string) string {
	text := padded(pid, -7) + "  " + padded(command, l.command) + " "
	if l.host {
		text += padded(host, -10) + " "
	}
	if l.device {
		text += padded(used, -10) + " "
	}
	if l.parts {
		text += " " + padded(parts, 28) + " "
	}
	if l.curve {
		text += " " + padded(curve, samples.RowPoints) + " "
	}
	return text + " "
}

// padded fills or cuts a text to columns of a terminal; below 0 it is aligned to the right.
func padded(text string, columns int) string {
	width := max(columns, -columns)
	if ansi.StringWidth(text) > width {
		text = ansi.Truncate(text, width, "…")
	}
	space := strings.Repeat(" ", width-ansi.StringWidth(text))
	if columns < 0 {
		return space + text
	}
	return text + space
}

// verdict is what is known of a process, in a line.
func (d *WatchScreen) verdict(p *sample.Process) string {
	r := d.Rows[p.ID()]
	text := Line(r.Verdict)
	if r.Left != "" {
		text += ", full " + Line(r.Left)
	}
	if n := pausedBytes(p); n > 0 {
		text = strings.TrimSuffix(units.Bytes(n)+" paused; "+text, "; ")
	}
	return text
}

func (d *WatchScreen) row(s Style, l layout, p *sample.Process) string {
	r := d.Rows[p.ID()]
	host, device, parts := "–", "", ""
	if p.Host != nil {
		host = units.Bytes(p.Host.Resident())
	}
	if n := onDevices(p); n > 0 {
		device = units.Bytes(n)
	}
	if len(p.Devices) > 0 {
		parts = deviceSplit(&p.Devices[0])
	}
	mark := "  "
	if p.ID() == d.Selected {
		mark = s.bold("> ")
	}
	verdict := d.verdict(p)
	switch r.Severity {
	case finding.Problem:
		verdict = s.red(verdict)
	case finding.Warning:
		verdict = s.yellow(verdict)
	}
	command := ""
	if depth := d.depth(p); depth > 0 {
		command = strings.Repeat("  ", depth-1) + "└ "
	}
	command += shortened(program(p.Command), 20) + stateNote(p)
	return mark + l.cells(strconv.Itoa(p.PID), Line(command), host, device, parts, spark(r.Trend)) + verdict
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
	add("%s%s", p.State, location(p))
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

// location states where a process runs.
func location(p *sample.Process) (text string) {
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
	sorts.StableBy(rows, func(a, b row) int {
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
