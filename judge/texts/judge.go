// Package texts judges texts: the last failure that they state, its cause as far as the text
// supports one, and what helps first; and the tables of memory_summary() in them. [Judge] is
// the entry point. tables.go judges the tables. account.go adds up the figures of PyTorch's
// own message. The kinds of failure of inference engines are in engines.go, and those of
// programs that run models locally in local.go. host.go has those of the host: the kernel's
// OOM killer, containers, pods, Ray, and the schedulers Slurm, LSF and PBS.
package texts

import (
	"fmt"
	"strings"

	"strandline/finding"
	"strandline/internal/sorts"
	"strandline/judge/shortage"
	"strandline/logs"
	"strandline/logs/failure"
	"strandline/units"
)

// Options are what the user knows beyond the text.
type Options struct {
	Capacity *int64 // bytes of memory of each device, nil if unknown
	Limit    *int64 // bytes that tables must not reach, nil if there is none
}

// A Statement is a text and its origin.
type Statement struct {
	*logs.Text
	File, Process string
	Explained     map[*failure.OOM]bool // messages of failures that a snapshot explains
}

// Judge explains the last failure that a text states. It returns nothing if a snapshot
// explains all of them.
func (t *Statement) Judge(known Options) []finding.Finding {
	groups := t.unexplained()
	message := fullest(groups)
	if message != nil && message.Bare() && t.Hints[failure.HintJulia] > 0 {
		message = nil // CUDA.jl words its errors as PyTorch does; the driver's statement is there, too
	}
	candidates := t.candidates(message)
	if len(candidates) == 0 {
		return nil
	}
	c := t.decisive(candidates)
	if c.failure == nil {
		f := t.message(message, groups, known)
		t.check(&f)
		t.quoted(&f)
		return []finding.Finding{f}
	}
	v := newView(t, c.failure)
	v.answer()
	v.addOthers(candidates, c)
	if !v.f.Host {
		t.locate(&v.Finding, v.f.Line)
	}
	t.check(&v.Finding)
	t.quoted(&v.Finding)
	return []finding.Finding{v.Finding}
}

// A candidate is a statement that may be the one to explain.
type candidate struct {
	line     int64
	strength int
	message  *failure.OOM
	failure  *failure.Failure
}

// How complete a statement is.
const (
	attempt  = iota // that a request was refused, after which the program may have gone on
	indirect        // it may be the consequence of another failure
	bare            // that memory ran out
	strong          // how much of what was short, or that something was killed for it
)

// candidates are the statements of a text in line order.
func (t *Statement) candidates(message *failure.OOM) (out []candidate) {
	const close = 4 // lines
	if message != nil {
		c := candidate{line: message.Line, strength: strong, message: message}
		if message.Bare() && message.Request == nil && message.Wording != failure.Absurd {
			c.strength = bare
		}
		out = append(out, c)
	}
	for i := range t.Failures {
		f := &t.Failures[i]
		c := candidate{line: f.Line, strength: strong, failure: f}
		switch {
		case f.Attempt(), f.Kind == failure.StartUp:
			c.strength = attempt
		case f.Kind == failure.SGLangLost:
			c.strength = bare
		case f.Weak:
			c.strength = indirect
		case f.Source == failure.SourceDriver || f.Kind == failure.DriverNVML:
			c.strength = bare
		}
		if message != nil && !message.Bare() && message.Missing() == 0 && len(f.Figures) == 0 && !f.Host && max(c.line-message.Line, message.Line-c.line) < close {
			continue // the program that passes PyTorch's message on
		}
		if f.Kind == failure.DriverMemory && message != nil && message.Bare() && max(c.line-message.Line, message.Line-c.line) < close {
			continue // the same statement
		}
		if c.strength <= indirect && message == nil && t.OOM.Count > 0 && f.Source == failure.SourcePyTorch {
			continue // about a failure that a snapshot explains
		}
		out = append(out, c)
	}
	sorts.StableBy(out, func(a, b candidate) int { return int(a.line - b.line) })
	return out
}

// decisive is the statement of the last failure. A statement with fewer figures, soon after
// one with more, is about the same failure; a process that is killed long after an
// error that it survived is not.
func (t *Statement) decisive(candidates []candidate) candidate {
	const (
		sameFailure = 200 // lines
		sameEnd     = 40
	)
	best := candidates[0]
	for _, c := range candidates[1:] {
		switch after := c.line - best.line; {
		case c.strength >= best.strength:
			best = c
		case c.strength == bare && after > sameFailure:
			best = c
		case c.failure != nil && c.failure.Kind == failure.ProcessKilled && after > sameEnd && t.Hints[failure.HintShutdown] < best.line && !best.host():
			best = c
		}
	}
	return best
}

func (c *candidate) host() bool { return c.failure != nil && c.failure.Host }

// A view is a failure on its way to a finding.
type view struct {
	finding.Finding
	figures *finding.OOMEvidence // its evidence
	f       *failure.Failure
	text    *Statement
}

