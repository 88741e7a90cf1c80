package elffile

// Eval evaluates a DWARF expression over registers and memory. The expression's stack
// starts with first. It returns false for an expression that cannot be evaluated.
func Eval(expr []byte, reg func(int) (uint64, bool), load func(uint64) (uint64, bool), first ...uint64) (uint64, bool) {
	r := &reader{data: expr}
	e := evaluation{stack: append(make([]uint64, 0, 8), first...)}
	for steps := 0; r.at < len(r.data) && !r.bad && !e.bad; steps++ {
		if steps > 256 || len(e.stack) > 64 {
			return 0, false
		}
		e.do(r.byte(), r, reg, load)
	}
	v := e.pop()
	return v, !r.bad && !e.bad
}

type evaluation struct {
	stack []uint64
	bad   bool
}

func (e *evaluation) push(v uint64) { e.stack = append(e.stack, v) }

func (e *evaluation) pop() uint64 {
	if len(e.stack) == 0 {
		e.bad = true
		return 0
	}
	v := e.stack[len(e.stack)-1]
	e.stack = e.stack[:len(e.stack)-1]
	return v
}

func (e *evaluation) value(v uint64, ok bool) {
	e.bad = e.bad || !ok
	e.push(v)
}

func (e *evaluation) do(op byte, r *reader, reg func(int) (uint64, bool), load func(uint64) (uint64, bool)) {
	switch {
	case op >= 0x30 && op <= 0x4f: // lit
		e.push(uint64(op - 0x30))
		return
	case op >= 0x70 && op <= 0x8f: // breg
		v, ok := reg(int(op - 0x70))
		e.value(v+uint64(r.sleb()), ok)
		return
	}
	switch op {
	case 0x03:
		e.push(r.u64())
	case 0x06:
		v, ok := load(e.pop())
		e.value(v, ok)
	case 0x08:
		e.push(uint64(r.byte()))
	case 0x09:
		e.push(uint64(int64(int8(r.byte()))))
	case 0x0a:
		e.push(uint64(r.u16()))
	case 0x0b:
		e.push(uint64(int64(int16(r.u16()))))
	case 0x0c:
		e.push(uint64(r.u32()))
	case 0x0d:
		e.push(uint64(int64(int32(r.u32()))))
	case 0x0e:
		e.push(r.u64())
	case 0x10:
		e.push(r.uleb())
	case 0x11:
		e.push(uint64(r.sleb()))
	case 0x12:
		v := e.pop()
		e.push(v)
		e.push(v)
	case 0x13:
		e.pop()
	case 0x1f:
		e.push(-e.pop())
	case 0x20:
		e.push(^e.pop())
	case 0x23:
		e.push(e.pop() + r.uleb())
	case 0x96: // nop
	default:
		e.binary(op)
	}
}

func (e *evaluation) binary(op byte) {
	b, a := e.pop(), e.pop()
	truth := func(ok bool) {
		if ok {
			e.push(1)
		} else {
			e.push(0)
		}
	}
	switch op {
	case 0x1a:
		e.push(a & b)
	case 0x1c:
		e.push(a - b)
	case 0x1e:
		e.push(a * b)
	case 0x21:
		e.push(a | b)
	case 0x22:
		e.push(a + b)
	case 0x24:
		e.push(a << b)
	case 0x25:
		e.push(a >> b)
	case 0x27:
		e.push(a ^ b)
	case 0x29:
		truth(a == b)
	case 0x2a:
		truth(int64(a) >= int64(b))
	case 0x2b:
		truth(int64(a) > int64(b))
	case 0x2c:
		truth(int64(a) <= int64(b))
	case 0x2d:
		truth(int64(a) < int64(b))
	case 0x2e:
		truth(a != b)
	default:
		e.bad = true
	}
}
