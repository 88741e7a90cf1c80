package malloc

import (
	"fmt"
	"math"
	"slices"
	"testing"
	"time"

	"strandline/host/code/symbolize"
	"strandline/stack"
)

func moment(seconds float64) time.Time {
	return time.Unix(1000, 0).Add(time.Duration(seconds * float64(time.Second)))
}

// series are looks a second apart, at which stack 1 of a process holds so many bytes; a
// negative number begins a span.
func series(p process, bytes ...float64) (out []look) {
	for i, b := range bytes {
		l := look{at: moment(float64(i)), first: b < 0 || i == 0, kept: map[process]map[int]sum{p: {1: {bytes: math.Abs(b), count: 1, variance: 2}}}}
		out = append(out, l)
	}
	return out
}

func TestKeptOfSpans(t *testing.T) {
	p := process{7, 1}
	for _, c := range []struct {
		name  string
		looks []look
		until float64
		bytes float64
		spans []Span
	}{
		{"without the first quarter", series(p, 0, 100, 200, 300, 400), 9, 300, []Span{{moment(1), moment(4), nil}}},
		{"until a time", series(p, 0, 100, 200, 300, 400), 2.5, 100, []Span{{moment(1), moment(2), nil}}},
		{"two spans", series(p, 0, 100, 200, -1000, 1100, 1200), 9, 200, []Span{{moment(1), moment(2), nil}, {moment(4), moment(5), nil}}},
		{"one look", series(p, 5), 9, 0, nil},
		{"none", nil, 9, 0, nil},
		{"another program", series(process{7, 2}, 0, 100, 200), 9, 0, nil},
	} {
		sums, spans := kept(c.looks, p, moment(c.until))
		if sums[1].bytes != c.bytes || !slices.Equal(spans, c.spans) {
			t.Errorf("%s: %v bytes in %v, want %v in %v", c.name, sums[1].bytes, spans, c.bytes, c.spans)
		}
		if c.spans != nil && sums[1].variance != 4*float64(len(c.spans)) {
			t.Errorf("%s: a variance of %v", c.name, sums[1].variance)
		}
	}
}

// TestGrowth shows that what is there for a short time hides no growth, and that none is seen where
// all stays.
func TestGrowth(t *testing.T) {
	var rises, flat, varies, once []float64
	for i := range 40 {
		short := float64(i * 7 % 10)
		rises, flat, varies = append(rises, 1000+100*float64(i)), append(flat, 1000+short), append(varies, 1000+100*float64(i)+1000*short)
	}
	if g := *growth(rises); g < 4000 || g > 6000 {
		t.Errorf("%d of 4000", g)
	}
	if g := *growth(varies); g < 4000 {
		t.Errorf("%d of 4000, beside what varies", g)
	}
	for i := range 40 {
		once = append(once, 1000+4000*float64(min(i/12, 1)))
	}
	if g := *growth(once); g < 4000 {
		t.Errorf("%d of 4000 at once", g)
	}
	if g := *growth(flat); g < 0 || g > 20 {
		t.Errorf("%d of what stays", g)
	}
	if growth(rises[:5]) != nil {
		t.Error("5 looks tell")
	}
}

// TestThinned shows that the first and last look of each span stay.
func TestThinned(t *testing.T) {
	looks := series(process{}, 0, 1, 2, 3, 4, -5, 6, 7, -8, -9)
	var got []float64
	for _, l := range thinned(looks) {
		got = append(got, l.kept[process{}][1].bytes)
	}
	if want := []float64{0, 2, 4, 5, 7, 8, 9}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}

// TestLooksOfHours shows that the looks of a long time reach back to its first quarter, and that
// there is one near each moment at which judging may end.
func TestLooksOfHours(t *testing.T) {
	p := process{7, 1}
	for _, hours := range []float64{0.02, 0.3, 1, 3, 12} {
		var looks []look
		all := hours * 3600
		for at := 0.0; at <= all; at += pace.Seconds() {
			if !isDue(looks, moment(at)) {
				continue
			}
			looks = append(looks, look{at: moment(at), first: at == 0, kept: map[process]map[int]sum{p: {1: {bytes: at}}}})
			if len(looks) > maxLooks {
				looks = thinned(looks)
			}
		}
		sums, spans := kept(looks, p, moment(all*15/16))
		if got := sums[1].bytes / all; len(spans) != 1 || got < 0.6 || got > 0.72 {
			t.Errorf("%v hours: %d spans, %.2f of them", hours, len(spans), got)
		}
	}
}

func TestStacks(t *testing.T) {
	var s stacks
	frames := func(names ...string) (out symbolize.Stack) {
		for _, n := range names {
			out.Frames = append(out.Frames, symbolize.Frame{Frame: stack.Frame{Function: n}})
		}
		return out
	}
	a, b, c := s.number(frames("f", "g", "main")), s.number(frames("h", "g", "main")), s.number(frames("g", "main"))
	if s.number(frames("f", "g", "main")) != a || a == b || b == c || len(s.nodes) != 5 {
		t.Errorf("numbers %d, %d and %d of %d nodes", a, b, c, len(s.nodes))
	}
	if got := fmt.Sprint(s.at(b)); got != fmt.Sprint(frames("h", "g", "main").Frames) {
		t.Errorf("stack %d is %v", b, got)
	}
	if s.number(frames()) != 0 || s.at(0) != nil {
		t.Error("no frames have a number")
	}
}
