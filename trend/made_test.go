package trend

import (
	"math"
	"math/rand/v2"
)

// A made series is one of known truth: times in seconds and levels in bytes.
type made struct{ t, v []float64 }

// A maker draws n levels of a family. Their unit is about what it grows by.
type maker struct {
	family string
	leak   bool
	make   func(r *rand.Rand, n int) []float64
}

func curveOf(n int, f func(u float64) float64) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = f(float64(i) / float64(n-1))
	}
	return v
}

func uniform(r *rand.Rand, a, b float64) float64 { return a + (b-a)*r.Float64() }

// loguniform draws from a to b, each ratio as often.
func loguniform(r *rand.Rand, a, b float64) float64 { return a * math.Pow(b/a, r.Float64()) }

// white is noise of standard deviation 1, red such that persists from sample to sample,
// and noise a mixture of both.
func white(r *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for i := range v {
		v[i] = r.NormFloat64()
	}
	return v
}

func red(r *rand.Rand, n int) []float64 {
	memory := math.Exp(-1 / (float64(n) * loguniform(r, 0.002, 0.03)))
	v := make([]float64, n)
	x := r.NormFloat64()
	for i := range v {
		v[i] = x
		x = memory*x + math.Sqrt(1-memory*memory)*r.NormFloat64()
	}
	return v
}

func noise(r *rand.Rand, n int) []float64 {
	a, b := white(r, n), red(r, n)
	w := r.Float64()
	for i := range a {
		a[i] = w*a[i] + (1-w)*b[i]
	}
	return a
}

func sumOf(a, b []float64, scale float64) []float64 {
	out := make([]float64, len(a))
	for i := range a {
		out[i] = a[i] + scale*b[i]
	}
	return out
}

// teeth rises from the floor to limit and falls back.
func teeth(r *rand.Rand, n int, cycles float64, irregular float64, floor func(u float64) float64) []float64 {
	v := make([]float64, n)
	per := float64(n) / cycles
	x, next := r.Float64()*per, per
	height := 1.0
	for i := range v {
		if x >= next {
			x = 0
			height = 1 + irregular*(r.Float64()-0.5)
			next = per * height
		}
		v[i] = floor(float64(i)/float64(n-1)) + x/per
		x++
	}
	return v
}

func bursts(r *rand.Rand, n int) []float64 {
	v := make([]float64, n)
	for range 3 + r.IntN(15) {
		at, long, high := r.IntN(n), 1+r.IntN(max(n/20, 2)), uniform(r, 0.2, 1)
		for i := at; i < min(at+long, n); i++ {
			v[i] += high
		}
	}
	return v
}

func stepsUp(r *rand.Rand, n, k int, last float64) []float64 {
	at := make([]float64, k)
	for i := range at {
		at[i] = uniform(r, 0.02, last)
	}
	high := make([]float64, k)
	for i := range high {
		high[i] = uniform(r, 0.2, 1)
	}
	return curveOf(n, func(u float64) (y float64) {
		for i := range at {
			if u >= at[i] {
				y += high[i]
			}
		}
		return y
	})
}

func daily(r *rand.Rand, n int) []float64 {
	periods, phase, second := uniform(r, 2, 8), r.Float64()*6, uniform(r, 0, 0.4)
	return curveOf(n, func(u float64) float64 {
		x := 2*math.Pi*periods*u + phase
		return math.Sin(x) + second*math.Sin(2*x+1)
	})
}

func quiet(r *rand.Rand, n int, v []float64) []float64 {
	return sumOf(v, noise(r, n), loguniform(r, 0.0005, 0.03))
}

func noisy(r *rand.Rand, n int, v []float64) []float64 {
	return sumOf(v, noise(r, n), loguniform(r, 0.003, 0.2))
}

