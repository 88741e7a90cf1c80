// Package hooks finds functions of a process that other libraries have replaced: it
// compares code and offset tables in memory with the files they came from, and names
// the libraries that are known to replace functions.
//
// It reads the process and neither stops nor changes it. Note that a library that is
// loaded meanwhile is seen only in part.
package hooks

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"maps"
	"slices"

	"strandline/host/code/elffile"
	"strandline/host/code/image"
	"strandline/host/proc/procfs"
	"strandline/internal/sorts"
)

// A Mechanism is how a call is redirected.
type Mechanism string

// The mechanisms.
const (
	SlotPatched Mechanism = "got"  // the global offset table holds another address
	CodePatched Mechanism = "code" // the function begins with a jump elsewhere
)

// A Hook is a function whose callers end up in another function.
type Hook struct {
	Symbol      string
	Mechanism   Mechanism
	Object      string   // whose table or code was changed
	Owner       string   // where the call goes now; empty for memory that belongs to no file
	OwnerSymbol string   // the function there, empty where it has no name
	target      uint64   // the address of that function
	Library     *Library // the library that did it; nil if not a known one
}

// A Scan is what was found in the memory of a process.
type Scan struct {
	Hooks []Hook
	// Breakpoints are addresses at which a debugger or a probe has set a trap.
	Breakpoints []Breakpoint
	// Interposed are libraries that come before libc in the search for memory
	// functions, as with LD_PRELOAD. That is legitimate, but their functions are
	// called.
	Interposed []Interposed
	// Libraries are the loaded libraries that hook or replace memory functions.
	Libraries []Library
	// Slots and Pages count what was compared.
	Slots, Pages int
	// Unread are the objects that could not be read, so that their hooks are not seen.
	Unread []string
}

// A Breakpoint is a trap in the code.
type Breakpoint struct {
	Function, Object string
	Address          uint64
}

// An Interposed is a library whose memory functions are called instead of libc's.
type Interposed struct {
	Object  string
	Symbols []string // sorted
}

// instance is an object at the place where it is mapped.
type instance struct {
	object   *image.Object
	bias     uint64
	exec     []procfs.Mapping
	dynamics []elffile.Dynamic
	slots    []elffile.Slot
}

// Find compares the code and the offset tables of a process with its files. It does not
// stop the process, so a library that is loaded meanwhile is seen in part.
func Find(im *image.Image, pages *procfs.Pages) (*Scan, error) {
	h := &Scan{}
	instances := h.instances(im)
	exports := exportsOf(instances)
	for _, in := range instances {
		h.slots(im, in, exports)
		for _, m := range in.exec {
			if err := h.code(im, pages, in, m); err != nil {
				return nil, fmt.Errorf("code of %s: %w", in.object.Path, err)
			}
		}
	}
	h.interposed(instances, exports)
	h.Libraries = librariesAmong(im, instances)
	sorts.By(h.Hooks, func(a, b Hook) int {
		return cmp.Or(cmp.Compare(a.Symbol, b.Symbol), cmp.Compare(a.Mechanism, b.Mechanism), cmp.Compare(a.Object, b.Object))
	})
	h.Hooks = slices.CompactFunc(h.Hooks, func(a, b Hook) bool {
		return a.Symbol == b.Symbol && a.Mechanism == b.Mechanism && a.Object == b.Object && a.target == b.target
	})
	for i := range h.Hooks {
		for k := range h.Libraries {
			if h.Hooks[i].Owner == h.Libraries[k].Object && h.Hooks[i].Owner != "" {
				h.Hooks[i].Library = &h.Libraries[k]
				h.Libraries[k].Hooks++
			}
		}
	}
	return h, nil
}

// instances returns the objects with code, each with the mappings of its code.
func (h *Scan) instances(im *image.Image) (out []*instance) {
	type key struct {
		o    *image.Object
		bias uint64
	}
	known := map[key]*instance{}
	for _, m := range im.Map.Mappings {
		if !m.Exec || m.Inode == 0 {
			continue
		}
		place, _ := im.Locate(m.Start)
		if place.Object == nil {
			h.unread(m.Path)
			continue
		}
		k := key{place.Object, place.Bias(m.Start)}
		if known[k] == nil {
			known[k] = h.instance(place.Object, k.bias)
			out = append(out, known[k])
		}
		known[k].exec = append(known[k].exec, m)
	}
	return out
}

func (h *Scan) instance(o *image.Object, bias uint64) *instance {
	in := &instance{object: o, bias: bias}
	var broken, err error
	in.dynamics, broken = o.Dynamics()
	if in.slots, err = o.Slots(); broken != nil || err != nil {
		h.unread(o.Path)
	}
	return in
}

