package procfs

import (
	"math"
	"testing"
)

func TestParseLimit(t *testing.T) {
	const text = "Limit                     Soft Limit           Hard Limit           Units     \n" +
		"Max cpu time              unlimited            unlimited            seconds   \n" +
		"Max file size             2000                 unlimited            bytes     \n" +
		"Max open files            x                    4096                 files     \n"
	for _, c := range []struct {
		name string
		want uint64
		bad  bool
	}{
		{"Max cpu time", math.MaxUint64, false},
		{"Max file size", 2000, false},
		{"Max open files", 0, true},
		{"Max locks", 0, true},
	} {
		if got, err := parseLimit(text, c.name); got != c.want || err != nil != c.bad {
			t.Errorf("%s: %d, %v", c.name, got, err)
		}
	}
}
