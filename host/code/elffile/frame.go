package elffile

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"slices"
	"sort"

	"strandline/internal/sorts"
)

// A Rule states where a caller's register is.
type Rule struct {
	Kind   RuleKind
	Reg    uint8
	length uint16 // of the expression
	Offset int32  // in bytes; for an expression, where it begins in the row's data
}

// A RuleKind is how to use a [Rule].
type RuleKind uint8

// The rules. The zero rule means that the function leaves the register unchanged.
const (
	SameValue     RuleKind = iota
	Undefined              // the register is lost; for the return address: the stack ends
	AtCFA                  // saved at CFA + Offset
	ValueCFA               // is CFA + Offset
	InRegister             // is in Reg; for the CFA: Reg + Offset
	AtExpression           // saved at the address that the expression yields
	ValExpression          // is the value that the expression yields
)

// A Row states how to step from a function to its caller, at one of the function's
// instructions.
type Row struct {
	CFA  Rule
	Regs [Registers]Rule
	// Signal states that a signal interrupted the caller: its address is that of the next
	// instruction to run, not of the one after a call.
	Signal bool
	data   []byte
}

// Expression returns the DWARF expression that a rule of the row computes, for [Eval].
func (r *Row) Expression(rule Rule) []byte {
	return r.data[rule.Offset : int(rule.Offset)+int(rule.length)]
}

var errFrame = errors.New("broken call frame information")

// ErrNoFrame states that an address has no call frame information.
var ErrNoFrame = errors.New("no call frame information")

// frameTable finds the description of a function by its address.
type frameTable struct {
	hdr     uint64 // address of .eh_frame_hdr, or of the section
	section []byte // the descriptions, if the table was built from them
	entries []byte // pairs of int32: function and description, from hdr
	cies    map[uint64]*cie
	fdes    map[uint64]*fde
}

type cie struct {
	codeAlign uint64
	dataAlign int64
	ra        uint64
	fdeEnc    byte
	signal    bool
	augmented bool
	program   []byte
}

type fde struct {
	cie        *cie
	start, end uint64
	program    []byte // that of the CIE, then its own
}

// maxFrames bounds how many function descriptions are cached.
const maxFrames = 1 << 14

// Step stores in row how to leave the function at a linked address.
func (f *File) Step(addr uint64, row *Row) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, err := f.description(addr)
	if err != nil {
		return err
	}
	return d.row(addr, row)
}

// Extent returns where the function that holds a linked address begins and ends,
// according to its call frame information, which stripping does not remove.
func (f *File) Extent(addr uint64) (start, end uint64, err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	d, err := f.description(addr)
	if err != nil {
		return 0, 0, err
	}
	return d.start, d.end, nil
}

// description returns that of the function that holds an address.
func (f *File) description(addr uint64) (*fde, error) {
	if f.frames == nil && f.noFrame == nil {
		f.frames, f.noFrame = f.readFrames()
	}
	if f.noFrame != nil {
		return nil, f.noFrame
	}
	d, err := f.frames.find(f, addr)
	if err != nil {
		return nil, err
	}
	if addr < d.start || addr >= d.end {
		return nil, ErrNoFrame
	}
	return d, nil
}

// The pointer encodings that occur in practice.
const (
	encAbsolute = 0x00
	encTable    = 0x3b // datarel, sdata4
	encOmit     = 0xff
)

// maxFrameTable bounds the unwind tables that are read whole; that of libtorch_cpu has
// a few megabytes.
const maxFrameTable = 64 << 20

// readFrames reads the sorted table that linkers make for this purpose. If there is
// none, as in static programs, it builds one.
func (f *File) readFrames() (*frameTable, error) {
	for _, p := range f.elf.Progs {
		if p.Type != elf.PT_GNU_EH_FRAME || p.Filesz < 12 || p.Filesz > maxFrameTable {
			continue
		}
		data, err := io.ReadAll(p.Open())
		if err != nil || len(data) < 12 {
			return nil, errFrame
		}
		if data[0] != 1 || data[3] != encTable {
			break
		}
		r := reader{data: data, at: 4, addr: p.Vaddr}
		if _, err := r.pointer(data[1], p.Vaddr); err != nil {
			return nil, err
		}
		n, err := r.pointer(data[2], p.Vaddr)
		if err != nil {
			return nil, err
		}
		rest := data[r.at:]
		return newFrameTable(p.Vaddr, rest[:8*min(n, uint64(len(rest)/8))]), nil
	}
	return f.indexFrames()
}

