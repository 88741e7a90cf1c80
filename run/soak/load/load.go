// Package load sends requests to a server that speaks the API of OpenAI, such as vLLM or
// SGLang: chat or completions, streamed or not, with texts and images that are made as
// they are sent. Requests are drawn from a seed, so that the same wave can be sent again.
// It measures latency and counts errors by kind; it knows nothing of memory.
//
// Its own memory does not grow with the number of requests: latencies are kept in
// histograms of fixed size, and each worker has one buffer for its requests.
package load

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"strandline/internal/httpbounds"
	"strandline/internal/secret"
)

// Options state what is sent.
type Options struct {
	URL         string // where the API begins, such as http://localhost:8000/v1
	Key         string // sent as a bearer token; "" for none
	Model       string // "" for the first one that the server lists
	Completions bool   // ask /completions, which has no images and turns, instead of /chat/completions
	Stream      bool
	Concurrency int    // requests at a time
	Input       Length // of a prompt without its shared prefix, in words, which are about a token each
	Output      Length // tokens to generate
	Prefix      int    // words that a prompt shares with others
	Prefixes    int    // how many different prefixes there are
	Images      int    // in each request
	Width       int    // of an image, in pixels
	Height      int
	JPEG        bool    // instead of PNG
	Turns       int     // requests of a conversation, each of which repeats the conversation so far
	Abort       float64 // share of the requests that are canceled while they are answered
	Seed        uint64
	Timeout     time.Duration // of a request
}

// check returns what is wrong with the options.
func (o *Options) check() error {
	u, err := url.Parse(o.URL)
	const example = "want a URL such as http://localhost:8000/v1"
	switch {
	case err != nil && !strings.Contains(o.URL, "://"): // host:port is not a URL
		return errors.New(example)
	case err != nil: // the error repeats parts of it, which can be of a password
		return errors.New("the URL cannot be read: " + example + "; in a password, / is written %2F, and % is %25")
	case u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "":
		return fmt.Errorf("%q: %s", secret.Text(o.URL), example)
	case u.RawQuery != "" || u.Fragment != "":
		return fmt.Errorf("%s: want a URL without ? and #, to which paths such as /chat/completions are added", secret.Text(o.URL))
	case o.Prefix > longest:
		return fmt.Errorf("a prefix of %d tokens: want at most %d", o.Prefix, longest)
	case o.Concurrency < 1:
		return fmt.Errorf("concurrency %d: want at least 1", o.Concurrency)
	case o.Completions && o.Images > 0:
		return errors.New("the endpoint for completions takes no images; use chat")
	case o.Completions && o.Turns > 1:
		return errors.New("the endpoint for completions has no conversations; use chat")
	case o.Images > 0 && (o.Width < 1 || o.Height < 1 || o.Width > 16384 || o.Height > 16384):
		return fmt.Errorf("images of %dx%d pixels: want 1 to 16384", o.Width, o.Height)
	case o.Abort < 0 || o.Abort > 1:
		return fmt.Errorf("a share of %g: want 0 to 1", o.Abort)
	}
	return nil
}

// maxAnswer bounds an answer, in bytes.
const maxAnswer = 256 << 20

// A Client sends requests to one server.
type Client struct {
	o      Options
	http   *httpbounds.Client
	plain  plainness
	prefix []string
	failed int // requests in succession, over waves
}

// plainness states which parts that not every server accepts are left out.
type plainness int

const (
	everything   plainness = iota // ignore_eos, and usage in streams
	standard                      // only what the API of OpenAI has
	withoutUsage                  // without usage in streams
)

// New returns a client. [Client.Probe] must be called before waves are sent.
func New(o Options) (*Client, error) {
	o.URL = strings.TrimRight(o.URL, "/")
	if err := o.check(); err != nil {
		return nil, err
	}
	o.Turns, o.Prefixes = max(o.Turns, 1), max(o.Prefixes, 1)
	c := &Client{o: o, http: httpbounds.NewClient(o.Concurrency, maxAnswer)}
	if o.Prefix > 0 {
		for i := range o.Prefixes {
			c.prefix = append(c.prefix, string(words(nil, source(o.Seed, -1, i), o.Prefix)))
		}
	}
	return c, nil
}

// Close closes connections that are idle, so that the server can free what they hold.
func (c *Client) Close() { c.http.CloseIdle() }

// Model is the name of the model that requests name.
func (c *Client) Model() string { return c.o.Model }

// Probe finds the model, and what the server accepts, by a few requests. The error says
// why the server cannot be used.
func (c *Client) Probe(ctx context.Context) error {
	if c.o.Model == "" {
		if err := c.findModel(ctx); err != nil {
			return err
		}
	}
	w := &worker{client: c}
	var first error
	missing := false // the path
	for c.plain = everything; c.plain <= withoutUsage; c.plain++ {
		r := w.tried(ctx)
		if r.err == nil {
			c.failed = 0
			return nil
		}
		if first == nil {
			first, missing = r.err, r.missing
		}
		if r.kind != Rejected {
			break
		}
	}
	hint := ""
	if u, err := url.Parse(c.o.URL); err == nil && missing && strings.Trim(u.Path, "/") == "" {
		hint = "; the API often begins at " + secret.Text(c.o.URL) + "/v1"
	}
	return fmt.Errorf("%s does not answer a request: %w%s", secret.Text(c.endpoint()), first, hint)
}

func (c *Client) endpoint() string {
	if c.o.Completions {
		return c.o.URL + "/completions"
	}
	return c.o.URL + "/chat/completions"
}

// A Wave is a number of requests that are drawn by a number: the same number gives the
// same requests.
type Wave struct {
	Content  int // 0 or more
	Requests int
}

// hopeless is after how many failures in succession a wave ends. They may have begun in
// the wave before.
const hopeless = 100

// Send sends a wave and waits for its end, or that of the context. Progress is called
// about every second, unless it is nil.
func (c *Client) Send(ctx context.Context, wave Wave, progress func(*Stats)) *Stats {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	began := time.Now()
	all := newTally(stop)
	all.failed = c.failed
	var next atomic.Int64
	var workers sync.WaitGroup
	for range min(c.o.Concurrency, wave.Requests) {
		workers.Go(func() {
			w := &worker{client: c}
			for ctx.Err() == nil {
				first := int(next.Add(int64(c.o.Turns))) - c.o.Turns // of a conversation
				if first >= wave.Requests {
					return
				}
				w.converse(ctx, wave.Content, first, min(c.o.Turns, wave.Requests-first), all)
			}
		})
	}
	done := make(chan struct{})
	go func() { workers.Wait(); close(done) }()
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			if progress != nil {
				now := all.now(time.Since(began))
				progress(&now)
			}
			continue
		case <-done:
		}
		c.failed = all.failed
		out := all.now(time.Since(began))
		return &out
	}
}

// A tally sums up what several workers see.
type tally struct {
	mu     sync.Mutex
	stats  Stats
	failed int    // in succession
	stop   func() // ends the wave
}

func newTally(stop func()) *tally {
	return &tally{stats: Stats{Errors: map[Kind]int64{}, Examples: map[Kind]string{}}, stop: stop}
}

func (t *tally) now(elapsed time.Duration) Stats {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := t.stats.clone()
	out.Elapsed = elapsed
	return out
}

// limited counts an answer that asked to wait.
func (t *tally) limited(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stats.fail(RateLimited, err)
}

// add counts a request that has ended.
func (t *tally) add(r *result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.stats.add(r)
	t.failed++
	if r.err == nil {
		t.failed = 0
	}
	if t.failed >= hopeless {
		t.stats.GaveUp = true
		t.stop()
	}
}
