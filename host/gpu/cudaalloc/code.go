package cudaalloc

import (
	"bytes"
	"slices"

	"golang.org/x/arch/x86/x86asm"

	"strandline/host/calls/bpf"
	"strandline/host/code/elffile"
)

// A code is where functions are read from: a file, at linked addresses.
type code interface {
	ReadAddr(b []byte, addr uint64) (int, error)
	Extent(addr uint64) (start, end uint64, err error)
	IsCode(addr uint64) bool
	Code() []elffile.Segment
}

// An instruction, and where the next one begins.
type instruction struct {
	x86asm.Inst
	at, next uint64
	landing  bool // endbr64, which does nothing
}

// longestFunction bounds what is decoded as one function.
const longestFunction = 1 << 16

var landing = []byte{0xf3, 0x0f, 0x1e, 0xfa}

// decode returns the instructions of the function that begins at an address. It fails
// at an unknown instruction: where the next one begins is then uncertain, and nothing
// may be inserted between them.
func decode(c code, addr uint64) ([]instruction, bool) {
	start, end, err := c.Extent(addr)
	if err != nil || start != addr || end-start > longestFunction {
		return nil, false
	}
	b := make([]byte, end-start)
	if n, err := c.ReadAddr(b, addr); err != nil || n < len(b) {
		return nil, false
	}
	var out []instruction
	for at := 0; at < len(b); {
		i := instruction{at: addr + uint64(at)}
		if i.landing = bytes.HasPrefix(b[at:], landing); i.landing {
			at += len(landing)
		} else {
			if i.Inst, err = x86asm.Decode(b[at:], 64); err != nil || i.Len == 0 {
				return nil, false
			}
			at += i.Len
		}
		i.next = addr + uint64(at)
		out = append(out, i)
	}
	return out, true
}

// target returns where a call or jump with a direct target leads.
func (i *instruction) target() (uint64, bool) {
	if rel, ok := i.Args[0].(x86asm.Rel); ok {
		return i.next + uint64(int64(rel)), true
	}
	return 0, false
}

// leads returns the address that a lea puts into a register, if it is fixed.
func (i *instruction) leads() (uint64, bool) {
	if m, ok := i.Args[1].(x86asm.Mem); ok && i.Op == x86asm.LEA && m.Base == x86asm.RIP {
		return i.next + uint64(int64(int32(m.Disp))), true
	}
	return 0, false
}

// sets reports whether the instruction sets the register of a fifth argument.
func (i *instruction) setsFifth() bool {
	r, ok := i.Args[0].(x86asm.Reg)
	return ok && (r == x86asm.R8 || r == x86asm.R8L) && i.Op != x86asm.CMP && i.Op != x86asm.TEST && i.Op != x86asm.PUSH
}

// branches reports whether the next instruction to run may not be the one that follows
// in memory.
func (i *instruction) branches() bool {
	switch i.Op {
	case x86asm.CALL, x86asm.JMP, x86asm.RET, x86asm.LCALL, x86asm.LJMP, x86asm.LRET, x86asm.INT, x86asm.HLT, x86asm.UD2,
		x86asm.LOOP, x86asm.LOOPE, x86asm.LOOPNE, x86asm.SYSCALL:
		return true
	}
	_, relative := i.Args[0].(x86asm.Rel)
	return relative
}

// cheap reports whether the kernel emulates the instruction in a probe. It has the
// processor single-step all others out of line, which costs more than ten times as
// much. The cases are those of arch/x86/kernel/uprobes.c.
func (i *instruction) cheap() bool {
	if i.landing {
		return false
	}
	for _, p := range i.Prefix {
		if p&0xff == 0x66 {
			return false
		}
	}
	_, relative := i.Args[0].(x86asm.Rel)
	switch {
	case i.Op == x86asm.NOP:
		return i.Len == 1
	case i.Op == x86asm.PUSH:
		_, register := i.Args[0].(x86asm.Reg)
		return register
	case i.Op == x86asm.LOOP, i.Op == x86asm.LOOPE, i.Op == x86asm.LOOPNE, i.Op == x86asm.JRCXZ, i.Op == x86asm.JECXZ, i.Op == x86asm.JCXZ:
		return false
	}
	return relative
}

// A place in the code, and what is known about it.
type place struct {
	kind  bpf.RequestKind
	at    uint64
	cheap bool
}

// functions are those that have been found.
type functions struct {
	places  []place
	devices uint64
}

// function is what matters here of a virtual function.
type function struct {
	code  []instruction
	fifth []uint64 // functions that it calls with at least five arguments
	goes  []uint64 // other functions that it calls or ends in
	leads []uint64 // addresses of functions that it takes
}

func (f *function) calls(target uint64) bool {
	return slices.Contains(f.fifth, target)
}

func beginsFunction(c code, addr uint64) bool {
	start, _, err := c.Extent(addr)
	return err == nil && start == addr && c.IsCode(addr)
}

func look(c code, addr uint64) *function {
	f := &function{}
	var ok bool
	if addr == 0 {
		return f
	}
	if f.code, ok = decode(c, addr); !ok {
		return &function{}
	}
	fifth := false
	for k := range f.code {
		i := &f.code[k]
		fifth = fifth || i.setsFifth()
		if to, ok := i.leads(); ok && beginsFunction(c, to) {
			f.leads = append(f.leads, to)
		}
		to, ok := i.target()
		if (i.Op == x86asm.CALL || i.Op == x86asm.JMP) && ok && beginsFunction(c, to) {
			f.goes = append(f.goes, to)
			if i.Op == x86asm.CALL && fifth {
				f.fifth = append(f.fifth, to)
			}
		}
		if i.Op == x86asm.CALL {
			fifth = false
		}
	}
	return f
}