func newFrameTable(hdr uint64, entries []byte) *frameTable {
	return &frameTable{hdr: hdr, entries: entries, cies: map[uint64]*cie{}, fdes: map[uint64]*fde{}}
}

// maxWork bounds the cost of building a table, in bytes examined.
const maxWork = 256 << 20

// indexFrames builds the table from the descriptions themselves.
func (f *File) indexFrames() (*frameTable, error) {
	s := f.elf.Section(".eh_frame")
	if s == nil || s.Type == elf.SHT_NOBITS || packed(s) || s.Size > maxFrameTable {
		return nil, ErrNoFrame
	}
	data, err := s.Data()
	if err != nil {
		return nil, err
	}
	t := newFrameTable(s.Addr, nil)
	t.section = data
	work := 0
	var found [][2]int32 // function and description, from the section
	for at := uint64(0); at+8 <= uint64(len(data)) && work < maxWork; {
		size := uint64(binary.LittleEndian.Uint32(data[at:]))
		if size < 4 || size > uint64(len(data))-at-4 {
			break // the end, or malformed
		}
		if binary.LittleEndian.Uint32(data[at+4:]) != 0 {
			work += 64
			if d, err := t.readFDE(f, s.Addr+at); err == nil && d.start != 0 {
				work += len(d.program)
				found = append(found, [2]int32{int32(d.start - s.Addr), int32(at)})
			}
		}
		at += 4 + size
	}
	sorts.By(found, func(a, b [2]int32) int { return cmp.Compare(a[0], b[0]) })
	for _, e := range found {
		t.entries = binary.LittleEndian.AppendUint32(t.entries, uint32(e[0]))
		t.entries = binary.LittleEndian.AppendUint32(t.entries, uint32(e[1]))
	}
	return t, nil
}

func (t *frameTable) find(f *File, addr uint64) (*fde, error) {
	n := len(t.entries) / 8
	start := func(i int) uint64 {
		return t.hdr + uint64(int64(int32(binary.LittleEndian.Uint32(t.entries[8*i:]))))
	}
	i := sort.Search(n, func(i int) bool { return start(i) > addr })
	if i == 0 {
		return nil, ErrNoFrame
	}
	at := t.hdr + uint64(int64(int32(binary.LittleEndian.Uint32(t.entries[8*(i-1)+4:]))))
	if d := t.fdes[at]; d != nil {
		return d, nil
	}
	d, err := t.readFDE(f, at)
	if err != nil {
		return nil, err
	}
	if len(t.fdes) >= maxFrames { // start over
		clear(t.fdes)
	}
	t.fdes[at] = d
	return d, nil
}

// entry reads one CIE or FDE: the body after its length.
func (t *frameTable) entry(f *File, at uint64) (body []byte, start uint64, err error) {
	if from := at - t.hdr; from < uint64(len(t.section)) {
		r := reader{data: t.section, at: int(from)}
		if body = r.take(uint64(r.u32())); len(body) < 4 {
			err = errFrame
		}
		return body, at + 4, err
	}
	head := make([]byte, 512)
	n, err := f.ReadAddr(head, at)
	if err != nil || n < 8 {
		return nil, 0, errFrame
	}
	size := uint64(binary.LittleEndian.Uint32(head))
	if size < 4 || size > 1<<20 { // loaded sections have no 64-bit lengths
		return nil, 0, errFrame
	}
	body = head[4:n]
	if uint64(len(body)) < size {
		body = make([]byte, size)
		if n, err := f.ReadAddr(body, at+4); err != nil || uint64(n) < size {
			return nil, 0, errFrame
		}
	}
	return body[:size], at + 4, nil
}