func (h *Scan) unread(path string) {
	if !slices.Contains(h.Unread, path) {
		h.Unread = append(h.Unread, path)
	}
}

// symbol returns the symbol that a slot is for.
func (in *instance) symbol(s elffile.Slot) (elffile.Dynamic, bool) {
	if int(s.Symbol) >= len(in.dynamics) {
		return elffile.Dynamic{}, false
	}
	return in.dynamics[s.Symbol], true
}

// exported states where a name may lead.
type exported struct {
	addrs []uint64 // definitions
	// within are objects whose own code chooses one of several definitions.
	within []*image.Object
	// bound are the addresses to which the intact slots lead.
	bound []uint64
}

// exportsOf returns the definitions of the functions that some slot is for.
func exportsOf(instances []*instance) map[string]*exported {
	out := map[string]*exported{}
	for _, in := range instances {
		for _, s := range in.slots {
			if d, ok := in.symbol(s); ok {
				out[d.Name] = &exported{}
			}
		}
	}
	for _, in := range instances {
		for _, d := range in.dynamics {
			e := out[d.Name]
			switch {
			case e == nil || !d.Function:
			case d.Defined && d.Indirect:
				e.within = append(e.within, in.object)
				e.addrs = append(e.addrs, in.bias+d.Addr)
			case d.Defined, d.Addr != 0 && in.object.Fixed(): // or its entry in the linkage table of a program at fixed addresses, which stands for it everywhere
				e.addrs = append(e.addrs, in.bias+d.Addr)
			}
		}
	}
	return out
}

// memoryFunctions are the functions whose replacement affects memory.
var memoryFunctions = []string{
	"malloc", "calloc", "realloc", "free", "memalign", "aligned_alloc", "posix_memalign", "valloc", "pvalloc",
	"malloc_usable_size", "mmap", "mmap64", "munmap", "mremap", "madvise", "brk", "sbrk", "shmat", "shmdt",
}

// interposed finds whose memory functions the slots lead to, if that is not the library
// that contains the rest of libc.
func (h *Scan) interposed(instances []*instance, exports map[string]*exported) {
	libc := defining(instances, "gnu_get_libc_version")
	if libc == nil {
		return
	}
	symbols := map[string][]string{}
	for _, name := range memoryFunctions {
		e := exports[name]
		if e == nil {
			continue
		}
		for _, in := range instances {
			if in != libc && slices.ContainsFunc(in.dynamics, func(d elffile.Dynamic) bool {
				return d.Defined && d.Name == name && slices.Contains(e.bound, in.bias+d.Addr)
			}) {
				symbols[in.object.Path] = append(symbols[in.object.Path], name)
			}
		}
	}
	for _, path := range slices.Sorted(maps.Keys(symbols)) {
		slices.Sort(symbols[path])
		h.Interposed = append(h.Interposed, Interposed{path, symbols[path]})
	}
}

func defining(instances []*instance, name string) *instance {
	for _, in := range instances {
		if slices.ContainsFunc(in.dynamics, func(d elffile.Dynamic) bool { return d.Defined && d.Name == name }) {
			return in
		}
	}
	return nil
}

// slots checks the offset table of one object.
func (h *Scan) slots(im *image.Image, in *instance, exports map[string]*exported) {
	page, at := make([]byte, procfs.PageSize), uint64(0) // slots are adjacent
	for _, s := range in.slots {
		d, ok := in.symbol(s)
		if !ok {
			continue
		}
		e := exports[d.Name]
		if !d.Function && len(e.addrs) == 0 {
			continue // data
		}
		addr := in.bias + s.Addr
		if addr%8 != 0 {
			continue
		}
		if from := addr &^ (procfs.PageSize - 1); from != at {
			at = 0
			if place, ok := im.Locate(addr); !ok || place.Object != in.object || im.Read(page, from) != nil {
				continue
			}
			at = from
		}
		h.Slots++
		target := binary.LittleEndian.Uint64(page[addr-at:])
		if slices.Contains(e.addrs, target) {
			if !slices.Contains(e.bound, target) {
				e.bound = append(e.bound, target)
			}
			continue
		}
		if target == 0 || in.object.InLinkage(target-in.bias) {
			continue
		}
		place, ok := im.Locate(target)
		if !ok || place.Mapping.Path == "[vdso]" || !place.Mapping.Exec {
			continue // not bound yet, or not a function
		}
		if !slices.Contains(e.within, place.Object) {
			h.add(im, Hook{Symbol: d.Name, Mechanism: SlotPatched, Object: in.object.Path, target: target})
		}
	}
}

