package logs

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"strandline/finding"
	"strandline/logs"
	"strandline/units"
)

// unheard are the messages of failures that no snapshot explains, by rank and
// device.
func (t *Statement) unheard() (out []logs.Failures) {
	for _, f := range t.OOM.Failures {
		all := len(f.Messages)
		f.Messages = slices.DeleteFunc(slices.Clone(f.Messages), func(m *logs.OOM) bool { return t.Heard[m] })
		if f.Count -= all - len(f.Messages); len(f.Messages) > 0 {
			out = append(out, f)
		}
	}
	return out
}

// tellingOf is the message to judge: the last that is whole, or else the last that
// says something; nil if there is none.
func tellingOf(groups []logs.Failures) (o *logs.OOM) {
	for _, g := range groups {
		for _, m := range g.Messages {
			if o == nil || telling(m) > telling(o) || telling(m) == telling(o) && m.Line >= o.Line {
				o = m
			}
		}
	}
	return o
}

// telling is how much a message says.
func telling(m *logs.OOM) int {
	switch {
	case m.Bare():
		return 0
	case m.Lacks() > 0 || Contradictory(m):
		return 1
	}
	return 2
}

// message judges a failure by the figures of PyTorch's message alone.
func (t *Statement) message(o *logs.OOM, groups []logs.Failures, known Options) finding.Finding {
	a := accountOf(o, known)
	e := &finding.OOMEvidence{
		File: t.File, Line: o.Line, Messages: t.OOM.Count, Of: "device", Source: string(sourceOf(o)),
		LimitBytes: o.Allowed, PrivateBytes: o.Private, ProcessBytes: o.InUse, UnallocatedBytes: o.Unallocated, OthersBytes: o.Others,
	}
	f := finding.Finding{
		Kind: finding.OutOfMemory, Severity: finding.Problem, Confidence: 1, Device: o.Device, Process: t.Process,
		Basis: "PyTorch's own figures, rounded as it prints them", Evidence: e,
	}
	if o.Total != nil && known.Capacity != nil && !near(*o.Total, *known.Capacity) {
		f.Detail = append(f.Detail, fmt.Sprintf("the message states a device of %s: the %s that were given are not used", units.Bytes(*o.Total), units.Bytes(*known.Capacity)))
	}
	a.checkCapacity(&f)
	e.ActiveBytes, e.CapacityBytes, e.DeviceFreeBytes, e.OutsideBytes = a.active, a.capacity, a.free, a.beside()
	e.RequestBytes, e.ReservedBytes, e.Cause = a.request, a.reserved, a.cause()
	f.Title = a.title()
	f.Confidence = a.confidence()
	t.explain(&f, e, a)
	e.Failures = tellOthers(&f, groups, o, known)
	f.Remedies = t.remedies(a)
	return f
}

// sourceOf is who wrote a message.
func sourceOf(o *logs.OOM) logs.Source {
	switch o.Wording {
	case logs.NCCL:
		return logs.SourceNCCL
	case logs.Runtime, logs.Driver:
		return logs.SourceDriver
	}
	return logs.SourcePyTorch
}