func (t *frameTable) readFDE(f *File, at uint64) (*fde, error) {
	body, start, err := t.entry(f, at)
	if err != nil {
		return nil, err
	}
	back := binary.LittleEndian.Uint32(body)
	if back == 0 {
		return nil, errFrame
	}
	c, err := t.cie(f, start-uint64(back))
	if err != nil {
		return nil, err
	}
	r := reader{data: body, at: 4, addr: start}
	d := &fde{cie: c}
	if d.start, err = r.pointer(c.fdeEnc, t.hdr); err != nil {
		return nil, err
	}
	size, err := r.pointer(c.fdeEnc&0x0f, 0)
	if err != nil {
		return nil, err
	}
	d.end = d.start + size
	if c.augmented {
		n := r.uleb()
		r.skip(n)
	}
	if r.bad {
		return nil, errFrame
	}
	d.program = slices.Concat(c.program, body[r.at:])
	if len(d.program) > maxProgram {
		return nil, errFrame
	}
	return d, nil
}

const longestAugmentation = 16

func (t *frameTable) cie(f *File, at uint64) (*cie, error) {
	if c := t.cies[at]; c != nil {
		return c, nil
	}
	body, start, err := t.entry(f, at)
	if err != nil {
		return nil, err
	}
	if binary.LittleEndian.Uint32(body) != 0 || len(body) < 8 {
		return nil, errFrame
	}
	version := body[4]
	r := reader{data: body, at: 5, addr: start}
	if bytes.IndexByte(body[5:min(len(body), 5+longestAugmentation)], 0) < 0 {
		return nil, errFrame
	}
	augmentation := r.cstring()
	if version != 1 && version != 3 || len(augmentation) > 0 && augmentation[0] != 'z' {
		return nil, fmt.Errorf("%w: version %d, augmentation %q", errFrame, version, augmentation)
	}
	c := &cie{codeAlign: r.uleb(), dataAlign: r.sleb()}
	if version == 1 {
		c.ra = uint64(r.byte())
	} else {
		c.ra = r.uleb()
	}
	c.fdeEnc = encAbsolute
	if len(augmentation) > 0 {
		c.augmented = true
		end := r.uleb()
		end += uint64(r.at)
		for _, what := range augmentation[1:] {
			switch what {
			case 'R':
				c.fdeEnc = r.byte()
			case 'L':
				r.byte()
			case 'P':
				if _, err := r.pointer(r.byte()&0x7f, 0); err != nil {
					return nil, err
				}
			case 'S':
				c.signal = true
			}
		}
		if end > uint64(len(body)) {
			return nil, errFrame
		}
		r.at = int(end)
	}
	if r.bad || c.ra != RA {
		return nil, errFrame
	}
	if c.program = body[r.at:]; len(c.program) > maxProgram {
		return nil, errFrame
	}
	if len(t.cies) >= maxFrames {
		clear(t.cies)
	}
	t.cies[at] = c
	return c, nil
}

// maxProgram bounds what one function can cost.
const maxProgram = 1 << 16

// machine runs a function's call frame program up to an address.
type machine struct {
	cie     *cie
	row     *Row
	initial Row
	stack   []Row
	pc, end uint64
	done    bool
}

// row runs the function's program up to an address in it.
func (d *fde) row(addr uint64, row *Row) error {
	*row = Row{Signal: d.cie.signal, data: d.program}
	m := &machine{cie: d.cie, row: row, pc: d.start, end: addr}
	common := len(d.cie.program)
	if err := m.run(d.program, 0, common); err != nil {
		return err
	}
	m.initial, m.pc, m.done = *row, d.start, false
	return m.run(d.program, common, len(d.program))
}

// advance moves on to a later instruction of the function, and stops the machine if
// that is past the requested one.
func (m *machine) advance(by uint64) { m.reach(m.pc + by*m.cie.codeAlign) }

func (m *machine) reach(pc uint64) {
	m.pc = pc
	m.done = m.pc > m.end
}

func (m *machine) set(reg uint64, r Rule) {
	if reg < Registers {
		m.row.Regs[reg] = r
	}
}

func (m *machine) offset(kind RuleKind, r *reader, offset int64) Rule {
	if offset != int64(int32(offset)) {
		r.bad = true
	}
	return Rule{Kind: kind, Offset: int32(offset)}
}

// cfa sets the frame's address to a register plus an offset.
func (m *machine) cfa(r *reader, reg uint64, offset int64) {
	rule := m.offset(InRegister, r, offset)
	rule.Reg = uint8(min(reg, 255))
	m.row.CFA = rule
}

