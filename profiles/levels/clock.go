package levels

import (
	"math"
	"strconv"
	"strings"
	"time"

	"strandline/internal/lazyregexp"
)

// A clock reads the times of a column.
type clock struct {
	layout string  // of package time; "" for numbers
	factor float64 // seconds of a number
	unit   string  // what a number counts, if it is no time
	// elapsed is a time since a start: minutes and seconds, with the hours and the days
	// before them, as ps prints it.
	elapsed bool
}

// countName are columns that count what a program does.
var countName = lazyregexp.New(`(?i)(?:^|[_ ./-])(steps?|iter|iters|iterations?|epochs?|batch|batches|rounds?|requests?|samples?|tokens?|generations?|episodes?)(?:[_ ](?:idx|index|id|no|num|number|count))?$`)

// unitOfCount is what such a column counts, in the singular.
func unitOfCount(name string) string {
	name = strings.ToLower(name)
	switch {
	case strings.HasPrefix(name, "iter"):
		return "iteration"
	case strings.HasPrefix(name, "batch"):
		return "batch"
	}
	return strings.TrimSuffix(name, "s")
}

// since1970 reports whether a number is likely to be seconds since 1970: of this century.
func since1970(cell string) bool {
	const first = 946_684_800 // of the year 2000
	x, err := strconv.ParseFloat(cell, 64)
	return err == nil && x >= first
}

var (
	elapsedName = lazyregexp.New(`(?i)(elapsed|uptime|etime|duration|runtime|run time|since)`)
	elapsedForm = lazyregexp.New(`^(?:(?:(\d{1,5})[- ])?(\d{1,6}):)?(\d{1,6}):(\d\d(?:[.,]\d+)?)$`)
)

// yearZero is the time of the first year, which a clock without a date states, as seconds
// before 1970.
const yearZero = 62_167_219_200

// sinceStart reports whether a cell cannot be a time of the day, as those before it were
// taken to be, but a time since a start; one of those is then so many seconds.
func (c clock) sinceStart(cell string) (factor float64, ok bool) {
	_, ok = elapsed(cell)
	switch c.layout {
	case "15:04":
		return 1. / 60, ok
	case "15:04:05":
		return 1, ok
	}
	return 0, false
}

// elapsed reads a time since a start.
func elapsed(cell string) (seconds float64, ok bool) {
	m := elapsedForm.FindStringSubmatch(cell)
	if m == nil {
		return 0, false
	}
	for i, part := range m[1:] {
		x, _ := strconv.ParseFloat(strings.Replace(part, ",", ".", 1), 64) // an absent part is 0
		seconds = seconds*[]float64{1, 24, 60, 60}[i] + x
	}
	return seconds, true
}

var layouts = []string{
	time.RFC3339, "2006-01-02 15:04:05Z07:00", "2006-01-02T15:04:05Z0700", "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006/01/02 15:04:05",
	"2006-01-02 15:04:05 -0700 MST", "2006-01-02 15:04:05 -0700", "2006-01-02 15:04:05 MST",
	"2006-01-02 15:04", "2006-01-02T15:04", "2006/01/02 15:04", "02/Jan/2006:15:04:05 -0700", "02.01.2006 15:04:05", "01/02/2006 15:04:05", "02/01/2006 15:04:05", "01/02/2006 15:04", "02/01/2006 15:04",
	"01/02/2006 03:04:05 PM", "01/02/2006 03:04 PM", "Mon Jan _2 03:04:05 PM MST 2006", "Jan _2 15:04:05", "Jan _2 15:04:05 2006", "Jan _2, 2006 15:04:05", time.ANSIC, time.UnixDate, time.RFC1123, time.RFC1123Z, "15:04:05", "15:04", "20060102-150405", "20060102_150405", "2006-01-02_15-04-05", "2006-01-02", "2006/01/02",
}

var unitOfTime = lazyregexp.New(`(?i)[\[( _.-](ms|millis|milliseconds|us|µs|micros|microseconds|ns|nanos|nanoseconds|m|min|mins|minutes|h|hours?|days?)[\])]*$`)

// clockOf is the clock of a column with this name and first cell.
func clockOf(name, cell string) clock {
	c, _ := parseClock(cell)
	if _, ok := elapsed(cell); ok && (c.layout == "" || elapsedName.MatchString(name)) {
		return clock{elapsed: true}
	}
	if c.layout != "" {
		return c
	}
	if m := unitOfTime.FindStringSubmatch(" " + name); m != nil {
		switch u := strings.ToLower(m[1]); {
		case strings.HasPrefix(u, "mi") && strings.HasPrefix(u, "min"), u == "m":
			c.factor = 60
		case u == "ms", strings.HasPrefix(u, "milli"):
			c.factor = 1e-3
		case strings.HasPrefix(u, "u"), strings.HasPrefix(u, "µ"), strings.HasPrefix(u, "micro"):
			c.factor = 1e-6
		case strings.HasPrefix(u, "n"):
			c.factor = 1e-9
		case strings.HasPrefix(u, "h"):
			c.factor = 3600
		case strings.HasPrefix(u, "d"):
			c.factor = 24 * 3600
		}
	}
	return c
}

// parseClock finds out how a time is written.
func parseClock(cell string) (clock, bool) {
	if x, err := strconv.ParseFloat(cell, 64); err == nil && !math.IsNaN(x) && !math.IsInf(x, 0) {
		// Seconds since 1970 have ten digits.
		switch {
		case x > 1e17:
			return clock{factor: 1e-9}, true
		case x > 1e14:
			return clock{factor: 1e-6}, true
		case x > 1e11:
			return clock{factor: 1e-3}, true
		}
		return clock{factor: 1}, true
	}
	const longest = 40 // bytes of a date
	if len(cell) > longest {
		return clock{}, false
	}
	for _, l := range layouts {
		if _, err := time.Parse(l, strings.Replace(cell, ",", ".", 1)); err == nil {
			return clock{layout: l}, true
		}
	}
	if _, ok := elapsed(cell); ok {
		return clock{elapsed: true}, true
	}
	return clock{}, false
}

// read reads a time, in seconds from a moment that is the same for all.
func (c clock) read(cell string) (seconds float64, ok bool) {
	if c.elapsed {
		return elapsed(cell)
	}
	if c.layout == "" {
		x, err := strconv.ParseFloat(cell, 64)
		return x * c.factor, err == nil && !math.IsNaN(x) && !math.IsInf(x, 0)
	}
	t, err := time.Parse(c.layout, strings.Replace(cell, ",", ".", 1))
	return float64(t.Unix()) + float64(t.Nanosecond())/1e9, err == nil
}
