package load

import (
	"math"
	"runtime"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"strandline/internal/test/soakserver"
)

func TestMain(m *testing.M) {
	soakserver.Main()
	goleak.VerifyTestMain(m)
}

// small are options of requests that are answered quickly.
func small(url string) Options {
	return Options{URL: url, Stream: true, Concurrency: 4, Input: Length{Low: 8, High: 8}, Output: Length{Low: 4, High: 4}, Timeout: time.Minute}
}

// started returns a client of a server that has been probed.
func started(t testing.TB, server soakserver.Options, change func(*Options)) *Client {
	t.Helper()
	url, _ := soakserver.Start(t, server)
	o := small(url)
	if change != nil {
		change(&o)
	}
	c, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Probe(t.Context()); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestSend(t *testing.T) {
	for name, change := range map[string]func(*Options){
		"chat":          nil,
		"completions":   func(o *Options) { o.Completions = true },
		"not streamed":  func(o *Options) { o.Stream = false },
		"completion":    func(o *Options) { o.Stream, o.Completions = false, true },
		"images":        func(o *Options) { o.Images, o.Width, o.Height = 2, 65, 33 },
		"JPEG":          func(o *Options) { o.Images, o.Width, o.Height, o.JPEG = 1, 64, 64, true },
		"conversations": func(o *Options) { o.Turns = 3 },
		"prefixes":      func(o *Options) { o.Prefix, o.Prefixes = 20, 2 },
	} {
		t.Run(name, func(t *testing.T) {
			c := started(t, soakserver.Options{}, change)
			s := c.Send(t.Context(), Wave{Requests: 25}, nil)
			if s.Sent != 25 || s.Completed != 25 || s.Failed() != 0 || s.OutputTokens != 100 || s.PromptTokens < 25*8 || s.Total.Count() != 25 {
				t.Errorf("%d of %d completed, %d prompt and %d output tokens, errors %v %v", s.Completed, s.Sent, s.PromptTokens, s.OutputTokens, s.Errors, s.Examples)
			}
			if name == "conversations" && s.PromptTokens < 25*8*3/2 {
				t.Errorf("%d prompt tokens: the conversations do not grow", s.PromptTokens)
			}
			if c.o.Stream && s.TTFT.Count() != 25 || c.Model() != "test-model" {
				t.Errorf("%d times to the first token, model %s", s.TTFT.Count(), c.Model())
			}
		})
	}
}

func TestErrors(t *testing.T) {
	for _, c := range []struct {
		fault string
		share float64
		want  Kind
	}{
		{soakserver.Refusing, 0.5, ServerError},
		{soakserver.Garbage, 0.5, Garbage},
		{soakserver.Cut, 0.5, Disconnected},
		{soakserver.Unended, 0.5, Garbage},
		{soakserver.Hanging, 0.2, Timeout},
	} {
		t.Run(c.fault, func(t *testing.T) {
			url, _ := soakserver.Start(t, soakserver.Options{Fault: c.fault, Share: c.share, Seed: 3})
			o := small(url)
			o.Model = "given"
			if c.want == Timeout {
				o.Timeout = 2 * time.Second
			}
			client, err := New(o)
			if err != nil {
				t.Fatal(err)
			}
			s := client.Send(t.Context(), Wave{Requests: 20}, nil)
			if s.Sent != 20 || s.Errors[c.want] == 0 || s.Errors[c.want] != s.Failed() || s.Examples[c.want] == "" {
				t.Errorf("%d of %d completed, errors %v %v", s.Completed, s.Sent, s.Errors, s.Examples)
			}
		})
	}
}

// TestPlain asks a server that neither streams nor lists its models.
func TestPlain(t *testing.T) {
	c := started(t, soakserver.Options{Fault: soakserver.Plain}, nil)
	if s := c.Send(t.Context(), Wave{Requests: 20}, nil); s.Completed != 20 || s.OutputTokens != 80 || c.Model() != "default" {
		t.Errorf("%d of 20 completed, %d tokens of %s: %v", s.Completed, s.OutputTokens, c.Model(), s.Examples)
	}
}

func TestRateLimit(t *testing.T) {
	c := started(t, soakserver.Options{Fault: soakserver.Limiting, Share: 0.5, Seed: 1}, nil)
	s := c.Send(t.Context(), Wave{Requests: 30}, nil)
	if s.Completed != 30 || s.Errors[RateLimited] == 0 {
		t.Errorf("%d of 30 completed, errors %v %v", s.Completed, s.Errors, s.Examples)
	}
}

func TestAbort(t *testing.T) {
	c := started(t, soakserver.Options{Fault: soakserver.Slow}, func(o *Options) {
		o.Abort, o.Output = 0.5, Length{Low: 20, High: 20}
	})
	s := c.Send(t.Context(), Wave{Requests: 30}, nil)
	if s.Aborted == 0 || s.Completed == 0 || s.Failed() != 0 {
		t.Errorf("%d completed, %d aborted, errors %v %v", s.Completed, s.Aborted, s.Errors, s.Examples)
	}
}

func TestProbe(t *testing.T) {
	c := started(t, soakserver.Options{Fault: soakserver.Rejecting}, nil)
	if c.plain != standard {
		t.Errorf("the requests have what the server rejects: %d", c.plain)
	}
	url, _ := soakserver.Start(t, soakserver.Options{Fault: soakserver.Garbage})
	o := small(url)
	broken, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	if err := broken.Probe(t.Context()); err == nil || !strings.Contains(err.Error(), "does not answer a request") {
		t.Errorf("an answer that is none: %v", err)
	}
	o.URL = nobody
	if c, err = New(o); err != nil {
		t.Fatal(err)
	}
	if err := c.Probe(t.Context()); err == nil {
		t.Error("nobody listens, and the probe succeeds")
	}
	if s := c.Send(t.Context(), Wave{Requests: 10_000}, nil); !s.GaveUp || s.Errors[Refused] < hopeless || s.Sent == 10_000 {
		t.Errorf("nobody listens: %d sent, errors %v %v", s.Sent, s.Errors, s.Examples)
	}
}

// nobody is a URL at which nobody listens.
const nobody = "http://127.0.0.1:1/v1"

// TestSame draws waves, which are the same for the same number and seed.
func TestSame(t *testing.T) {
	draw := func(seed uint64, wave int) string {
		o := small("http://localhost")
		o.Seed, o.Images, o.Width, o.Height = seed, 1, 40, 40
		c, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		w := &worker{client: c}
		w.compose(source(seed, wave, 7))
		return w.body.String()
	}
	drawn := draw(1, 2)
	if drawn != draw(1, 2) || drawn == draw(1, 3) || drawn == draw(2, 2) {
		t.Error("a wave is not drawn by its number and the seed")
	}
}

func TestParseLength(t *testing.T) {
	for text, want := range map[string]Length{"200": {200, 200, 0}, "5-40": {5, 40, 0}, "~100": {100, 800, 0.8}} {
		l, err := ParseLength(text)
		if err != nil || l != want {
			t.Errorf("%s: %v, %v", text, l, err)
		}
		r, sum := source(1, 0, 0), 0
		for range 1000 {
			n := l.draw(r)
			if n < 1 || n > l.High || l.Spread == 0 && n < l.Low {
				t.Fatalf("%s: drew %d", text, n)
			}
			sum += n
		}
		if mean := sum / 1000; mean < l.Low/2 || mean > 2*l.High {
			t.Errorf("%s: a mean of %d", text, mean)
		}
	}
	for _, text := range []string{"", "0", "-3", "40-5", "~", "~0", "a", "1-2-3", "99999999999"} {
		if l, err := ParseLength(text); err == nil {
			t.Errorf("%q is %v", text, l)
		}
	}
}

func TestHistogram(t *testing.T) {
	var h Histogram
	for i := range 1000 {
		h.Add(time.Duration(i+1) * time.Millisecond)
	}
	for _, share := range []float64{0.5, 0.95, 0.999} {
		want := share * float64(time.Second)
		if got := float64(h.Quantile(share)); math.Abs(got-want) > 0.04*want {
			t.Errorf("%g: %v", share, time.Duration(got))
		}
	}
	for i := range buckets {
		if got := bucket(value(i)); got != i {
			t.Fatalf("the middle of bucket %d is in %d", i, got)
		}
	}
	if bucket(0) != 0 || bucket(time.Hour*1000) != buckets-1 {
		t.Error("the ends")
	}
}

func FuzzTake(f *testing.F) {
	f.Add([]byte("data: {\"choices\":[{\"delta\":{\"content\":\"x\"}}]}\n\ndata: [DONE]\n\n"))
	f.Add([]byte("data: {\"error\":{\"message\":\"x\"}}\n"))
	f.Add([]byte(": ping\nevent: x\ndata:"))
	f.Fuzz(func(t *testing.T, text []byte) {
		c, err := New(small("http://localhost"))
		if err != nil {
			t.Fatal(err)
		}
		var r result
		a := answer{worker: &worker{client: c}, result: &r, began: time.Now()}
		err = a.stream(strings.NewReader(string(text)))
		if err != nil && r.kind == "" && kindOf(err) == "" {
			t.Errorf("an error of no kind: %v", err)
		}
	})
}

// BenchmarkSend sends small requests to a server in another process on this machine. It
// reports how many a second there are, and by how much the memory of this process grew.
func BenchmarkSend(b *testing.B) {
	c := started(b, soakserver.Options{}, func(o *Options) { o.Concurrency = 16 })
	c.Send(b.Context(), Wave{Requests: 2000}, nil)
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	b.ResetTimer()
	s := c.Send(b.Context(), Wave{Content: 1, Requests: b.N}, nil)
	b.StopTimer()
	if s.Completed != int64(b.N) {
		b.Fatalf("%d of %d completed: %v", s.Completed, b.N, s.Examples)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	b.ReportMetric(float64(s.Completed)/s.Elapsed.Seconds(), "requests/s")
	b.ReportMetric(float64(after.HeapAlloc)-float64(before.HeapAlloc), "heap-growth-B")
	b.ReportMetric(float64(after.Sys)/(1<<20), "sys-MiB")
}
