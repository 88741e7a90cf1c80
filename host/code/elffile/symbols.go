package elffile

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/ulikunitz/xz"

	"strandline/internal/sorts"
)

// A Symbol is a name and the addresses that it stands for.
type Symbol struct {
	Name       string
	Addr, Size uint64
}

// Stripped reports whether only exported symbols have names.
func (f *File) Stripped() bool { return f.elf.Section(".symtab") == nil }

// Debug supplies the file that holds the symbols that were stripped from f.
func (f *File) Debug(d *File) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.debug, f.symbols = d, nil
}

// maxMini bounds a compressed symbol table inside a file. Those of distributions have
// a few hundred kilobytes.
const maxMini = 16 << 20

// An Unpacking bounds what is decompressed of several files together, in bytes and in time:
// a kilobyte can unfold to megabytes, of which it makes some twenty a second.
type Unpacking struct {
	Left  int64 // bytes
	Spare time.Duration
}

var errUnpacking = errors.New("more than is decompressed of a process's files")

// reader reads from r until the bounds are reached.
func (u *Unpacking) reader(r io.Reader) io.Reader { return &unpacked{u, r} }

type unpacked struct {
	of *Unpacking
	r  io.Reader
}

func (p *unpacked) Read(b []byte) (int, error) {
	u := p.of
	if u.Left <= 0 || u.Spare <= 0 {
		return 0, errUnpacking
	}
	began := time.Now()
	n, err := p.r.Read(b[:min(int64(len(b)), u.Left, 64<<10)])
	u.Left -= int64(n)
	u.Spare -= time.Since(began)
	return n, err
}

// MiniDebug returns the file of symbols that some distributions embed, compressed, in a
// stripped file, within the bounds of u.
func (f *File) MiniDebug(u *Unpacking) (*File, bool) {
	s := f.elf.Section(".gnu_debugdata")
	if s == nil || s.Size > maxMini || u.Left <= 0 || u.Spare <= 0 {
		return nil, false
	}
	r, err := xz.ReaderConfig{DictCap: maxMini}.NewReader(s.Open())
	if err != nil {
		return nil, false
	}
	data, err := io.ReadAll(io.LimitReader(u.reader(r), maxMini))
	if err != nil {
		return nil, false
	}
	d, err := Open(bytes.NewReader(data))
	return d, err == nil
}

// DebugLink returns the name of the file with the symbols that were stripped, and the
// checksum of its content (CRC-32, IEEE).
func (f *File) DebugLink() (name string, sum uint32, ok bool) {
	s := f.elf.Section(".gnu_debuglink")
	if s == nil || s.Size > 4096 {
		return "", 0, false
	}
	data, err := s.Data()
	if err != nil {
		return "", 0, false
	}
	end := bytes.IndexByte(data, 0)
	at := (end + 4) &^ 3
	if end <= 0 || at+4 > len(data) {
		return "", 0, false
	}
	return string(data[:end]), binary.LittleEndian.Uint32(data[at:]), true
}

// symbolTable holds the functions by address. Names stay in the file until needed.
type symbolTable struct {
	entries []symbolEntry
	names   []io.ReaderAt // string tables
}

type symbolEntry struct {
	addr, size uint64
	name       uint32
	table      uint8
	rank       uint8 // decides which of several names is shown: the lowest
}

// Function returns the function that holds a linked address. For an address between
// functions it is the one before, if that has no size.
func (f *File) Function(addr uint64) (Symbol, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.symbols == nil {
		f.symbols = f.readSymbols()
	}
	t := f.symbols
	i := sort.Search(len(t.entries), func(i int) bool { return t.entries[i].addr > addr })
	for back := 0; i > 0 && back < 8; back++ { // functions can be nested
		i--
		e := t.entries[i]
		if addr-e.addr < e.size || e.size == 0 && back == 0 {
			return Symbol{nameAt(t.names[e.table], e.name), e.addr, e.size}, true
		}
	}
	return Symbol{}, false
}

