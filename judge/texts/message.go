package texts

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"strandline/finding"
	"strandline/judge/shortage"
	"strandline/logs/failure"
	"strandline/units"
)

// unexplained returns the messages about failures that no snapshot explains, by rank and
// device.
func (t *Statement) unexplained() (out []failure.Failures) {
	for _, f := range t.OOM.Failures {
		all := len(f.Messages)
		f.Messages = slices.DeleteFunc(slices.Clone(f.Messages), func(m *failure.OOM) bool { return t.Explained[m] })
		if f.Count -= all - len(f.Messages); len(f.Messages) > 0 {
			out = append(out, f)
		}
	}
	return out
}

// mostComplete is the message to judge: the last complete one, or else the last that states
// something; nil if there is none.
func fullest(groups []failure.Failures) (o *failure.OOM) {
	for _, g := range groups {
		for _, m := range g.Messages {
			if o == nil || completeness(m) > completeness(o) || completeness(m) == completeness(o) && m.Line >= o.Line {
				o = m
			}
		}
	}
	return o
}

// completeness is how much a message states.
func completeness(m *failure.OOM) int {
	switch {
	case m.Bare():
		return 0
	case m.Missing() > 0 || Contradictory(m):
		return 1
	}
	return 2
}

// message judges a failure by the figures in PyTorch's message alone.
func (t *Statement) message(o *failure.OOM, groups []failure.Failures, known Options) finding.Finding {
	a := accountOf(o, known)
	e := &finding.OOMEvidence{
		File: t.File, Line: o.Line, Messages: t.OOM.Count, Of: "device", Source: string(sourceOf(o)), Outcome: finding.Died,
		LimitBytes: o.Allowed, PrivateBytes: o.Private, ProcessBytes: o.InUse, UnallocatedBytes: o.Unallocated, OthersBytes: o.Others,
	}
	f := finding.Finding{
		Kind: finding.OutOfMemory, Severity: finding.Problem, Confidence: 1, Device: o.Device, Process: t.Process,
		Basis: basisOf(e.Source), Evidence: e,
	}
	if o.Total != nil && known.Capacity != nil && !roughlyEqual(*o.Total, *known.Capacity) {
		f.Detail = append(f.Detail, fmt.Sprintf("the message names a device of %s: the %s given with --capacity are not used", units.Bytes(*o.Total), units.Bytes(*known.Capacity)))
	}
	a.checkCapacity(&f)
	e.ActiveBytes, e.CapacityBytes, e.DeviceFreeBytes, e.OutsideBytes = a.active, a.capacity, a.free, a.outsideDevice()
	e.RequestBytes, e.ReservedBytes, e.Cause = a.request, a.reserved, a.cause()
	f.Title = a.title()
	f.Confidence = a.confidence()
	t.explain(&f, e, a)
	e.Failures = addFailures(&f, groups, o, known)
	f.Remedies = t.remedies(a)
	f.Brief = a.briefly()
	t.locate(&f, o.Line)
	return f
}

// basisOf is what is known of a failure whose message a program wrote.
func basisOf(source string) string {
	switch failure.Source(source) {
	case failure.SourceNCCL:
		return "NCCL's own message"
	case failure.SourceDriver:
		return "the driver's own error"
	}
	return "PyTorch's own figures, rounded as it prints them"
}

// sourceOf is the program that wrote a message.
func sourceOf(o *failure.OOM) failure.Source {
	switch o.Wording {
	case failure.NCCL:
		return failure.SourceNCCL
	case failure.Runtime, failure.Driver:
		return failure.SourceDriver
	}
	return failure.SourcePyTorch
}

