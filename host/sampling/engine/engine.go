// Package engine reads what an inference engine reports of its load: how many requests
// it has in progress, how full its KV cache is, and how many requests and tokens it has
// finished. vLLM always reports this at /metrics, SGLang with --enable-metrics.
package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/url"
	"strings"
	"time"

	"strandline/host/sampling/sample"
	"strandline/internal/httpbounds"
	"strandline/internal/secret"
	table "strandline/plan/engine"
)

const (
	// maxAnswer is how much of an answer is read, in bytes: an engine's is some 100 KB.
	maxAnswer = 16 << 20
	// patience is how long an engine may take to answer.
	patience = 10 * time.Second
)

// errLate is the error for an engine that does not answer in time.
var errLate = errors.New("no answer within " + patience.String())

// Late reports whether an error of [Read] is that the engine did not answer in time.
func Late(err error) bool { return errors.Is(err, errLate) }

// errOther is the error for metrics that are not those of an engine.
var errOther = errors.New("these are not the metrics of vLLM or SGLang")

// Endpoint completes the address of an engine: "localhost:8000" is
// "http://localhost:8000/metrics".
func Endpoint(text string) (string, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return "", errors.New("not an address such as http://localhost:8000/metrics")
	case u.Scheme != "http" && u.Scheme != "https" || u.Host == "":
		return "", fmt.Errorf("%s is not an address such as http://localhost:8000/metrics", secret.Text(text))
	case u.Path == "" || u.Path == "/":
		u.Path = "/metrics"
	}
	return u.String(), nil
}

// client asks engines; [parse] refuses what is larger than an answer may be.
var client = httpbounds.NewClient(1, maxAnswer+1)

// Read asks the engine at an address, which [Endpoint] has completed. It returns when the
// context ends, or after 10 seconds.
func Read(ctx context.Context, endpoint string) (*sample.Load, error) {
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, endpoint, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "text/plain;version=0.0.4")
	answer, err := client.Do(r)
	if err != nil {
		if errors.Is(err, context.DeadlineExceeded) {
			err = errLate
		}
		return nil, err
	}
	defer answer.Body.Close()
	switch {
	case answer.StatusCode == http.StatusNotFound:
		return nil, errors.New("there are no metrics at this address; SGLang has them if it is started with --enable-metrics")
	case answer.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the engine answers %s", answer.Status)
	}
	return parse(answer.Body)
}

// parse reads metrics in the text format of Prometheus. The error is [errOther] if they
// are not those of an engine.
func parse(r io.Reader) (*sample.Load, error) {
	in := &io.LimitedReader{R: r, N: maxAnswer}
	metrics, err := readText(in)
	switch {
	case in.N == 0:
		return nil, fmt.Errorf("the metrics are larger than %d MiB", maxAnswer>>20)
	case err != nil:
		return nil, fmt.Errorf("the metrics cannot be read: %w", err)
	}
	for _, e := range table.Measured() {
		if load := loadOf(e, metrics); load != nil {
			return load, nil
		}
	}
	return nil, errOther
}

// loadOf is what the metrics of an engine state; nil if there are none.
func loadOf(e *table.Engine, metrics map[string][]metric) *sample.Load {
	n := e.Metrics
	find := func(among []string) []metric {
		for _, name := range among {
			for _, prefix := range []string{e.Name + ":", e.Name + "_", "ray_" + e.Name + "_"} {
				if f := metrics[prefix+name]; f != nil {
					return f
				}
			}
		}
		return nil
	}
	out := &sample.Load{
		Engine:  e.Name,
		Running: count(find(n.Running)), Waiting: count(find(n.Waiting)), Requests: count(find(n.Finished)),
		PromptTokens: count(find(n.Prompt)), OutputTokens: count(find(n.Done)),
	}
	for _, x := range groupByEngine(find(n.Cache)) {
		if 0 <= x && x <= 1 && (out.KVCache == nil || x > *out.KVCache) {
			out.KVCache = &x
		}
	}
	if out.Running == nil && out.Waiting == nil && out.Requests == nil && out.OutputTokens == nil {
		return nil
	}
	return out
}

// count is the sum of a metric over engines; nil if it is not there or not a number.
func count(f []metric) *int64 {
	var sum float64
	parts := groupByEngine(f)
	for _, x := range parts {
		sum += x
	}
	const largest = 1 << 62
	if len(parts) == 0 || !(0 <= sum && sum < largest) {
		return nil
	}
	n := int64(math.Round(sum))
	return &n
}

// groupByEngine are the values of a metric by data-parallel engine, model and reason: ranks of
// tensor, pipeline and expert parallelism report the same requests, so that the highest
// value of them counts.
func groupByEngine(f []metric) map[string]float64 {
	out := map[string]float64{}
	for _, m := range f {
		var key strings.Builder
		for _, l := range m.labels {
			switch l.name {
			case "tp_rank", "pp_rank", "moe_ep_rank", "pid":
			default:
				fmt.Fprintf(&key, "%q=%q,", l.name, l.value)
			}
		}
		if before, ok := out[key.String()]; !ok || m.value > before {
			out[key.String()] = m.value
		}
	}
	return out
}
