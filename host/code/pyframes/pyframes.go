// Package pyframes walks the frames of CPython's interpreter in the memory of a
// process, at the offsets of an [event.PythonLayout]. The BPF programs contain a
// second implementation; a test requires the two to agree.
//
// It names nothing. Note that the frames are a consistent snapshot only if the thread
// does not run meanwhile.
package pyframes

import (
	"encoding/binary"

	"strandline/host/calls/event"
)

// A Memory is the memory of a process, or a copy of parts of it.
type Memory interface {
	// Read fills b with what is at an address, or fails.
	Read(b []byte, addr uint64) error
}

// A Thread identifies a thread in both ways that versions of Python use.
type Thread struct {
	Native  int    // its number in the process's own pid namespace
	Pthread uint64 // what pthread_self returns: on x86-64 the base of fs
}

// Bounds on what is read from a possibly hostile process, the same as in host/calls/bpf/c.
const (
	MaxFrames  = 128
	maxThreads = 256
)

// Walk returns the frames of a thread, innermost first.
func Walk(mem Memory, p *event.PythonLayout, t Thread) ([]event.PythonFrame, event.PythonState) {
	w := walker{mem, p}
	state := w.thread(t)
	if state == 0 {
		return nil, event.NoThread
	}
	var out []event.PythonFrame
	at := w.innermost(state)
	for len(out) < MaxFrames {
		if at == 0 {
			return out, event.Complete
		}
		out = append(out, w.frame(at))
		at = w.word(at, p.Previous)
	}
	return out, event.Cut
}

type walker struct {
	mem Memory
	*event.PythonLayout
}

// word returns a word of memory, or 0 if it cannot be read.
func (w *walker) word(addr uint64, offset uint32) uint64 {
	var b [8]byte
	if w.mem.Read(b[:], addr+uint64(offset)) != nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b[:])
}

// thread returns the interpreter's state of a thread, if the thread runs Python code; 0
// if not. Up to CPython 3.11 the state of a thread that is being created has the number
// of its creator, and comes before the creator's state.
func (w *walker) thread(t Thread) uint64 {
	field, want := w.NativeID, uint64(t.Native)
	if field == event.Absent {
		field, want = w.ThreadID, t.Pthread
	}
	state := w.word(w.word(w.Runtime, w.Interpreters), w.Threads)
	for range maxThreads {
		if state == 0 || w.word(state, field) == want && w.innermost(state) != 0 {
			return state
		}
		state = w.word(state, w.ThreadNext)
	}
	return 0
}

// innermost returns the address of the frame that a state is in; 0 if it runs nothing.
func (w *walker) innermost(state uint64) uint64 {
	at := w.word(state, w.PythonLayout.Frame)
	if w.CFrameCurrent != event.Absent {
		at = w.word(at, w.CFrameCurrent)
	}
	return at
}

// frame reads a frame, including what distinguishes its code from other code at the
// same address later.
func (w *walker) frame(at uint64) event.PythonFrame {
	f := event.PythonFrame{Frame: at, Code: w.word(at, w.Code) &^ w.CodeTag, Instruction: w.word(at, w.Instruction)}
	if w.InstructionSize == 4 {
		f.Instruction &= 1<<32 - 1
	}
	if w.Owner != event.Absent {
		f.Owner = uint16(w.word(at, w.Owner))
	}
	f.Names = event.NamesOf(w.word(f.Code, w.CodeFile), w.word(f.Code, w.CodeName))
	return f
}
