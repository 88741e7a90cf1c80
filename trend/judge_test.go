package trend

import (
	"fmt"
	"math"
	"math/rand"
	"testing"
)

// held makes a population of spans written as "first-last", one thing each; "n*"
// before repeats it.
func held(checkpoints int, spans ...string) *Population {
	p := NewPopulation(checkpoints)
	for _, s := range spans {
		n, first, last := 1, 0, 0
		if _, err := fmt.Sscanf(s, "%d*%d-%d", &n, &first, &last); err != nil {
			n = 1
			if _, err := fmt.Sscanf(s, "%d-%d", &first, &last); err != nil {
				panic(s)
			}
		}
		for range n {
			p.Add(Span{First: first, Last: last, Bytes: 100})
		}
	}
	return p
}

func TestPopulation(t *testing.T) {
	p := held(4, "2*0-3", "0-1", "1-2", "3-3")
	for j, want := range []struct{ count, kept, added, lost, settledLost, bytes, final int64 }{
		{3, 0, 3, 0, 0, 300, 200},
		{4, 3, 1, 0, 0, 400, 200},
		{3, 3, 0, 1, 1, 300, 200},
		{3, 2, 1, 1, 1, 300, 300},
	} {
		got := []int64{p.Count[j], p.kept[j], p.added(j), p.Lost(j), p.SettledLost[j], p.Bytes[j], p.Final[j]}
		if fmt.Sprint(got) != fmt.Sprint([]int64{want.count, want.kept, want.added, want.lost, want.settledLost, want.bytes, want.final}) {
			t.Errorf("checkpoint %d: count, kept, added, lost, settled lost, bytes, final = %v, want %v", j, got, want)
		}
	}
}

func TestJudge(t *testing.T) {
	for _, c := range []struct {
		name string
		pop  *Population
		past Past
		want Class
		sure bool // a confidence of at least a half
	}{
		{"one checkpoint", held(1, "9*0-0"), Past{}, TooShort, false},
		{"two checkpoints", held(2, "9*0-1", "9*1-1"), Past{}, TooShort, false},
		{"weights", held(6, "20*0-5"), Past{}, Steady, false},
		{"temporaries", held(4, "0-0", "1-1", "2-2", "3-3"), Past{}, Turnover, false},
		{"more work in each file", held(4, "0-0", "2*1-1", "4*2-2", "8*3-3"), Past{}, Turnover, false},
		{"optimizer state", held(5, "4*0-4", "8*1-4"), Past{}, Once, false},
		{"two tensors a step", held(3, "2*0-2", "2*1-2", "2*2-2"), Past{}, Leak, true},
		{"two tensors a step, long", held(10, "2*0-9", "2*1-9", "2*2-9", "2*3-9", "2*4-9", "2*5-9", "2*6-9", "2*7-9", "2*8-9", "2*9-9"), Past{}, Leak, true},
		{"every third step", held(10, "2*0-9", "2*3-9", "2*6-9", "2*9-9"), Past{}, Leak, true},
		{"a batch in flight beside the leak", held(6, "2*0-5", "2*1-5", "2*2-5", "2*3-5", "2*4-5", "2*5-5", "0-0", "1-1", "2-2", "3-3", "4-4", "5-5"), Past{}, Leak, true},
		{"the same shape, but such things were freed before", held(3, "2*0-2", "2*1-2", "2*2-2"), Past{Freed: 5}, Turnover, false},
		{"a cache that is full", held(6, "4*0-2", "4*1-3", "4*2-4", "4*3-5", "4*4-5", "4*5-5"), Past{}, Turnover, false},
		{"a cache that filled and drops nothing", held(9, "5*0-8", "5*1-8", "4*2-8", "3*3-8", "1*4-8"), Past{}, Levelled, false},
		{"additions that die away", held(10, "9*0-9", "9*1-9", "6*2-9", "4*3-9", "2*4-9", "1*6-9", "1*8-9"), Past{}, Levelled, false},
		{"a cache that fills, seen too short to know", held(7, "10*0-6", "9*1-6", "6*2-6", "5*3-6", "4*4-6", "2*5-6", "2*6-6"), Past{}, Leak, false},
		{"a steady leak of uneven steps", held(7, "5*0-6", "5*1-6", "7*2-6", "6*3-6", "4*4-6", "6*5-6", "5*6-6"), Past{}, Leak, true},
		{"a cache that begins to fill", held(3, "5*0-2", "6*1-2", "6*2-2"), Past{}, Leak, false},
		{"a cache of uneven things that begins to fill", held(3, "8*0-2", "5*1-2", "4*2-2"), Past{Outlived: 1}, Leak, false},
		{"a batch a step, from the second step on", held(3, "24*0-2", "12*1-2", "12*2-2"), Past{}, Leak, true},
		{"a few irregular additions are not proof", held(3, "3*0-2", "5*1-2", "2*2-2"), Past{}, Leak, false},
		{"but they are with a long past", held(3, "3*0-2", "5*1-2", "2*2-2"), Past{Outlived: 20}, Leak, true},
	} {
		v := Judge(c.pop, c.past)
		if v.Class != c.want || v.Confidence >= 0.5 != c.sure {
			t.Errorf("%s: %s with confidence %.2f, want %s, sure %v (%s)", c.name, v.Class, v.Confidence, c.want, c.sure, v.Basis())
		}
	}
}

