package printed

import (
	"math"
	"slices"
	"strconv"
	"strings"

	"strandline/internal/lazyregexp"
	"strandline/internal/secret"
	"strandline/profiles"
	"strandline/units"
)

// listing reads what a program prints again and again below a line of names. Each such line
// begins a round, or each row, if rows begin with their time.
type listing struct {
	*levels
	*sized
	names  []string
	wide   bool    // names, and so cells, have two spaces or more between them
	timed  bool    // rows begin with their time
	column int     // that has the level
	before float64 // the time above
}

// sized is a column of sizes: its name, and the bytes of a number there without a unit.
type sized struct {
	memory string
	factor float64
}

// sizedColumns are those of ps, top, docker stats, kubectl top, Ray and sar.
var sizedColumns = []sized{
	{"RSS", 1 << 10}, {"RES", 1 << 10}, {"MEM USAGE / LIMIT", 1}, {"MEMORY(bytes)", 1}, {"MEM(GB)", 1 << 30}, {"MEM", 1}, {"kbmemused", 1 << 10},
}

func newListing(l *levels) reader {
	return &listing{levels: l, before: math.NaN()}
}

// auxRow is a row of `ps aux`, of which people cut the line of names.
const auxRow = `(?m)^[\w.@+-]+ +\d+ +\d+\.\d +\d+\.\d +\d{3,} +\d{3,} +\S+ +[RSDZTIt][A-Za-z<+]* +\S`

var (
	// escapes are what programs print to clear a terminal.
	escapes   = lazyregexp.New("\x1b\\[[0-9;?]*[A-Za-z]")
	auxRows   = lazyregexp.New(auxRow)
	auxNames  = strings.Fields("USER PID %CPU %MEM VSZ RSS TTY STAT START TIME COMMAND")
	shortAux  = strings.Fields("USER PID %CPU %MEM VSZ RSS TTY STAT COMMAND")
	auxClocks = lazyregexp.New(`^\S+ +\d+:\d\d\b`) // START and TIME
	joinedPID = lazyregexp.New(`^([A-Za-z][\w.@-]*\+)(\d)`)
	rowTime   = lazyregexp.New(`^(\d\d):(\d\d:\d\d)(?: ([AP]M))? +`)
)

func (l *listing) line(line []byte) {
	text := string(line)
	if strings.Contains(text, "\x1b") {
		text = escapes.ReplaceAllString(text, "")
	}
	when, rest := timeOf(strings.TrimSpace(text))
	if l.header(rest, when != "") {
		return
	}
	if l.names != nil && (when != "") == l.timed && l.row(rest, when) || l.aux(rest) || l.stat(rest) {
		return
	}
	if at, ok := l.clock.Alone(strings.TrimPrefix(text, "top - ")); ok && !l.timed {
		l.before = at
	}
}

// aux takes a row of `ps aux` without names above it, and reports whether it is one.
func (l *listing) aux(text string) bool {
	text = joinedPID.ReplaceAllString(text, "$1 $2")
	at := auxRows.FindStringIndex(text)
	if at == nil {
		return false
	}
	row := *l
	row.names, row.column, row.wide, row.sized = shortAux, 5, false, &sizedColumns[0]
	if auxClocks.MatchString(text[at[1]-1:]) {
		row.names = auxNames
	}
	if l.rounds == 0 {
		l.begin(l.before)
	}
	return row.row(text, "")
}

// ofCgroup is a line of memory.stat or memory.current, or of Docker's statistics in JSON.
var ofCgroup = lazyregexp.New(`^\s*"?(anon|file|cache|rss|usage|memory\.current)"?\s*[:= ]\s*(\d{4,18})\b`)

// stat takes a line on a cgroup, and reports whether it is one.
func (l *listing) stat(text string) bool {
	m := ofCgroup.FindStringSubmatch(text)
	if m == nil {
		return false
	}
	n, err := strconv.ParseInt(m[2], 10, 64)
	if err != nil {
		return false
	}
	if l.host == nil {
		l.host = &profiles.Host{}
	}
	switch m[1] {
	case "anon", "rss":
		l.host.Anonymous = &n
	case "file", "cache":
		l.host.Cache = &n
	default:
		l.host.RSS = &n
	}
	return true
}

