// Package cpython reads the frames of a Python program out of the memory of its
// interpreter, of CPython 3.8 to 3.14: where the interpreter keeps them, and the
// functions and lines of frames that package pyframes or a BPF program walked.
//
// It makes no stacks of native code. Note that a code object can be freed, and its
// address reused, before it is named.
package cpython

import (
	"encoding/binary"
	"fmt"
)

// Offsets are where one version of CPython keeps what leads from a thread to
// the names of its functions, in bytes from the begin of each structure. The
// fields are all of one width, so that a program in the kernel can take them as
// they are.
type Offsets struct {
	Minor uint32 // of the version: 11 is Python 3.11

	RuntimeInterpreters uint32 // _PyRuntime: the first interpreter
	InterpreterThreads  uint32 // the first thread
	ThreadNext          uint32
	ThreadPthread       uint32 // what pthread_self gives
	ThreadNative        uint32 // the kernel's number, as the process sees it
	ThreadFrame         uint32 // the innermost frame, or what holds it:
	CFrameFrame         uint32 // None if a thread holds its frame itself

	FrameCode        uint32
	FramePrevious    uint32
	FrameInstruction uint32 // an address from 3.11 on, before it the number of an instruction
	FrameOwner       uint32
	FrameEntry       uint32 // whether C called the function (3.11)
	CodeMask         uint32 // bits of the code's address that are no address

	CodeFile      uint32
	CodeName      uint32 // qualified from 3.11 on
	CodeFirstLine uint32
	CodeLines     uint32 // the table of lines
	CodeCode      uint32 // the instructions themselves (3.11 on)

	TextLength uint32 // of a string
	TextASCII  uint32 // where the text of an ASCII string begins
	TextOther  uint32 // that of another string
	BytesData  uint32 // of a bytes object; its length stands at TextLength
}

// None is an offset that a version does not have.
const None = ^uint32(0)

// The versions that are known.
const (
	OldestMinor = 8
	NewestMinor = 14
)

// offsets are those of builds for x86-64 and arm64 that are no debug builds.
// From 3.13 on the interpreter states them itself.
var offsets = map[int]Offsets{
	8:  upTo310(120, 104, 104),
	9:  upTo310(120, 104, 104),
	10: upTo310(120, 96, 104),
	11: {
		Minor: 11, RuntimeInterpreters: 40, InterpreterThreads: 16, ThreadNext: 8, ThreadPthread: 152, ThreadNative: 160,
		ThreadFrame: 56, CFrameFrame: 8, FrameCode: 32, FramePrevious: 48, FrameInstruction: 56, FrameOwner: 69, FrameEntry: 68,
		CodeFile: 112, CodeName: 128, CodeFirstLine: 72, CodeLines: 136, CodeCode: 184,
		TextLength: 16, TextASCII: 48, TextOther: 72, BytesData: 32,
	},
	12: {
		Minor: 12, RuntimeInterpreters: 40, InterpreterThreads: 72, ThreadNext: 8, ThreadPthread: 136, ThreadNative: 144,
		ThreadFrame: 56, CFrameFrame: 0, FrameCode: 0, FramePrevious: 8, FrameInstruction: 56, FrameOwner: 70, FrameEntry: None,
		CodeFile: 112, CodeName: 128, CodeFirstLine: 68, CodeLines: 136, CodeCode: 192,
		TextLength: 16, TextASCII: 40, TextOther: 56, BytesData: 32,
	},
}

func upTo310(lines, instruction, file uint32) Offsets {
	return Offsets{
		RuntimeInterpreters: 32, InterpreterThreads: 8, ThreadNext: 8, ThreadPthread: 176, ThreadNative: None,
		ThreadFrame: 24, CFrameFrame: None, FrameCode: 32, FramePrevious: 24, FrameInstruction: instruction, FrameOwner: None, FrameEntry: None,
		CodeFile: file, CodeName: file + 8, CodeFirstLine: 40, CodeLines: lines, CodeCode: None,
		TextLength: 16, TextASCII: 48, TextOther: 72, BytesData: 32,
	}
}

// cookie begins the block in which 3.13 and later state their offsets.
const cookie = "xdebugpy"

// blockSize is more than the words of the block that are read.
const blockSize = 8 * 64

// debugOffsets reads the block at the begin of _PyRuntime: a cookie, the version,
// and the sizes of structures with offsets in them, all words.
func debugOffsets(block []byte) (*Offsets, error) {
	if len(block) < blockSize || string(block[:8]) != cookie {
		return nil, fmt.Errorf("the interpreter does not state its offsets")
	}
	word := func(i int) uint32 {
		v := binary.LittleEndian.Uint64(block[8*i:])
		if v > 1<<24 { // no structure is as large
			return None
		}
		return uint32(v)
	}
	version := binary.LittleEndian.Uint64(block[8:])
	o := &Offsets{Minor: uint32(version >> 16 & 0xff)}
	if version>>24 != 3 || o.Minor < 13 || o.Minor > NewestMinor {
		return nil, fmt.Errorf("the layout of Python %d.%d is not known", version>>24, version>>16&0xff)
	}
	// How many words each structure takes.
	interpreter, frame := 13, 6
	if o.Minor >= 14 {
		interpreter, frame = 16, 8
		o.CodeMask = 3
	}
	at := 3 // behind whether it is a build without the global lock
	runtime := at
	at += 3
	interp := at
	at += interpreter
	thread := at
	at += 9
	frames := at
	at += frame
	code := at
	*o = Offsets{
		Minor: o.Minor, CodeMask: o.CodeMask, CFrameFrame: None, FrameEntry: None,
		RuntimeInterpreters: word(runtime + 2),
		InterpreterThreads:  word(interp + 3),
		ThreadNext:          word(thread + 2), ThreadFrame: word(thread + 4), ThreadPthread: word(thread + 5), ThreadNative: word(thread + 6),
		FramePrevious: word(frames + 1), FrameCode: word(frames + 2), FrameInstruction: word(frames + 3), FrameOwner: word(frames + 5),
		CodeFile: word(code + 1), CodeName: word(code + 3), CodeLines: word(code + 4), CodeFirstLine: word(code + 5), CodeCode: word(code + 9),
		TextLength: 16, TextASCII: 40, TextOther: 56, BytesData: 32,
	}
	if word(2) != 0 { // without the global lock: objects have a larger head
		o.TextLength, o.TextASCII, o.TextOther, o.BytesData = 32, 56, 72, 48
	}
	for _, inside := range []struct{ offset, size uint32 }{
		{o.RuntimeInterpreters, word(runtime)}, {o.InterpreterThreads, word(interp)},
		{o.ThreadNext, word(thread)}, {o.ThreadFrame, word(thread)}, {o.ThreadPthread, word(thread)}, {o.ThreadNative, word(thread)},
		{o.FramePrevious, word(frames)}, {o.FrameCode, word(frames)}, {o.FrameInstruction, word(frames)}, {o.FrameOwner, word(frames)},
		{o.CodeFile, word(code)}, {o.CodeName, word(code)}, {o.CodeLines, word(code)}, {o.CodeFirstLine, word(code)}, {o.CodeCode, word(code)},
	} {
		if inside.size == None || inside.offset >= inside.size {
			return nil, fmt.Errorf("the offsets that Python 3.%d states make no sense", o.Minor)
		}
	}
	return o, nil
}