// explain says what the message states beside its title.
func (t *Statement) explain(f *finding.Finding, e *finding.OOMEvidence, a *account) {
	o := a.OOM
	say := func(format string, args ...any) { f.Detail = append(f.Detail, fmt.Sprintf(format, args...)) }
	whose := ""
	if o.Rank != "" {
		whose = " of " + o.Rank
	}
	if known := figuresOf(o); len(known) > 0 {
		say("the message%s on line %s states: %s", whose, units.Count(o.Line), strings.Join(known, ", "))
	} else {
		say("the message%s on line %s states no more than that", whose, units.Count(o.Line))
	}
	if wrong := contradictions(o); wrong != nil && !a.lent() {
		e.Contradictory = true
		say("that cannot be: %s. Lines of several messages are mixed, or the driver lends memory of the host, as it does on Windows; nothing is concluded from these figures", strings.Join(wrong, "; "))
	}
	if n := a.outside(); n != nil && *n > 0 {
		say("%s of the device was held outside PyTorch's allocator: %s", units.Bytes(*n), a.holders())
	}
	for _, p := range o.Processes {
		say("process %d holds %s (in a container this can be the program itself)", p.PID, units.Bytes(p.Bytes))
	}
	cause := a.cause()
	switch {
	case a.lent():
		say("more is in use than the device has: the driver of Windows (and of WSL) lends memory of the host, shared GPU memory, until the system's commit limit is reached; what the program needs in all is at least %s", units.Bytes(*a.reserved+*a.request))
	case cause == causeFragmented:
		say("what waits for another stream after it was freed, or serves only a private pool, counts as free here; a snapshot of that moment tells it apart")
	case cause == causeRefused:
		t.explainRefusal(say, a)
	case o.Wording == logs.Runtime || o.Wording == logs.Driver:
		say("such an error is of what does not go through PyTorch's cache: making the context, loading kernels, handles and workspaces of libraries, CUDA graphs, pinned memory of the host; with expandable segments also of mapping a page")
	case o.Wording == logs.Async && a.complete():
		say("the backend cudaMallocAsync does not say what its pool keeps: %s of the device is neither in use by PyTorch nor free, and is cached in that pool or held by others", units.Bytes(max(0, *o.Total-*o.Allocated-*o.Free)))
	case cause == "" && withoutFree(o):
		say("the message does not state what was free, as those of XPU devices did not at first; the cause cannot be determined without it")
	case cause == "" && o.Lacks() > 0 && !Contradictory(o):
		say("%s", missingOf(o))
	case cause == causeTooBig && a.unused() > 0 && a.room() != nil && *a.room() >= *a.request:
		say("%s of what is reserved is not in use: a setting against fragmentation would leave no more than that", units.Bytes(a.unused()))
	}
}

// explainRefusal says what can be behind a refusal although there was room.
func (t *Statement) explainRefusal(say func(string, ...any), a *account) {
	say("no limit is stated, and the driver states more free than was asked for: the cause is not in the text")
	switch {
	case a.oneTooLarge():
		say("one allocation was asked for that is larger than 4 GiB, which Intel's drivers refuse unless they are told otherwise")
	case a.Backend == "HIP":
		say("on an APU what can be had is the kernel's limit of GTT pages (ttm.pages_limit), on Windows the commit limit of the system; free memory that is stated can be of another kind, or came free right after the failure")
	case t.Hints[logs.HintWindows] > 0 || t.Hints[logs.HintWSL] > 0:
		say("on Windows each allocation of the device counts against the commit limit of the system too: a page file that is too small makes the driver refuse")
	default:
		say("it can be a quota (MIG, vGPU, WSL), the host's memory or its commit limit (a page file that is too small on Windows, ulimit -v on Linux), or memory that another process freed right after the failure")
	}
}

// withoutFree reports whether a message is of the wording that never states what
// was free: that of Intel's devices before it took up CUDA's.
func withoutFree(o *logs.OOM) bool {
	return o.Backend == "XPU" && o.Whole && o.Free == nil && o.Total != nil && o.Allocated != nil && o.Reserved != nil
}

// figuresOf are what a message states, in words.
func figuresOf(o *logs.OOM) (known []string) {
	inUse := "of it in use"
	if o.Reserved == nil {
		inUse = "in use by PyTorch"
	}
	for _, x := range []struct {
		n    *int64
		what string
	}{
		{o.Total, "on the device"}, {o.Free, "free there"}, {o.Reserved, "reserved by PyTorch"}, {o.Allocated, inUse},
		{o.Private, "free in private pools"}, {o.Others, "held by the process beside it"}, {o.Allowed, "allowed to this process"}, {o.InUse, "held by this process in all"},
	} {
		if x.n != nil {
			known = append(known, units.Bytes(*x.n)+" "+x.what)
		}
	}
	return known
}

