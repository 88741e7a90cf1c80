package torch

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"

	"strandline/finding"
	"strandline/logs"
	"strandline/torch/compare"
	"strandline/torch/timeline"
	"strandline/units"
)

// A statement is what a text says of out-of-memory errors.
type statement struct {
	*logs.Found
	file, process string
	heard         map[*logs.OOM]bool // messages of failures that a snapshot tells of
}

// statements are those of the files that are text.
func statements(processes []*compare.Process) (out []*statement) {
	for _, p := range processes {
		for _, f := range p.Files {
			if f.Said != nil && f.Said.OOM.Count > 0 {
				out = append(out, &statement{&f.Said.OOM, f.Name, p.Name, map[*logs.OOM]bool{}})
			}
		}
	}
	return out
}

// hear finds the messages of a failure that a snapshot of a process tells of: the
// last of them, and how many there are.
func (t *statement) hear(o *compare.OOM, process string, device int) (last *logs.OOM, count int) {
	for _, f := range t.Failures {
		if own, said := rank.FindString(process), rank.FindString(f.Rank); own != "" && said != "" && own != said {
			continue
		}
		for _, m := range f.Messages {
			if t.heard[m] || !sameFailure(m, o, device) {
				continue
			}
			t.heard[m] = true
			if count++; last == nil || m.Line > last.Line {
				last = m
			}
		}
	}
	return last, count
}

// rank is how files and lines of a log name one.
var rank = regexp.MustCompile(`rank\d+`)

// sameFailure tells whether a message is of a failure in a snapshot: on that
// device, with the same request and as much free, as far as they are printed.
func sameFailure(m *logs.OOM, o *compare.OOM, device int) bool {
	if m.Bare() || m.Request == nil || !o.Known.Request || m.Device != nil && *m.Device != device || contradictions(m) != nil {
		return false
	}
	return near(*m.Request, timeline.DriverSize(o.Request, o.Expandable)) && (m.Free == nil || !o.Known.DeviceFree || near(*m.Free, o.DeviceFree))
}

// near tells whether two sizes are the same but for rounding.
func near(a, b int64) bool {
	const rounding = 0.01
	return math.Abs(float64(a-b)) <= rounding*float64(max(a, b))
}

// unheard are the messages of failures that no snapshot tells of, by rank and
// device.
func (t *statement) unheard() (out []logs.Failures) {
	for _, f := range t.Failures {
		all := len(f.Messages)
		f.Messages = slices.DeleteFunc(slices.Clone(f.Messages), func(m *logs.OOM) bool { return t.heard[m] })
		if f.Count -= all - len(f.Messages); len(f.Messages) > 0 {
			out = append(out, f)
		}
	}
	return out
}

// judge judges a failure by the figures of a message alone: of the last that is
// whole, or else of the last that says something.
func (t *statement) judge(known Options) []finding.Finding {
	groups := t.unheard()
	var o *logs.OOM
	for _, g := range groups {
		for _, m := range g.Messages {
			if o == nil || telling(m) > telling(o) || telling(m) == telling(o) && m.Line >= o.Line {
				o = m
			}
		}
	}
	if o == nil {
		return nil
	}
	s := shortageOf(o, known)
	f := finding.Finding{
		Kind: finding.OutOfMemory, Severity: finding.Problem, Confidence: 1, Device: o.Device, Process: t.process,
		Basis:    "PyTorch's own figures, rounded as it prints them",
		Evidence: map[string]any{"file": t.file, "line": o.Line, "messages": t.Count},
	}
	if o.Total != nil && known.Capacity != nil && !near(*o.Total, *known.Capacity) {
		f.Detail = append(f.Detail, fmt.Sprintf("the message states a device of %s: the %s that were given are not used", units.Bytes(*o.Total), units.Bytes(*known.Capacity)))
	}
	s.checkCapacity(&f)
	s.evidence(f.Evidence)
	for name, n := range map[string]*int64{
		"limit_bytes": o.Allowed, "private_bytes": o.Private, "process_bytes": o.InUse, "unallocated_bytes": o.Unallocated, "others_bytes": o.Others,
	} {
		if n != nil {
			f.Evidence[name] = *n
		}
	}
	f.Title = titleOf(s, o)
	switch s.cause() {
	case "":
		f.Confidence = 0.5
	case causeFragmented: // what was free in segments is an upper bound
		f.Confidence = 0.9
	}
	tellMessage(&f, s, o)
	tellOthers(&f, groups, o, known)
	f.Remedies = append(append(saidRemedies(s, o), besidesSaid(s, o)...), furtherSaid(o)...)
	return []finding.Finding{f}
}

