// Package elf reads what an unwinder and a search for hooks need of an ELF file
// of x86-64: symbols, relocations of the dynamic linker and call frame
// information. It reads on demand: of a library of a gigabyte only the tables
// that are asked for.
package elf

import (
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"
	"strings"
)

// mostTable bounds a table that is read whole; libraries of PyTorch stay below
// a tenth of it.
const mostTable = 1 << 30

// A File is an ELF file. It is not safe for concurrent use.
type File struct {
	r    io.ReaderAt
	elf  *elf.File
	size int64

	symbols *symbolTable // nil before they are asked for
	frames  *frameTable
	noFrame error
	debug   *File // holds the symbols that were stripped, nil if there is none
}

// Open reads the headers of a file of size bytes.
func Open(r io.ReaderAt, size int64) (*File, error) {
	f, err := elf.NewFile(r)
	if err != nil {
		return nil, err
	}
	if f.Class != elf.ELFCLASS64 || f.Data != elf.ELFDATA2LSB {
		return nil, errors.New("not a 64-bit little-endian file")
	}
	return &File{r: r, elf: f, size: size}, nil
}

// X86 tells whether the code is for x86-64.
func (f *File) X86() bool { return f.elf.Machine == elf.EM_X86_64 }

// Fixed tells a program that is linked to fixed addresses.
func (f *File) Fixed() bool { return f.elf.Type == elf.ET_EXEC }

// A Segment is a part of the file that is mapped. Addr is the address that it
// is linked to.
type Segment struct {
	Offset, FileSize uint64
	Addr, Size       uint64
	Exec             bool
}

// Segments are the parts that are mapped.
func (f *File) Segments() (out []Segment) {
	for _, p := range f.elf.Progs {
		if p.Type == elf.PT_LOAD {
			out = append(out, Segment{p.Off, p.Filesz, p.Vaddr, p.Memsz, p.Flags&elf.PF_X != 0})
		}
	}
	return out
}

// Addr is the linked address of a place in the file. A page of the file can be
// mapped twice, as the end of one segment and the begin of the next: exec tells
// which is meant.
func (f *File) Addr(offset uint64, exec bool) (addr uint64, ok bool) {
	const page = 4096 // a mapping begins up to a page before its segment
	for _, s := range f.Segments() {
		if s.Offset&^(page-1) <= offset && offset < s.Offset+s.FileSize {
			addr, ok = s.Addr+offset-s.Offset, true
			if s.Exec == exec {
				break
			}
		}
	}
	return addr, ok
}

// IsCode tells whether a linked address is of code, as the file has it.
func (f *File) IsCode(addr uint64) bool {
	return slices.ContainsFunc(f.Segments(), func(s Segment) bool {
		return s.Exec && s.Addr <= addr && addr-s.Addr < s.Size
	})
}

// offset is the place in the file of a linked address.
func (f *File) offset(addr uint64) (uint64, bool) {
	for _, s := range f.Segments() {
		if s.Addr <= addr && addr-s.Addr < s.FileSize {
			return s.Offset + addr - s.Addr, true
		}
	}
	return 0, false
}

// ReadAddr reads at a linked address what the file holds for it. A read that
// reaches over the end of the file is short.
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

// BuildID is the identity that the linker gave, in hexadecimal, or empty.
func (f *File) BuildID() string {
	s := f.elf.Section(".note.gnu.build-id")
	if s == nil || s.Size > 4096 {
		return ""
	}
	data, err := s.Data()
	if err != nil || len(data) < 16 {
		return ""
	}
	name, desc := binary.LittleEndian.Uint32(data), binary.LittleEndian.Uint32(data[4:])
	start := 12 + (uint64(name)+3)&^3
	if start > uint64(len(data)) || uint64(desc) > uint64(len(data))-start {
		return ""
	}
	return hex.EncodeToString(data[start : start+uint64(desc)])
}

// Debug gives the file that holds the symbols that were stripped from f.
func (f *File) Debug(d *File) { f.debug, f.symbols = d, nil }

// Stripped tells whether only exported symbols have names.
func (f *File) Stripped() bool { return f.elf.Section(".symtab") == nil }

// A Symbol is a name and the addresses that it stands for.
type Symbol struct {
	Name       string
	Addr, Size uint64
}

// symbolTable is the functions by address. Names stay in the string tables of
// the file until they are asked for.
type symbolTable struct {
	entries []symbolEntry
	names   [][]byte // string tables
}

type symbolEntry struct {
	addr, size uint64
	name       uint32
	table      uint8
	rank       uint8 // which of several names is shown: the lowest
}

// Function is the function that holds a linked address. Between functions it is
// the one before, if that has no size.
func (f *File) Function(addr uint64) (Symbol, bool) {
	if f.symbols == nil {
		f.symbols = f.readSymbols()
	}
	t := f.symbols
	i := sort.Search(len(t.entries), func(i int) bool { return t.entries[i].addr > addr })
	for back := 0; i > 0 && back < 8; back++ {
		i--
		e := t.entries[i]
		if addr-e.addr < e.size || e.size == 0 && back == 0 {
			return Symbol{cstring(t.names[e.table], e.name), e.addr, e.size}, true
		}
	}
	return Symbol{}, false
}

