package watch

import (
	"fmt"
	"math"

	"strandline/finding"
	"strandline/host/sample"
	"strandline/judge/trend"
	"strandline/units"
)

// A load is what an inference engine did over time. Requests and tokens are summed from
// the beginning of the watch on, also where the engine starts anew; what is not known is
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
	if len(l.times) > mostPoints {
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
	const fewest = 4
	n := len(times)
	if n < fewest {
		return 0, false
	}
	span := times[n-1] - times[n/2]
	if span <= 0 {
		return 0, false
	}
	return (known[n-1] - known[n/2]) / span, true
}

// hold holds a growth against the load since a series began: it adds to the evidence what
// is taken for each request and token, and states it in words, or that there was no request.
func (l *load) hold(c *trend.Course, s *series, e *finding.LevelsEvidence) string {
	if len(l.times) == 0 || c.Rate <= 0 {
		return ""
	}
	from := s.times[0]
	requests, ok := l.rate(from, l.requests)
	if !ok {
		return ""
	}
	if requests <= 0 {
		return "the engine has finished no request lately: what grows does not grow with each of them"
	}
	perRequest := c.Rate / requests
	e.BytesPerRequest = &perRequest
	text := small(perRequest) + " for each finished request"
	if tokens, ok := l.rate(from, l.tokens); ok && tokens > 0 {
		perToken := c.Rate / tokens
		e.BytesPerToken = &perToken
		text += ", or " + small(perToken) + " for each token"
	}
	return "it grows by " + text
}

// small is a size that can be less than a byte.
func small(bytes float64) string {
	const most = 100
	if bytes < most {
		return fmt.Sprintf("%.2g B", bytes)
	}
	return units.Bytes(int64(math.Round(bytes)))
}

// rose states that more requests are in progress than when a series began; empty if not.
// What is held for a request in progress is given back when it ends.
func (l *load) rose(s *series) string {
	const parts, least, factor = 3, 4, 1.5
	_, busy := l.since(s.times[0], l.busy)
	n := len(busy) / parts
	if n == 0 {
		return ""
	}
	before, after := middle(busy[:n]), middle(busy[len(busy)-n:])
	if after-before < least || after < factor*before {
		return ""
	}
	return fmt.Sprintf("the engine's requests in progress rose from %.0f to %.0f meanwhile, and each holds memory until it ends; to know, watch it under steady load", before, after)
}
