// Package promql reads levels of memory over time from a store that speaks Prometheus's
// HTTP API: Prometheus itself, VictoriaMetrics, Mimir, Thanos.
//
// The store does the work that it can: it counts the series before they are asked for, and
// reduces each step to the highest level in it. What an answer may hold is bounded.
package promql

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"net/http"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"strandline/internal/httpbounds"
	"strandline/internal/secret"
	"strandline/profiles"
)

// format is that of what [Read] reads.
const format = "prometheus"

const (
	// maxSeries is how many series are judged at most.
	maxSeries = 500
	// maxPoints is how many points of each series are asked for, where the step is
	// ours to choose, and limitPoints how many a store gives at most.
	maxPoints   = 480
	limitPoints = 11_000
	// maxBytes is how much of an answer is read.
	maxBytes = 256 << 20
	// patience is how long a query may take.
	patience = 2 * time.Minute
)

// A Query states what to ask, and of when.
type Query struct {
	Server string // the address of the store, such as http://localhost:9090
	Expr   string
	Since  time.Duration // how far back
	Step   time.Duration // between points; 0 for one that gives some hundred points
	End    time.Time     // the last point
}

// web sends the queries.
var web = httpbounds.NewClient(1, maxBytes+1)

// A client asks one store.
type client struct {
	base  *url.URL
	query Query
}

// Read asks a store for levels. The error states what to ask instead.
func Read(ctx context.Context, q Query) (*profiles.File, error) {
	base, err := address(q.Server)
	if err != nil {
		return nil, err
	}
	if q.Step, err = q.step(); err != nil {
		return nil, err
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	c := &client{base, q}
	f, err := c.read(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("the store has not answered within %s: ask for less, by a longer --step, a shorter --since, or fewer series", patience)
	}
	return f, err
}

// address is that of a store, without the path of the API.
func address(text string) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		text = "http://" + text
	}
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return nil, errors.New("not the address of a store, such as http://localhost:9090")
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/api/v1")
	u.RawQuery, u.Fragment = "", ""
	return u, nil
}

// step is the time between points.
func (q *Query) step() (time.Duration, error) {
	switch {
	case q.Since < time.Second:
		return 0, fmt.Errorf("--since %s: want at least a second", q.Since)
	case q.Step == 0:
		return max((q.Since / maxPoints).Round(time.Second), time.Second), nil
	case q.Step < time.Millisecond:
		return 0, fmt.Errorf("--step %s: want at least a millisecond", q.Step)
	case q.Since/q.Step > limitPoints:
		return 0, fmt.Errorf("--step %s: %d points in %s are more than a store gives (%d); want a step of %s or more",
			q.Step, q.Since/q.Step, duration(q.Since), limitPoints, duration(max((q.Since/maxPoints).Round(time.Second), time.Second)))
	}
	return q.Step, nil
}

func (c *client) read(ctx context.Context) (*profiles.File, error) {
	expr := c.query.Expr
	factor, err := c.bytesOf(ctx, expr)
	if err != nil {
		return nil, err
	}
	const coarse = time.Minute // from which a step is longer than scrapes are apart
	if c.query.Step > coarse && selected(expr) != "" {
		expr = fmt.Sprintf("max_over_time(%s[%dms])", expr, c.query.Step.Milliseconds())
	}
	if err := c.count(ctx); err != nil {
		return nil, err
	}
	return c.levels(ctx, expr, factor)
}

// get asks for a page of the API. The caller closes the body.
func (c *client) get(ctx context.Context, path string, form url.Values) (io.ReadCloser, error) {
	u := c.base.JoinPath("api/v1", path)
	u.RawQuery = form.Encode()
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, u.String(), nil)
	if err != nil {
		return nil, errors.New("not the address of a store, such as http://localhost:9090")
	}
	answer, err := web.Do(r)
	if err != nil {
		if e := (*net.OpError)(nil); errors.As(err, &e) {
			err = e.Err // without the address once more
		}
		if e := (*os.SyscallError)(nil); errors.As(err, &e) {
			err = e.Err
		}
		return nil, fmt.Errorf("%s: %w", c.base.Host, err)
	}
	if answer.StatusCode == http.StatusOK {
		return answer.Body, nil
	}
	defer answer.Body.Close()
	return nil, refusal(answer)
}

