// Package elffile reads the parts of an x86-64 ELF file that unwinding and hook
// detection need: symbols, relocations for the dynamic linker and call frame
// information. It reads on demand: of a 1 GB library it reads only the tables that are
// needed.
package elffile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
)

// maxTable bounds a table that is read whole; those of PyTorch's libraries are smaller
// than a fifth of it.
const maxTable = 512 << 20

// A File is an ELF file. [File.Step] and [File.Function] may be called by several
// goroutines at once.
type File struct {
	r        io.ReaderAt
	elf      *elf.File
	segments []Segment

	mu      sync.Mutex   // guards what follows
	symbols *symbolTable // nil until needed
	frames  *frameTable
	noFrame error
	debug   *File // holds the symbols that were stripped; nil if there is none

	dynamics []Dynamic // nil until needed
	slots    []Slot

	budget *Budget // nil if there is no bound
	spent  atomic.Int64
}

// maxHeaders bounds how much of a file is read to find its parts. A sparse file can
// claim any number of them.
const maxHeaders = 64 << 20

// headers reads until it has read too much.
type headers struct {
	io.ReaderAt
	left atomic.Int64
}

func (h *headers) ReadAt(b []byte, at int64) (int, error) {
	if h.left.Add(-int64(len(b))) < 0 {
		return 0, errors.New("its headers are too large")
	}
	return h.ReaderAt.ReadAt(b, at)
}

// Open reads the headers of a file.
func Open(r io.ReaderAt) (*File, error) {
	h := &headers{ReaderAt: r}
	h.left.Store(maxHeaders)
	f, err := elf.NewFile(h)
	if err != nil {
		return nil, err
	}
	h.left.Store(math.MaxInt64) // reading the parts has bounds of its own
	if f.Class != elf.ELFCLASS64 || f.Data != elf.ELFDATA2LSB {
		return nil, errors.New("not a 64-bit little-endian file")
	}
	out := &File{r: r, elf: f}
	for _, p := range f.Progs {
		if p.Type == elf.PT_LOAD {
			out.segments = append(out.segments, Segment{p.Off, p.Filesz, p.Vaddr, p.Memsz, p.Flags&elf.PF_X != 0})
		}
	}
	return out, nil
}

// Fixed reports whether a program is linked to fixed addresses.
func (f *File) Fixed() bool { return f.elf.Type == elf.ET_EXEC }

// A Segment is a part of the file that is mapped. Addr is the address that it
// is linked to.
type Segment struct {
	Offset, FileSize uint64
	Addr, Size       uint64
	Exec             bool
}

// Addr returns the linked address of a place in the file. A page of the file can be
// mapped twice, as the end of one segment and the beginning of the next: exec reports
// which one is meant.
func (f *File) Addr(offset uint64, exec bool) (addr uint64, ok bool) {
	const page = 4096 // a mapping begins up to one page before its segment
	for _, s := range f.segments {
		if s.Offset&^(page-1) <= offset && offset < s.Offset+s.FileSize {
			addr, ok = s.Addr+offset-s.Offset, true
			if s.Exec == exec {
				break
			}
		}
	}
	return addr, ok
}

// IsCode reports whether the file has code at a linked address.
func (f *File) IsCode(addr uint64) bool {
	return slices.ContainsFunc(f.segments, func(s Segment) bool {
		return s.Exec && s.Addr <= addr && addr-s.Addr < s.Size
	})
}

// Code returns the parts of the file that are mapped as executable.
func (f *File) Code() (out []Segment) {
	for _, s := range f.segments {
		if s.Exec {
			out = append(out, s)
		}
	}
	return out
}

// offset returns the place in the file of a linked address.
func (f *File) offset(addr uint64) (uint64, bool) {
	for _, s := range f.segments {
		if s.Addr <= addr && addr-s.Addr < s.FileSize {
			return s.Offset + addr - s.Addr, true
		}
	}
	return 0, false
}

// Offset returns the place in the file of a linked address; false if the file holds
// nothing for it.
func (f *File) Offset(addr uint64) (uint64, bool) { return f.offset(addr) }

// ReadAddr reads what the file holds for a linked address. A read that goes past the
// end of the file is short.
func (f *File) ReadAddr(b []byte, addr uint64) (int, error) {
	off, ok := f.offset(addr)
	if !ok || off > 1<<62 {
		return 0, fmt.Errorf("address %#x is not in the file", addr)
	}
	n, err := f.r.ReadAt(b, int64(off))
	if n > 0 {
		err = nil
	}
	return n, err
}

