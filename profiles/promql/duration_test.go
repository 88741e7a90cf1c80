package promql

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/prometheus/common/model"
)

// TestDuration compares times with those of Prometheus's own package.
func TestDuration(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 10_000 {
		d := time.Duration(r.Int64N(1 << r.Int64N(62)))
		if r.IntN(4) == 0 {
			d = d.Truncate([]time.Duration{time.Second, time.Hour, 24 * time.Hour, 7 * 24 * time.Hour}[r.IntN(4)])
		}
		text := model.Duration(d).String()
		if got := duration(d); got != text {
			t.Fatalf("%d ns are printed as %s, want %s", d, got, text)
		}
		if got, err := ParseDuration(text); err != nil || got != d.Truncate(time.Millisecond) {
			t.Fatalf("%s is read as %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "1", "h", "1h1d", "1h1h", "-1h", "1.5h", "1 h", "1mo", "300y", "9223372036854775808ms", "1h300y", "1hé", "90m", "1y2w3d4h5m6s7ms", "007m", "292y"} {
		want, err := model.ParseDuration(text)
		got, gotErr := ParseDuration(text)
		if (err == nil) != (gotErr == nil) || got != time.Duration(want) {
			t.Errorf("%q is read as %s, %v; want %s, %v", text, got, gotErr, time.Duration(want), err)
		}
	}
}
