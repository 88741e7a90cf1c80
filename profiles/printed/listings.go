package printed

import (
	"math"
	"slices"
	"strings"

	"strandline/internal/lazyregexp"
	"strandline/internal/secret"
	"strandline/units"
)

// listing reads what a program prints again and again below a line of names. Each such line
// begins a round, or each row, if rows begin with their time.
type listing struct {
	*levels
	memory string // the name of the column that is read
	factor int64  // bytes of a number there without a unit
	names  []string
	wide   bool    // names, and so cells, have two spaces or more between them
	timed  bool    // rows begin with their time
	column int     // that has the level
	before float64 // the time above
}

func newListing(memory string, factor int64) func(*levels) reader {
	return func(l *levels) reader {
		return &listing{levels: l, memory: memory, factor: factor, before: math.NaN()}
	}
}

var (
	// escapes are what programs print to clear a terminal.
	escapes = lazyregexp.New("\x1b\\[[0-9;?]*[A-Za-z]")
	rowTime = lazyregexp.New(`^(\d\d):(\d\d:\d\d)(?: ([AP]M))? +`)
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
	if l.names != nil && (when != "") == l.timed && l.row(rest, when) {
		return
	}
	if at, ok := l.clock.Alone(strings.TrimPrefix(text, "top - ")); ok && !l.timed {
		l.before = at
	}
}

// header takes a line of names, and reports whether it is one.
func (l *listing) header(text string, timed bool) bool {
	if !strings.Contains(text, l.memory) {
		return false
	}
	wide := strings.Contains(l.memory, " ")
	names := cellsOf(text, wide)
	column := slices.Index(names, l.memory)
	if column < 0 {
		return false
	}
	l.names, l.wide, l.timed, l.column = names, wide, timed, column
	if !timed {
		l.begin(l.before)
		l.before = math.NaN()
	}
	return true
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
	if text == "" || text[len(text)-1] > '9' {
		factor = 1
		if strings.HasSuffix(text, "i") { // Mi of Kubernetes
			text += "B"
		}
	}
	n, err := units.ParseBytes(text)
	if err != nil || n > 1<<50/factor {
		return math.NaN()
	}
	return float64(n * factor)
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
