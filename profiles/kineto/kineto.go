// Package kineto reads traces of torch.profiler with profile_memory=True: the events
// [memory] by device, the steps, and the operators and functions of Python around what
// is allocated. Other events are passed over without being parsed, so that a trace of
// gigabytes is read as it comes.
package kineto

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"strandline/internal/budget"
	"strandline/internal/sorts"
	"strandline/profiles"
	"strandline/stack"
	"strandline/units"
)

var (
	list      = []byte(`"traceEvents"`)
	phase     = []byte(`"ph"`)
	memory    = []byte(`"[memory]"`)
	stepEvent = []byte(`"ProfilerStep#`)
	// categories are those of operators and of functions of Python.
	categories = [][]byte{[]byte(`"cpu_op"`), []byte(`"Operator"`), []byte(`"python_function"`)}
)

// Is reports whether an unpacked file that begins with head is a trace: an object
// with traceEvents, or a list of events.
func Is(head []byte) bool {
	head = bytes.TrimLeft(head, "\xef\xbb\xbf \t\r\n")
	switch {
	case len(head) == 0:
		return false
	case head[0] == '{':
		return bytes.Contains(head, list)
	case head[0] != '[':
		return false
	}
	head = bytes.TrimLeft(head[1:], " \t\r\n")
	const event = 4 << 10 // the first one is no longer
	return len(head) > 0 && head[0] == '{' && bytes.Contains(head[:min(len(head), event)], phase)
}

// event is what is read of one.
type event struct {
	Name     string          `json:"name"`
	Category string          `json:"cat"`
	Phase    string          `json:"ph"`
	PID      json.RawMessage `json:"pid"`
	TID      json.RawMessage `json:"tid"`
	TS       json.Number     `json:"ts"`
	Duration json.Number     `json:"dur"`
	Args     struct {
		Type      *int64 `json:"Device Type"`
		ID        *int64 `json:"Device Id"`
		Addr      *int64 `json:"Addr"`
		Bytes     *int64 `json:"Bytes"`
		Allocated *int64 `json:"Total Allocated"`
		Stack     string `json:"Call stack"`
	} `json:"args"`
}

// thread names the thread of an event: releases write numbers, or text.
func (e *event) thread() string {
	return strings.Trim(string(e.PID), `"`) + "/" + strings.Trim(string(e.TID), `"`)
}

// device is one that events are of.
type device struct{ kind, id int64 }

// change is one event of memory.
type change struct {
	device
	at                float64
	addr, bytes       int64
	total             int64
	addressed, summed bool
	thread            string
	stack             []stack.Frame // innermost first
}

type step struct {
	at   float64
	name string
}

// trace is what was read.
type trace struct {
	changes []change
	steps   []step
	calls   []call
	names   map[string]int32 // of frames
	frames  []stack.Frame
	strange int64
	budget  *budget.Budget
}

// maxEvents is how many events of memory are kept. With what is computed of them, each takes
// some 900 bytes.
const maxEvents = 5_000_000

// The bytes of an event of memory with what is computed of it, of a call, and of a frame.
const changeBytes, callBytes, frameBytes = 900, 160, 48

// maxSteps is how many beginnings of steps are kept, of all threads.
const maxSteps = 1000

// Read reads an unpacked trace. One that ends early is read in part.
func Read(r io.Reader) (*profiles.File, error) {
	t := &trace{}
	r, t.budget = budget.Reader(r, budget.Plain)
	err := scan(r, t.add)
	f := &profiles.File{Format: "kineto", Writer: "torch.profiler", Partial: err}
	if t.strange > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("%s left out, whose figures cannot be read", units.Plural(t.strange, "event")))
	}
	if len(t.changes) == 0 {
		f.Notes = append(f.Notes, "the trace holds no events of memory: torch.profiler.profile(profile_memory=True) records them")
	}
	t.fill(f)
	f.Partial = cmp.Or(f.Partial, t.budget.Err())
	return f, nil
}

