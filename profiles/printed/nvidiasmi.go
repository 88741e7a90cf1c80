package printed

import (
	"errors"
	"math"
	"slices"
	"strings"

	"strandline/internal/lazyregexp"
	"strandline/internal/secret"
)

// What the columns are called.
const (
	ofDevice  = "memory.used"
	ofProcess = "GPU memory"
)

// tables reads what nvidia-smi prints without options.
type tables struct {
	*levels
	before float64 // the time before the table
	device string  // whose figures follow
}

func newTables(l *levels) reader { return &tables{levels: l, before: math.NaN()} }

var (
	tableBegin  = lazyregexp.New(`^\| NVIDIA-SMI +\d`)
	tableDevice = lazyregexp.New(`^\| +(\d+) .*\| *[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:`)
	tableLevel  = lazyregexp.New(`\| *(?:\d+% +)?(\d+) ?Mi?B ?/ *(\d+) ?Mi?B *\|`)
	tableSlice  = lazyregexp.New(`^\| +(\d+) +(\d+) +(\d+) +\d+ +\| *(\d+) ?MiB ?/ *(\d+) ?MiB *\|`)
	// A process: device, instances or N/A, pid, type, command, memory.
	tableProcess = lazyregexp.New(`^\| +(\d+) +(?:(?:N/A|\d+) +(?:N/A|\d+) +)?(\d+) +[CGM+]+ +(.*?) +(\d+ ?MiB|N/A) *\|$`)
)

func (t *tables) line(line []byte) {
	text := string(line)
	text = strings.TrimSpace(text)
	if !strings.HasPrefix(text, "|") {
		if strings.HasPrefix(text, "+") {
			if t.device != "" { // its figures are not there
				t.add(t.device, ofDevice, math.NaN(), 0)
				t.device = ""
			}
		} else if at, ok := t.clock.Alone(text); ok {
			t.before = at
		}
		return
	}
	switch {
	case tableBegin.MatchString(text):
		t.begin(t.before)
		t.before, t.device = math.NaN(), ""
	case t.rounds == 0: // it is cut off at its beginning
	case t.device != "":
		if m := tableLevel.FindStringSubmatch(text); m != nil {
			t.add(t.device, ofDevice, mebibytes(m[1]), mebibytes(m[2]))
			t.device = ""
		}
	default:
		if m := tableDevice.FindStringSubmatch(text); m != nil {
			t.device = "GPU " + m[1]
		} else if m := tableSlice.FindStringSubmatch(text); m != nil {
			t.add("GPU "+m[1]+", MIG instance "+m[2]+"/"+m[3], ofDevice, mebibytes(m[4]), mebibytes(m[5]))
		} else if m := tableProcess.FindStringSubmatch(text); m != nil {
			t.add("GPU "+m[1]+", pid "+m[2]+" "+m[3], ofProcess, mebibytes(m[4]), 0)
		}
	}
}

func (t *tables) end() error { return nil }

// query reads what nvidia-smi -q prints.
type query struct {
	*levels
	device, slice string
	section       string // the last line without a value
	pid, command  string
	total         float64
}

func newQuery(l *levels) reader { return &query{levels: l} }

func (q *query) line(line []byte) {
	text := string(line)
	name, value, ok := strings.Cut(text, ":")
	name, value = strings.TrimSpace(name), strings.TrimSpace(value)
	switch {
	case strings.Contains(text, "NVSMI LOG"):
		q.begin(math.NaN())
		q.device, q.slice, q.section = "", "", ""
	case q.rounds == 0:
	case name == "Timestamp":
		if at, ok := q.clock.Read(text); ok {
			q.date(at)
		}
	case strings.HasPrefix(text, "GPU ") && !strings.Contains(text, " : "):
		q.device, q.slice, q.section = strings.TrimSpace(text), "", ""
	case !ok:
		q.section, q.total = name, 0
		if name == "MIG Device" {
			q.slice = name
		}
	case q.device == "":
	case name == "GPU Instance ID" && q.slice != "":
		q.slice = ", MIG instance " + value
	case q.section == "FB Memory Usage" && name == "Total":
		q.total = mebibytes(value)
	case q.section == "FB Memory Usage" && name == "Used":
		q.add(q.device+q.slice, ofDevice, mebibytes(value), q.total)
	case name == "Process ID":
		q.pid, q.command = value, ""
	case name == "Name" && q.pid != "":
		q.command = " " + secret.Line(value)
	case name == "Used GPU Memory" && q.pid != "":
		q.add(q.device+", pid "+q.pid+q.command, ofProcess, mebibytes(value), 0)
		q.pid = ""
	}
}

func (q *query) end() error {
	if q.kept == 0 {
		return errors.New("this text of nvidia-smi -q states no memory: run nvidia-smi -q -d MEMORY -l 5")
	}
	return nil
}

// monitor reads what nvidia-smi dmon and pmon print.
type monitor struct {
	*levels
	names []string
	seen  map[string]bool // devices and processes since the last time
	when  string
}

func newMonitor(l *levels) reader { return &monitor{levels: l, seen: map[string]bool{}} }

func (m *monitor) line(line []byte) {
	text := string(line)
	if rest, ok := strings.CutPrefix(text, "#"); ok {
		if names := strings.Fields(strings.ToLower(rest)); slices.Contains(names, "gpu") {
			m.names = names
		}
		return
	}
	cells := strings.Fields(text)
	cell := func(name string) string {
		if i := slices.Index(m.names, name); i >= 0 && i < len(cells) {
			return cells[i]
		}
		return ""
	}
	if cell("gpu") == "" || cell("fb") == "" || cell("pid") == "-" {
		return
	}
	process, name := "GPU "+cell("gpu"), ofDevice
	if pid := cell("pid"); pid != "" {
		process, name = process+", pid "+pid, ofProcess
		if i := slices.Index(m.names, "command"); i >= 0 && i < len(cells) {
			process += " " + secret.Line(strings.Join(cells[i:], " "))
		}
	}
	when := strings.TrimSpace(cell("date") + " " + cell("time"))
	if m.rounds == 0 || m.seen[process] || when != m.when {
		at := math.NaN()
		if x, ok := m.clock.Read(when); ok {
			at = x
		}
		m.begin(at)
		clear(m.seen)
	}
	m.seen[process], m.when = true, when
	m.add(process, name, mebibytes(cell("fb")), 0)
}

func (m *monitor) end() error {
	if m.kept == 0 && !slices.Contains(m.names, "fb") {
		return errors.New("this text of nvidia-smi has no column fb, the memory in use: run dmon or pmon with -s m -o DT")
	}
	return nil
}
