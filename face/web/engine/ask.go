package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"strandline/face/api/page"
	"strandline/torch/snapshot"
	"strandline/torch/tile"
	"strandline/torch/timeline"
)

// An Answer is the engine's reply to a question.
type Answer struct {
	Status int // as of HTTP
	Type   string
	Body   []byte
	// Name is the file name of an answer that is to be saved.
	Name string
	// Lasting reports whether the answer stays the same while the engine lives.
	Lasting bool
}

// A refusal is an error of the question.
type refusal struct {
	status int
	text   string
}

func (r *refusal) Error() string { return r.text }

func wrong(format string, args ...any) error { return &refusal{400, fmt.Sprintf(format, args...)} }
func absent(format string, args ...any) error {
	return &refusal{404, fmt.Sprintf(format, args...)}
}

const jsonType = "application/json; charset=utf-8"

// A question is what is asked.
type question struct {
	ctx  context.Context
	e    *Engine
	q    url.Values
	used map[string]bool
}

// handlers answer the questions, by name.
var handlers = map[string]struct {
	answer func(*question) (any, error)
	// passing answers change while the engine lives.
	passing bool
}{
	"session":  {(*question).session, true},
	"file":     {(*question).file, false},
	"device":   {(*question).device, true}, // measures
	"bands":    {(*question).bands, true},  // colors
	"tile":     {(*question).tile, false},
	"at":       {(*question).at, false},
	"range":    {(*question).compareEvents, false},
	"diff":     {(*question).diff, false},
	"hit":      {(*question).hit, false},
	"alloc":    {(*question).alloc, true}, // the size of its block
	"event":    {(*question).event, false},
	"events":   {(*question).events, false},
	"next":     {(*question).next, false},
	"flame":    {(*question).flame, false},
	"find":     {(*question).find, false},
	"state":    {(*question).state, true}, // sizes of blocks
	"findings": {(*question).findings, true},
	"job":      {(*question).job, false},
	"wall":     {(*question).wall, true},
	"lines":    {(*question).lines, true}, // of files that are edited
	"compare":  {(*question).compare, true},
	"csv":      {(*question).csv, true},
	"replay":   {(*question).replayed, false},
	"simulate": {(*question).simulate, false},
	"search":   {(*question).search, false},
	"fits":     {(*question).fits, false},
	"reclaim":  {(*question).reclaim, false},
}

// Ask answers a question. It is safe for concurrent use.
func (e *Engine) Ask(ctx context.Context, name string, params url.Values) Answer {
	h, ok := handlers[name]
	if !ok {
		return refuse(absent("there is no request %q", name))
	}
	q := &question{ctx: ctx, e: e, q: params, used: map[string]bool{}}
	doc, err := h.answer(q)
	return q.reply(doc, err, !h.passing)
}

// reply is the answer to a question that a document or an error resulted from. It is a
// refusal if there are parameters that were not read.
func (q *question) reply(doc any, err error, lasting bool) Answer {
	if err == nil {
		err = q.unused()
	}
	if err != nil {
		return refuse(err)
	}
	if a, ok := doc.(Answer); ok {
		a.Status, a.Lasting = 200, lasting
		return a
	}
	body, err := json.Marshal(doc)
	if err != nil {
		return refuse(err)
	}
	return Answer{Status: 200, Type: jsonType, Body: body, Lasting: lasting}
}

func refuse(err error) Answer {
	status := 500
	var r *refusal
	if errors.As(err, &r) {
		status = r.status
	}
	body, _ := json.Marshal(page.Refusal{Error: err.Error()})
	return Answer{Status: status, Type: jsonType, Body: body}
}

