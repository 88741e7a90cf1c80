// Package units prints byte sizes, counts, durations and shares in one way for
// every output, and reads the sizes that people type. It is a leaf: it imports
// no other package of strandline.
//
// Sizes are printed in binary units only, as PyTorch's own messages are. They
// are rounded for people: do not parse them back, nor compute with them.
package units

import (
	"math"
	"strconv"
	"strings"
	"time"
)

var binary = [...]string{"B", "KiB", "MiB", "GiB", "TiB"}

// Bytes is n with three significant digits in the largest binary unit of which
// it is at least one: "0 B", "512 B", "1.5 KiB", "41 MiB", "-78.9 GiB".
func Bytes(n int64) string {
	size, unit := math.Abs(float64(n)), 0
	for rounded(size) >= 1024 && unit < len(binary)-1 {
		size /= 1024
		unit++
	}
	return sign(n) + number(size) + " " + binary[unit]
}

// SignedBytes is Bytes for a difference: with "+" if n is above 0.
func SignedBytes(n int64) string { return plus(n) + Bytes(n) }

// Typed is n as a person would type it, for [ParseBytes], without rounding: "80GiB",
// "1536MiB", "1000".
func Typed(n int64) string {
	switch {
	case n%(1<<30) == 0:
		return strconv.FormatInt(n>>30, 10) + "GiB"
	case n%(1<<20) == 0:
		return strconv.FormatInt(n>>20, 10) + "MiB"
	}
	return strconv.FormatInt(n, 10)
}

// Count is n with separators: "1,216,335".
func Count(n int64) string {
	digits := strings.TrimPrefix(strconv.FormatInt(n, 10), "-")
	return sign(n) + grouped(digits)
}

// SignedCount is Count for a difference: with "+" if n is above 0.
func SignedCount(n int64) string { return plus(n) + Count(n) }

// Duration is d in at most two units: "350 ms", "1.2 s", "3 min 20 s",
// "2 h 5 min", "4 d 1 h".
func Duration(d time.Duration) string {
	prefix := sign(int64(d))
	size := math.Abs(float64(d))
	for _, small := range [...]struct {
		unit  time.Duration
		name  string
		below float64 // from which on the next unit takes over
	}{{time.Nanosecond, "ns", 1000}, {time.Microsecond, "µs", 1000}, {time.Millisecond, "ms", 1000}, {time.Second, "s", 60}} {
		if x := tenths(size / float64(small.unit)); x < small.below {
			return prefix + decimal(x, 1) + " " + small.name
		}
	}
	const hour, day = 60 * 60, 24 * 60 * 60
	switch s := int64(math.Round(size / float64(time.Second))); {
	case s < hour:
		return prefix + pair(s, 60, "min", "s")
	case size < float64(day*time.Second)-float64(time.Minute)/2:
		return prefix + pair(int64(math.Round(float64(s)/60)), 60, "h", "min")
	default:
		return prefix + pair(int64(math.Round(float64(s)/hour)), 24, "d", "h")
	}
}

// Seconds is [Duration] of a number of seconds; centuries are printed as three decades.
func Seconds(s float64) string {
	const maxSeconds = 1e9
	return Duration(time.Duration(min(s, maxSeconds) * float64(time.Second)))
}

// Rate is a growth in bytes a second as people read it: "48 MiB a minute", or an hour
// or a day where that is less than 1 MiB.
func Rate(bytesPerSecond float64) string {
	for _, u := range [...]struct {
		name    string
		seconds float64
	}{{"a minute", 60}, {"an hour", 3600}} {
		if n := bytesPerSecond * u.seconds; math.Abs(n) >= 1<<20 {
			return Bytes(int64(n)) + " " + u.name
		}
	}
	return Bytes(int64(bytesPerSecond*24*3600)) + " a day"
}

// Percent is a share of 1: "0%", "<0.1%", "4.2%", "41%", "99.6%", "250%". It
// prints 0% and 100% only for what is exactly so, and "?" of what is not a number.
func Percent(share float64) string {
	percent := math.Abs(share) * 100
	switch {
	case math.IsNaN(share) || math.IsInf(share, 0):
		return "?"
	case share < 0:
		return "-" + Percent(-share)
	case percent > 0 && percent < 0.1:
		return "<0.1%"
	case percent < 100 && rounded(percent) >= 100:
		return ">99.9%"
	}
	return number(percent) + "%"
}

// pair prints n of the small unit as whole large ones and the rest.
func pair(n, perLarge int64, large, small string) string {
	s := Count(n/perLarge) + " " + large
	if rest := n % perLarge; rest > 0 {
		s += " " + strconv.FormatInt(rest, 10) + " " + small
	}
	return s
}

// tenths rounds to one decimal below 10 and to whole numbers above.
func tenths(x float64) float64 {
	if r := math.Round(x*10) / 10; r < 10 {
		return r
	}
	return math.Round(x)
}

// places is the number of decimals that makes three significant digits.
func places(x float64) int {
	switch {
	case x < 9.995:
		return 2
	case x < 99.95:
		return 1
	}
	return 0
}

// rounded is x as number prints it.
func rounded(x float64) float64 {
	scale := math.Pow10(places(x))
	return math.Round(x*scale) / scale
}

// number prints three significant digits, or all digits before the point, and
// no zeros at the end of a fraction.
func number(x float64) string { return decimal(rounded(x), places(x)) }

func decimal(x float64, places int) string {
	whole, fraction, _ := strings.Cut(strconv.FormatFloat(x, 'f', places, 64), ".")
	if fraction = strings.TrimRight(fraction, "0"); fraction != "" {
		fraction = "." + fraction
	}
	if len(whole) > 4 {
		whole = grouped(whole)
	}
	return whole + fraction
}

// grouped puts a comma before every three digits.
func grouped(digits string) string {
	var b strings.Builder
	for i, c := range digits {
		if i > 0 && (len(digits)-i)%3 == 0 {
			b.WriteByte(',')
		}
		b.WriteRune(c)
	}
	return b.String()
}

func sign(n int64) string {
	if n < 0 {
		return "-"
	}
	return ""
}

func plus(n int64) string {
	if n > 0 {
		return "+"
	}
	return ""
}

// Plural is a count of things in words: "1 file", "1,200 files", "2 processes", "3 batches".
func Plural(n int64, one string) string {
	ending := "s"
	if strings.HasSuffix(one, "s") || strings.HasSuffix(one, "ch") {
		ending = "es"
	}
	return Counted(n, one, one+ending)
}

// Counted is a count with the words for one or for more: "1 retry", "1,200 retries".
func Counted(n int64, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return Count(n) + " " + more
}

// Times is how often: "once", "1,200 times".
func Times(n int64) string {
	if n == 1 {
		return "once"
	}
	return Count(n) + " times"
}
