// Package times finds the times in lines of text, as date, loggers and nvidia-smi write
// them.
package times

import (
	"math"
	"strconv"
	"strings"
	"time"

	"strandline/internal/lazyregexp"
)

// A form is one way to write a time.
type form struct {
	at      *lazyregexp.Regexp // the first group is the time
	layouts []string           // of package time; none for seconds since 1970
	// period is the number of seconds after which such a time comes again; 0 if it never
	// does.
	period float64
}

const (
	day  = 24 * 3600
	year = 366 * day // times without a year are of year 0, which is a leap year
)

var forms = []form{
	{lazyregexp.New(`(?:^|[^\d])(\d{4}[-/.]\d\d[-/.]\d\d[T _,]?\s{0,2}\d\d:\d\d(?::\d\d)?(?:[.,]\d{1,9})?(?: ?(?:Z|[+-]\d\d:?\d\d))?)`), []string{
		"2006-01-02 15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05Z0700", "2006-01-02 15:04", "2006-01-02 15:04Z07:00", "2006-01-02 15:04Z0700",
	}, 0},
	{lazyregexp.New(`\b(\d\d/\d\d/\d{4}[T, -]{1,3}\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)`), []string{"01-02-2006 15:04:05"}, 0}, // as Americans write
	{lazyregexp.New(`\b((?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? [A-Z][a-z]{2} +\d{1,2},? \d\d:\d\d:\d\d(?: [AP]M)?(?: [A-Z]{3,5})? \d{4})\b`), []string{
		"Mon Jan 2 15:04:05 2006", "Mon Jan 2 15:04:05 MST 2006", "Mon Jan 2 03:04:05 PM MST 2006", "Mon Jan 2 03:04:05 PM 2006",
	}, 0},
	{lazyregexp.New(`\b((?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? \d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d(?: [AP]M)?(?: [A-Z]{3,5})?)\b`), []string{
		"Mon 2 Jan 2006 15:04:05", "Mon 2 Jan 2006 15:04:05 MST", "Mon 2 Jan 2006 03:04:05 PM MST", "Mon 2 Jan 2006 03:04:05 PM",
	}, 0},
	{lazyregexp.New(`\b(\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d{1,9})?)\b`), []string{"01-02 15:04:05"}, year},
	{lazyregexp.New(`\b((?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d +\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)\b`), []string{"Jan 2 15:04:05"}, year},
	{lazyregexp.New(`(?:\b|[IWEF])(\d{4} +\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)`), []string{"0102 15:04:05"}, year}, // Google's loggers
	{lazyregexp.New(`\b(\d{8}[- _]\d\d:\d\d:\d\d)\b`), []string{"20060102 15:04:05"}, 0},
	{lazyregexp.New(`\b(\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)\b`), []string{"15:04:05"}, day},
	{lazyregexp.New(`^\W*(1\d{9}(?:\.\d+)?|1\d{12})\W*$`), nil, 0},
}

// A Clock reads the times of a text, in their order. The zero value is ready to use.
type Clock struct {
	form *form // of the first time; others are left out
	last float64
	add  float64 // for periods that have passed

	written writing // of the last time
}

// A writing is a time in a line with what is around it: a byte before and two behind.
type writing struct {
	before, text, behind string
	seconds              float64
}

// Read returns the time in a line, in seconds from a moment that is the same for all of
// them. Only times that are written as the first one are found. Where these lack the year
// or the date, one far below the last is of the next year or day.
func (c *Clock) Read(line string) (seconds float64, ok bool) {
	if c.form != nil {
		seconds, ok = c.form.read(line, &c.written)
	} else {
		for i := range forms {
			if seconds, ok = forms[i].read(line, &c.written); ok {
				c.form, c.last = &forms[i], seconds
				break
			}
		}
	}
	if !ok {
		return 0, false
	}
	if p := c.form.period; p > 0 {
		if seconds+c.add < c.last-p/2 {
			c.add += p
		}
		seconds += c.add
		c.last = max(c.last, seconds)
	}
	return seconds, true
}

// before is what may stand before a time in a line of its own.
var before = lazyregexp.New(`^\W*(?i:(?:date|time|timestamp|at|now)\b\W*)?(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\b|[\d:]{5,8}\b|\d{4}[-/]|\d{8}[- _]|1\d{9}\b|1\d{12}\b)`)

// Alone is [Clock.Read] for a line that begins with its time, such as a loop writes
// between what it prints.
func (c *Clock) Alone(line string) (seconds float64, ok bool) {
	if !before.MatchString(line) {
		return 0, false
	}
	return c.Read(line)
}