// missingOf says which figures a message lacks.
func missingOf(o *logs.OOM) string {
	var names []string
	for _, x := range []struct {
		n    *int64
		what string
	}{{o.Request, "what was asked for"}, {o.Total, "the size of the device"}, {o.Free, "what was free"}, {o.Allocated, "what was in use"}, {o.Reserved, "what was reserved"}} {
		if x.n == nil && !(o.Wording == logs.Async && x.what == "what was reserved") {
			names = append(names, x.what)
		}
	}
	text := "the message is cut off: "
	if o.Whole {
		text = "lines of others stand in the message: "
	}
	text += strings.Join(names, ", ")
	if len(names) == 1 {
		return text + " is missing, without which the cause cannot be determined"
	}
	return text + " are missing, without which the cause cannot be determined"
}

// tellOthers says which other messages there are, and returns the last of each rank
// and device where there are several.
func tellOthers(f *finding.Finding, groups []logs.Failures, judged *logs.OOM, known Options) (failures []finding.OOMFailure) {
	count, last := 0, true
	for _, g := range groups {
		count += g.Count
		last = last && g.Last().Line <= judged.Line
	}
	if count < 2 {
		return nil
	}
	text := fmt.Sprintf("it is the last of %s such messages in this text", units.Count(int64(count)))
	if !last {
		text = fmt.Sprintf("it is one of %s such messages in this text, the last that is whole", units.Count(int64(count)))
	}
	if len(groups) == 1 {
		f.Detail = append(f.Detail, text)
		return nil
	}
	f.Detail = append(f.Detail, fmt.Sprintf("%s, of %s ranks or devices:", text, units.Count(int64(len(groups)))))
	const most = 16
	for i, g := range groups {
		m := g.Last()
		a := accountOf(m, known)
		failures = append(failures, a.failure(&g, m))
		if i < most {
			f.Detail = append(f.Detail, fmt.Sprintf("%s: %s on line %s: %s", speaker(&g), oneOf(g.Count), units.Count(m.Line), strings.TrimPrefix(a.title(), "memory ran out: ")))
		}
	}
	if n := len(groups) - most; n > 0 {
		f.Detail = append(f.Detail, fmt.Sprintf("and of %s more (--json lists them)", units.Count(int64(n))))
	}
	return failures
}

// speaker is who wrote some messages.
func speaker(g *logs.Failures) string {
	device := "a device that is not named"
	if g.Device != nil {
		device = fmt.Sprintf("device %d", *g.Device)
	}
	if g.Rank == "" {
		return device
	}
	return g.Rank + ", " + device
}

func oneOf(count int) string {
	if count == 1 {
		return "a message"
	}
	return fmt.Sprintf("%s messages, the last", units.Count(int64(count)))
}

// near reports whether two sizes are the same but for rounding.
func near(a, b int64) bool {
	const rounding = 0.01
	return math.Abs(float64(a-b)) <= rounding*float64(max(a, b))
}

// beside is what is held outside of PyTorch, nil where that is unknown or the driver
// lends memory of the host.
func (a *account) beside() *int64 {
	if a.lent() {
		return nil
	}
	return a.outside()
}

// failure is the evidence of a message that is the last of a rank and device.
func (a *account) failure(g *logs.Failures, m *logs.OOM) finding.OOMFailure {
	out := finding.OOMFailure{
		Device: g.Device, Messages: g.Count, Line: m.Line, Cause: a.cause(),
		ActiveBytes: a.active, CapacityBytes: a.capacity, DeviceFreeBytes: a.free,
		OutsideBytes: a.beside(), RequestBytes: a.request, ReservedBytes: a.reserved,
	}
	if g.Rank != "" {
		out.Rank = &g.Rank
	}
	return out
}