func (f *File) readSymbols() *symbolTable {
	t := &symbolTable{}
	t.add(f.elf, ".symtab")
	t.add(f.elf, ".dynsym")
	if f.debug != nil {
		t.add(f.debug.elf, ".symtab")
	}
	slices.SortStableFunc(t.entries, func(a, b symbolEntry) int {
		switch {
		case a.addr != b.addr && a.addr < b.addr:
			return -1
		case a.addr != b.addr:
			return 1
		}
		return int(a.rank) - int(b.rank)
	})
	t.entries = slices.CompactFunc(t.entries, func(a, b symbolEntry) bool { return a.addr == b.addr })
	return t
}

const symbolSize = 24

func (t *symbolTable) add(f *elf.File, section string) {
	s := f.Section(section)
	if s == nil || s.Size > mostTable || s.Type == elf.SHT_NOBITS || int(s.Link) >= len(f.Sections) {
		return
	}
	data, err := s.Data()
	names, err2 := f.Sections[s.Link].Data()
	if err != nil || err2 != nil {
		return
	}
	table := uint8(len(t.names))
	t.names = append(t.names, names)
	for ; len(data) >= symbolSize; data = data[symbolSize:] {
		info, shndx := data[4], binary.LittleEndian.Uint16(data[6:])
		kind := elf.SymType(info & 15)
		if shndx == uint16(elf.SHN_UNDEF) || kind != elf.STT_FUNC && kind != elf.STT_GNU_IFUNC && kind != elf.STT_NOTYPE {
			continue
		}
		e := symbolEntry{
			addr: binary.LittleEndian.Uint64(data[8:]), size: binary.LittleEndian.Uint64(data[16:]),
			name: binary.LittleEndian.Uint32(data), table: table,
		}
		if kind == elf.STT_NOTYPE && (e.size == 0 || section != ".symtab") {
			continue // a label in assembly, or data
		}
		name := cstring(names, e.name)
		if name == "" {
			continue
		}
		e.rank = rankOf(name, elf.SymBind(info>>4))
		t.entries = append(t.entries, e)
	}
}

// rankOf prefers the names that people know: global ones, of those the ones that
// begin with the fewest underscores, and of those the shortest.
func rankOf(name string, bind elf.SymBind) uint8 {
	rank := uint8(min(len(name)-len(strings.TrimLeft(name, "_")), 3))<<5 | uint8(min(len(name), 31))
	if bind == elf.STB_LOCAL {
		rank |= 1 << 7
	}
	return rank
}

func cstring(table []byte, at uint32) string {
	if uint64(at) >= uint64(len(table)) {
		return ""
	}
	b := table[at:]
	if i := slices.Index(b[:min(len(b), 1<<16)], 0); i >= 0 {
		return string(b[:i])
	}
	return ""
}

// A Dynamic is a symbol that the dynamic linker knows.
type Dynamic struct {
	Symbol
	Defined, Function bool
	// Indirect says that the function that Addr names is asked for the address.
	Indirect bool
}

// Dynamics are the symbols that the dynamic linker knows, by their index.
func (f *File) Dynamics() ([]Dynamic, error) {
	s := f.elf.Section(".dynsym")
	if s == nil {
		return nil, nil
	}
	if s.Size > mostTable || int(s.Link) >= len(f.elf.Sections) {
		return nil, errors.New("the table of dynamic symbols is broken")
	}
	data, err := s.Data()
	if err != nil {
		return nil, err
	}
	names, err := f.elf.Sections[s.Link].Data()
	if err != nil {
		return nil, err
	}
	out := make([]Dynamic, 0, len(data)/symbolSize)
	for ; len(data) >= symbolSize; data = data[symbolSize:] {
		kind := elf.SymType(data[4] & 15)
		out = append(out, Dynamic{
			Symbol:   Symbol{cstring(names, binary.LittleEndian.Uint32(data)), binary.LittleEndian.Uint64(data[8:]), binary.LittleEndian.Uint64(data[16:])},
			Defined:  binary.LittleEndian.Uint16(data[6:]) != uint16(elf.SHN_UNDEF),
			Function: kind == elf.STT_FUNC || kind == elf.STT_GNU_IFUNC,
			Indirect: kind == elf.STT_GNU_IFUNC,
		})
	}
	return out, nil
}

// Data is the address of an exported variable.
func (f *File) Data(name string) (uint64, bool) {
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

// A Slot is a place in which the dynamic linker puts the address of a function.
type Slot struct {
	Addr   uint64 // of the slot, as linked
	Symbol uint32 // its index among [File.Dynamics]
}

// Slots are the places of the global offset table that hold addresses of
// symbols.
func (f *File) Slots() (out []Slot, err error) {
	const size = 24
	for _, s := range f.elf.Sections {
		if s.Type != elf.SHT_RELA || s.Flags&elf.SHF_ALLOC == 0 || s.Size > mostTable {
			continue
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

// InLinkage tells whether a linked address lies in the procedure linkage table,
// through which a slot that is not yet bound leads.
func (f *File) InLinkage(addr uint64) bool {
	for _, s := range f.elf.Sections {
		if strings.HasPrefix(s.Name, ".plt") && s.Addr <= addr && addr-s.Addr < s.Size {
			return true
		}
	}
	return false
}