// add keeps an event that is of memory or begins a step.
func (t *trace) add(text []byte) error {
	isMemory, isStep := bytes.Contains(text, memory), bytes.Contains(text, stepEvent)
	isCall := !isMemory && slices.ContainsFunc(categories, func(c []byte) bool { return bytes.Contains(text, c) })
	if !isMemory && !isStep && !isCall {
		return nil
	}
	var e event
	if json.Unmarshal(text, &e) != nil {
		if isMemory || isStep {
			t.strange++
		}
		return nil
	}
	if isCall && e.Phase == "X" {
		t.addCall(&e)
	}
	at, err := e.TS.Float64()
	a := e.Args
	switch {
	case isStep && strings.HasPrefix(e.Name, "ProfilerStep#") && err == nil:
		if len(t.steps) < maxSteps {
			t.steps = append(t.steps, step{at, e.Name})
		}
	case e.Name != "[memory]":
	case err != nil || a.Bytes == nil || a.Type == nil || *a.Bytes > 1<<50 || *a.Bytes < -1<<50:
		t.strange++
	case len(t.changes) == maxEvents:
		return fmt.Errorf("more than %s events of memory", units.Count(maxEvents))
	default:
		c := change{device: device{*a.Type, -1}, at: at, thread: e.thread(), bytes: *a.Bytes, addressed: a.Addr != nil, summed: a.Allocated != nil}
		if a.ID != nil {
			c.id = *a.ID
		}
		if a.Addr != nil {
			c.addr = *a.Addr
		}
		if a.Allocated != nil {
			c.total = *a.Allocated
		}
		if err := t.budget.Spend(changeBytes, "events of memory"); err != nil {
			return err
		}
		t.changes = append(t.changes, c)
	}
	return nil
}

// names are c10's types of devices.
var names = map[int64]string{0: "cpu", 1: "cuda", 12: "xpu", 13: "mps", 20: "privateuse1"}

func (d device) String() string {
	name, ok := names[d.kind]
	if !ok {
		name = fmt.Sprintf("device type %d", d.kind)
	}
	if d.id < 0 {
		return name
	}
	return fmt.Sprintf("%s:%d", name, d.id)
}

// memory is the kind of memory of a device.
func (d device) memory() string {
	if d.kind == 0 {
		return "host"
	}
	return "device"
}

// block is an allocation that lives.
type block struct {
	bytes      int64
	checkpoint int // at which it lives first
	at         float64
	stack      []stack.Frame
}

// tally is what a device does in the course of a trace.
type tally struct {
	live                 map[int64]block
	addressed, summed    bool
	net, peak            int64
	unknown, unknownFree int64
}

// fill adds up what was read, in the order of time.
func (t *trace) fill(f *profiles.File) {
	sorts.StableBy(t.changes, func(a, b change) int { return cmp.Compare(a.at, b.at) })
	t.stacks()
	checkpoints := t.checkpoints()
	for _, m := range checkpoints {
		f.Checkpoints = append(f.Checkpoints, profiles.Checkpoint{Name: m.name})
	}
	tallies := map[device]*tally{}
	var order []device
	next := 0 // the first checkpoint that is not passed
	for _, c := range t.changes {
		for next < len(checkpoints) && checkpoints[next].at <= c.at {
			next++
		}
		d := tallies[c.device]
		if d == nil {
			d = &tally{live: map[int64]block{}, addressed: true}
			tallies[c.device] = d
			order = append(order, c.device)
		}
		if s, ok := d.apply(c, next); ok {
			s.Device = c.String()
			f.Spans = append(f.Spans, s)
		}
	}
	sorts.By(order, func(a, b device) int { return cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.id, b.id)) })
	for _, dev := range order {
		d := tallies[dev]
		for _, b := range d.live {
			if b.checkpoint < len(checkpoints) {
				f.Spans = append(f.Spans, profiles.Span{Device: dev.String(), Born: b.checkpoint, Died: len(checkpoints), Bytes: b.bytes, Stack: b.stack})
			}
		}
		f.Levels = append(f.Levels, d.level(dev, f))
	}
	f.Uses = uses(tallies, order)
	t.unattributed(f)
}

// apply counts an event; a span is returned that ended and was at a checkpoint.
func (d *tally) apply(c change, checkpoint int) (s profiles.Span, ok bool) {
	d.net = units.Sum(d.net, c.bytes)
	d.addressed = d.addressed && c.addressed
	if c.summed {
		d.summed, d.peak = true, max(d.peak, c.total)
	}
	if !c.addressed {
		return s, false
	}
	old, lived := d.live[c.addr]
	delete(d.live, c.addr)
	if c.bytes > 0 {
		d.live[c.addr] = block{c.bytes, checkpoint, c.at, c.stack}
	} else if !lived {
		d.unknown, d.unknownFree = d.unknown+1, units.Sum(d.unknownFree, -c.bytes)
	}
	return profiles.Span{Born: old.checkpoint, Died: checkpoint, Bytes: old.bytes, Stack: old.stack}, lived && old.checkpoint < checkpoint
}