// telling is how much can be told from a message.
func telling(m *logs.OOM) int {
	switch {
	case m.Bare():
		return 0
	case m.Lacks() > 0 || contradictions(m) != nil:
		return 1
	}
	return 2
}

// shortageOf is the arithmetic of a message, of one that contradicts itself
// the request alone.
func shortageOf(o *logs.OOM, known Options) *shortage {
	if contradictions(o) != nil {
		return &shortage{request: o.Request}
	}
	s := &shortage{request: o.Request, driver: o.Request, free: o.Free, reserved: o.Reserved, active: o.Allocated, capacity: known.Capacity, process: o.InUse}
	if o.Total != nil {
		s.capacity = o.Total
	}
	switch o.Wording {
	case logs.Async:
		s.allowed, s.held = o.Allowed, o.Allocated
	case logs.Metal:
		s.capacity = nil // PyTorch shares it with the rest of the system
		if o.Reserved != nil && o.Others != nil {
			s.allowed, s.held = o.Allowed, finding.Int(*o.Reserved+*o.Others)
		}
	}
	return s
}

// contradictions are the figures of a message that cannot all be true, in words.
func contradictions(o *logs.OOM) (out []string) {
	if o.Total == nil {
		return nil
	}
	const least = 32 << 20
	slack := max(least, *o.Total/100) // the figures are rounded
	say := func(n *int64, format string) {
		if n != nil && *n > *o.Total+slack {
			out = append(out, fmt.Sprintf(format+" on a device of %s", units.Bytes(*n), units.Bytes(*o.Total)))
		}
	}
	say(o.Allocated, "%s in use")
	say(o.Free, "%s free")
	say(o.InUse, "%s held by one process")
	held := o.Reserved
	if held == nil {
		held = o.Allocated
	}
	if out == nil {
		say(o.Reserved, "%s reserved")
	}
	if out == nil && held != nil && o.Free != nil {
		say(finding.Int(*held+*o.Free), "%s free or held by PyTorch")
	}
	if o.Reserved != nil && o.Allocated != nil && *o.Allocated > *o.Reserved+slack {
		out = append(out, fmt.Sprintf("%s in use, of %s reserved", units.Bytes(*o.Allocated), units.Bytes(*o.Reserved)))
	}
	return out
}

// titleOf says in a sentence that and why memory ran out.
func titleOf(s *shortage, o *logs.OOM) string {
	switch {
	case o.Wording == logs.Absurd:
		return "memory ran out: a request of more than an exbibyte failed: its size was computed wrongly"
	case o.Wording == logs.NCCL && o.Request != nil:
		return fmt.Sprintf("memory ran out for NCCL, beside PyTorch's allocator: the driver did not give it %s", units.Bytes(*o.Request))
	case o.Wording == logs.NCCL:
		return "memory ran out for NCCL, beside PyTorch's allocator"
	case o.Wording == logs.Silent:
		return fmt.Sprintf("memory ran out on an %s device", o.Backend)
	case o.Bare():
		return "memory ran out in a call of the driver that is not one of PyTorch's cache"
	case contradictions(o) != nil:
		return s.title() + "; the figures of the message contradict each other"
	}
	return s.title()
}

