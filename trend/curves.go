package trend

import (
	"cmp"
	"math"
	"slices"
	"sync"
)

// A curve explains levels over a window: u is 0 at the beginning of the window and 1 at
// its end; beyond 1 the curve is what it expects of the future.
type curve struct {
	shape  Shape // of growth along this curve: Flat, Step, Plateau, or Growth if it can go on
	params int   // how many parameters were fitted, including positions
	at     func(u float64) float64
	rss    float64 // what it leaves unexplained, the sum of squares
	weight float64 // its probability relative to the other curves
}

// phi is what the next window of equal length adds, as a multiple of what this one added.
func (c *curve) phi() float64 {
	grown := c.at(1) - c.at(0)
	if grown == 0 {
		return 0
	}
	return (c.at(2) - c.at(1)) / grown
}

// growsOn reports whether the next window adds so much that growth goes on.
func (c *curve) growsOn() bool { return c.at(1) > c.at(0) && c.phi() >= levelsOff }

// line reports whether it is a line.
func (c *curve) line() bool { return c.shape == Growth && c.params == 2 }

// best is the likeliest of some curves.
func best(all []curve) curve {
	return slices.MaxFunc(all, func(a, b curve) int { return cmp.Compare(a.weight, b.weight) })
}

// A basis is a function of u; curves are sums of them.
type basis func(u float64) float64

func line(u float64) float64 { return u }
func power(p float64) basis {
	return func(u float64) float64 { return math.Exp(p * math.Log(max(u, 0))) } // math.Pow takes three times as long
}
func logarithm(tau float64) basis    { return func(u float64) float64 { return math.Log1p(u / tau) } }
func saturating(tau float64) basis   { return func(u float64) float64 { return -math.Expm1(-u / tau) } }
func after(c float64, f basis) basis { return func(u float64) float64 { return f(max(u-c, 0)) } }
func until(c float64, f basis) basis { return func(u float64) float64 { return f(min(u, c)) } }
func between(c, d float64) basis     { return func(u float64) float64 { return min(max(u-c, 0), d-c) } }
func jump(c float64) basis {
	return func(u float64) float64 {
		if u >= c {
			return 1
		}
		return 0
	}
}

// A kind of curve: a constant and the sum of some bases, chosen from a grid.
type kind struct {
	shape  Shape
	params int
	// rising means that a coefficient below zero makes it a curve of another kind
	rising bool
	grid   [][]basis
}

// latest is the last place in a window at which growth can have ended: a shorter pause is
// no evidence of an end.
const latest = 0.85

// kinds are the curves that are tried. Jumps in a staircase are found by [stairs].
var kinds = sync.OnceValue(func() []kind {
	var saturate, log, pow, cap, late, step, loaded, jumped, ramp, bend, lateCache, capPow [][]basis
	for _, tau := range geometric(0.01, 2, 40) {
		saturate = append(saturate, []basis{saturating(tau)})
		if tau < 0.4 {
			loaded = append(loaded, []basis{saturating(tau), line})
		}
	}
	for _, tau := range geometric(0.0005, 1, 30) {
		log = append(log, []basis{logarithm(tau)})
	}
	for _, p := range geometric(0.15, 4, 30) {
		pow = append(pow, []basis{power(p)})
	}
	for c := 0.04; c < 0.97; c += 0.03 {
		late = append(late, []basis{after(c, line)})
		step = append(step, []basis{jump(c)})
		jumped = append(jumped, []basis{jump(c), line})
		bend = append(bend, []basis{line, after(c, line)})
		for _, tau := range geometric(0.03, 0.5, 8) {
			lateCache = append(lateCache, []basis{after(c, saturating(tau))})
		}
		if c >= latest {
			continue
		}
		cap = append(cap, []basis{until(c, line)})
		for _, p := range []float64{0.3, 0.5, 0.7, 1.5, 2} {
			capPow = append(capPow, []basis{until(c, power(p))})
		}
		for d := c + 0.06; d < latest; d += 0.06 {
			ramp = append(ramp, []basis{between(c, d)})
		}
	}
	return []kind{
		{Flat, 1, false, [][]basis{{}}},
		{Growth, 2, false, [][]basis{{line}}},
		{Growth, 3, false, saturate},
		{Growth, 3, false, log},
		{Growth, 3, false, pow},
		{Growth, 3, false, late},
		{Plateau, 3, false, cap},
		{Step, 3, false, step},
		{Growth, 4, true, loaded},
		{Growth, 4, false, jumped},
		{Growth, 4, false, bend},
		{Growth, 4, false, lateCache},
		{Plateau, 4, false, ramp},
		{Plateau, 4, false, capPow},
	}
})

// geometric returns n values from low to high, each the same multiple of the one before
// it.
func geometric(low, high float64, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = low * math.Pow(high/low, float64(i)/float64(n-1))
	}
	return out
}

