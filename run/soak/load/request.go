package load

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"time"

	"strandline/internal/secret"
)

// A worker sends one request at a time, from one buffer.
type worker struct {
	client  *Client
	history bytes.Buffer // messages of the conversation so far, as JSON
	body    bytes.Buffer
	text    []byte // words
	answer  []byte // of the last request
	reader  lines
	painter
}

// A result is what became of a request.
type result struct {
	kind         Kind
	err          error
	aborted      bool
	first, last  time.Duration // of tokens, since the request was sent
	total        time.Duration
	promptTokens int64
	outputTokens int64
	wait         time.Duration // that a rate limit asks for
	missing      bool          // the server knows no such path
}

// tried sends a request that belongs to no wave.
func (w *worker) tried(ctx context.Context) result {
	w.history.Reset()
	tokens := w.compose(source(w.client.o.Seed, -2, 0))
	return w.send(ctx, tokens, 0, newTally(func() {}))
}

// converse sends the requests of a conversation, each with the conversation so far.
func (w *worker) converse(ctx context.Context, wave, index, turns int, all *tally) {
	w.history.Reset()
	random := source(w.client.o.Seed, wave, index)
	for range turns {
		tokens := w.compose(random)
		abort := 0
		if random.Float64() < w.client.o.Abort {
			abort = 1 + random.IntN(tokens)
		}
		r := w.send(ctx, tokens, abort, all)
		if ctx.Err() != nil && r.err != nil {
			return // the wave was ended
		}
		all.add(&r)
		if r.kind == Refused { // the others would be, too
			pause(ctx, backOff)
		}
		if w.client.o.Turns > 1 {
			w.comma()
			w.history.WriteString(`{"role":"assistant","content":`)
			text, _ := json.Marshal(string(w.answer)) // no string fails
			w.history.Write(text)
			w.history.WriteByte('}')
		}
	}
}

// The patience with a server that is busy.
const (
	backOff   = 100 * time.Millisecond
	maxWait   = 30 * time.Second // for a server that is busy, or for its list of models
	maxLimits = 20               // answers of status 429 to one request
)

// send sends a request, again as long as it is rate limited.
func (w *worker) send(ctx context.Context, tokens, abort int, all *tally) result {
	for n := 1; ; n++ {
		r := w.attempt(ctx, tokens, abort)
		if r.kind != RateLimited || n == maxLimits || ctx.Err() != nil {
			return r
		}
		all.limited(r.err)
		pause(ctx, r.wait)
	}
}

func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

// compose draws the next request into the body, and returns how many tokens it asks for.
func (w *worker) compose(r *rand.Rand) int {
	o := &w.client.o
	w.text = w.text[:0]
	if o.Prefix > 0 && w.history.Len() == 0 {
		w.text = append(append(w.text, w.client.prefix[r.IntN(o.Prefixes)]...), ' ')
	}
	w.text = words(w.text, r, o.Input.draw(r))
	tokens := o.Output.draw(r)
	w.body.Reset()
	model, _ := json.Marshal(o.Model) // no string fails
	fmt.Fprintf(&w.body, `{"model":%s,"max_tokens":%d,"stream":%t`, model, tokens, o.Stream)
	if o.Stream && w.client.plain < withoutUsage {
		w.body.WriteString(`,"stream_options":{"include_usage":true}`)
	}
	if w.client.plain == everything { // of vLLM and SGLang: otherwise a model ends its answer when it likes
		w.body.WriteString(`,"ignore_eos":true`)
	}
	if o.Completions {
		fmt.Fprintf(&w.body, `,"prompt":"%s"}`, w.text)
		return tokens
	}
	w.message(r)
	w.body.WriteString(`,"messages":[`)
	w.body.Write(w.history.Bytes())
	w.body.WriteString(`]}`)
	return tokens
}

func (w *worker) comma() {
	if w.history.Len() > 0 {
		w.history.WriteByte(',')
	}
}

// message adds a message of the user to the conversation.
func (w *worker) message(r *rand.Rand) {
	o := &w.client.o
	w.comma()
	if o.Images == 0 {
		fmt.Fprintf(&w.history, `{"role":"user","content":"%s"}`, w.text)
		return
	}
	w.history.WriteString(`{"role":"user","content":[`)
	for range o.Images {
		w.history.WriteString(`{"type":"image_url","image_url":{"url":"`)
		w.paint(&w.history, r, o.Width, o.Height, o.JPEG) // a buffer takes everything
		w.history.WriteString(`"}},`)
	}
	fmt.Fprintf(&w.history, `{"type":"text","text":"%s"}]}`, w.text)
}

// errAborted is why a request ends that was to be canceled.
var errAborted = errors.New("aborted")