// level returns what a device holds at the end, and notes on it.
func (d *tally) level(dev device, f *profiles.File) profiles.Level {
	l := profiles.Level{Device: dev.String(), Kind: dev.memory()}
	if d.summed {
		l.Peak = &d.peak
	}
	if !d.addressed {
		f.Notes = append(f.Notes, fmt.Sprintf("%s: this release of PyTorch recorded no addresses: only the net is known, %s", dev, units.SignedBytes(d.net)))
		return l
	}
	l.Live, l.Count = new(int64), new(int64)
	for _, b := range d.live {
		*l.Live, *l.Count = units.Sum(*l.Live, b.bytes), *l.Count+1
	}
	if d.unknown > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("%s: %s of memory made before the trace, %s", dev, units.Plural(d.unknown, "free"), units.Bytes(d.unknownFree)))
	}
	return l
}

// checkpoints are the beginnings of steps, each once: every thread has them.
func (t *trace) checkpoints() (out []step) {
	first := map[string]float64{}
	for _, s := range t.steps {
		if at, ok := first[s.name]; !ok || s.at < at {
			first[s.name] = s.at
		}
	}
	for name, at := range first {
		out = append(out, step{at, name})
	}
	sorts.By(out, func(a, b step) int { return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.name, b.name)) })
	return out
}

// longest is the length beyond which an event is passed over.
const longest = 1 << 20

// errCut is why reading of a trace that is cut off ends.
var errCut = errors.New("the trace is cut off")

// scan calls f with the text of each event of the list of events, and returns why
// it ended early. Text that is not an event is passed over: old traces hold NaN and
// backslashes that JSON does not allow.
func scan(r io.Reader, f func(event []byte) error) error {
	s := scanner{in: bufio.NewReaderSize(r, 256<<10)}
	if err := s.toEvents(); err != nil {
		return err
	}
	return s.events(f)
}

type scanner struct {
	in     *bufio.Reader
	text   []byte // of the event, up to longest
	depth  int
	quoted bool
}

// toEvents reads up to the list of events.
func (s *scanner) toEvents() error {
	var key []byte // the last text in quotes of the outermost object
	top := byte(0)
	for {
		c, err := s.in.ReadByte()
		if err != nil {
			return errCut
		}
		switch {
		case c == '"':
			if key, err = s.quote(key[:0]); err != nil {
				return err
			}
		case c == '{' || c == '[':
			if top == 0 {
				top = c
			}
			if c == '[' && (s.depth == 0 || s.depth == 1 && top == '{' && string(key) == "traceEvents") {
				return nil
			}
			s.depth++
		case c == '}' || c == ']':
			s.depth--
			if s.depth <= 0 {
				return nil // without events
			}
		}
	}
}

// quote reads the rest of a text in quotes.
func (s *scanner) quote(into []byte) ([]byte, error) {
	for {
		c, err := s.in.ReadByte()
		switch {
		case err != nil:
			return into, errCut
		case c == '"':
			return into, nil
		case c == '\\':
			if c, err = s.in.ReadByte(); err != nil {
				return into, errCut
			}
		}
		if len(into) < 64 {
			into = append(into, c)
		}
	}
}

// events reads the list of events behind its bracket.
func (s *scanner) events(f func(event []byte) error) error {
	s.depth, s.text = 0, s.text[:0]
	for {
		c, err := s.in.ReadByte()
		if err == io.EOF {
			return errCut
		} else if err != nil {
			return err
		}
		if s.depth > 0 && len(s.text) <= longest {
			s.text = append(s.text, c)
		}
		switch {
		case s.quoted:
			if c == '\\' {
				if c, err = s.in.ReadByte(); err != nil {
					return errCut
				}
				if len(s.text) <= longest {
					s.text = append(s.text, c)
				}
			} else if c == '"' {
				s.quoted = false
			}
		case c == '"':
			s.quoted = true
		case c == '{' || c == '[':
			if s.depth++; s.depth == 1 {
				s.text = append(s.text[:0], c)
			}
		case c == '}' || c == ']':
			if s.depth--; s.depth < 0 {
				return nil
			}
			if s.depth == 0 && len(s.text) <= longest {
				if err := f(s.text); err != nil {
					return err
				}
			}
		}
	}
}