// tellMessage says what the message states beside its title.
func tellMessage(f *finding.Finding, s *shortage, o *logs.OOM) {
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
	if wrong := contradictions(o); wrong != nil {
		f.Evidence["contradictory"] = true
		say("that cannot be: %s. Lines of several messages are mixed, or the driver lends memory of the host, as it does on Windows; nothing is concluded from these figures", strings.Join(wrong, "; "))
	}
	if n := s.outside(); n != nil {
		say("%s of the device was held outside PyTorch's allocator: %s", units.Bytes(*n), s.holders())
	}
	for _, p := range o.Processes {
		say("process %d holds %s (in a container this can be the program itself)", p.PID, units.Bytes(p.Bytes))
	}
	switch {
	case s.cause() == causeFragmented:
		say("what waits for another stream after it was freed, or serves only a private pool, counts as free here; a snapshot of that moment tells it apart")
	case o.Wording == logs.Runtime || o.Wording == logs.Driver:
		say("such an error is of what does not go through PyTorch's cache: making the context, loading kernels, handles and workspaces of libraries, CUDA graphs; with expandable segments also of mapping a page")
	case s.cause() == causeLimit && o.Allowed == nil && o.Allocated != nil:
		say("the message names no limit that PyTorch was given: a quota of the driver (MIG, vGPU, WSL), or memory that came free right after the failure")
	case s.cause() == "" && o.Wording == logs.Async && o.Lacks() == 0 && contradictions(o) == nil:
		say("the backend cudaMallocAsync does not say what its pool keeps: %s of the device is neither in use by PyTorch nor free, and is cached in that pool or held by others", units.Bytes(*o.Total-*o.Allocated-*o.Free))
	case s.cause() == "" && withoutFree(o):
		say("the message does not state what was free, as those of XPU devices did not at first; the cause cannot be told without it")
	case s.cause() == "" && o.Lacks() > 0 && contradictions(o) == nil:
		say("%s", missingOf(o))
	}
}

// withoutFree tells the wording that never states what was free: that of Intel's
// devices before it took up CUDA's.
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
		return text + " is missing, without which the cause cannot be told"
	}
	return text + " are missing, without which the cause cannot be told"
}

// tellOthers says which other messages there are: the last of each rank and device.
func tellOthers(f *finding.Finding, groups []logs.Failures, judged *logs.OOM, known Options) {
	count, last := 0, true
	for _, g := range groups {
		count += g.Count
		last = last && g.Last().Line <= judged.Line
	}
	if count < 2 {
		return
	}
	text := fmt.Sprintf("it is the last of %s such messages in this text", units.Count(int64(count)))
	if !last {
		text = fmt.Sprintf("it is one of %s such messages in this text, the last that is whole", units.Count(int64(count)))
	}
	if len(groups) == 1 {
		f.Detail = append(f.Detail, text)
		return
	}
	f.Detail = append(f.Detail, fmt.Sprintf("%s, of %s ranks or devices:", text, units.Count(int64(len(groups)))))
	const most = 16
	var failures []map[string]any
	for i, g := range groups {
		m := g.Last()
		s := shortageOf(m, known)
		failure := map[string]any{"rank": nil, "device": g.Device, "messages": g.Count, "line": m.Line}
		if g.Rank != "" {
			failure["rank"] = g.Rank
		}
		s.evidence(failure)
		failures = append(failures, failure)
		if i < most {
			f.Detail = append(f.Detail, fmt.Sprintf("%s: %s on line %s: %s", speaker(&g), oneOf(g.Count), units.Count(m.Line), strings.TrimPrefix(titleOf(s, m), "memory ran out: ")))
		}
	}
	if n := len(groups) - most; n > 0 {
		f.Detail = append(f.Detail, fmt.Sprintf("and of %s more (--json lists them)", units.Count(int64(n))))
	}
	f.Evidence["failures"] = failures
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