// refusal is why a store does not answer a query, in its own words where it has some.
func refusal(answer *http.Response) error {
	const maxAnswer = 64 << 10
	text, _ := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	var doc struct{ ErrorType, Error string }
	if json.Unmarshal(text, &doc) == nil && doc.Error != "" {
		return storeError(doc.ErrorType, doc.Error)
	}
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return fmt.Errorf("the store answers %s: give name and password in the address, as in https://name:password@host", answer.Status)
	case http.StatusNotFound:
		return errors.New("there is no API of Prometheus at this address; some stores have it under a path, as in http://host/prometheus")
	}
	return fmt.Errorf("the store answers %s", answer.Status)
}

// storeError is what the store reports, with a remedy where there is one.
func storeError(kind, text string) error {
	const maxQuoted = 500
	text = secret.Text(text)
	if r := []rune(text); len(r) > maxQuoted {
		text = string(r[:maxQuoted]) + "…"
	}
	switch kind {
	case "bad_data":
		return fmt.Errorf("the store cannot read the query: %s", text)
	case "timeout":
		return fmt.Errorf("the query takes the store too long (%s): ask for less, by a longer --step, a shorter --since, or fewer series", text)
	}
	return fmt.Errorf("the store reports: %s", text)
}

// count asks how many series there are, so that a store need not send a million.
func (c *client) count(ctx context.Context) error {
	form := url.Values{"query": {"count(" + c.query.Expr + "\n)"}, "time": {seconds(c.query.End)}}
	body, err := c.get(ctx, "query", form)
	if err != nil {
		return err
	}
	defer body.Close()
	n := 0.0
	a := answer{each: func(s *series) error {
		if len(s.Value) == 2 {
			n, _ = number(s.Value[1])
		}
		return nil
	}}
	if err := a.read(body); err != nil {
		return err
	}
	if n > maxSeries {
		return fmt.Errorf("the query has %.0f series, and at most %d are judged: sum them up, as in `sum by (pod) (…)`, or choose some, as in `topk(20, …)`", n, maxSeries)
	}
	return nil
}

// levels asks for the levels.
func (c *client) levels(ctx context.Context, expr string, factor float64) (*profiles.File, error) {
	q := &c.query
	end := q.End.Truncate(q.Step)
	form := url.Values{
		"query": {expr}, "start": {seconds(end.Add(-q.Since))}, "end": {seconds(end)}, "step": {strconv.FormatFloat(q.Step.Seconds(), 'f', 3, 64)},
		"timeout": {fmt.Sprintf("%.0fs", patience.Seconds())}, "limit": {strconv.Itoa(maxSeries + 1)},
	}
	body, err := c.get(ctx, "query_range", form)
	if err != nil {
		return nil, err
	}
	defer body.Close()
	var all []series
	f := &profiles.File{Name: secret.Text(q.Expr), Format: format}
	a := answer{each: func(s *series) error {
		if len(all) == maxSeries {
			return errMany
		}
		all = append(all, *s)
		return nil
	}}
	switch err := a.read(body); {
	case errors.Is(err, errMany):
		f.Partial = fmt.Errorf("there are more than %d series, and the rest is left out", maxSeries)
	case err != nil:
		return nil, err
	}
	for _, w := range a.warnings {
		f.Notes = append(f.Notes, "the store warns: "+w)
	}
	var malformed int
	f.Columns, malformed = columns(q.Expr, all, factor)
	switch {
	case malformed > 0 && len(f.Columns) == 0:
		return nil, fmt.Errorf("the store answers values that are not a time and a number, %d of them: what is at this address is not Prometheus's API, or something between changes its answers", malformed)
	case malformed > 0:
		f.Notes = append(f.Notes, fmt.Sprintf("%d values of the answer are not a time and a number, and are left out", malformed))
	case len(f.Columns) == 0:
		return nil, fmt.Errorf("the query has no levels in the last %s: check the name and the labels, or ask for a longer --since", duration(q.Since))
	}
	return f, nil
}

func seconds(t time.Time) string {
	return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64)
}

// number is a value of an answer, which is a string.
func number(x any) (float64, bool) {
	text, ok := x.(string)
	if !ok {
		return 0, false
	}
	v, err := strconv.ParseFloat(text, 64)
	return v, err == nil && !math.IsNaN(v) && !math.IsInf(v, 0)
}
