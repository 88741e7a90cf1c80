package times

import (
	"bytes"
	"math"
	"strconv"
	"time"

	"strandline/internal/lazyregexp"
)

// A Stamp is a time as a log writes it. Only stamps of one form can be compared.
type Stamp struct {
	Text    string // as it is there, to the second
	period  float64
	seconds float64
}

// To is the time from one stamp to a later one. Where they are of different forms,
// or the later one is earlier, it is unknown; a clock without a date is taken to
// have passed midnight.
func (s *Stamp) To(later *Stamp) (d time.Duration, ok bool) {
	if s == nil || later == nil || s.period != later.period {
		return 0, false
	}
	seconds := later.seconds - s.seconds
	if seconds < 0 && s.period == day {
		seconds += day
	}
	return time.Duration(math.Round(seconds*1e6)) * time.Microsecond, seconds >= 0
}

// epoch is a number of seconds or milliseconds since 1970 anywhere in a line; parts of a second
// and a zone are what a stamp does not show.
var (
	epoch     = lazyregexp.New(`\b(1\d{9}(?:\.\d{1,9}|\d{3})?)\b`)
	partsZone = lazyregexp.New(`(?:[.,]\d{1,9})? ?(?:Z|[+-]\d\d:?\d\d)?$`)
)

// In is the first time in a text, of the fullest form; nil if there is none.
func In(text string) *Stamp {
	for i := range forms {
		f := &forms[i]
		if f.layouts == nil {
			continue
		}
		if found, ok := f.find(text); ok {
			if seconds, ok := f.parse(found); ok {
				return &Stamp{partsZone.ReplaceAllString(found, ""), f.period, seconds}
			}
		}
	}
	if m := epoch.FindStringSubmatch(text); m != nil {
		seconds, _ := strconv.ParseFloat(m[1], 64)
		if seconds > 1e11 { // milliseconds
			seconds /= 1000
		}
		return &Stamp{time.Unix(int64(seconds), 0).UTC().Format(time.DateTime), 0, seconds}
	}
	return nil
}

// Likely reports whether a line may contain a time, and costs little.
func Likely(line []byte) bool {
	const epochDigits = 10
	for i := epochDigits - 1; i < len(line); i += epochDigits { // one of them is in each such number
		from, to := i, i
		for from > 0 && digit(line[from-1]) {
			from--
		}
		for to < len(line) && digit(line[to]) {
			to++
		}
		if to > i && to-from >= epochDigits {
			return true
		}
	}
	for at := 0; ; at++ {
		i := bytes.IndexByte(line[at:], ':')
		if i < 0 {
			return false
		}
		if at += i; at > 0 && digit(line[at-1]) && at+1 < len(line) && digit(line[at+1]) {
			return true
		}
	}
}