var makers = []maker{
	{"flat noise", false, func(r *rand.Rand, n int) []float64 { return white(r, n) }},
	{"flat red noise", false, func(r *rand.Rand, n int) []float64 { return noise(r, n) }},
	{"flat heavy tails", false, func(r *rand.Rand, n int) []float64 {
		v := white(r, n)
		for i := range v {
			v[i] = math.Abs(v[i] * v[i] * v[i])
		}
		return v
	}},
	{"flat bursts", false, func(r *rand.Rand, n int) []float64 { return noisy(r, n, bursts(r, n)) }},
	{"walk in a band", false, func(r *rand.Rand, n int) []float64 {
		v := make([]float64, n)
		x, s := r.Float64(), uniform(r, 2.5, 6)/math.Sqrt(float64(n))
		for i := range v {
			x += s * r.NormFloat64()
			x = math.Abs(x)
			if x > 1 {
				x = max(0, 2-x)
			}
			v[i] = x
		}
		return v
	}},
	{"daily load", false, func(r *rand.Rand, n int) []float64 { return noisy(r, n, daily(r, n)) }},
	{"cache fills", false, func(r *rand.Rand, n int) []float64 {
		return noisy(r, n, curveOf(n, saturating(1/uniform(r, 2.35, 12))))
	}},
	{"cache fills to a limit", false, func(r *rand.Rand, n int) []float64 {
		return noisy(r, n, curveOf(n, until(uniform(r, 0.1, 0.75), line)))
	}},
	{"cache with a power", false, func(r *rand.Rand, n int) []float64 {
		c, p := uniform(r, 0.1, 0.7), uniform(r, 0.4, 1.5)
		return noisy(r, n, curveOf(n, func(u float64) float64 { return math.Pow(min(u/c, 1), p) }))
	}},
	{"warm-up", false, func(r *rand.Rand, n int) []float64 { return noisy(r, n, curveOf(n, saturating(1/uniform(r, 10, 60)))) }},
	{"late cache", false, func(r *rand.Rand, n int) []float64 {
		c := uniform(r, 0.1, 0.5)
		s := saturating((1 - c) / uniform(r, 3, 10))
		return noisy(r, n, curveOf(n, func(u float64) float64 { return s(max(u-c, 0)) }))
	}},
	{"leak that stops", false, func(r *rand.Rand, n int) []float64 {
		c := uniform(r, 0, 0.4)
		return noisy(r, n, curveOf(n, between(c, c+uniform(r, 0.1, 0.4))))
	}},
	{"one step", false, func(r *rand.Rand, n int) []float64 { return noisy(r, n, curveOf(n, jump(uniform(r, 0.05, 0.9)))) }},
	{"few steps", false, func(r *rand.Rand, n int) []float64 { return noisy(r, n, stepsUp(r, n, 2+r.IntN(3), 0.75)) }},
	{"high-water mark", false, func(r *rand.Rand, n int) []float64 {
		v := noise(r, n)
		for i := 1; i < n; i++ {
			v[i] = max(v[i], v[i-1])
		}
		return v
	}},
	{"falling", false, func(r *rand.Rand, n int) []float64 {
		d := uniform(r, 0.3, 1)
		return noisy(r, n, curveOf(n, func(u float64) float64 { return -d * u }))
	}},
	{"step down", false, func(r *rand.Rand, n int) []float64 {
		j := jump(uniform(r, 0.2, 0.8))
		return noisy(r, n, curveOf(n, func(u float64) float64 { return -j(u) }))
	}},
	{"teeth", false, func(r *rand.Rand, n int) []float64 {
		return quiet(r, n, teeth(r, n, uniform(r, 5, 25), uniform(r, 0, 0.8), func(float64) float64 { return 0 }))
	}},
	{"few teeth", false, func(r *rand.Rand, n int) []float64 {
		return quiet(r, n, teeth(r, n, uniform(r, 3.1, 5), 0, func(float64) float64 { return 0 }))
	}},
	{"jobs in batches", false, func(r *rand.Rand, n int) []float64 {
		v := make([]float64, n)
		for at := 0; at < n; {
			at += 3 + r.IntN(max(n/15, 2))
			long, high := 3+r.IntN(max(n/15, 2)), uniform(r, 0.6, 1)
			for i := at; i < min(at+long, n); i++ {
				v[i] = high
			}
			at += long
		}
		return quiet(r, n, v)
	}},
	{"healthy restarts", false, func(r *rand.Rand, n int) []float64 {
		s := saturating(uniform(r, 0.005, 0.03))
		lives := []float64{0}
		for range 1 + r.IntN(4) {
			lives = append(lives, uniform(r, 0.1, 0.8))
		}
		return quiet(r, n, curveOf(n, func(u float64) float64 {
			start := 0.0
			for _, l := range lives {
				if l <= u {
					start = max(start, l)
				}
			}
			return s(u - start)
		}))
	}},
	{"daily load and a step", false, func(r *rand.Rand, n int) []float64 {
		return sumOf(curveOf(n, jump(uniform(r, 0.2, 0.7))), noisy(r, n, daily(r, n)), uniform(r, 0.02, 0.15))
	}},
	{"line", true, func(r *rand.Rand, n int) []float64 { return noisy(r, n, curveOf(n, line)) }},
	{"line in daily load", true, func(r *rand.Rand, n int) []float64 {
		return sumOf(curveOf(n, line), noisy(r, n, daily(r, n)), uniform(r, 0.05, 0.25))
	}},
	{"line with bursts", true, func(r *rand.Rand, n int) []float64 {
		return quiet(r, n, sumOf(curveOf(n, line), bursts(r, n), uniform(r, 0.1, 0.8)))
	}},
	{"late line", true, func(r *rand.Rand, n int) []float64 {
		return noisy(r, n, curveOf(n, after(uniform(r, 0.1, 0.75), line)))
	}},
	{"line after warm-up", true, func(r *rand.Rand, n int) []float64 {
		d := loguniform(r, 0.15, 2)
		return sumOf(sumOf(curveOf(n, saturating(1/uniform(r, 15, 80))), curveOf(n, line), d), noise(r, n), d*loguniform(r, 0.003, 0.12))
	}},
	{"line after a step", true, func(r *rand.Rand, n int) []float64 {
		return noisy(r, n, sumOf(curveOf(n, line), curveOf(n, jump(uniform(r, 0.05, 0.8))), uniform(r, 0.1, 1)))
	}},
	{"ever faster", true, func(r *rand.Rand, n int) []float64 { return noisy(r, n, curveOf(n, power(uniform(r, 1.3, 3)))) }},
	{"square root", true, func(r *rand.Rand, n int) []float64 {
		return sumOf(curveOf(n, power(0.5)), noise(r, n), loguniform(r, 0.001, 0.05))
	}},
	{"logarithm", true, func(r *rand.Rand, n int) []float64 {
		f := logarithm(1 / uniform(r, 1, 9))
		v := curveOf(n, f)
		return sumOf(v, noise(r, n), f(1)*loguniform(r, 0.001, 0.04))
	}},
	{"many steps", true, func(r *rand.Rand, n int) []float64 {
		v := make([]float64, n)
		k := 10 + r.IntN(25)
		var x, y float64
		next := 0.0
		for i := range v {
			for x = float64(i) / float64(n); x >= next; next += uniform(r, 0.3, 1.7) / float64(k) {
				y += 1 / float64(k)
			}
			v[i] = y
		}
		return sumOf(v, noise(r, n), loguniform(r, 0.0005, 0.02))
	}},
	{"restarts of a leak", true, func(r *rand.Rand, n int) []float64 {
		a := uniform(r, 0.15, 0.6)
		b := uniform(r, a, 0.62)
		return quiet(r, n, curveOf(n, func(u float64) float64 {
			switch {
			case u >= b:
				return u - b
			case u >= a:
				return u - a
			}
			return u
		}))
	}},
	{"teeth on a leak", true, func(r *rand.Rand, n int) []float64 {
		d := uniform(r, 0.7, 4)
		return quiet(r, n, teeth(r, n, uniform(r, 5, 25), uniform(r, 0, 0.8), func(u float64) float64 { return d * u }))
	}},
	{"jobs that leave something", true, func(r *rand.Rand, n int) []float64 {
		v := make([]float64, n)
		left := uniform(r, 0.05, 0.3)
		floor := 0.0
		for at := 0; at < n; {
			idle := 3 + r.IntN(max(n/20, 2))
			long, high := 3+r.IntN(max(n/20, 2)), uniform(r, 0.6, 1)
			for i := at; i < min(at+idle, n); i++ {
				v[i] = floor
			}
			at += idle
			for i := at; i < min(at+long, n); i++ {
				v[i] = floor + high
			}
			at += long
			floor += left
		}
		return quiet(r, n, v)
	}},
}