// add completes a hook with its owner. Memory that belongs to no file is a trampoline,
// of which one jump is followed.
func (h *Scan) add(im *image.Image, k Hook) {
	place, _ := im.Locate(k.target)
	if place.Object == nil {
		code := make([]byte, 16)
		if im.Read(code, k.target) == nil {
			if to, ok := jump(im, code, k.target); ok {
				if next, ok := im.Locate(to); ok && next.Object != nil {
					place, k.target = next, to
				}
			}
		}
	}
	if place.Object != nil {
		k.Owner, k.OwnerSymbol = place.Object.Path, place.Object.Function(place.Linked)
	}
	h.Hooks = append(h.Hooks, k)
}

// code compares those pages of a mapping that were written to with the file.
func (h *Scan) code(im *image.Image, pages *procfs.Pages, in *instance, m procfs.Mapping) error {
	var written []uint64
	err := pages.Each(m.Start, m.End, func(addr uint64, p procfs.Page) {
		if p.Present() && !p.OfFile() {
			written = append(written, addr)
		}
	})
	if err != nil {
		return err
	}
	now, was := make([]byte, procfs.PageSize), make([]byte, procfs.PageSize)
	var seen uint64 // where a change that began on the page before ends
	for _, addr := range written {
		linked := addr - in.bias
		if !in.object.IsCode(linked) || im.Read(now, addr) != nil {
			continue
		}
		n, err := in.object.ReadAddr(was, linked)
		if err != nil {
			continue
		}
		h.Pages++
		changes := 0
		for at := 0; at < n && changes < maxChanges; at++ {
			if now[at] == was[at] || addr+uint64(at) < seen {
				continue
			}
			seen = h.changed(im, in, addr+uint64(at))
			changes++
		}
	}
	return nil
}

const (
	longestPatch = 16 // bytes that one patch covers
	maxChanges   = 64 // in a page; a page with more was rewritten, not patched
)

// changed examines code that differs from the file at an address. It returns an upper
// bound on where the change ends.
func (h *Scan) changed(im *image.Image, in *instance, addr uint64) (end uint64) {
	linked := addr - in.bias
	symbol, named := in.object.File.Function(linked)
	name, start := fmt.Sprintf("%s+%#x", in.object.Name(), linked), linked
	if named {
		name = in.object.Function(linked)
		if linked-symbol.Addr < longestPatch {
			start = symbol.Addr // a first byte that is equal by chance must not hide the hook
		}
	}
	code := make([]byte, longestPatch)
	if im.Read(code, in.bias+start) != nil {
		return addr + 1
	}
	if to, ok := jump(im, code, in.bias+start); ok {
		if place, found := im.Locate(to); found && place.Mapping.Exec {
			h.add(im, Hook{Symbol: name, Mechanism: CodePatched, Object: in.object.Path, target: to})
			return in.bias + start + longestPatch
		}
	}
	if code[linked-start] == 0xcc || isProbe(im, code, in.bias+start) {
		h.Breakpoints = append(h.Breakpoints, Breakpoint{name, in.object.Path, addr})
		return addr + 5
	}
	return addr + 1
}

// isProbe reports whether this is a call that the kernel itself inserted to replace the
// trap of a probe.
func isProbe(im *image.Image, code []byte, at uint64) bool {
	if code[0] != 0xe8 {
		return false
	}
	m, ok := im.Map.Find(at + 5 + uint64(int64(int32(binary.LittleEndian.Uint32(code[1:])))))
	return ok && m.Path == "[uprobes-trampoline]"
}

// jump decodes the forms in which patchers write a jump, after the landing pad with
// which newer compilers begin a function.
func jump(im *image.Image, code []byte, at uint64) (to uint64, ok bool) {
	if bytes.HasPrefix(code, []byte{0xf3, 0x0f, 0x1e, 0xfa}) {
		code, at = code[4:], at+4
	}
	has := func(n int, prefix ...byte) bool { return len(code) >= n && bytes.HasPrefix(code, prefix) }
	switch {
	case has(5, 0xe9):
		return at + 5 + uint64(int64(int32(binary.LittleEndian.Uint32(code[1:])))), true
	case has(12, 0x48, 0xb8) && code[10] == 0xff && code[11] == 0xe0, // mov rax, to; jmp rax
		has(13, 0x49, 0xbb) && code[10] == 0x41 && code[11] == 0xff && code[12] == 0xe3: // mov r11, to; jmp r11
		return binary.LittleEndian.Uint64(code[2:]), true
	case has(6, 0xff, 0x25): // jmp [rip+n]
		var b [8]byte
		if im.Read(b[:], at+6+uint64(int64(int32(binary.LittleEndian.Uint32(code[2:]))))) == nil {
			return binary.LittleEndian.Uint64(b[:]), true
		}
	}
	return 0, false
}
