package load

import (
	"errors"
	"maps"
	"math/bits"
	"net"
	"os"
	"strings"
	"syscall"
	"time"

	"strandline/internal/httpbounds"
)

// A Kind is one of errors.
type Kind string

// The kinds of errors.
const (
	Refused      Kind = "refused"      // no connection
	Disconnected Kind = "disconnected" // the connection ended before the answer did
	Timeout      Kind = "timeout"
	RateLimited  Kind = "rate_limited" // status 429; the request is sent again
	ServerError  Kind = "server_error" // status 500 and above
	Rejected     Kind = "rejected"     // another status that is not 200
	Garbage      Kind = "garbage"      // an answer that is not what the API says
)

// kindOf returns the kind of an error of a connection.
func kindOf(err error) Kind {
	var network net.Error
	var call *net.OpError
	var redirect *httpbounds.Redirect
	switch {
	case errors.Is(err, os.ErrDeadlineExceeded), errors.As(err, &network) && network.Timeout():
		return Timeout
	case errors.Is(err, syscall.ECONNREFUSED), errors.As(err, &call) && call.Op == "dial":
		return Refused
	case errors.As(err, &redirect):
		return Rejected
	case strings.Contains(err.Error(), "malformed"): // the words of net/http about what is not HTTP
		return Garbage
	}
	return Disconnected
}

// Stats are what became of the requests of a wave.
type Stats struct {
	Sent      int64 // requests that ended one way or another
	Completed int64
	Aborted   int64 // canceled by the client, as it was to be
	// Errors are how often each kind occurred. A request that is sent again after it was
	// rate limited counts each time, so these need not be failed requests.
	Errors       map[Kind]int64
	Examples     map[Kind]string // the first error of each kind
	PromptTokens int64           // as the server counts them, otherwise words
	OutputTokens int64
	TTFT         Histogram // time to the first token
	TPOT         Histogram // mean time of each further token of a request
	Total        Histogram // time of a completed request
	Elapsed      time.Duration
	GaveUp       bool // too many requests in succession failed
}

// Failed is the number of requests that were neither completed nor aborted on purpose.
func (s *Stats) Failed() int64 { return s.Sent - s.Completed - s.Aborted }

func (s *Stats) clone() Stats {
	out := *s
	out.Errors, out.Examples = maps.Clone(s.Errors), maps.Clone(s.Examples)
	return out
}

func (s *Stats) fail(kind Kind, err error) {
	if s.Errors[kind]++; s.Examples[kind] == "" {
		s.Examples[kind] = err.Error()
	}
}

func (s *Stats) add(r *result) {
	s.Sent++
	s.PromptTokens += r.promptTokens
	s.OutputTokens += r.outputTokens
	if r.first > 0 {
		s.TTFT.Add(r.first)
	}
	switch {
	case r.err != nil:
		s.fail(r.kind, r.err)
		return
	case r.aborted:
		s.Aborted++
		return
	}
	s.Completed++
	s.Total.Add(r.total)
	if n := r.outputTokens - 1; n > 0 && r.last > r.first {
		s.TPOT.Add((r.last - r.first) / time.Duration(n))
	}
}

// Merge adds what another wave saw.
func (s *Stats) Merge(o *Stats) {
	if s.Errors == nil {
		s.Errors, s.Examples = map[Kind]int64{}, map[Kind]string{}
	}
	s.Sent += o.Sent
	s.Completed += o.Completed
	s.Aborted += o.Aborted
	s.PromptTokens += o.PromptTokens
	s.OutputTokens += o.OutputTokens
	s.Elapsed += o.Elapsed
	for k, n := range o.Errors {
		s.Errors[k] += n
		if s.Examples[k] == "" {
			s.Examples[k] = o.Examples[k]
		}
	}
	s.TTFT.merge(&o.TTFT)
	s.TPOT.merge(&o.TPOT)
	s.Total.merge(&o.Total)
}

// A Histogram holds times with a precision of 3%, in fixed space.
type Histogram struct {
	count   int64
	buckets [buckets]int64
}

// There are 32 buckets for each power of two of microseconds, up to an hour.
const (
	fine    = 32
	buckets = 28 * fine
)

// Add adds a time.
func (h *Histogram) Add(d time.Duration) {
	h.count++
	h.buckets[bucket(d)]++
}

func bucket(d time.Duration) int {
	us := max(uint64(d.Microseconds()), 0)
	if us < fine {
		return int(us)
	}
	shift := bits.Len64(us) - 6 // leaves 6 bits, of which the first is 1
	return min((shift+1)*fine+int(us>>shift)-fine, buckets-1)
}

// value is the middle of a bucket.
func value(i int) time.Duration {
	if i < fine {
		return time.Duration(i) * time.Microsecond
	}
	shift := i/fine - 1
	return time.Duration((float64(fine+i%fine) + 0.5) * float64(uint64(1)<<shift) * float64(time.Microsecond))
}

// Count is how many times there are.
func (h *Histogram) Count() int64 { return h.count }

// Quantile returns the time that a share of all are not above; 0 if there are none.
func (h *Histogram) Quantile(share float64) time.Duration {
	rank, seen := int64(share*float64(h.count)), int64(0)
	for i, n := range h.buckets {
		if seen += n; n > 0 && seen > min(rank, h.count-1) {
			return value(i)
		}
	}
	return 0
}

func (h *Histogram) merge(o *Histogram) {
	h.count += o.count
	for i, n := range o.buckets {
		h.buckets[i] += n
	}
}
