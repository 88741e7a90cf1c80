package samples

import (
	"fmt"
	"math"

	"strandline/finding"
	"strandline/host/sampling/sample"
	"strandline/trend"
	"strandline/units"
)

// A load is what an inference engine did over time. Requests and tokens are summed from
// the beginning of the watch on, also where the engine restarts; what is not known is
// NaN.
type load struct {
	times, requests, tokens, busy []float64
	stride, skip                  int // of samples, every stride-th is kept
	request, token                counter
}

// A counter sums up one that begins at 0 again when its program does.
type counter struct {
	sum    float64
	before *int64
}

func (c *counter) add(now *int64) float64 {
	if now == nil {
		return math.NaN()
	}
	switch {
	case c.before == nil:
	case *now >= *c.before:
		c.sum += float64(*now - *c.before)
	default:
		c.sum += float64(*now)
	}
	c.before = now
	return c.sum
}

func (l *load) add(at float64, now *sample.Load) {
	if now == nil {
		return
	}
	requests, tokens, busy := l.request.add(now.Requests), l.token.add(now.Tokens()), math.NaN()
	if n := now.InProgress(); n != nil {
		busy = float64(*n)
	}
	if l.skip++; l.skip < l.stride {
		return
	}
	l.skip = 0
	l.times, l.requests, l.tokens, l.busy = append(l.times, at), append(l.requests, requests), append(l.tokens, tokens), append(l.busy, busy)
	if len(l.times) > maxPoints {
		l.times, l.requests, l.tokens, l.busy = halved(l.times), halved(l.requests), halved(l.tokens), halved(l.busy)
		l.stride = max(2*l.stride, 2)
	}
}

// since returns the values of one of the load's series from a time on that are known, and
// their times.
func (l *load) since(from float64, values []float64) (times, known []float64) {
	for i, t := range l.times {
		if t >= from && !math.IsNaN(values[i]) {
			times, known = append(times, t), append(known, values[i])
		}
	}
	return times, known
}

// rate is how fast a counter grew in the second half of the time since from, per second;
// not ok if that is not known.
func (l *load) rate(from float64, values []float64) (perSecond float64, ok bool) {
	times, known := l.since(from, values)
	const minPoints = 4
	n := len(times)
	if n < minPoints {
		return 0, false
	}
	span := times[n-1] - times[n/2]
	if span <= 0 {
		return 0, false
	}
	return (known[n-1] - known[n/2]) / span, true
}

// each is how much a series grew for each unit of a counter, with bounds between which the
// truth lies in 9 of 10 cases, by its later half if that is long enough; not ok if it is
// not known.
func (l *load) each(s *series, counter []float64) (rate, low, high float64, ok bool) {
	times, known := l.since(s.times[0], counter)
	var x, y []float64
	j := 0
	for i, t := range s.times {
		for j+1 < len(times) && times[j+1] <= t {
			j++
		}
		if len(times) == 0 || t < times[0] || t > times[len(times)-1] {
			continue
		}
		count := known[j]
		if j+1 < len(times) {
			count += (known[j+1] - known[j]) * (t - times[j]) / (times[j+1] - times[j])
		}
		x, y = append(x, count), append(y, s.levels[i])
	}
	if half := len(x) / 2; half >= minSamples {
		x, y = x[half:], y[half:]
	}
	rate, low, high = trend.Slope(x, y)
	return rate, max(low, 0), high, rate > 0 && !math.IsInf(high, 1)
}

// hold holds a growth against the load since a series began: it adds to the evidence what
// is taken for each request and token, and states it in words, or that there was no request.
func (l *load) hold(c *trend.Course, s *series, e *finding.LevelsEvidence) string {
	if len(l.times) == 0 || c.Rate <= 0 {
		return ""
	}
	requests, ok := l.rate(s.times[0], l.requests)
	if !ok {
		return ""
	}
	if requests <= 0 {
		return "the engine has finished no request lately: the growth does not come from them"
	}
	rate, low, high, ok := l.each(s, l.requests)
	if !ok {
		return ""
	}
	e.BytesPerRequest, e.BytesPerRequestBounds = &rate, &[2]float64{low, high}
	text := fmt.Sprintf("it grows by %s for each finished request (%s to %s in 9 of 10 cases)", small(rate), small(low), small(high))
	if perToken, _, _, ok := l.each(s, l.tokens); ok {
		e.BytesPerToken = &perToken
		text += ", or " + small(perToken) + " for each token"
	}
	return text
}

// small is a size that can be less than a byte.
func small(bytes float64) string {
	const maxFraction = 100
	if bytes < maxFraction {
		return fmt.Sprintf("%.2g B", bytes)
	}
	return units.Bytes(int64(math.Round(bytes)))
}

// rose states that more requests are in progress than when a series began; empty if not.
// What is held for a request in progress is given back when it ends.
func (l *load) rose(s *series) string {
	const parts, minSamples, factor = 3, 4, 1.5
	_, busy := l.since(s.times[0], l.busy)
	n := len(busy) / parts
	if n == 0 {
		return ""
	}
	before, after := middle(busy[:n]), middle(busy[len(busy)-n:])
	if after-before < minSamples || after < factor*before {
		return ""
	}
	return fmt.Sprintf("the engine's requests in progress rose from %.0f to %.0f meanwhile, and each holds memory until it ends. To know, watch it under steady load", before, after)
}