// explain states what the message states beyond its title.
func (t *Statement) explain(f *finding.Finding, e *finding.OOMEvidence, a *account) {
	o := a.OOM
	say := func(format string, args ...any) { f.Detail = append(f.Detail, fmt.Sprintf(format, args...)) }
	whose := ""
	if o.Rank != "" {
		whose = " of " + o.Rank
	}
	if known := figuresOf(o); len(known) > 0 {
		say("the message%s on line %s says: %s", whose, units.Count(o.Line), strings.Join(known, ", "))
	} else {
		say("the message%s on line %s says nothing else", whose, units.Count(o.Line))
	}
	if wrong := contradictions(o); wrong != nil && !a.lent() {
		e.Contradictory = true
		if a.shared() {
			say("the driver reports %s free on a device of %s. An integrated GPU has the firmware's part (VRAM) and the kernel's (GTT)", units.Bytes(*o.Free), units.Bytes(*o.Total))
			say("which of the two refused is not in the text. One allocation may also be larger than either grants at once")
		} else {
			say("that is impossible: %s. Lines of several messages are mixed, or the driver lends host memory, as it does on Windows. Nothing is concluded from these figures", strings.Join(wrong, "; "))
		}
	}
	if n := a.outside(); n != nil && *n > 0 {
		say("%s of the device was held outside PyTorch's allocator: %s", units.Bytes(*n), a.holders())
	}
	for _, p := range o.Processes {
		say("process %d holds %s (in a container this can be the program itself)", p.PID, units.Bytes(p.Bytes))
	}
	cause := a.cause()
	switch {
	case a.lent() && t.pausedPool(a):
		say("PyTorch counts more than the device has: a paused pool (sleep mode) is unmapped, but still counted. The process holds %s of the device", units.Bytes(*a.InUse))
	case a.lent():
		say("more is allocated than the device has: on Windows and WSL the driver lends host memory up to the commit limit. The program needs at least %s in total", units.Bytes(*a.reserved+*a.request))
	case cause == shortage.Fragmented:
		if a.Wording == failure.Native && t.onWindows(a) {
			where := "on Windows"
			if t.Hints[failure.HintWindows] == 0 {
				where += ", where this seems to have run: the message lists no process"
			}
			say("expandable_segments, the setting against it, is not available %s", where)
		}
		say("this is fragmentation. Freed memory that waits for another stream, or serves only a private pool, counts as free here. A snapshot of that moment separates these")
	case cause == shortage.Refused:
		t.explainRefusal(say, a)
	case o.Wording == failure.Runtime || o.Wording == failure.Driver:
		say("such allocations are outside PyTorch's cache: the context, kernels, library handles and workspaces, CUDA graphs, pinned host memory. With expandable segments, also mapping a page")
	case o.Wording == failure.Async && a.complete():
		say("cudaMallocAsync does not report its pool: %s of the device is cached there or held by others", units.Bytes(max(0, *o.Total-*o.Allocated-*o.Free)))
	case cause == shortage.TooBig && o.Backend == "HIP" && t.Hints[failure.HintIntegrated] > 0:
		say("an integrated GPU has the firmware's part (VRAM) and the kernel's (GTT: ttm.pages_limit, amdgpu.gttsize); PyTorch sees %s of these", shortage.Amount(a.capacity))
	case a.refusedWhole():
		say("the message does not report the free memory: another process can hold the rest, PyTorch itself leaves room")
	case cause == "" && withoutFree(o):
		say("the message does not report the free memory, like early messages of XPU devices. Without it the cause is unknown")
	case cause == "" && o.Missing() > 0 && !Contradictory(o):
		say("%s", missingOf(o))
	case cause == shortage.TooBig && a.unused() > 0 && a.room() != nil && *a.room() >= *a.request:
		say("%s of the reserved memory is not allocated: a setting against fragmentation would gain at most that", units.Bytes(a.unused()))
	}
}

// pausedPool reports whether PyTorch counts memory that is not mapped: more than the device has,
// where no driver lends host memory and the process itself holds less.
func (t *Statement) pausedPool(a *account) bool {
	return t.Hints[failure.HintWindows] == 0 && t.Hints[failure.HintWSL] == 0 && a.InUse != nil && a.Total != nil && *a.InUse <= *a.Total
}

// explainRefusal states what may explain a refusal although there was room.
func (t *Statement) explainRefusal(say func(string, ...any), a *account) {
	say("no limit is named, and the driver had more free than was requested: the cause is not in the text")
	switch {
	case a.oneTooLarge():
		say("a single allocation of 4 GiB or more was requested, which Intel's drivers refuse by default")
	case a.Backend == "HIP":
		say("an APU is limited by the kernel's GTT pages (ttm.pages_limit), Windows by its commit limit. The free memory can be of another kind, or freed later")
	case t.Hints[failure.HintWindows] > 0 || t.Hints[failure.HintWSL] > 0:
		say("on Windows, device allocations count against the commit limit: with a small page file the driver refuses")
	default:
		say("possible: a quota (MIG, vGPU, WSL), the host's memory or commit limit (page file, ulimit -v), or memory that another process freed later")
	}
}