// maxJumps is the most jumps a staircase can have: one with more steps is growth.
const maxJumps = 5

// fit fits every kind of curve to levels y at u, and returns the best of each.
func fit(u, y []float64) (out []curve) {
	for _, k := range kinds() {
		best := fitted{rss: math.Inf(1)}
		for _, bases := range k.grid {
			if f, ok := k.fit(bases, u, y); ok && f.rss < best.rss {
				best = f
			}
		}
		if best.bases != nil {
			out = append(out, curve{shape: k.shape, params: k.params, at: best.at, rss: best.rss})
		}
	}
	for n := 2; n <= maxJumps && len(y) >= 3*(n+1); n++ {
		if c, ok := stairs(u, y, n); ok {
			out = append(out, c)
		}
	}
	return out
}

// maxBases is the largest number of bases in a curve.
const maxBases = 2

// A fitted is a constant and the sum of some bases, each with its coefficient.
type fitted struct {
	bases []basis
	coef  [maxBases + 1]float64
	rss   float64
}

func (f *fitted) at(u float64) float64 {
	y := f.coef[0]
	for i, b := range f.bases {
		y += f.coef[i+1] * b(u)
	}
	return y
}

// fit fits a constant and some bases by least squares; ok is false if they cannot be
// distinguished or have the wrong sign.
func (k *kind) fit(bases []basis, u, y []float64) (out fitted, ok bool) {
	m := len(bases) + 1
	var a [maxBases + 1][maxBases + 2]float64 // the normal equations
	var row [maxBases + 2]float64
	var values [maxBases][points]float64 // of the bases, which take most of the time
	for i := range u {
		row[0] = 1
		for j, f := range bases {
			values[j][i] = f(u[i])
			row[j+1] = values[j][i]
		}
		row[m] = y[i]
		for r := range m {
			for s := r; s <= m; s++ {
				a[r][s] += row[r] * row[s]
			}
		}
	}
	for r := range m { // the matrix is symmetric and positive: no pivots
		for s := range r {
			x := a[s][r] / a[s][s]
			for t := r; t <= m; t++ {
				a[r][t] -= x * a[s][t]
			}
		}
		if a[r][r] < 1e-10 {
			return out, false
		}
	}
	coef := &out.coef
	for r := m - 1; r >= 0; r-- {
		x := a[r][m]
		for s := r + 1; s < m; s++ {
			x -= a[r][s] * coef[s]
		}
		coef[r] = x / a[r][r]
		if k.rising && r > 0 && coef[r] < 0 {
			return out, false
		}
	}
	for i := range u {
		level := coef[0]
		for j := range bases {
			level += coef[j+1] * values[j][i]
		}
		r := y[i] - level
		out.rss += r * r
	}
	out.bases = bases
	return out, true
}

// stairs is the best staircase with the given number of jumps, by dynamic programming
// (Bellman 1961). There is none if a jump is small compared with what is left
// unexplained: any wandering series is a staircase with enough steps.
func stairs(u, y []float64, jumps int) (c curve, ok bool) {
	n := len(y)
	sum, squares := make([]float64, n+1), make([]float64, n+1)
	for i, x := range y {
		sum[i+1], squares[i+1] = sum[i]+x, squares[i]+x*x
	}
	cost := func(i, j int) float64 { // of one level for the points i to j-1
		s := sum[j] - sum[i]
		return max(squares[j]-squares[i]-s*s/float64(j-i), 0)
	}
	best := make([][]float64, jumps+1) // by jumps and points
	cut := make([][]int, jumps+1)
	for s := range best {
		best[s], cut[s] = make([]float64, n+1), make([]int, n+1)
		for j := range best[s] {
			best[s][j] = math.Inf(1)
		}
		for j := s + 1; j <= n; j++ {
			if s == 0 {
				best[s][j] = cost(0, j)
				continue
			}
			for i := s; i < j; i++ {
				if x := best[s-1][i] + cost(i, j); x < best[s][j] {
					best[s][j], cut[s][j] = x, i
				}
			}
		}
	}
	starts, levels := make([]float64, jumps+1), make([]float64, jumps+1)
	end := n
	for s := jumps; s >= 0; s-- {
		i := cut[s][end]
		starts[s], levels[s] = u[i], (sum[end]-sum[i])/float64(end-i)
		end = i
	}
	const clear = 5 // standard deviations
	sd := math.Sqrt(best[jumps][n] / float64(n))
	for s := 1; s <= jumps; s++ {
		if math.Abs(levels[s]-levels[s-1]) < clear*sd {
			return c, false
		}
	}
	return curve{shape: Step, params: 2*jumps + 1, rss: best[jumps][n], at: func(x float64) float64 {
		level := levels[0]
		for s := range starts {
			if x >= starts[s] {
				level = levels[s]
			}
		}
		return level
	}}, true
}
