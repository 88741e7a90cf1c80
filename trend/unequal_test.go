package trend

import (
	"math"
	"math/rand"
	"testing"
)

// An observed program is looked at between steps or inside of them, after unequal
// amounts of work.
type observed struct {
	looks []float64 // moments, in steps
	made  []life
}

type life struct{ from, until float64 }

// looked returns random moments at which a program is looked at, some steps apart; the
// first is before the first step.
func looked(rng *rand.Rand, checkpoints int) (c observed) {
	at := 0.0
	for range checkpoints {
		c.looks = append(c.looks, at)
		at += 3 + 17*rng.Float64()
	}
	return c
}

func (c *observed) steps() int { return int(c.looks[len(c.looks)-1]) + 1 }

// judge judges what was made, with what a history shows of what went.
func (c *observed) judge() Verdict {
	n := len(c.looks)
	p, past := NewPopulation(n), Past{Work: make([]float64, n)}
	end := c.looks[n-1]
	for j := 1; j < n; j++ {
		past.Work[j] = c.looks[j] - c.looks[j-1]
	}
	long, typical := false, end/float64(n-1)
	for _, m := range c.made {
		first, last := n, -1
		for j, at := range c.looks {
			if m.from <= at && at < m.until {
				first, last = min(first, j), j
			}
		}
		if first <= last {
			p.Add(Span{first, last, 1})
		}
		if m.until <= end {
			past.Brief++
			long = long || m.until-m.from > typical/4
			if m.until-m.from > typical {
				past.Freed++
			}
		}
	}
	if long {
		past.Brief = 0
	}
	return Judge(p, past)
}

// TestUnequalIntervals calls a leak of every step one wherever the checkpoints fall, also
// inside of steps, where they see what the step frees again.
func TestUnequalIntervals(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	for range 2000 {
		c := looked(rng, 4+rng.Intn(5))
		kept, freed := 1+rng.Intn(4), rng.Intn(8)
		for step := range c.steps() {
			for i := range kept + freed {
				m := life{float64(step) + rng.Float64(), math.Inf(1)}
				if i >= kept {
					m.until = m.from + rng.Float64()/2
				}
				c.made = append(c.made, m)
			}
		}
		if v := c.judge(); v.Class != Leak || v.Confidence < 0.5 {
			t.Fatalf("%d kept of %d in each step, seen at %.1f: %s, %.2f (%s)", kept, kept+freed, c.looks, v.Class, v.Confidence, v.Basis())
		}
	}
}

// TestUnequalCaches makes caches that fill, and sets whose members go, and looks at them
// in the same way: very few may be called a leak.
func TestUnequalCaches(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	const tries = 2000
	filling, going := 0, 0
	for range tries {
		c := looked(rng, 4+rng.Intn(9))
		size := c.looks[len(c.looks)-1] * (0.1 + 0.4*rng.Float64()) // most of it is full before the end
		for step := range c.steps() {
			if rng.Float64() < math.Exp(-float64(step)/size*2) {
				c.made = append(c.made, life{float64(step) + rng.Float64(), math.Inf(1)})
			}
		}
		if v := c.judge(); v.Class == Leak && v.Confidence >= 0.5 {
			filling++
		}
		c.made = nil
		lives := c.looks[len(c.looks)-1] * (0.1 + 0.4*rng.Float64())
		for step := range c.steps() {
			for range rng.Intn(3) {
				from := float64(step) + rng.Float64()
				c.made = append(c.made, life{from, from + rng.ExpFloat64()*lives})
			}
		}
		if v := c.judge(); v.Class == Leak && v.Confidence >= 0.5 {
			going++
		}
	}
	if filling > tries/20 || going > tries/50 {
		t.Errorf("of %d each, %d caches that fill and %d working sets are called leaks", tries, filling, going)
	}
	t.Logf("%d caches, %d working sets", filling, going)
}
