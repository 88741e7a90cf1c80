package ptrace

import (
	"encoding/binary"
	"strandline/host/event"

	"golang.org/x/sys/unix"
)

// memory is that of a stopped thread's process.
type memory int

func (m memory) read(b []byte, addr uint64) bool {
	local := []unix.Iovec{{Base: &b[0], Len: uint64(len(b))}}
	remote := []unix.RemoteIovec{{Base: uintptr(addr), Len: len(b)}}
	n, err := unix.ProcessVMReadv(int(m), local, remote, 0)
	return err == nil && n == len(b)
}

// word is a word of memory, 0 where there is none.
func (m memory) word(addr uint64) uint64 {
	var b [8]byte
	if !m.read(b[:], addr) {
		return 0
	}
	return binary.LittleEndian.Uint64(b[:])
}

const mostThreads, mostFrames = 256, 128

// python walks the interpreter's frames of a thread.
func (m memory) python(p *event.PythonLayout, tid int, fs uint64) (out []event.PythonFrame, _ event.PythonState) {
	thread := m.word(m.word(p.Runtime+uint64(p.Interpreters)) + uint64(p.Threads))
	field, want := p.NativeID, uint64(tid)
	if field == event.Absent {
		field, want = p.ThreadID, fs
	}
	for i := 0; thread != 0 && m.word(thread+uint64(field)) != want; i++ {
		if thread = m.word(thread + uint64(p.ThreadNext)); i == mostThreads {
			thread = 0
		}
	}
	if thread == 0 {
		return nil, event.NoThread
	}
	at := m.word(thread + uint64(p.Frame))
	if p.CFrameCurrent != event.Absent {
		at = m.word(at + uint64(p.CFrameCurrent))
	}
	for len(out) < mostFrames {
		if at == 0 {
			return out, event.Complete
		}
		f := event.PythonFrame{Frame: at, Code: m.word(at+uint64(p.Code)) &^ p.CodeTag, Instruction: m.word(at + uint64(p.Instruction))}
		if p.InstructionSize == 4 {
			f.Instruction &= 1<<32 - 1
		}
		if p.Owner != event.Absent {
			f.Owner = uint16(m.word(at + uint64(p.Owner)))
		}
		out = append(out, f)
		at = m.word(at + uint64(p.Previous))
	}
	return out, event.Cut
}