// unused refuses parameters that were not read.
func (q *question) unused() error {
	var names []string
	for name := range q.q {
		if !q.used[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	if len(names) > 0 {
		return wrong("unknown parameters: %s", strings.Join(names, ", "))
	}
	return nil
}

func (q *question) text(name, otherwise string) string {
	q.used[name] = true
	if v := q.q.Get(name); v != "" {
		return v
	}
	return otherwise
}

func (q *question) has(name string) bool {
	q.used[name] = true
	return q.q.Get(name) != ""
}

// number is a parameter between two bounds.
func (q *question) number(name string, otherwise, low, high int64) (int64, error) {
	text := q.text(name, "")
	if text == "" {
		if otherwise < low {
			return 0, wrong("%s is missing", name)
		}
		return otherwise, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < low || n > high {
		return 0, wrong("%s is %q; it must be a whole number from %d to %d", name, text, low, high)
	}
	return n, nil
}

// missing as a default makes a parameter required.
const missing = -1 << 62

// content returns the requested file, which must have been read.
func (q *question) content() (*file, error) {
	q.e.mu.Lock()
	defer q.e.mu.Unlock()
	first := max(slices.IndexFunc(q.e.files, func(f *file) bool { return f.state != skipped }), 0)
	i, err := q.number("f", int64(first), 0, int64(len(q.e.files))-1)
	if err != nil {
		return nil, absent("there is no file %s", q.text("f", "0"))
	}
	f := *q.e.files[i]
	switch {
	case f.state == failed, f.state == skipped:
		return nil, absent("%s", f.err)
	case f.content == nil:
		return nil, &refusal{409, f.name() + " has not been read yet"}
	}
	return &f, nil
}

// dev returns the requested device, in the requested measure.
func (q *question) dev() (*file, *measured, error) {
	f, err := q.content()
	if err != nil {
		return nil, nil, err
	}
	d, err := q.requestedDevice(f)
	if err != nil {
		return nil, nil, err
	}
	m, err := q.measure(d)
	return f, m, err
}

// requestedDevice returns the requested device of a file.
func (q *question) requestedDevice(f *file) (*device, error) {
	if !q.has("d") {
		return f.devices[0], nil
	}
	n, err := q.number("d", 0, snapshot.Host, 1<<31)
	if err != nil {
		return nil, err
	}
	for _, d := range f.devices {
		if d.requested.h.Device == int(n) {
			return d, nil
		}
	}
	return nil, absent("%s has no data on %s", f.name(), snapshot.DeviceName(int(n)))
}

// The measures of bytes.
const (
	asRequested = "requested"
	asAllocated = "allocated" // sizes of blocks
	asReserved  = "reserved"  // segments, by who took them from the driver
)

// measure returns a device in the requested measure.
func (q *question) measure(d *device) (*measured, error) {
	switch u := q.text("u", asRequested); u {
	case asRequested:
		return d.requested, nil
	case asAllocated:
		r := d.replayed.Load()
		if r == nil {
			return nil, &refusal{409, "the history has not been replayed yet"}
		}
		if r.sizes == nil {
			return nil, absent("block sizes are unknown: %s", r.why)
		}
		return r.allocated(), nil
	case asReserved:
		return d.reserved(), nil
	default:
		return nil, wrong("bytes can be measured as requested, allocated or reserved, not as %q", u)
	}
}

// grouped returns the requested device, in the requested bands.
func (q *question) grouped() (*measured, *tile.Bands, error) {
	_, d, err := q.dev()
	if err != nil {
		return nil, nil, err
	}
	g := tile.Grouping(q.text("g", string(tile.ByLine)))
	if g == tile.ByPurpose { // what has leaked is a purpose of its own
		if _, err := q.e.judged(); err != nil {
			return nil, nil, err
		}
	}
	b, err := d.grouped(g)
	if err != nil {
		return nil, nil, wrong("%s", err)
	}
	return d, b, nil
}

// devAt returns the requested device, and the moment k of it.
func (q *question) devAt() (*measured, int, error) {
	_, d, err := q.dev()
	if err != nil {
		return nil, 0, err
	}
	k, err := q.moment(d, "k")
	return d, k, err
}

// groupedAt is grouped, and the moment k.
func (q *question) groupedAt() (*measured, *tile.Bands, int, error) {
	d, b, err := q.grouped()
	if err != nil {
		return nil, nil, 0, err
	}
	k, err := q.moment(d, "k")
	return d, b, k, err
}

// moment is an event of a device, -1 the moment before the first.
func (q *question) moment(d *measured, name string) (int, error) {
	k, err := q.number(name, missing, timeline.Never, int64(d.h.Events())-1)
	return int(k), err
}

// twoMoments returns the grouping that is asked for, and the moments a and b.
func (q *question) twoMoments() (d *measured, b *tile.Bands, from, to int, err error) {
	if d, b, err = q.grouped(); err != nil {
		return nil, nil, 0, 0, err
	}
	if from, err = q.moment(d, "a"); err != nil {
		return nil, nil, 0, 0, err
	}
	to, err = q.moment(d, "b")
	return d, b, from, to, err
}

// keys are groups by their keys, nil for all.
func (q *question) keys(name string) (out []tile.Key, err error) {
	if !q.has(name) {
		return nil, nil
	}
	for _, text := range strings.Split(q.text(name, ""), ",") {
		key, err := tile.ParseKey(text)
		if err != nil {
			return nil, wrong("%s: %s", name, err)
		}
		out = append(out, key)
	}
	return out, nil
}
