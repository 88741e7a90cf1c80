package report

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"strandline/face/api"
	"strandline/host/proc/hooks"
)

// Hooks is the document of `strandline hooks`.
type Hooks struct {
	api.HookScan
}

// NewHooks makes the document.
func NewHooks(pid int, h *hooks.Scan) *Hooks {
	d := &Hooks{HookScan: api.HookScan{
		Schema: api.HooksSchema, PID: pid, Slots: h.Slots, CodePages: h.Pages,
		Hooks: []api.Hook{}, Breakpoints: []api.Breakpoint{}, Interposed: []api.Interposed{}, Libraries: []api.Library{}, Unread: append([]string{}, h.Unread...),
	}}
	for _, k := range h.Hooks {
		hook := api.Hook{Symbol: k.Symbol, Mechanism: k.Mechanism, Object: k.Object, Owner: known(k.Owner), OwnerSymbol: known(k.OwnerSymbol), Effect: effect(k)}
		if k.Library != nil {
			hook.Library = k.Library.Name
		}
		d.Hooks = append(d.Hooks, hook)
	}
	for _, b := range h.Breakpoints {
		d.Breakpoints = append(d.Breakpoints, api.Breakpoint{Function: known(b.Function), Object: b.Object, Address: b.Address})
	}
	for _, i := range h.Interposed {
		d.Interposed = append(d.Interposed, api.Interposed(i))
	}
	for _, k := range h.Libraries {
		d.Libraries = append(d.Libraries, api.Library{Name: k.Name, Version: known(k.Version), Object: k.Object, Detail: k.Does, Hooks: k.Hooks, Leaks: known(k.Leaks), Remedies: k.Remedies})
	}
	return d
}

// grouped returns the hooks, with those of one function in several offset tables
// merged.
func (d *Hooks) grouped() (out []api.Hook) {
	type key struct{ symbol, owner, function string }
	tables, first := map[key]int{}, map[key]int{}
	for _, h := range d.Hooks {
		k := key{h.Symbol, or(h.Owner, ""), or(h.OwnerSymbol, "")}
		if h.Mechanism == hooks.SlotPatched {
			if tables[k]++; tables[k] > 1 {
				out[first[k]].Effect = fmt.Sprintf("calls of %s from %d objects go there", h.Symbol, tables[k])
				continue
			}
			first[k] = len(out)
		}
		out = append(out, h)
	}
	return out
}

// effect states which calls end up in the owner's code, and what a profiler sees
// of them.
func effect(k hooks.Hook) string {
	if k.Mechanism == hooks.SlotPatched {
		return fmt.Sprintf("calls of %s from %s go there", k.Symbol, filepath.Base(k.Object))
	}
	return fmt.Sprintf("every call of %s goes there, and its own frame is missing from stacks", k.Symbol)
}

// known returns a text for JSON: null where it is empty.
func known(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// or returns a text, or another one if it is unknown.
func or(text *string, unknown string) string {
	if text == nil {
		return unknown
	}
	return *text
}

// Leaking reports whether a library that is known to lose memory has hooked
// functions. One that is only loaded does nothing yet.
func (d *Hooks) Leaking() bool {
	return slices.ContainsFunc(d.Libraries, func(l api.Library) bool { return l.Leaks != nil && l.Hooks > 0 })
}

// interposes reports whether an object's memory functions are called instead of libc's.
func (d *Hooks) interposes(object string) bool {
	return slices.ContainsFunc(d.Interposed, func(i api.Interposed) bool { return i.Object == object })
}

// Text prints the document for a person.
func (d *Hooks) Text(w io.Writer, s Style) {
	switch {
	case len(d.Hooks) > 0:
		fmt.Fprintln(w, s.bold(count(len(d.Hooks), "hook")))
		for _, g := range d.grouped() {
			fmt.Fprintf(w, "  %s leads to %s of %s\n", s.bold(g.Symbol), or(g.OwnerSymbol, "an unnamed function"), Line(or(g.Owner, "anonymous memory")))
			fmt.Fprintln(w, "    "+s.dim(g.Effect))
		}
	default:
		fmt.Fprintln(w, s.green("no hooks"))
	}
	for _, b := range d.Breakpoints {
		fmt.Fprintf(w, "a trap of a debugger or probe is in %s of %s\n", or(b.Function, fmt.Sprintf("%#x", b.Address)), Line(b.Object))
	}
	for _, i := range d.Interposed {
		fmt.Fprintf(w, "%s precedes libc for %s\n", Line(i.Object), strings.Join(i.Symbols, ", "))
	}
	for _, l := range d.Libraries {
		fmt.Fprintf(w, "%s %s: %s\n", s.bold(l.Name), or(l.Version, "(version unknown)"), Line(l.Object))
		for _, line := range wrap(l.Detail, s.columns()-2) {
			fmt.Fprintln(w, "  "+line)
		}
		if l.Leaks != nil {
			leaks := s.red("leaks: ")
			if l.Hooks == 0 {
				leaks = "loaded, but has hooked nothing yet: "
			}
			fmt.Fprintln(w, "  "+leaks+*l.Leaks)
		} else if l.Hooks == 0 && !d.interposes(l.Object) {
			fmt.Fprintln(w, "  loaded, but has hooked nothing yet")
		}
		for _, r := range l.Remedies {
			fmt.Fprintln(w, "  → "+r)
		}
	}
	for _, u := range d.Unread {
		fmt.Fprintf(w, "%s cannot be read; hooks in it cannot be seen\n", Line(u))
	}
	fmt.Fprintln(w, s.dim(fmt.Sprintf("compared %s of offset tables and %s of modified code",
		count(d.Slots, "slot"), count(d.CodePages, "page"))))
}