func (f *File) readSymbols() *symbolTable {
	t := &symbolTable{}
	t.add(f, ".symtab")
	t.add(f, ".dynsym")
	if f.debug != nil {
		t.add(f.debug, ".symtab")
	}
	sorts.StableBy(t.entries, func(a, b symbolEntry) int {
		switch {
		case a.addr < b.addr:
			return -1
		case a.addr > b.addr:
			return 1
		}
		return int(a.rank) - int(b.rank)
	})
	t.entries = slices.CompactFunc(t.entries, func(a, b symbolEntry) bool { return a.addr == b.addr })
	return t
}

const symbolSize = 24

func (t *symbolTable) add(f *File, section string) {
	data, names, link := f.symbolSection(section)
	if data == nil {
		return
	}
	table := uint8(len(t.names))
	t.names = append(t.names, link)
	for ; len(data) >= symbolSize; data = data[symbolSize:] {
		e := symbolEntry{
			addr: binary.LittleEndian.Uint64(data[8:]), size: binary.LittleEndian.Uint64(data[16:]),
			name: binary.LittleEndian.Uint32(data), table: table,
		}
		info, shndx := data[4], binary.LittleEndian.Uint16(data[6:])
		kind := elf.SymType(info & 15)
		function := kind == elf.STT_FUNC || kind == elf.STT_GNU_IFUNC ||
			kind == elf.STT_NOTYPE && e.size > 0 && section == ".symtab" // one without a size is a label in assembly, or data
		if shndx == uint16(elf.SHN_UNDEF) || !function {
			continue
		}
		if name := cstring(names, e.name); name != "" {
			e.rank = rankOf(name, elf.SymBind(info>>4))
			t.entries = append(t.entries, e)
		}
	}
}

// symbolSection returns a symbol table and the table of its names, and where the latter
// is in the file.
func (f *File) symbolSection(section string) (data, names []byte, link io.ReaderAt) {
	s := f.elf.Section(section)
	if s == nil || s.Size > maxTable || s.Type == elf.SHT_NOBITS || packed(s) || int(s.Link) >= len(f.elf.Sections) {
		return nil, nil, nil
	}
	strings := f.elf.Sections[s.Link]
	if strings.Size > maxTable || strings.Type == elf.SHT_NOBITS || packed(strings) {
		return nil, nil, nil
	}
	if !f.afford(2*s.Size + strings.Size) {
		return nil, nil, nil
	}
	data, err := s.Data()
	names, err2 := strings.Data()
	if err != nil || err2 != nil {
		return nil, nil, nil
	}
	return data, names, strings
}

// packed reports whether a table is compressed. No linker compresses symbol tables, and
// a small table could expand to a huge one.
func packed(s *elf.Section) bool { return s.Flags&elf.SHF_COMPRESSED != 0 }

// rankOf prefers the names that people know: global ones, among those the ones with the
// fewest leading underscores, and among those the shortest.
func rankOf(name string, bind elf.SymBind) uint8 {
	rank := uint8(min(len(name)-len(strings.TrimLeft(name, "_")), 3))<<5 | uint8(min(len(name), 31))
	if bind == elf.STB_LOCAL {
		rank |= 1 << 7
	}
	return rank
}

// longestName bounds the name of a symbol. Those of templates have a few thousand
// bytes.
const longestName = 1 << 16

func cstring(table []byte, at uint32) string {
	if uint64(at) >= uint64(len(table)) {
		return ""
	}
	b := table[at:]
	if i := bytes.IndexByte(b[:min(len(b), longestName)], 0); i >= 0 {
		return string(b[:i])
	}
	return ""
}

// textAt is cstring for a table that stays in memory: the name is a substring of it.
func textAt(table string, at uint32) string {
	if uint64(at) >= uint64(len(table)) {
		return ""
	}
	s := table[at:]
	if i := strings.IndexByte(s[:min(len(s), longestName)], 0); i >= 0 {
		return s[:i]
	}
	return ""
}

// nameAt reads a name from the file; one that is no longer there is empty.
func nameAt(table io.ReaderAt, at uint32) string {
	for size := 256; size <= longestName; size *= 16 {
		b := make([]byte, size)
		n, _ := table.ReadAt(b, int64(at))
		if i := bytes.IndexByte(b[:n], 0); i >= 0 {
			return string(b[:i])
		}
	}
	return ""
}
