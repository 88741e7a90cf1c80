package bpf

import (
	"encoding/binary"
	"strandline/host/calls/event"
)

// The layouts of events.h.
const (
	eventSize    = 88
	sampleHead   = 128 // up to the Python frames
	pythonFrames = 128
	pythonSize   = 32
	pageSize     = 4096
	sampleStack  = sampleHead + pythonFrames*pythonSize
)

var order = binary.LittleEndian

func decodeEvent(b []byte) event.Event {
	e := event.Event{
		Time: order.Uint64(b), PID: order.Uint32(b[8:]), TID: order.Uint32(b[12:]),
		Op: event.Op(order.Uint32(b[16:])), Sampled: order.Uint32(b[20:]) != 0,
		Addr: order.Uint64(b[24:]), Len: order.Uint64(b[32:]),
		Old: order.Uint64(b[40:]), OldLen: order.Uint64(b[48:]),
		Prot: order.Uint32(b[56:]), Flags: order.Uint32(b[60:]),
		FD: int32(order.Uint32(b[64:])), Class: order.Uint32(b[68:]),
		Place: event.Place{IP: order.Uint64(b[72:]), Caller: order.Uint64(b[80:])},
	}
	if e.Op == event.Remap {
		e.Took, e.Prot = e.Prot, 0
	}
	settleDriver(&e)
	return e
}

func decodeSample(b []byte) event.Sample {
	word := func(i int) uint64 { return order.Uint64(b[40+8*i:]) }
	s := event.Sample{
		Time: order.Uint64(b), PID: order.Uint32(b[8:]), TID: order.Uint32(b[12:]),
		Op: event.Op(order.Uint32(b[16:])), Addr: order.Uint64(b[24:]), Len: order.Uint64(b[32:]),
		Regs:        event.Regs{IP: word(0), SP: word(1), BP: word(2), BX: word(3), R12: word(4), R13: word(5), R14: word(6), R15: word(7)},
		PythonState: event.PythonState(order.Uint32(b[108:])),
	}
	s.Base = s.Regs.SP &^ (pageSize - 1)
	n := min(int(order.Uint32(b[20:])), len(b)-sampleStack)
	s.Stack = append([]byte(nil), b[sampleStack:sampleStack+n]...)
	if own := order.Uint64(b[120:]); own < uint64(n) {
		s.InterruptedBase = order.Uint64(b[112:])
		s.Stack, s.Interrupted = s.Stack[:own], s.Stack[own:]
	}
	for i := range min(int(order.Uint32(b[104:])), pythonFrames) {
		f := b[sampleHead+i*pythonSize:]
		s.Python = append(s.Python, event.PythonFrame{
			Frame: order.Uint64(f), Code: order.Uint64(f[8:]), Instruction: order.Uint64(f[16:]),
			Owner: uint16(order.Uint32(f[24:])), Names: order.Uint32(f[28:]),
		})
	}
	return s
}
