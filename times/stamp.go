package times

import (
	"bytes"
	"strconv"
	"strings"
	"time"

	"strandline/internal/lazyregexp"
)

// A Stamp is a time as a log writes it. Only stamps of one form can be compared.
type Stamp struct {
	Text string // as it is there, to the second
	form int
	at   time.Time // in UTC where no zone is given
}

// Forms of stamps that lack something.
const (
	complete  = iota
	yearless  // of the year 0
	clockOnly // of the first day of the year 0
)

// To is the time from one stamp to a later one. Where they are of different forms,
// or the later one is earlier, it is unknown; a clock without a date is taken to
// have passed midnight.
func (s *Stamp) To(later *Stamp) (d time.Duration, ok bool) {
	if s == nil || later == nil || s.form != later.form {
		return 0, false
	}
	d = later.at.Sub(s.at)
	if d < 0 && s.form == clockOnly {
		d += 24 * time.Hour
	}
	return d, d >= 0
}

const ofDay = `(\d\d):(\d\d):(\d\d)(?:[.,](\d{1,9}))?`

// stamps are the forms of times in logs, with the groups of the parts:
// year, month, day, time of day (four groups), zone.
var stamps = []struct {
	pattern *lazyregexp.Regexp
	form    int
	parts   [5]int // 0: not stated
}{
	{lazyregexp.New(`\b(\d{4})[-/.](\d\d)[-/.](\d\d)[T_ ]+` + ofDay + `(Z|[+-]\d\d:?\d\d\b)?`), complete, [5]int{1, 2, 3, 4, 8}},
	{lazyregexp.New(`\b(\d\d)/(\d\d)/(\d{4})[T, -]+` + ofDay), complete, [5]int{3, 1, 2, 4, 0}}, // as Americans write
	{lazyregexp.New(`\b([A-Z][a-z]{2}) +(\d{1,2}) +` + ofDay), yearless, [5]int{0, 1, 2, 3, 0}},
	{lazyregexp.New(`(?:\b|[IWEF])(\d\d)-?(\d\d) +` + ofDay), yearless, [5]int{0, 1, 2, 3, 0}},
	{lazyregexp.New(`\b` + ofDay), clockOnly, [5]int{0, 0, 0, 1, 0}},
}

var epoch = lazyregexp.New(`\b(1\d{9})(?:\.(\d{1,9})|(\d{3}))?\b`)

// In is the first time in a text, of the fullest form; nil if there is none.
func In(text string) *Stamp {
	for _, s := range stamps {
		at := s.pattern.FindStringSubmatchIndex(text)
		if at == nil {
			continue
		}
		group := func(i int) string {
			if i == 0 || at[2*i] < 0 {
				return ""
			}
			return text[at[2*i]:at[2*i+1]]
		}
		part := func(i, missing int) int {
			if s.parts[i] == 0 {
				return missing
			}
			return numeral(group(s.parts[i]))
		}
		seconds := s.parts[3] + 2
		day, month, hour := part(2, 1), time.Month(part(1, 1)), part(3, 0)
		t := time.Date(part(0, 0), month, day, hour, numeral(group(seconds-1)), numeral(group(seconds)), fraction(group(seconds+1)), time.UTC)
		if t.Day() != day || t.Month() != month || t.Hour() != hour {
			continue // 12:61:00 is not a time
		}
		return &Stamp{strings.TrimLeft(text[at[0]:at[2*seconds+1]], "IWEF"), s.form, t.Add(-zone(group(s.parts[4])))}
	}
	if m := epoch.FindStringSubmatch(text); m != nil {
		seconds, _ := strconv.ParseInt(m[1], 10, 64)
		at := time.Unix(seconds, int64(fraction(m[2]+m[3]))).UTC()
		return &Stamp{at.Format(time.DateTime), complete, at}
	}
	return nil
}

// numeral is the value of digits, or of the name of a month.
func numeral(text string) int {
	if n, err := strconv.Atoi(text); err == nil {
		return n
	}
	const names = "JanFebMarAprMayJunJulAugSepOctNovDec"
	if i := strings.Index(names, text); i >= 0 && i%3 == 0 {
		return i/3 + 1
	}
	return 0
}

// fraction returns what is behind the seconds, in nanoseconds.
func fraction(digits string) int {
	const places = 9
	n, _ := strconv.Atoi((digits + strings.Repeat("0", places))[:places])
	return n
}

// zone returns how far a time of "+02:00" is ahead.
func zone(text string) time.Duration {
	text = strings.ReplaceAll(text, ":", "")
	if len(text) < 5 { // Z, or none
		return 0
	}
	d := time.Duration(numeral(text[1:3]))*time.Hour + time.Duration(numeral(text[3:5]))*time.Minute
	if text[0] == '-' {
		return -d
	}
	return d
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