// withoutFree reports whether a message has the wording that never states what was free:
// that of Intel's devices before it adopted CUDA's.
func withoutFree(o *failure.OOM) bool {
	return o.Backend == "XPU" && o.Whole && o.Free == nil && o.Total != nil && o.Allocated != nil && o.Reserved != nil
}

// figuresOf lists what a message states, in words.
func figuresOf(o *failure.OOM) (known []string) {
	allocated := "of it allocated"
	if o.Reserved == nil {
		allocated = "allocated by PyTorch"
	}
	for _, x := range []struct {
		n    *int64
		what string
	}{
		{o.Total, "on the device"}, {o.Free, "free there"}, {o.Reserved, "reserved by PyTorch"}, {o.Allocated, allocated},
		{o.Private, "free in private pools"}, {o.Others, "held by the other process"}, {o.Allowed, "allowed to this process"}, {o.InUse, "held by this process in all"},
	} {
		if x.n != nil {
			known = append(known, units.Bytes(*x.n)+" "+x.what)
		}
	}
	return known
}

// missingOf states which figures a message lacks.
func missingOf(o *failure.OOM) string {
	var names []string
	for _, x := range []struct {
		n    *int64
		what string
	}{{o.Request, "the size requested"}, {o.Total, "the size of the device"}, {o.Free, "what was free"}, {o.Allocated, "what was allocated"}, {o.Reserved, "what was reserved"}} {
		if x.n == nil && !(o.Wording == failure.Async && x.what == "what was reserved") {
			names = append(names, x.what)
		}
	}
	text := "the message is cut off: "
	if o.Whole {
		text = "lines of other messages are mixed in: "
	}
	text += strings.Join(names, ", ")
	if len(names) == 1 {
		return text + " is missing, without which the cause cannot be determined"
	}
	return text + " are missing, without which the cause cannot be determined"
}

// addFailures states which other messages there are, and returns the last message for each
// rank and device if there are several.
func addFailures(f *finding.Finding, groups []failure.Failures, judged *failure.OOM, known Options) (failures []finding.OOMFailure) {
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
		text = fmt.Sprintf("it is one of %s such messages in this text, the last complete one", units.Count(int64(count)))
	}
	if len(groups) == 1 {
		f.Detail = append(f.Detail, text)
		return nil
	}
	f.Detail = append(f.Detail, fmt.Sprintf("%s, of %s ranks or devices:", text, units.Count(int64(len(groups)))))
	const maxGroups = 16
	for i, g := range groups {
		m := g.Last()
		a := accountOf(m, known)
		failures = append(failures, a.failure(&g, m))
		if i < maxGroups {
			f.Detail = append(f.Detail, fmt.Sprintf("%s: %s on line %s: %s", speaker(&g), oneOf(g.Count), units.Count(m.Line), strings.TrimPrefix(a.title(), "memory ran out: ")))
		}
	}
	if n := len(groups) - maxGroups; n > 0 {
		f.Detail = append(f.Detail, fmt.Sprintf("and of %s more (--json lists them)", units.Count(int64(n))))
	}
	return failures
}

// speaker names the rank or device that wrote some messages.
func speaker(g *failure.Failures) string {
	device := "an unnamed device"
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

// roughlyEqual reports whether two sizes are the same apart from rounding.
func roughlyEqual(a, b int64) bool {
	const rounding = 0.01
	return math.Abs(float64(a-b)) <= rounding*float64(max(a, b))
}

// outsideDevice is what is held outside PyTorch, nil if that is unknown or the driver lends host
// memory.
func (a *account) outsideDevice() *int64 {
	if a.lent() {
		return nil
	}
	return a.outside()
}

// failure is the evidence from a message that is the last for a rank and device.
func (a *account) failure(g *failure.Failures, m *failure.OOM) finding.OOMFailure {
	out := finding.OOMFailure{
		Device: g.Device, Messages: g.Count, Line: m.Line, Cause: a.cause(),
		ActiveBytes: a.active, CapacityBytes: a.capacity, DeviceFreeBytes: a.free,
		OutsideBytes: a.outsideDevice(), RequestBytes: a.request, ReservedBytes: a.reserved,
	}
	if g.Rank != "" {
		out.Rank = &g.Rank
	}
	return out
}