// read reads the first time in a line. Most lines write it as the last one did.
func (f *form) read(line string, last *writing) (seconds float64, ok bool) {
	text, ok := last.alike(line)
	if ok && text == last.text {
		return last.seconds, true
	}
	if !ok {
		if text, ok = f.find(line); !ok {
			return 0, false
		}
	}
	if seconds, ok = f.parse(text); ok && f.layouts != nil {
		*last = writtenAt(line, strings.Index(line, text), len(text))
		last.seconds = seconds
	}
	return seconds, ok
}

func writtenAt(line string, at, n int) writing {
	end := at + n
	return writing{before: line[max(0, at-1):at], text: line[at:end], behind: line[end:min(len(line), end+2)]}
}

// alike returns the time at the first colon between digits if it is written as w is, with
// the same around it: then it is the one that would be found.
func (w *writing) alike(line string) (string, bool) {
	at := clockColon(line, 0)
	from := at - strings.IndexByte(w.text, ':')
	if w.text == "" || at < 0 || from < 0 || from+len(w.text) > len(line) {
		return "", false
	}
	found := writtenAt(line, from, len(w.text))
	if found.before != w.before || found.behind != w.behind || strings.ContainsAny(w.behind, "+-.,") {
		return "", false
	}
	for i := range len(w.text) {
		if a, b := found.text[i], w.text[i]; a != b && !(digit(a) && digit(b)) {
			return "", false
		}
	}
	return found.text, true
}

// clockColon is the index of the next colon between two digits each, -1 if there is none.
func clockColon(line string, at int) int {
	for ; ; at++ {
		next := strings.IndexByte(line[at:], ':')
		if next < 0 {
			return -1
		}
		if at += next; at >= 2 && at+2 < len(line) && digit(line[at-2]) && digit(line[at-1]) && digit(line[at+1]) && digit(line[at+2]) {
			return at
		}
	}
}

// parse reads a time that was found.
func (f *form) parse(text string) (seconds float64, ok bool) {
	if f.layouts == nil {
		x, err := strconv.ParseFloat(text, 64)
		if x > 1e11 { // milliseconds
			x /= 1000
		}
		return x, err == nil && !math.IsInf(x, 0)
	}
	text = plain(text)
	for _, l := range f.layouts {
		if t, err := time.Parse(l, text); err == nil {
			return float64(t.Unix()) + float64(t.Nanosecond())/1e9, true
		}
	}
	return 0, false
}

// find returns the first time in a line. But for seconds since 1970 it looks only around
// colons between two digits each, which all times have first after the hour.
func (f *form) find(line string) (text string, ok bool) {
	const (
		around = 40 // bytes: more than any time has before that colon, or behind it
		zone   = 24 // more than parts of a second and a zone have
	)
	if f.layouts == nil {
		return first(f.at.FindStringSubmatch(line))
	}
	for at := clockColon(line, 0); at >= 0; at = clockColon(line, at+1) {
		from, to := max(0, at-around), min(len(line), at+around)
		text, ok = first(f.at.FindStringSubmatch(line[from:to]))
		if ok && to < len(line) && strings.Index(line[from:to], text)+len(text) > to-from-zone { // it may be cut
			text, ok = first(f.at.FindStringSubmatch(line))
		}
		if ok {
			return text, true
		}
	}
	return "", false
}

// first is the first group of a match.
func first(m []string) (string, bool) {
	if m == nil {
		return "", false
	}
	return m[1], true
}

func digit(c byte) bool { return '0' <= c && c <= '9' }

// plain is a time as the layouts have it: with single blanks, dashes in the date and a
// point before parts of a second.
func plain(text string) string {
	b := []byte(text)
	for i, c := range b {
		digit := func(k int) bool { return k >= 0 && k < len(b) && digit(b[k]) }
		switch {
		case c == '/', c == '.' && (i == 4 || i == 7):
			b[i] = '-'
		case (c == 'T' || c == '_' || c == ',' || c == '-' && i == 8) && digit(i-1) && digit(i+1) && i >= 8 && i <= 10:
			b[i] = ' '
		case c == ',' && digit(i-1) && digit(i+1):
			b[i] = '.'
		case c == ',', c == '-' && i > 0 && i+1 < len(b) && b[i-1] == ' ' && b[i+1] == ' ':
			b[i] = ' '
		}
	}
	text = strings.Join(strings.Fields(string(b)), " ")
	for _, sign := range []string{" +", " Z"} { // a blank before the zone
		text = strings.Replace(text, sign, sign[1:], 1)
	}
	return text
}