// others are families that were not looked at when curves were chosen.
var others = []maker{
	{"requests of unequal sizes", true, func(r *rand.Rand, n int) []float64 {
		often, unequal := uniform(r, 0.05, 0.9), uniform(r, 0.3, 1.5)
		v := make([]float64, n)
		for i := 1; i < n; i++ {
			if v[i] = v[i-1]; r.Float64() < often {
				v[i] += math.Exp(unequal * r.NormFloat64())
			}
		}
		all := max(v[n-1], 1e-9)
		for i := range v {
			v[i] /= all
		}
		return quiet(r, n, v)
	}},
	{"leak in step with load", true, func(r *rand.Rand, n int) []float64 {
		periods, phase, held := uniform(r, 1.5, 9), 6*r.Float64(), uniform(r, 0, 0.12)
		leaked := 0.0
		return quiet(r, n, curveOf(n, func(u float64) float64 {
			load := 1 + 0.8*math.Sin(2*math.Pi*periods*u+phase)
			leaked += load / float64(n)
			return leaked + held*load
		}))
	}},
	{"two leaks", true, func(r *rand.Rand, n int) []float64 {
		second, rate := after(uniform(r, 0.05, 0.3), line), uniform(r, 0.3, 2)
		return noisy(r, n, curveOf(n, func(u float64) float64 { return u + rate*second(u) }))
	}},
	{"cache over a leak", true, func(r *rand.Rand, n int) []float64 {
		cache, high := saturating(uniform(r, 0.02, 0.25)), uniform(r, 0.2, 1.5)
		return noisy(r, n, curveOf(n, func(u float64) float64 { return u + high*cache(u) }))
	}},
	{"collections over a leak", true, func(r *rand.Rand, n int) []float64 {
		garbage := 0.0
		return curveOf(n, func(u float64) float64 {
			if garbage += uniform(r, 0, 0.03); garbage > uniform(r, 0.25, 0.35) {
				garbage = 0
			}
			return u + garbage
		})
	}},
	{"equal steps", true, func(r *rand.Rand, n int) []float64 {
		k, first := float64(4+r.IntN(30)), uniform(r, 0, 0.4)
		return noisy(r, n, curveOf(n, func(u float64) float64 { return math.Floor(u*k+first) / k }))
	}},
	{"walk upwards", true, func(r *rand.Rand, n int) []float64 {
		x, s := 0.0, uniform(r, 0.02, 0.15)/math.Sqrt(float64(n))
		return curveOf(n, func(float64) float64 {
			x += 1/float64(n) + s*r.NormFloat64()
			return x
		})
	}},
	{"another rate", true, func(r *rand.Rand, n int) []float64 {
		c, rate := uniform(r, 0.1, 0.9), loguniform(r, 0.5, 2)
		return quiet(r, n, curveOf(n, func(u float64) float64 { return min(u, c) + rate*max(u-c, 0) }))
	}},
	{"power", true, func(r *rand.Rand, n int) []float64 { return noisy(r, n, curveOf(n, power(uniform(r, 0.4, 0.95)))) }},
	{"table that doubles", true, func(r *rand.Rand, n int) []float64 {
		k := uniform(r, 2, 9)
		return quiet(r, n, curveOf(n, func(u float64) float64 {
			return 0.6*u + 0.4*math.Exp2(math.Ceil(math.Log2(max(u, 1e-3)))+math.Mod(k, 1))/2
		}))
	}},
}