// BuildID returns the ID that the linker assigned, in hexadecimal, or "".
func (f *File) BuildID() string {
	s := f.elf.Section(".note.gnu.build-id")
	if s == nil || s.Size > 4096 {
		return ""
	}
	data, err := s.Data()
	if err != nil || len(data) < 16 {
		return ""
	}
	return buildID(data)
}

// buildID reads the note, which must have at least 16 bytes.
func buildID(data []byte) string {
	name, desc := binary.LittleEndian.Uint32(data), binary.LittleEndian.Uint32(data[4:])
	start := 12 + (uint64(name)+3)&^3
	if start > uint64(len(data)) || uint64(desc) > uint64(len(data))-start {
		return ""
	}
	return hex.EncodeToString(data[start : start+uint64(desc)])
}

// A Dynamic is a symbol that the dynamic linker knows.
type Dynamic struct {
	Symbol
	Defined, Function bool
	// Indirect states that Addr is the address of a function that returns the symbol's
	// address.
	Indirect bool
}

// maxDynamics bounds the number of symbols that the dynamic linker knows; large
// libraries have a few hundred thousand.
const maxDynamics = 1 << 20

var errDynamics = errors.New("the table of dynamic symbols is broken")

var errBudget = errors.New("the tables of the process's files are larger than is read of them in all")

// Dynamics returns the symbols that the dynamic linker knows, by their index. The slice
// is cached and must not be changed.
func (f *File) Dynamics() ([]Dynamic, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.dynamics != nil {
		return f.dynamics, nil
	}
	var err error
	f.dynamics, err = f.readDynamics()
	return f.dynamics, err
}

func (f *File) readDynamics() ([]Dynamic, error) {
	s := f.elf.Section(".dynsym")
	if s == nil {
		return nil, nil
	}
	if s.Size > maxDynamics*symbolSize || packed(s) || int(s.Link) >= len(f.elf.Sections) {
		return nil, errDynamics
	}
	strings := f.elf.Sections[s.Link]
	if strings.Size > maxTable || packed(strings) {
		return nil, errDynamics
	}
	if !f.afford(3*s.Size + strings.Size) {
		return nil, errBudget
	}
	data, err := s.Data()
	if err != nil {
		return nil, err
	}
	table, err := strings.Data()
	if err != nil {
		return nil, err
	}
	names := string(table) // every name is a part of this string: many can be equal
	out := make([]Dynamic, 0, len(data)/symbolSize)
	for ; len(data) >= symbolSize; data = data[symbolSize:] {
		kind := elf.SymType(data[4] & 15)
		out = append(out, Dynamic{
			Symbol:   Symbol{textAt(names, binary.LittleEndian.Uint32(data)), binary.LittleEndian.Uint64(data[8:]), binary.LittleEndian.Uint64(data[16:])},
			Defined:  binary.LittleEndian.Uint16(data[6:]) != uint16(elf.SHN_UNDEF),
			Function: kind == elf.STT_FUNC || kind == elf.STT_GNU_IFUNC,
			Indirect: kind == elf.STT_GNU_IFUNC,
		})
	}
	return out, nil
}

// HasText reports whether the constants of a file contain a text.
func (f *File) HasText(text string) bool {
	s := f.elf.Section(".rodata")
	if s == nil || s.Size > maxHeaders || packed(s) {
		return false
	}
	data, err := s.Data()
	return err == nil && bytes.Contains(data, []byte(text))
}

// Needed returns the names of the libraries that a file is linked with.
func (f *File) Needed() []string {
	s := f.elf.SectionByType(elf.SHT_DYNAMIC)
	if s == nil || packed(s) || s.Size > maxTable || int(s.Link) >= len(f.elf.Sections) {
		return nil
	}
	if names := f.elf.Sections[s.Link]; packed(names) || names.Size > maxTable || !f.afford(s.Size+names.Size) {
		return nil
	}
	names, err := f.elf.DynString(elf.DT_NEEDED)
	if err != nil {
		return nil
	}
	return names
}

