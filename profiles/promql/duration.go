package promql

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// timeUnits are those of Prometheus, which has no months: from the largest to the
// smallest, the order in which a time states them. That of a year and of a week is used
// in print only where nothing is left over.
var timeUnits = []struct {
	name  string
	each  time.Duration
	exact bool
}{
	{"y", 365 * 24 * time.Hour, true},
	{"w", 7 * 24 * time.Hour, true},
	{"d", 24 * time.Hour, false},
	{"h", time.Hour, false},
	{"m", time.Minute, false},
	{"s", time.Second, false},
	{"ms", time.Millisecond, false},
}

// ParseDuration reads a time as Prometheus writes it: 90m, 1h30m, 2d.
func ParseDuration(text string) (time.Duration, error) {
	wrong := fmt.Errorf("%q is not a time such as 90m, 1h30m or 2d", text)
	var sum time.Duration
	rest, left := text, timeUnits
	for rest != "" {
		unit := strings.TrimLeft(rest, "0123456789")
		n, err := strconv.ParseInt(rest[:len(rest)-len(unit)], 10, 64)
		if err != nil {
			return 0, wrong
		}
		rest = strings.TrimLeft(unit, "abcdefghijklmnopqrstuvwxyz")
		unit = unit[:len(unit)-len(rest)]
		for len(left) > 0 && left[0].name != unit {
			left = left[1:]
		}
		if len(left) == 0 || n > int64((1<<63-1-sum)/left[0].each) {
			return 0, wrong
		}
		sum += time.Duration(n) * left[0].each
		left = left[1:]
	}
	if text == "" {
		return 0, wrong
	}
	return sum, nil
}

// duration prints a time as Prometheus reads it, to the millisecond.
func duration(d time.Duration) string {
	var out strings.Builder
	for _, u := range timeUnits {
		if n := d / u.each; n > 0 && (!u.exact || d%u.each < time.Millisecond) {
			fmt.Fprintf(&out, "%d%s", n, u.name)
			d -= n * u.each
		}
	}
	if out.Len() == 0 {
		return "0s"
	}
	return out.String()
}