// drawn is draw, as its two columns.
func (m maker) drawn(n uint64) (t, v []float64) {
	s := m.draw(n)
	return s.t, s.v
}

// draw draws series n of a family, as a watcher would have it: rounded, at regular or
// irregular times, with readings that failed, a clock that was set, and gaps.
func (m maker) draw(n uint64) made {
	r := rand.New(rand.NewPCG(n, 7))
	count := int(loguniform(r, 90, 2500))
	y := m.make(r, count)
	unit := loguniform(r, 20e6, 4e9)
	base := uniform(r, 0.5, 6) * unit
	quantum := []float64{4096, 4096, 1 << 20, 2 << 20}[r.IntN(4)]
	lowest := 0.0
	for _, x := range y {
		lowest = min(lowest, x)
	}
	every := []float64{1, 5, 10, 30, 60}[r.IntN(5)]
	irregular := r.IntN(4) == 0
	var out made
	now := 0.0
	for _, x := range y {
		v := math.Round((base+(x-lowest)*unit)/quantum) * quantum
		out.t, out.v = append(out.t, now), append(out.v, v)
		if irregular {
			now += every * r.ExpFloat64()
		} else {
			now += every
		}
	}
	switch r.IntN(10) {
	case 0: // readings that failed
		for i := range out.v {
			if r.IntN(20) == 0 {
				out.v[i] = 0
			}
		}
	case 1: // a clock that is set
		shift := uniform(r, -1, 1) * 40000
		for i := count / 2; i < count; i++ {
			out.t[i] += shift
		}
	case 2: // missing stretches
		for range 3 {
			a := r.IntN(len(out.v) * 9 / 10)
			b := min(a+len(out.v)/20, len(out.v)-1)
			out.t = append(out.t[:a:a], out.t[b:]...)
			out.v = append(out.v[:a:a], out.v[b:]...)
		}
	}
	return out
}