// Data returns the address of an exported variable or function. If the file has a hash
// table, the symbol is looked up as the dynamic linker does, without reading the whole
// symbol table.
func (f *File) Data(name string) (uint64, bool) {
	if hashes := f.elf.Section(".gnu.hash"); hashes != nil {
		return f.lookUp(hashes, name)
	}
	all, err := f.Dynamics()
	if err != nil {
		return 0, false
	}
	for _, s := range all {
		if s.Defined && s.Name == name {
			return s.Addr, true
		}
	}
	return 0, false
}

// maxAlike bounds the number of symbols in one bucket of a hash table.
const maxAlike = 1 << 12

// lookUp finds a symbol by its hash. The table has a filter, which is ignored here,
// then the first symbol of each bucket, then the hash of each symbol, whose lowest bit
// marks the end of the bucket.
func (f *File) lookUp(hashes *elf.Section, name string) (uint64, bool) {
	symbols := f.elf.Section(".dynsym")
	if symbols == nil || int(symbols.Link) >= len(f.elf.Sections) {
		return 0, false
	}
	names := f.elf.Sections[symbols.Link]
	if hashes.ReaderAt == nil || symbols.ReaderAt == nil || names.ReaderAt == nil { // compressed, which no valid file's are
		return 0, false
	}
	hash := uint32(5381)
	for _, c := range []byte(name) {
		hash = 33*hash + uint32(c)
	}
	word := func(at int64) uint32 {
		var b [4]byte
		hashes.ReadAt(b[:], at) // beyond the end everything is 0
		return binary.LittleEndian.Uint32(b[:])
	}
	buckets, first, filter := word(0), word(4), word(8)
	if buckets == 0 {
		return 0, false
	}
	start := 16 + 8*int64(filter)
	i := word(start + 4*int64(hash%buckets))
	for range maxAlike {
		if i < first || i == 0 {
			return 0, false
		}
		h := word(start + 4*int64(buckets) + 4*int64(i-first))
		var b [symbolSize]byte
		if h|1 == hash|1 {
			if _, err := symbols.ReadAt(b[:], symbolSize*int64(i)); err != nil {
				return 0, false
			}
			if nameAt(names, binary.LittleEndian.Uint32(b[:])) == name {
				return binary.LittleEndian.Uint64(b[8:]), true
			}
		}
		if h&1 == 1 {
			return 0, false
		}
		i++
	}
	return 0, false
}

// A Slot is a place in which the dynamic linker puts the address of a function.
type Slot struct {
	Addr   uint64 // of the slot, as linked
	Symbol uint32 // its index among [File.Dynamics]
}

// Slots returns the entries of the global offset table that hold addresses of symbols.
// The slice is cached and must not be changed.
func (f *File) Slots() ([]Slot, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.slots != nil {
		return f.slots, nil
	}
	var err error
	f.slots, err = f.readSlots()
	return f.slots, err
}

func (f *File) readSlots() (out []Slot, err error) {
	const size = 24
	for _, s := range f.elf.Sections {
		if s.Type != elf.SHT_RELA || s.Flags&elf.SHF_ALLOC == 0 || packed(s) || s.Size > maxTable {
			continue
		}
		if !f.afford(2 * s.Size) {
			return nil, errBudget
		}
		data, err := s.Data()
		if err != nil {
			return nil, err
		}
		for ; len(data) >= size; data = data[size:] {
			info := binary.LittleEndian.Uint64(data[8:])
			if f.isSlot(uint32(info)) && info>>32 != 0 {
				out = append(out, Slot{binary.LittleEndian.Uint64(data), uint32(info >> 32)})
			}
		}
	}
	return out, nil
}

func (f *File) isSlot(kind uint32) bool {
	switch f.elf.Machine {
	case elf.EM_X86_64:
		return elf.R_X86_64(kind) == elf.R_X86_64_GLOB_DAT || elf.R_X86_64(kind) == elf.R_X86_64_JMP_SLOT
	case elf.EM_AARCH64:
		return elf.R_AARCH64(kind) == elf.R_AARCH64_GLOB_DAT || elf.R_AARCH64(kind) == elf.R_AARCH64_JUMP_SLOT
	}
	return false
}

// InLinkage reports whether a linked address is in the procedure linkage table, through
// which a slot leads until it is bound.
func (f *File) InLinkage(addr uint64) bool {
	return slices.ContainsFunc(f.elf.Sections, func(s *elf.Section) bool {
		return strings.HasPrefix(s.Name, ".plt") && s.Addr <= addr && addr-s.Addr < s.Size
	})
}