// newView begins a finding with the figures that a failure states.
func newView(t *Statement, f *failure.Failure) *view {
	of := "device"
	if f.Host {
		of = "host"
	}
	e := &finding.OOMEvidence{File: t.File, Line: f.Line, Messages: f.Count, Of: of, Source: string(f.Source), Statement: string(f.Kind)}
	v := &view{figures: e, f: f, text: t, Finding: finding.Finding{
		Kind: finding.OutOfMemory, Severity: finding.Problem, Confidence: 1, Process: t.Process,
		Basis: "what the text states", Evidence: e,
	}}
	e.Outcome = finding.Died
	for name, field := range published(e) {
		if n, ok := f.Figure(name); ok {
			*field = &n
		}
	}
	if n, ok := f.Figure("device"); ok && !f.Host {
		device := int(n)
		v.Device = &device
	}
	return v
}

// published are the figures that become evidence; others appear only in sentences.
func published(e *finding.OOMEvidence) map[failure.Figure]**int64 {
	return map[failure.Figure]**int64{
		failure.Request: &e.RequestBytes, failure.Capacity: &e.CapacityBytes, failure.Free: &e.DeviceFreeBytes,
		failure.Reserved: &e.ReservedBytes, failure.Active: &e.ActiveBytes, failure.InProcess: &e.ProcessBytes,
		failure.Limit: &e.LimitBytes, failure.RSS: &e.RSSBytes, failure.Needed: &e.NeededBytes,
		failure.Available: &e.AvailableBytes, failure.MaxLength: &e.MaxLengthTokens,
	}
}

// answer fills in the finding according to the kind of failure.
func (v *view) answer() {
	explain, ok := kinds[v.f.Kind]
	switch {
	case v.f.Words["absurd"] != "":
		explain = (*view).absurd
	case !ok:
		explain = (*view).unknown
	}
	explain(v)
	if (v.figures.Cause == "" || v.figures.Cause == shortage.Refused) && v.Confidence == 1 {
		v.Confidence = 0.95 // that memory ran out, as bench/reliability measures it
	}
	v.Detail = append([]string{fmt.Sprintf("line %s: %s", units.Count(v.f.Line), v.f.Quote)}, v.Detail...)
}

// absurd is a request of more bytes than any machine has, whoever states it.
func (v *view) absurd() {
	v.title("memory ran out: a request of %s bytes failed: its size was computed wrongly", v.f.Words["absurd"])
	v.Remedies = []finding.Remedy{wronglyComputed}
}

// kinds are the functions that explain each kind of failure.
var kinds = merged(engineKinds, localKinds, arrayKinds, driverKinds, hostKinds, heapKinds, attemptKinds)

func merged(tables ...map[failure.Kind]func(*view)) map[failure.Kind]func(*view) {
	out := map[failure.Kind]func(*view){}
	for _, table := range tables {
		for kind, explain := range table {
			out[kind] = explain
		}
	}
	return out
}

// addOthers states which other failures the text states before the one that is explained.
func (v *view) addOthers(all []candidate, chosen candidate) {
	const maxOthers = 4
	var others []string
	for _, c := range all {
		switch {
		case c == chosen || c.strength <= indirect && c.failure.Kind != failure.ProcessKilled:
		case c.message != nil && !c.message.Bare():
			others = append(others, fmt.Sprintf("line %s: PyTorch's %s out of memory", units.Count(c.line), c.message.Backend))
		case c.failure != nil && c.failure.Source != v.f.Source && c.failure.Line != v.f.Line:
			others = append(others, fmt.Sprintf("line %s: %s", units.Count(c.line), c.failure.Quote))
		}
	}
	if len(others) > 0 {
		v.say("the text also says: %s", strings.Join(others[:min(len(others), maxOthers)], "; "))
	}
}

// The parts of a finding.

func (v *view) title(format string, args ...any) { v.Title = fmt.Sprintf(format, args...) }

func (v *view) say(format string, args ...any) {
	v.Detail = append(v.Detail, fmt.Sprintf(format, args...))
}

func (v *view) cause(cause string) { v.figures.Cause = cause }

// set adds a remedy whose setting can be pasted.
func (v *view) set(setting, format string, args ...any) {
	v.Remedies = append(v.Remedies, finding.SettingChange(setting, fmt.Sprintf(format, args...)))
}

// do adds a remedy in words.
func (v *view) do(format string, args ...any) {
	v.Remedies = append(v.Remedies, finding.CodeChange(fmt.Sprintf(format, args...)))
}

func (v *view) states(figures ...failure.Figure) bool {
	for _, name := range figures {
		if _, ok := v.f.Figures[name]; !ok {
			return false
		}
	}
	return true
}

// size is a figure in words.
func (v *view) size(name failure.Figure) string {
	n, ok := v.f.Figure(name)
	if !ok {
		return "an unknown amount"
	}
	return units.Bytes(n)
}

// count is a figure that is not a size, in words.
func (v *view) count(name failure.Figure) string {
	n, _ := v.f.Figure(name)
	return units.Count(n)
}

// hint reports whether the text comes from a given program or system.
func (v *view) hint(h failure.Hint) bool { return v.text.Hints[h] > 0 }