// header takes a line of names, and reports whether it is one.
func (l *listing) header(text string, timed bool) bool {
	for i := range sizedColumns {
		c := &sizedColumns[i]
		if !strings.Contains(text, c.memory) {
			continue
		}
		wide := strings.Contains(c.memory, " ")
		names := cellsOf(text, wide)
		column := slices.Index(names, c.memory)
		if column < 0 || c.memory == "MEM" && !slices.Contains(names, "COMMAND") {
			continue
		}
		l.names, l.wide, l.timed, l.column, l.sized = names, wide, timed, column, c
		if !timed {
			l.begin(l.before)
			l.before = math.NaN()
		}
		return true
	}
	return false
}

// row takes a row, and reports whether it is one.
func (l *listing) row(text, when string) bool {
	cells := cellsOf(text, l.wide)
	pid := slices.Index(l.names, "PID")
	if len(cells) <= max(l.column, pid) || pid >= 0 && strings.Trim(cells[pid], "0123456789") != "" {
		return false
	}
	used, most, _ := strings.Cut(cells[l.column], "/")
	level := l.size(used)
	if math.IsNaN(level) {
		return false
	}
	limit := 0.0
	if most != "" {
		limit = max(l.size(most), 0)
	}
	if l.timed {
		at := math.NaN()
		if x, ok := l.clock.Read(when); ok {
			at = x
		}
		l.begin(at)
	}
	name, _, _ := strings.Cut(l.memory, " / ")
	l.add(l.process(cells), name, level, limit)
	return true
}

// process names what a row is of.
func (l *listing) process(cells []string) string {
	var parts []string
	for i, name := range l.names {
		if i >= len(cells) {
			break
		}
		switch name {
		case "PID":
			parts = append(parts, "pid "+cells[i])
		case "NAMESPACE", "POD", "NAME":
			parts = append(parts, cells[i])
		case "CONTAINER", "CONTAINER ID":
			if !slices.Contains(l.names, "NAME") {
				parts = append(parts, cells[i])
			}
		case "COMMAND", "CMD", "COMM", "ARGS":
			if i == len(l.names)-1 {
				parts = append(parts, units.Clip(secret.Line(strings.Join(cells[i:], " ")), 80))
			} else {
				parts = append(parts, cells[i])
			}
		}
	}
	return strings.Join(parts, " ")
}

// size is a size in bytes, NaN if the text is not one.
func (l *listing) size(text string) float64 {
	text = strings.TrimSpace(text)
	factor := l.factor
	if strings.HasSuffix(text, "i") { // Mi of Kubernetes
		text += "B"
	}
	const maxBytes = 1 << 50
	if x, err := strconv.ParseFloat(text, 64); err == nil && x >= 0 && x < maxBytes/factor {
		return x * factor
	}
	n, err := units.ParseBytes(text)
	if err != nil || n > maxBytes {
		return math.NaN()
	}
	return float64(n)
}

// cellsOf are the cells of a line.
func cellsOf(text string, wide bool) (cells []string) {
	if !wide {
		return strings.Fields(text)
	}
	for cell := range strings.SplitSeq(text, "  ") {
		if cell = strings.TrimSpace(cell); cell != "" {
			cells = append(cells, cell)
		}
	}
	return cells
}

// timeOf cuts the time off from what begins with one, as a clock of 24 hours shows it.
func timeOf(text string) (when, rest string) {
	m := rowTime.FindStringSubmatch(text)
	if m == nil {
		return "", text
	}
	hour := 10*int(m[1][0]-'0') + int(m[1][1]-'0')
	switch {
	case m[3] == "PM" && hour < 12:
		hour += 12
	case m[3] == "AM" && hour == 12:
		hour = 0
	}
	return string([]byte{'0' + byte(hour/10), '0' + byte(hour%10), ':'}) + m[2], text[len(m[0]):]
}

func (l *listing) end() error { return nil }
