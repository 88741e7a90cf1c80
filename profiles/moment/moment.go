// Package moment finds the times in lines of text, as date, loggers and nvidia-smi write
// them.
package moment

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
	{lazyregexp.New(`(?:^|[^\d])(\d{4}[-/]\d\d[-/]\d\d[T _,]?\s?\d\d:\d\d(?::\d\d)?(?:[.,]\d{1,9})?(?: ?(?:Z|[+-]\d\d:?\d\d))?)`), []string{
		"2006-01-02 15:04:05", "2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05Z0700", "2006-01-02 15:04", "2006-01-02 15:04Z07:00", "2006-01-02 15:04Z0700",
	}, 0},
	{lazyregexp.New(`\b((?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? [A-Z][a-z]{2} +\d{1,2},? \d\d:\d\d:\d\d(?: [AP]M)?(?: [A-Z]{3,5})? \d{4})\b`), []string{
		"Mon Jan 2 15:04:05 2006", "Mon Jan 2 15:04:05 MST 2006", "Mon Jan 2 03:04:05 PM MST 2006", "Mon Jan 2 03:04:05 PM 2006",
	}, 0},
	{lazyregexp.New(`\b((?:Mon|Tue|Wed|Thu|Fri|Sat|Sun),? \d{1,2} [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d(?: [AP]M)?(?: [A-Z]{3,5})?)\b`), []string{
		"Mon 2 Jan 2006 15:04:05", "Mon 2 Jan 2006 15:04:05 MST", "Mon 2 Jan 2006 03:04:05 PM MST", "Mon 2 Jan 2006 03:04:05 PM",
	}, 0},
	{lazyregexp.New(`\b(\d\d-\d\d \d\d:\d\d:\d\d(?:[.,]\d{1,9})?)\b`), []string{"01-02 15:04:05"}, year},
	{lazyregexp.New(`\b((?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec) [ \d]\d \d\d:\d\d:\d\d(?:[.,]\d{1,9})?)\b`), []string{"Jan 2 15:04:05"}, year},
	{lazyregexp.New(`\b(\d{8}[- _]\d\d:\d\d:\d\d)\b`), []string{"20060102 15:04:05"}, 0},
	{lazyregexp.New(`\b(\d\d:\d\d:\d\d(?:[.,]\d{1,9})?)\b`), []string{"15:04:05"}, day},
	{lazyregexp.New(`^\W*(1\d{9}(?:\.\d+)?|1\d{12})\W*$`), nil, 0},
}

// A Clock reads the times of a text, in their order. The zero value is ready to use.
type Clock struct {
	form *form // of the first time; others are left out
	last float64
	add  float64 // for periods that have passed
}

// Read returns the time in a line, in seconds from a moment that is the same for all of
// them. Only times that are written as the first one are found. Where these lack the year
// or the date, one far below the last is of the next year or day.
func (c *Clock) Read(line string) (seconds float64, ok bool) {
	if c.form != nil {
		seconds, ok = c.form.read(line)
	} else {
		for i := range forms {
			if seconds, ok = forms[i].read(line); ok {
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

func (f *form) read(line string) (seconds float64, ok bool) {
	m := f.at.FindStringSubmatch(line)
	if m == nil {
		return 0, false
	}
	text := m[1]
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

// plain is a time as the layouts have it: with single blanks, dashes in the date and a
// point before parts of a second.
func plain(text string) string {
	b := []byte(text)
	for i, c := range b {
		digit := func(k int) bool { return k >= 0 && k < len(b) && '0' <= b[k] && b[k] <= '9' }
		switch {
		case c == '/':
			b[i] = '-'
		case (c == 'T' || c == '_' || c == ',' || c == '-' && i == 8) && digit(i-1) && digit(i+1) && i >= 8 && i <= 10:
			b[i] = ' '
		case c == ',' && digit(i-1) && digit(i+1):
			b[i] = '.'
		case c == ',':
			b[i] = ' '
		}
	}
	text = strings.Join(strings.Fields(string(b)), " ")
	for _, sign := range []string{" +", " Z"} { // a blank before the zone
		text = strings.Replace(text, sign, sign[1:], 1)
	}
	return text
}
