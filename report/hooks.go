package report

import (
	"fmt"
	"io"

	"strandline/hostleak"
)

// Hooks is the document of `strandline hooks`.
type Hooks struct {
	Schema      string       `json:"schema"`
	PID         int          `json:"pid"`
	Hooks       []Hook       `json:"hooks"`
	Breakpoints []Breakpoint `json:"breakpoints"`
	Libraries   []Library    `json:"libraries"`
	Slots       int          `json:"slots"`
	CodePages   int          `json:"code_pages"`
	Unread      []string     `json:"unread"`
}

// Hook is one function that leads elsewhere.
type Hook struct {
	Symbol      string             `json:"symbol"`
	Mechanism   hostleak.Mechanism `json:"mechanism"`
	Object      string             `json:"object"`
	Owner       *string            `json:"owner"`
	OwnerSymbol *string            `json:"owner_symbol"`
	Library     string             `json:"library,omitempty"`
}

// Breakpoint is a trap in the code.
type Breakpoint struct {
	Function *string `json:"function"`
	Object   string  `json:"object"`
	Address  uint64  `json:"address"`
}

// Library is a loaded library that is known to hook or to replace functions.
type Library struct {
	Name     string   `json:"name"`
	Version  *string  `json:"version"`
	Object   string   `json:"object"`
	Told     string   `json:"told"`
	Leaks    *string  `json:"leaks"`
	Remedies []string `json:"remedies,omitempty"`
}

// NewHooks makes the document.
func NewHooks(pid int, h *hostleak.Hooks) *Hooks {
	d := &Hooks{
		Schema: "strandline.hooks/1", PID: pid, Slots: h.Slots, CodePages: h.Pages,
		Hooks: []Hook{}, Breakpoints: []Breakpoint{}, Libraries: []Library{}, Unread: append([]string{}, h.Unread...),
	}
	for _, k := range h.Hooks {
		hook := Hook{Symbol: k.Symbol, Mechanism: k.Mechanism, Object: k.Object, Owner: known(k.Owner), OwnerSymbol: known(k.OwnerSymbol)}
		if k.Known != nil {
			hook.Library = k.Known.Name
		}
		d.Hooks = append(d.Hooks, hook)
	}
	for _, b := range h.Breakpoints {
		d.Breakpoints = append(d.Breakpoints, Breakpoint{known(b.Function), b.Object, b.Address})
	}
	for _, k := range h.Known {
		d.Libraries = append(d.Libraries, Library{k.Name, known(k.Version), k.Object, k.Does, known(k.Leaks), k.Remedies})
	}
	return d
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

// Leaking tells whether a library is loaded that is known to lose memory.
func (d *Hooks) Leaking() bool {
	for _, l := range d.Libraries {
		if l.Leaks != nil {
			return true
		}
	}
	return false
}

// Text prints the document for a person.
func (d *Hooks) Text(w io.Writer, s Style) {
	switch {
	case len(d.Hooks) > 0:
		fmt.Fprintln(w, s.bold(count(len(d.Hooks), "hook")))
		t := table{}
		for _, h := range d.Hooks {
			how := map[hostleak.Mechanism]string{hostleak.SlotPatched: "offset table", hostleak.CodePatched: "code"}[h.Mechanism]
			t.row(h.Symbol, "→ "+or(h.OwnerSymbol, "a function without name"), "of "+or(h.Owner, "memory of no file"), how+" of "+h.Object)
		}
		t.write(w, "  ")
	default:
		fmt.Fprintln(w, s.green("no hooks"))
	}
	for _, b := range d.Breakpoints {
		fmt.Fprintf(w, "a trap of a debugger or probe is in %s of %s\n", or(b.Function, fmt.Sprintf("%#x", b.Address)), Line(b.Object))
	}
	for _, l := range d.Libraries {
		fmt.Fprintf(w, "%s %s: %s\n", s.bold(l.Name), or(l.Version, "(version unknown)"), Line(l.Object))
		for _, line := range wrap(l.Told, s.columns()-2) {
			fmt.Fprintln(w, "  "+line)
		}
		if l.Leaks != nil {
			fmt.Fprintln(w, "  "+s.red("leaks: ")+*l.Leaks)
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