// attempt sends the body once. If abort is above 0, it is canceled after so many pieces of
// the answer, or after so many milliseconds if the answer comes in one piece.
func (w *worker) attempt(parent context.Context, tokens, abort int) (r result) {
	ctx, cancel := context.WithCancelCause(parent)
	defer cancel(nil)
	o := &w.client.o
	if o.Timeout > 0 {
		var stop context.CancelFunc
		ctx, stop = context.WithTimeout(ctx, o.Timeout)
		defer stop()
	}
	if abort > 0 && !o.Stream {
		t := time.AfterFunc(time.Duration(abort)*time.Millisecond, func() { cancel(errAborted) })
		defer t.Stop()
	}
	began := time.Now()
	err := w.exchange(ctx, &r, began, abort, func() { cancel(errAborted) })
	r.total = time.Since(began)
	switch {
	case err == nil:
	case context.Cause(ctx) == errAborted:
		r.aborted = true
	case r.kind != "":
		r.err = err
	case parent.Err() == nil && errors.Is(ctx.Err(), context.DeadlineExceeded):
		r.kind, r.err = Timeout, fmt.Errorf("no complete answer after %s", o.Timeout)
	default:
		r.kind, r.err = kindOf(err), err
	}
	return r
}

// exchange sends the body and reads the answer.
func (w *worker) exchange(ctx context.Context, r *result, began time.Time, abort int, cut func()) error {
	w.answer = w.answer[:0]
	req, err := w.client.request(ctx, http.MethodPost, w.client.endpoint(), bytes.NewReader(w.body.Bytes()))
	if err != nil {
		return err
	}
	res, err := w.client.http.Do(req)
	if err != nil {
		return err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return r.refused(res)
	}
	a := answer{worker: w, result: r, began: began, abort: abort, cut: cut}
	if kind := res.Header.Get("Content-Type"); !w.client.o.Stream || strings.HasPrefix(kind, "application/json") {
		return a.whole(res.Body) // some servers do not stream
	}
	return a.stream(res.Body)
}

func (c *Client) request(ctx context.Context, method, url string, body io.Reader) (*http.Request, error) {
	req, err := http.NewRequestWithContext(ctx, method, url, body)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept-Encoding", "identity") // the time to the first token counts
	if c.o.Key != "" {
		req.Header.Set("Authorization", "Bearer "+c.o.Key)
	}
	return req, nil
}

// refused reads an answer whose status is not 200.
func (r *result) refused(res *http.Response) error {
	text, _ := io.ReadAll(io.LimitReader(res.Body, 4<<10))
	switch {
	case res.StatusCode == http.StatusTooManyRequests:
		r.kind, r.wait = RateLimited, retryAfter(res.Header.Get("Retry-After"))
	case res.StatusCode >= 500:
		r.kind = ServerError
	default:
		r.kind, r.missing = Rejected, res.StatusCode == http.StatusNotFound
	}
	return fmt.Errorf("%s: %s", res.Status, secret.Text(message(text))) // some repeat the key
}

// retryAfter is the time that a server asks to wait: seconds or a date.
func retryAfter(text string) time.Duration {
	wait := backOff
	if seconds, err := strconv.ParseFloat(text, 64); err == nil {
		wait = time.Duration(seconds * float64(time.Second))
	} else if at, err := http.ParseTime(text); err == nil {
		wait = time.Until(at)
	}
	return min(max(wait, 0), maxWait)
}

// message is what an answer says about an error, in short.
func message(text []byte) string {
	var e struct {
		Error   json.RawMessage
		Message string
	}
	if json.Unmarshal(text, &e) == nil {
		var of struct{ Message string }
		if json.Unmarshal(e.Error, &of) == nil && of.Message != "" {
			return of.Message
		}
		if e.Message != "" {
			return e.Message
		}
	}
	const maxQuoted = 200
	text = bytes.Join(bytes.Fields(text), []byte(" "))
	return string(bytes.ToValidUTF8(text[:min(len(text), maxQuoted)], []byte("?")))
}

// findModel takes the first model that the server lists.
func (c *Client) findModel(ctx context.Context) error {
	wait := maxWait
	if c.o.Timeout > 0 {
		wait = min(wait, c.o.Timeout)
	}
	limited, stop := context.WithTimeout(ctx, wait)
	defer stop()
	req, err := c.request(limited, http.MethodGet, c.o.URL+"/models", nil)
	if err != nil {
		return err
	}
	res, err := c.http.Do(req)
	if err != nil {
		if limited.Err() != nil && ctx.Err() == nil {
			return fmt.Errorf("%s/models: no answer within %s", secret.Text(c.o.URL), wait)
		}
		return err
	}
	defer res.Body.Close()
	var list struct{ Data []struct{ ID string } }
	switch res.StatusCode {
	case http.StatusOK:
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusNotImplemented: // no list: then the name may not matter
		c.o.Model = "default"
		return nil
	default:
		var r result
		return fmt.Errorf("%s/models: %w", secret.Text(c.o.URL), r.refused(res))
	}
	err = json.NewDecoder(io.LimitReader(res.Body, 1<<20)).Decode(&list)
	switch {
	case err != nil && limited.Err() != nil && ctx.Err() == nil:
		return fmt.Errorf("%s/models: no whole answer within %s; name the model with --model", secret.Text(c.o.URL), wait)
	case err != nil || len(list.Data) == 0:
		return fmt.Errorf("%s/models does not list a model; name it with --model", secret.Text(c.o.URL))
	}
	c.o.Model = list.Data[0].ID
	return nil
}