// expression returns a rule that is computed by the expression that follows.
func (m *machine) expression(kind RuleKind, r *reader) Rule {
	n := len(r.block())
	return Rule{Kind: kind, Offset: int32(r.at - n), length: uint16(n)}
}

func (m *machine) run(program []byte, from, to int) error {
	r := &reader{data: program[:to], at: from}
	for r.at < len(r.data) && !r.bad && !m.done {
		if len(m.stack) > 64 {
			return errFrame
		}
		op := r.byte()
		low := uint64(op & 0x3f)
		switch op & 0xc0 {
		case 0x40: // DW_CFA_advance_loc
			m.advance(low)
			continue
		case 0x80: // DW_CFA_offset
			m.set(low, m.offset(AtCFA, r, int64(r.uleb())*m.cie.dataAlign))
			continue
		case 0xc0: // DW_CFA_restore
			if low < Registers {
				m.row.Regs[low] = m.initial.Regs[low]
			}
			continue
		}
		if err := m.instruction(op, r); err != nil {
			return err
		}
	}
	if r.bad {
		return errFrame
	}
	return nil
}

func (m *machine) instruction(op byte, r *reader) error {
	align := m.cie.dataAlign
	switch op {
	case 0x00: // nop
	case 0x01: // set_loc
		at, err := r.pointer(m.cie.fdeEnc, 0)
		if err != nil {
			return err
		}
		m.reach(at)
	case 0x02:
		m.advance(uint64(r.byte()))
	case 0x03:
		m.advance(uint64(r.u16()))
	case 0x04:
		m.advance(uint64(r.u32()))
	case 0x05: // offset_extended
		reg := r.uleb()
		m.set(reg, m.offset(AtCFA, r, int64(r.uleb())*align))
	case 0x06: // restore_extended
		if reg := r.uleb(); reg < Registers {
			m.row.Regs[reg] = m.initial.Regs[reg]
		}
	case 0x07:
		m.set(r.uleb(), Rule{Kind: Undefined})
	case 0x08:
		m.set(r.uleb(), Rule{Kind: SameValue})
	case 0x09:
		reg := r.uleb()
		m.set(reg, Rule{Kind: InRegister, Reg: uint8(min(r.uleb(), 255))})
	case 0x0a:
		m.stack = append(m.stack, *m.row)
	case 0x0b:
		if len(m.stack) == 0 {
			return errFrame
		}
		*m.row, m.stack = m.stack[len(m.stack)-1], m.stack[:len(m.stack)-1]
	case 0x0c: // def_cfa
		reg := r.uleb()
		m.cfa(r, reg, int64(r.uleb()))
	case 0x0d: // def_cfa_register
		m.cfa(r, r.uleb(), int64(m.row.CFA.Offset))
	case 0x0e: // def_cfa_offset
		m.cfa(r, uint64(m.row.CFA.Reg), int64(r.uleb()))
	case 0x0f:
		m.row.CFA = m.expression(ValExpression, r)
	case 0x10:
		reg := r.uleb()
		m.set(reg, m.expression(AtExpression, r))
	case 0x11: // offset_extended_sf
		reg := r.uleb()
		m.set(reg, m.offset(AtCFA, r, r.sleb()*align))
	case 0x12: // def_cfa_sf
		reg := r.uleb()
		m.cfa(r, reg, r.sleb()*align)
	case 0x13: // def_cfa_offset_sf
		m.cfa(r, uint64(m.row.CFA.Reg), r.sleb()*align)
	case 0x14:
		reg := r.uleb()
		m.set(reg, m.offset(ValueCFA, r, int64(r.uleb())*align))
	case 0x15:
		reg := r.uleb()
		m.set(reg, m.offset(ValueCFA, r, r.sleb()*align))
	case 0x16:
		reg := r.uleb()
		m.set(reg, m.expression(ValExpression, r))
	case 0x2d: // AARCH64_negate_ra_state: return addresses are signed, or not
	case 0x2e: // GNU_args_size
		r.uleb()
	default:
		return fmt.Errorf("%w: instruction %#x", errFrame, op)
	}
	return nil
}