// findFunctions starts from the virtual functions, where number allocate is
// allocate(size), and finds the function malloc(*address, device, size, stream), in
// which all requests end, and the functions that free. raw_alloc and
// raw_alloc_with_stream are adjacent, call malloc too, and are followed by raw_delete.
// The function that allocate stores in its result for freeing it is one whose address
// it takes.
func findFunctions(c code, slots []uint64, allocate int) (*functions, error) {
	looked := make([]*function, len(slots))
	for i, addr := range slots {
		looked[i] = look(c, addr)
	}
	out := &functions{}
	malloc, rawDelete := uint64(0), 0
	for _, to := range looked[allocate].fifth {
		for i := allocate + 1; i+2 < len(slots) && malloc == 0; i++ {
			if looked[i].calls(to) && looked[i+1].calls(to) {
				malloc, rawDelete = to, i+2
			}
		}
	}
	if malloc == 0 {
		return nil, errCode
	}
	out.add(c, bpf.RequestBegins, malloc)
	for _, at := range callsOf(c, malloc) {
		start, _, err := c.Extent(at)
		if body, ok := decode(c, start); err == nil && ok {
			out.places = append(out.places, continuations(body, at)...)
		}
	}
	out.add(c, bpf.DeleteBegins, slots[rawDelete])
	deleters := deletersOf(looked[allocate], looked[allocate+1:rawDelete-2], func(to uint64) bool {
		return slices.Contains(slots, to) || slices.Contains(looked[rawDelete].goes, to)
	})
	if len(deleters) == 0 {
		return nil, errCode
	}
	for _, to := range deleters {
		out.add(c, bpf.FreeBegins, to)
	}
	for _, f := range looked {
		if at, ok := vectorAsked(f.code); ok {
			out.devices = at
			break
		}
	}
	return out, nil
}

// deletersOf returns the functions whose address is taken both by allocate and by
// raw_deleter, which is one of the virtual functions between allocate and raw_alloc.
func deletersOf(allocate *function, between []*function, not func(uint64) bool) (out []uint64) {
	for _, to := range allocate.leads {
		taken := slices.ContainsFunc(between, func(f *function) bool { return slices.Contains(f.leads, to) })
		if taken && !not(to) && !slices.Contains(out, to) {
			out = append(out, to)
		}
	}
	return out
}

// add adds the beginning of a function: its first instruction that the kernel emulates,
// if the code is straight up to there.
func (f *functions) add(c code, kind bpf.RequestKind, addr uint64) {
	p := place{kind: kind, at: addr}
	if body, ok := decode(c, addr); ok {
		if body[0].landing && len(body) > 1 {
			body = body[1:]
		}
		if body[0].cheap() {
			p.at, p.cheap = body[0].at, true
		}
	}
	f.places = append(f.places, p)
}

// maxCode bounds how much of a library is searched, in bytes.
const maxCode = 1 << 30

// callsOf returns the places in the code that hold the bytes of a call of a function.
// Whether these bytes are an instruction is not known.
func callsOf(c code, target uint64) (out []uint64) {
	const (
		size  = 5
		chunk = 1 << 20
	)
	b := make([]byte, chunk+size-1)
	for _, s := range c.Code() {
		for from := uint64(0); from < min(s.FileSize, maxCode); from += chunk {
			n, _ := c.ReadAddr(b, s.Addr+from)
			n = min(n, int(s.FileSize-from))
			for i := 0; i+size <= n && i < chunk; i++ {
				at := s.Addr + from + uint64(i)
				if b[i] == 0xe8 && at+size+uint64(int64(int32(order.Uint32(b[i+1:])))) == target {
					out = append(out, at)
				}
			}
		}
	}
	return out
}

// continuations returns where the caller continues after a call at an address, if there is
// such a place: the first instruction from there on that the kernel emulates, if the
// code is straight up to there.
func continuations(body []instruction, call uint64) []place {
	i := slices.IndexFunc(body, func(i instruction) bool { return i.at == call && i.Op == x86asm.CALL })
	if i < 0 || i+1 == len(body) {
		return nil
	}
	for at := i + 1; at < len(body); at++ {
		if body[at].cheap() {
			return []place{{kind: bpf.RequestEnds, at: body[at].at, cheap: true}}
		}
		if body[at].branches() {
			break
		}
	}
	return []place{{kind: bpf.RequestEnds, at: body[i+1].at}}
}

// vectorAsked recognizes the virtual function initialized(), which compares the
// beginning of a vector with its end, and returns where the vector is in the object.
func vectorAsked(body []instruction) (at uint64, ok bool) {
	if len(body) > 0 && body[0].landing {
		body = body[1:]
	}
	if len(body) < 4 || body[0].Op != x86asm.MOV || body[1].Op != x86asm.CMP || body[2].Op != x86asm.SETNE || body[3].Op != x86asm.RET {
		return 0, false
	}
	first, ok1 := member(body[0])
	second, ok2 := member(body[1])
	low, high := min(first, second), max(first, second)
	return uint64(low), ok1 && ok2 && low > 0 && high == low+8
}

// member returns the offset at which an instruction reads memory of the first argument.
func member(i instruction) (int64, bool) {
	for _, a := range i.Args[:2] {
		if m, ok := a.(x86asm.Mem); ok && m.Base == x86asm.RDI && m.Index == 0 {
			return m.Disp, true
		}
	}
	return 0, false
}
