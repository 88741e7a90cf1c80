package times

import (
	"strings"
	"time"
)

// Dated returns the first time with a date in a line, in seconds from the beginning of 1970, or
// of the year 2000 where the line states no year (dated is false). It reads the forms that
// loggers put before their lines, without the zone, in some ten nanoseconds.
func Dated(line string) (seconds float64, dated, ok bool) {
	const maxLook = 200 // bytes in which the time stands
	line = line[:min(len(line), maxLook)]
	for at := clockColon(line, 0); at >= 0; at = clockColon(line, at+1) {
		if at+6 > len(line) || line[at+3] != ':' || !digit(line[at+4]) || !digit(line[at+5]) {
			continue
		}
		two := func(i int) int { return int(line[i]-'0')*10 + int(line[i+1]-'0') }
		h, m, s := two(at-2), two(at+1), two(at+4)
		year, month, day, found := dateBefore(line[:at-2])
		if !found || h > 23 || m > 59 || s > 60 || month < 1 || month > 12 || day < 1 || day > 31 {
			continue
		}
		base := year
		if base == 0 {
			base = 2000
		}
		seconds = float64(time.Date(base, time.Month(month), day, h, m, s, 0, time.UTC).Unix())
		if i := at + 6; i+1 < len(line) && (line[i] == '.' || line[i] == ',') {
			unit := 0.1
			for i++; i < len(line) && digit(line[i]); i++ {
				seconds += float64(line[i]-'0') * unit
				unit /= 10
			}
		}
		return seconds, year > 0, true
	}
	return 0, false, false
}

// dateBefore reads the date that ends a text, but for what separates it from the time; the
// year is 0 where there is none.
func dateBefore(text string) (year, month, day int, ok bool) {
	text = strings.TrimRight(text, " T_-")
	n := len(text)
	number := func(from, to int) int {
		x := 0
		for _, c := range []byte(text[from:to]) {
			if !digit(c) {
				return -1
			}
			x = x*10 + int(c-'0')
		}
		return x
	}
	sep := func(i int) bool { return text[i] == '-' || text[i] == '/' || text[i] == '.' }
	switch {
	case n >= 10 && sep(n-3) && sep(n-6) && number(n-10, n-6) > 1970: // 2026-01-02
		return number(n-10, n-6), number(n-5, n-3), number(n-2, n), true
	case n >= 10 && text[n-5] == '.' && text[n-8] == '.' && number(n-4, n) > 1970: // 02.01.2026
		return number(n-4, n), number(n-7, n-5), number(n-10, n-8), true
	case n >= 10 && sep(n-5) && sep(n-8) && number(n-4, n) > 1970: // 01/02/2026
		return number(n-4, n), number(n-10, n-8), number(n-7, n-5), true
	case n >= 5 && sep(n-3) && number(n-5, n-3) > 0 && number(n-2, n) > 0: // 01-02
		return 0, number(n-5, n-3), number(n-2, n), true
	case n >= 8 && number(n-8, n) > 19700000: // 20260102
		return number(n-8, n-4), number(n-4, n-2), number(n-2, n), true
	case n >= 4 && strings.IndexByte("IWEFDC", text[n-4]) >= 0 && number(n-3, n) > 0: // PyTorch's W102
		return 0, number(n-3, n-2), number(n-2, n), true
	case n >= 5 && strings.IndexByte("IWEFDC", text[n-5]) >= 0 && number(n-4, n) > 0: // Google's W0102
		return 0, number(n-4, n-2), number(n-2, n), true
	}
	return monthBefore(text)
}

// monthBefore reads "Jan  2" or "2 Jan" or "Jan 02 2026" at the end of a text.
func monthBefore(text string) (year, month, day int, ok bool) {
	const names = "JanFebMarAprMayJunJulAugSepOctNovDec"
	fields := strings.Fields(text[max(0, len(text)-16):])
	for _, f := range fields {
		f = strings.Trim(f, ",[]")
		x := 0
		for _, c := range []byte(f) {
			if !digit(c) {
				x = -1
				break
			}
			x = x*10 + int(c-'0')
		}
		switch at := strings.Index(names, f); {
		case len(f) == 3 && at >= 0 && at%3 == 0:
			month = at/3 + 1
		case x > 1970:
			year = x
		case x > 0 && x <= 31:
			day = x
		}
	}
	return year, month, day, month > 0 && day > 0
}