// TestMoreEvidence holds a leak of every step: each further file makes the
// judgment more certain.
func TestMoreEvidence(t *testing.T) {
	before := 0.0
	for checkpoints := 3; checkpoints <= 12; checkpoints++ {
		p := NewPopulation(checkpoints)
		for j := range checkpoints {
			p.Add(Span{j, checkpoints - 1, 1})
			p.Add(Span{j, checkpoints - 1, 1})
		}
		v := Judge(p, Past{})
		if v.Class != Leak || v.Confidence <= before || v.Confidence > 1 {
			t.Errorf("%d checkpoints: %s, %.4f after %.4f", checkpoints, v.Class, v.Confidence, before)
		}
		before = v.Confidence
	}
}

// TestWorkingSets makes random bounded sets whose members go with the
// probability that Judge assumes or more: very few may be called a leak.
func TestWorkingSets(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	const tries = 2000
	wrong := 0
	for range tries {
		checkpoints := 3 + rng.Intn(10)
		p := NewPopulation(checkpoints)
		leave := turnover + rng.Float64()*0.5
		for j := range checkpoints {
			for range rng.Intn(5) {
				last := j
				for last < checkpoints-1 && rng.Float64() > leave {
					last++
				}
				p.Add(Span{j, last, 1})
			}
		}
		if v := Judge(p, Past{}); v.Class == Leak && v.Confidence >= 0.5 {
			wrong++
		}
	}
	if wrong > tries/50 {
		t.Errorf("%d of %d working sets are called leaks", wrong, tries)
	}
}

func BenchmarkJudge(b *testing.B) {
	p := NewPopulation(12)
	for j := range 12 {
		p.Add(Span{j, 11, 1})
	}
	for b.Loop() {
		Judge(p, Past{})
	}
}

// TestManyCheckpoints judges leaks of every interval, of every second and so on, in up
// to 5,000 checkpoints: each further period makes the judgment more certain, wherever the
// last checkpoint falls, and it is always a number.
func TestManyCheckpoints(t *testing.T) {
	lengths := []int{10, 11, 12, 20, 21, 50, 100, 101, 500, 501, 1030, 1031, 1032, 1100, 2000, 5000}
	for _, every := range []int{1, 2, 3, 5, 10} {
		for _, things := range []int64{1, 2, 48} {
			for offset := range every {
				before := 0.0
				for _, checkpoints := range lengths {
					p := NewPopulation(checkpoints)
					rounds := 0
					for j := 1 + offset; j < checkpoints; j += every {
						p.AddMany(Span{j, checkpoints - 1, 1}, things)
						rounds++
					}
					v := Judge(p, Past{})
					if math.IsNaN(v.Confidence) || v.Confidence < 0 || v.Confidence > 1 {
						t.Fatalf("%d things every %d of %d checkpoints: confidence %v", things, every, checkpoints, v.Confidence)
					}
					if rounds < 5 {
						continue
					}
					if v.Class != Leak || v.Confidence < before-1e-9 {
						t.Errorf("%d things every %d of %d checkpoints, from %d on: %s, %.4f after %.4f", things, every, checkpoints, offset, v.Class, v.Confidence, before)
					}
					before = v.Confidence
				}
				if before < 0.999 {
					t.Errorf("%d things every %d of 5,000 checkpoints: confidence %.4f", things, every, before)
				}
			}
		}
	}
}

// TestMadeOnce judges allocations that are made in two or three intervals of a long
// series and then never again: they are not a leak, however long the series is.
func TestMadeOnce(t *testing.T) {
	for _, checkpoints := range []int{30, 501, 1100, 5000} {
		for _, at := range [][]int{{1, 3}, {1, 2, 5}, {1, checkpoints / 2}} {
			p := NewPopulation(checkpoints)
			for _, j := range at {
				p.Add(Span{j, checkpoints - 1, 1})
			}
			if v := Judge(p, Past{}); v.Class == Leak && !(v.Confidence < 0.5) {
				t.Errorf("made at %v of %d checkpoints: %s, %.4f", at, checkpoints, v.Class, v.Confidence)
			}
		}
	}
}

func TestAtLeast(t *testing.T) {
	for _, c := range []struct {
		k, n int
		p    float64
		want float64
	}{
		{0, 5, 0.2, 1}, {1, 2, 0.5, 0.75}, {2, 2, 0.2, 0.04}, {5, 10, 0.5, 0.623046875}, {500, 1000, 0.5, 0.5126},
		{3, 5000, 2.0 / 5000, 0.3233}, {5000, 5000, 2.0 / 5000, 0},
	} {
		if got := atLeast(c.k, c.n, c.p); math.Abs(got-c.want) > 1e-4 {
			t.Errorf("%d of %d at %g: %g, want %g", c.k, c.n, c.p, got, c.want)
		}
	}
}

// TestLastCheckpoint judges a leak of every tenth checkpoint beside an allocation that each checkpoint
// replaces: which of the two the last checkpoint holds is not known yet, and is not a pause.
func TestLastCheckpoint(t *testing.T) {
	const checkpoints = 41
	p := NewPopulation(checkpoints)
	for j := range checkpoints {
		if j%10 == 0 && j > 0 {
			p.Add(Span{j, checkpoints - 1, 1})
		} else if j > 0 {
			p.Add(Span{j, j, 1})
		}
	}
	if v := Judge(p, Past{}); v.Class != Leak || v.Confidence < 0.35 {
		t.Errorf("%s with confidence %.2f, want a leak of 0.35 and more (%s)", v.Class, v.Confidence, v.Basis())
	}
}
