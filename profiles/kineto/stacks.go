package kineto

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"strandline/internal/lazyregexp"
	"strandline/internal/sorts"
	"strandline/profiles"
	"strandline/stack"
	"strandline/units"
)

// A call is an operator or a function of Python that ran on a thread.
type call struct {
	thread     string
	begin, end float64
	frame      int32 // of trace.frames
	python     bool
	under      []int32 // of an operator that states its stack of Python, innermost first
}

// maxCalls are kept; each takes 160 bytes while they are sorted.
const maxCalls = 4_000_000

// pythonFrame is the name of a function of Python, such as "train.py(12): step".
var pythonFrame = lazyregexp.New(`^(.+)\((\d{1,9})\): (.+)$`)

// frameOf is a name as a frame: of Python with its file and line, otherwise of an operator.
func frameOf(name string) stack.Frame {
	if m := pythonFrame.FindStringSubmatch(name); m != nil {
		line, _ := strconv.ParseInt(m[2], 10, 64)
		return stack.Frame{File: m[1], Line: line, Function: m[3]}
	}
	return stack.Frame{Function: name}
}

// intern returns the number of the frame with a name.
func (t *trace) intern(name string) int32 {
	if n, ok := t.names[name]; ok {
		return n
	}
	if t.names == nil {
		t.names = map[string]int32{}
	}
	n := int32(len(t.frames))
	t.names[name] = n
	t.frames = append(t.frames, frameOf(name))
	return n
}

// addCall keeps an operator or a function of Python.
func (t *trace) addCall(e *event) {
	at, err := e.TS.Float64()
	long, wrong := e.Duration.Float64()
	if err != nil || wrong != nil || long < 0 || len(t.calls) == maxCalls || t.budget.Spend(callBytes, "operators") != nil {
		return
	}
	c := call{thread: e.thread(), begin: at, end: at + long, frame: t.intern(e.Name), python: e.Category == "python_function"}
	if e.Args.Stack != "" {
		for _, name := range strings.Split(e.Args.Stack, ";") {
			c.under = append(c.under, t.intern(name))
		}
	}
	t.calls = append(t.calls, c)
}

// stacks finds for each change the calls around it, innermost first: the operators of
// its thread, and the functions of Python that ran there.
func (t *trace) stacks() {
	byThread := map[string][]call{}
	pythons := map[string]bool{}
	for _, c := range t.calls {
		byThread[c.thread] = append(byThread[c.thread], c)
		if c.python {
			pythons[c.thread] = true
		}
	}
	only := "" // the thread of all functions of Python, which some releases number 0
	for thread := range pythons {
		only = thread
	}
	threads := map[string]*walk{}
	for thread, calls := range byThread {
		sorts.StableBy(calls, func(a, b call) int { return cmp.Or(cmp.Compare(a.begin, b.begin), cmp.Compare(b.end, a.end)) })
		threads[thread] = &walk{calls: calls}
	}
	known := map[string][]stack.Frame{}
	var numbers []int32
	for i := range t.changes {
		c := &t.changes[i]
		numbers = numbers[:0]
		if w := threads[c.thread]; w != nil {
			numbers = w.at(c.at, numbers)
		}
		if len(pythons) == 1 && only != c.thread && strings.HasSuffix(only, "/0") {
			numbers = threads[only].at(c.at, numbers)
		}
		c.stack = t.stackOf(known, numbers)
	}
}

// stackOf are the frames with some numbers; equal ones are one slice.
func (t *trace) stackOf(known map[string][]stack.Frame, numbers []int32) []stack.Frame {
	var key strings.Builder
	for _, n := range numbers {
		key.WriteString(strconv.Itoa(int(n)) + " ")
	}
	if s, ok := known[key.String()]; ok || len(numbers) == 0 {
		return s
	}
	if t.budget.Spend(frameBytes*len(numbers), "frames of stacks") != nil {
		return nil
	}
	var out []stack.Frame
	for _, n := range numbers {
		out = append(out, t.frames[n])
	}
	known[key.String()] = out
	return out
}

// A walk goes through the calls of one thread in the order of time.
type walk struct {
	calls []call
	next  int
	open  []call
}

// deepest is how many frames of a stack are kept.
const deepest = 256

// at appends the calls that run at a time, innermost first. Times do not fall.
func (w *walk) at(time float64, to []int32) []int32 {
	for ; w.next < len(w.calls) && w.calls[w.next].begin <= time; w.next++ {
		w.close(w.calls[w.next].begin)
		w.open = append(w.open, w.calls[w.next])
	}
	w.close(time)
	for i := len(w.open) - 1; i >= 0 && len(to) < deepest; i-- {
		to = append(to, w.open[i].frame)
	}
	for i := len(w.open) - 1; i >= 0; i-- {
		if under := w.open[i].under; len(under) > 0 {
			return append(to, under[:min(len(under), max(deepest-len(to), 0))]...)
		}
	}
	return to
}

// close ends the calls that ended before a time.
func (w *walk) close(time float64) {
	for len(w.open) > 0 && w.open[len(w.open)-1].end < time {
		w.open = w.open[:len(w.open)-1]
	}
}

// uses are what lives at the end, by device, stack and size, in the order of time.
func uses(tallies map[device]*tally, order []device) (out []profiles.Use) {
	type key struct {
		device string
		stack  *stack.Frame
		size   int64
	}
	for _, dev := range order {
		at := map[key]int{}
		var live []block
		for _, b := range tallies[dev].live {
			live = append(live, b)
		}
		sorts.By(live, func(a, b block) int { return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.bytes, b.bytes)) })
		for _, b := range live {
			k := key{device: dev.String(), size: b.bytes}
			if len(b.stack) > 0 {
				k.stack = &b.stack[0]
			}
			i, ok := at[k]
			if !ok {
				i = len(out)
				at[k] = i
				out = append(out, profiles.Use{Device: k.device, Kind: dev.memory(), Stack: b.stack, Size: b.bytes})
			}
			out[i].Count++
		}
	}
	return out
}

// unattributed states of which allocations that live at the end the trace does not show the
// place.
func (t *trace) unattributed(f *profiles.File) {
	var all, without int64
	for _, u := range f.Uses {
		all += u.Count
		if len(u.Stack) == 0 {
			without += u.Count
		}
	}
	python := slices.ContainsFunc(t.frames, func(f stack.Frame) bool { return f.File != "" })
	switch {
	case all == 0:
	case without == all:
		f.Notes = append(f.Notes, "the trace shows no operator around its events of memory, so that no place is known: activities=[ProfilerActivity.CPU, …] records operators, with_stack=True lines of Python")
	case len(t.calls) == maxCalls:
		f.Notes = append(f.Notes, fmt.Sprintf("the trace holds more than %s operators; places later in it are not known", units.Count(maxCalls)))
	case !python:
		f.Notes = append(f.Notes, "places are operators: with_stack=True records the lines of Python that call them")
	case without > 0:
		f.Notes = append(f.Notes, "some allocations lie in no operator that the trace shows; their place is unknown")
	}
}
