package report

import (
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strandline/host/hooks"
	"strings"
)

// Hooks is the document of `strandline hooks`.
type Hooks struct {
	Schema      string       `json:"schema"`
	PID         int          `json:"pid"`
	Hooks       []Hook       `json:"hooks"`
	Breakpoints []Breakpoint `json:"breakpoints"`
	Interposed  []Interposed `json:"interposed"`
	Libraries   []Library    `json:"libraries"`
	Slots       int          `json:"slots"`
	CodePages   int          `json:"code_pages"`
	Unread      []string     `json:"unread"`
}

// Hook is one function that leads elsewhere.
type Hook struct {
	Symbol      string          `json:"symbol"`
	Mechanism   hooks.Mechanism `json:"mechanism"`
	Object      string          `json:"object"`
	Owner       *string         `json:"owner"`
	OwnerSymbol *string         `json:"owner_symbol"`
	Effect      string          `json:"effect"`
	Library     string          `json:"library,omitempty"`
}

// Breakpoint is a trap in the code.
type Breakpoint struct {
	Function *string `json:"function"`
	Object   string  `json:"object"`
	Address  uint64  `json:"address"`
}

// Interposed is a library whose memory functions are called instead of libc's.
type Interposed struct {
	Object  string   `json:"object"`
	Symbols []string `json:"symbols"`
}

// Library is a loaded library that is known to hook or to replace functions.
type Library struct {
	Name     string   `json:"name"`
	Version  *string  `json:"version"`
	Object   string   `json:"object"`
	Told     string   `json:"told"`
	Hooks    int      `json:"owned"`
	Leaks    *string  `json:"leaks"`
	Remedies []string `json:"remedies,omitempty"`
}

// NewHooks makes the document.
func NewHooks(pid int, h *hooks.Scan) *Hooks {
	d := &Hooks{
		Schema: "strandline.hooks/1", PID: pid, Slots: h.Slots, CodePages: h.Pages,
		Hooks: []Hook{}, Breakpoints: []Breakpoint{}, Interposed: []Interposed{}, Libraries: []Library{}, Unread: append([]string{}, h.Unread...),
	}
	for _, k := range h.Hooks {
		hook := Hook{Symbol: k.Symbol, Mechanism: k.Mechanism, Object: k.Object, Owner: known(k.Owner), OwnerSymbol: known(k.OwnerSymbol), Effect: effect(k)}
		if k.Library != nil {
			hook.Library = k.Library.Name
		}
		d.Hooks = append(d.Hooks, hook)
	}
	for _, b := range h.Breakpoints {
		d.Breakpoints = append(d.Breakpoints, Breakpoint{known(b.Function), b.Object, b.Address})
	}
	for _, i := range h.Interposed {
		d.Interposed = append(d.Interposed, Interposed(i))
	}
	for _, k := range h.Libraries {
		d.Libraries = append(d.Libraries, Library{k.Name, known(k.Version), k.Object, k.Does, k.Hooks, known(k.Leaks), k.Remedies})
	}
	return d
}

// grouped are the hooks with those of one function in several offset tables
// taken together.
func (d *Hooks) grouped() (out []Hook) {
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

// effect says which calls end up in the owner's code, and what a profiler sees
// of them.
func effect(k hooks.Hook) string {
	if k.Mechanism == hooks.SlotPatched {
		return fmt.Sprintf("calls of %s from %s go there", k.Symbol, filepath.Base(k.Object))
	}
	return fmt.Sprintf("every call of %s goes there, and its own frame is missing in stacks", k.Symbol)
}

// known is a text as JSON, null where it is empty.
func known(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// or is a text that may be unknown.
func or(text *string, unknown string) string {
	if text == nil {
		return unknown
	}
	return *text
}

// Leaking reports whether a library that is known to lose memory has hooked
// functions. One that is only loaded does nothing yet.
func (d *Hooks) Leaking() bool {
	for _, l := range d.Libraries {
		if l.Leaks != nil && l.Hooks > 0 {
			return true
		}
	}
	return false
}

// interposes reports whether memory functions of an object stand before libc's.
func (d *Hooks) interposes(object string) bool {
	return slices.ContainsFunc(d.Interposed, func(i Interposed) bool { return i.Object == object })
}

// Text prints the document for a person.
func (d *Hooks) Text(w io.Writer, s Style) {
	switch {
	case len(d.Hooks) > 0:
		fmt.Fprintln(w, s.bold(count(len(d.Hooks), "hook")))
		for _, g := range d.grouped() {
			fmt.Fprintf(w, "  %s leads to %s of %s\n", s.bold(g.Symbol), or(g.OwnerSymbol, "a function without name"), Line(or(g.Owner, "memory of no file")))
			fmt.Fprintln(w, "    "+s.dim(g.Effect))
		}
	default:
		fmt.Fprintln(w, s.green("no hooks"))
	}
	for _, b := range d.Breakpoints {
		fmt.Fprintf(w, "a trap of a debugger or probe is in %s of %s\n", or(b.Function, fmt.Sprintf("%#x", b.Address)), Line(b.Object))
	}
	for _, i := range d.Interposed {
		fmt.Fprintf(w, "%s stands before libc for %s\n", Line(i.Object), strings.Join(i.Symbols, ", "))
	}
	for _, l := range d.Libraries {
		fmt.Fprintf(w, "%s %s: %s\n", s.bold(l.Name), or(l.Version, "(version unknown)"), Line(l.Object))
		for _, line := range wrap(l.Told, s.columns()-2) {
			fmt.Fprintln(w, "  "+line)
		}
		if l.Leaks != nil {
			leaks := s.red("leaks: ")
			if l.Hooks == 0 {
				leaks = "loaded, and has hooked nothing yet: "
			}
			fmt.Fprintln(w, "  "+leaks+*l.Leaks)
		} else if l.Hooks == 0 && !d.interposes(l.Object) {
			fmt.Fprintln(w, "  loaded, and has hooked nothing yet")
		}
		for _, r := range l.Remedies {
			fmt.Fprintln(w, "  → "+r)
		}
	}
	for _, u := range d.Unread {
		fmt.Fprintf(w, "%s cannot be read; hooks in it are not seen\n", Line(u))
	}
	fmt.Fprintln(w, s.dim(fmt.Sprintf("compared %s of offset tables and %s of code that was written to",
		count(d.Slots, "slot"), count(d.CodePages, "page"))))
}
