package texts

import (
	"slices"
	"strings"

	"strandline/finding"
	"strandline/internal/shell"
	"strandline/judge/shortage"
	"strandline/stack"
	"strandline/units"
)

// locate makes the line of the program that failed the place of a finding, where a traceback
// stands before what the text states on a line.
func (t *Statement) locate(f *finding.Finding, line int64) {
	trace := t.Traces.Before(line)
	if trace == nil {
		return
	}
	var frames []stack.Frame // innermost first
	for _, x := range slices.Backward(trace.Frames) {
		frames = append(frames, stack.Frame{File: x.File, Line: x.Line, Function: x.Function})
	}
	own := func(f stack.Frame) bool { return stack.OriginOf(f) == stack.Own }
	mine := func(f stack.Frame) bool { return own(f) && !strings.Contains(f.File, "-packages/") }
	i := slices.IndexFunc(frames, mine) // rather than that of a package
	if i < 0 {
		i = slices.IndexFunc(frames, own)
	}
	if i < 0 {
		return
	}
	site := finding.Site(frames[i])
	f.Site = &site
	for _, x := range frames {
		f.Stack = append(f.Stack, finding.Frame(x))
	}
	if last := frames[len(frames)-1]; last.Function == "<module>" && mine(last) && strings.HasSuffix(last.File, ".py") && f.Brief.Next == "" {
		f.Brief.Next = "strandline record -- python " + shell.File(last.File[strings.LastIndexAny(last.File, `/\`)+1:])
	}
}

// briefly is what the first screen states of a message of PyTorch. The place of the request
// follows the title.
func (a *account) briefly() (b finding.Brief) {
	if a.request == nil || a.Bare() || Contradictory(a.OOM) {
		return b // the title is short
	}
	b.Title, b.Account = units.Bytes(*a.request)+" requested", a.sum()
	switch cause := a.cause(); {
	case cause == shortage.Fragmented:
		b.Title, b.Fact = "fragmentation: "+b.Title, shortage.Amount(a.room())+" was free, in pieces"
	case cause == shortage.OthersHold && !a.elsewhere():
		b.Title, b.Fact = "not PyTorch: "+b.Title, shortage.Amount(a.outside())+" is held outside PyTorch"
	case cause == shortage.Refused:
		b.Title, b.Fact = "refused: "+b.Title, shortage.Amount(a.free)+" was free on the device"
	case cause == shortage.TooBig && a.room() != nil && *a.room() < *a.request && !a.lent():
		b.Title, b.Fact = "too large: "+b.Title, units.Bytes(*a.room())+" was free"
	case cause == "":
		b.Fact = "the message does not show the cause"
	default:
		b.Fact = "it " + a.explanation()
	}
	return b
}

// sum is where the memory of the device was; nil if the figures do not show that.
func (a *account) sum() *finding.Account {
	if a.capacity == nil || a.free == nil || a.reserved == nil || a.active == nil || a.lent() {
		return nil
	}
	unused := "free in PyTorch's cache"
	if a.cause() == shortage.Fragmented {
		unused += ", in pieces"
	}
	s := &finding.Account{Bytes: *a.capacity}
	s.Add(*a.active, "in use")
	s.Add(*a.reserved-*a.active, unused)
	s.Add(*a.free, "free on the device")
	if !s.Rest("outside PyTorch") {
		return nil
	}
	return s
}
