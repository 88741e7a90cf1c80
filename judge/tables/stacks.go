package tables

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"strandline/finding"
	"strandline/host/proc/hooks"
	"strandline/internal/sorts"
	"strandline/profiles"
	"strandline/profiles/sites"
	"strandline/stack"
	"strandline/units"
)

// mappers states who maps memory, by the stacks of its calls. That the memory stays is not in
// the text.
func mappers(f *profiles.File) finding.Finding {
	type mapper struct {
		stack        []stack.Frame
		bytes, count int64
		leaks        string // how a library leaks here
		remedies     []string
	}
	var list []*mapper
	type key struct {
		at    stack.Frame
		leaks string
	}
	at := map[key]*mapper{}
	var calls int64
	for _, u := range f.Uses {
		caller, _ := sites.Caller(u.Stack)
		leaks, remedies := leakOf(u.Stack)
		m := at[key{caller, leaks}]
		if m == nil {
			m = &mapper{stack: u.Stack, leaks: leaks, remedies: remedies}
			at[key{caller, leaks}] = m
			list = append(list, m)
		}
		m.bytes, m.count = m.bytes+u.Size*u.Count, m.count+u.Count
		calls += u.Count
	}
	sorts.StableBy(list, func(a, b *mapper) int {
		return cmp.Or(strings.Compare(b.leaks, a.leaks), cmp.Compare(b.bytes, a.bytes), cmp.Compare(b.count, a.count))
	})
	first := list[0]
	caller, whole := sites.Caller(first.stack)
	out := finding.Finding{Kind: finding.Usage, Severity: finding.Info, Confidence: 1, Count: &first.count, Basis: "the stacks in the text"}
	out.Title = fmt.Sprintf("%s maps memory: %s of %s", inObject(caller), units.Count(first.count), units.Plural(calls, "call"))
	if first.bytes > first.count { // the text has lengths
		out.Bytes = &first.bytes
		out.Title += ", " + units.Bytes(first.bytes)
	}
	trace := finding.CodeChange(trace)
	switch {
	case first.leaks != "":
		out.Kind, out.Severity, out.Confidence = finding.MmapLeak, finding.Problem, 0.9
		out.Detail = append(out.Detail, first.leaks)
		out.Brief.Why = first.leaks
		for _, r := range slices.Backward(first.remedies) {
			out.Remedies = append(out.Remedies, asRemedy(r))
		}
	case !whole:
		out.Severity, out.Kind = finding.Warning, finding.Growth
		out.Title = fmt.Sprintf("%s calls map memory, and their stacks end in the C library (%s): the caller has no frame pointers", units.Count(first.count), first.stack[0].Function)
		out.Detail = append(out.Detail, "`strandline trace` unwinds without frame pointers")
		out.Remedies = []finding.Remedy{trace}
	default:
		out.Severity, out.Kind = finding.Warning, finding.Growth
		out.Detail = append(out.Detail, "whether this memory is unmapped later is not in these stacks")
		out.Remedies = []finding.Remedy{trace}
	}
	for _, x := range first.stack {
		out.Stack = append(out.Stack, finding.Frame(x))
	}
	site := finding.Site(caller)
	if out.Site = &site; !whole {
		out.Site = nil
	}
	if out.Brief.Title = out.Title; whole { // the place follows
		_, after, _ := strings.Cut(out.Title, " maps memory: ")
		out.Brief.Title = "memory is mapped: " + after
	}
	return out
}

// inObject is a function with its library or line.
func inObject(f stack.Frame) string {
	if f.File == "" {
		return f.Function
	}
	if f.Line > 0 {
		return fmt.Sprintf("%s (%s:%d)", f.Function, filepath.Base(f.File), f.Line)
	}
	return fmt.Sprintf("%s (%s)", f.Function, filepath.Base(f.File))
}

// leakOf is how a library in a stack leaks, and the ways to end that.
func leakOf(frames []stack.Frame) (leaks string, remedies []string) {
	var functions []string
	for _, f := range frames {
		functions = append(functions, f.Function)
	}
	return hooks.LeakOf(functions)
}

// asRemedy is advice with a setting where it names one: "set NAME=VALUE before it starts".
func asRemedy(text string) finding.Remedy {
	if after, ok := strings.CutPrefix(text, "set "); ok {
		if setting, _, ok := strings.Cut(after, " "); ok && strings.Contains(setting, "=") {
			return finding.SettingChange(setting, text)
		}
	}
	return finding.CodeChange(text)
}
