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

// A layout states where one version of CPython keeps what leads from a thread to the
// names of its functions, in bytes from the beginning of each structure. All fields
// have the same width, so that a program in the kernel can use them as they are.
type layout struct {
	Minor uint32 // of the version: 11 is Python 3.11

	runtimeInterpreters uint32 // _PyRuntime: the first interpreter
	interpreterThreads  uint32 // the first thread
	threadNext          uint32
	threadPthread       uint32 // what pthread_self gives
	threadNative        uint32 // the kernel's number, as seen in the process's pid namespace
	threadFrame         uint32 // the innermost frame, or what holds it
	cframeFrame         uint32 // none if a thread holds its frame itself

	frameCode        uint32
	framePrevious    uint32
	frameInstruction uint32 // an address from 3.11 on, the number of an instruction before that
	frameOwner       uint32
	frameEntry       uint32 // whether C called the function (3.11)
	codeMask         uint32 // bits of the code's address that are not part of it

	codeFile      uint32
	codeName      uint32 // qualified from 3.11 on
	codeFirstLine uint32
	codeLines     uint32 // the table of lines
	codeCode      uint32 // the instructions themselves (3.11 on)

	textLength uint32 // of a string
	textASCII  uint32 // where the text of an ASCII string begins
	textOther  uint32 // that of another string
	bytesData  uint32 // of a bytes object, whose length is at textLength
}

// none is an offset that a version does not have.
const none = ^uint32(0)

// The known versions.
const (
	OldestMinor = 8
	NewestMinor = 14
)

// layouts holds those of release builds for x86-64 and arm64. From 3.13 on the
// interpreter states its layout itself.
var layouts = map[int]layout{
	8:  upTo310(120, 104, 104),
	9:  upTo310(120, 104, 104),
	10: upTo310(120, 96, 104),
	11: {
		Minor: 11, runtimeInterpreters: 40, interpreterThreads: 16, threadNext: 8, threadPthread: 152, threadNative: 160,
		threadFrame: 56, cframeFrame: 8, frameCode: 32, framePrevious: 48, frameInstruction: 56, frameOwner: 69, frameEntry: 68,
		codeFile: 112, codeName: 128, codeFirstLine: 72, codeLines: 136, codeCode: 184,
		textLength: 16, textASCII: 48, textOther: 72, bytesData: 32,
	},
	12: {
		Minor: 12, runtimeInterpreters: 40, interpreterThreads: 72, threadNext: 8, threadPthread: 136, threadNative: 144,
		threadFrame: 56, cframeFrame: 0, frameCode: 0, framePrevious: 8, frameInstruction: 56, frameOwner: 70, frameEntry: none,
		codeFile: 112, codeName: 128, codeFirstLine: 68, codeLines: 136, codeCode: 192,
		textLength: 16, textASCII: 40, textOther: 56, bytesData: 32,
	},
}

func upTo310(lines, instruction, file uint32) layout {
	return layout{
		runtimeInterpreters: 32, interpreterThreads: 8, threadNext: 8, threadPthread: 176, threadNative: none,
		threadFrame: 24, cframeFrame: none, frameCode: 32, framePrevious: 24, frameInstruction: instruction, frameOwner: none, frameEntry: none,
		codeFile: file, codeName: file + 8, codeFirstLine: 40, codeLines: lines, codeCode: none,
		textLength: 16, textASCII: 48, textOther: 72, bytesData: 32,
	}
}

// cookie begins the block in which 3.13 and later state their offsets.
const cookie = "xdebugpy"

// blockSize is larger than the part of the block that is read.
const blockSize = 8 * 64

// debugOffsets reads the block at the beginning of _PyRuntime: a cookie, the version,
// and the sizes of structures and offsets in them, all words.
func debugOffsets(block []byte) (*layout, error) {
	if len(block) < blockSize || string(block[:8]) != cookie {
		return nil, fmt.Errorf("the interpreter does not state its offsets")
	}
	word := func(i int) uint32 {
		v := binary.LittleEndian.Uint64(block[8*i:])
		if v > 1<<24 { // no structure is that large
			return none
		}
		return uint32(v)
	}
	version := binary.LittleEndian.Uint64(block[8:])
	o := &layout{Minor: uint32(version >> 16 & 0xff)}
	if version>>24 != 3 || o.Minor < 13 || o.Minor > NewestMinor {
		return nil, fmt.Errorf("the layout of Python %d.%d is not known", version>>24, version>>16&0xff)
	}
	// How many words describe each structure.
	interpreter, frame := 13, 6
	if o.Minor >= 14 {
		interpreter, frame = 16, 8
		o.codeMask = 3
	}
	at := 3 // after the word that says whether the build lacks the global lock
	runtime := at
	at += 3
	interp := at
	at += interpreter
	thread := at
	at += 9
	frames := at
	at += frame
	code := at
	*o = layout{
		Minor: o.Minor, codeMask: o.codeMask, cframeFrame: none, frameEntry: none,
		runtimeInterpreters: word(runtime + 2),
		interpreterThreads:  word(interp + 3),
		threadNext:          word(thread + 2), threadFrame: word(thread + 4), threadPthread: word(thread + 5), threadNative: word(thread + 6),
		framePrevious: word(frames + 1), frameCode: word(frames + 2), frameInstruction: word(frames + 3), frameOwner: word(frames + 5),
		codeFile: word(code + 1), codeName: word(code + 3), codeLines: word(code + 4), codeFirstLine: word(code + 5), codeCode: word(code + 9),
		textLength: 16, textASCII: 40, textOther: 56, bytesData: 32,
	}
	if word(2) != 0 { // without the global lock objects have a larger header
		o.textLength, o.textASCII, o.textOther, o.bytesData = 32, 56, 72, 48
	}
	for _, inside := range []struct{ offset, size uint32 }{
		{o.runtimeInterpreters, word(runtime)}, {o.interpreterThreads, word(interp)},
		{o.threadNext, word(thread)}, {o.threadFrame, word(thread)}, {o.threadPthread, word(thread)}, {o.threadNative, word(thread)},
		{o.framePrevious, word(frames)}, {o.frameCode, word(frames)}, {o.frameInstruction, word(frames)}, {o.frameOwner, word(frames)},
		{o.codeFile, word(code)}, {o.codeName, word(code)}, {o.codeLines, word(code)}, {o.codeFirstLine, word(code)}, {o.codeCode, word(code)},
	} {
		if inside.size == none || inside.offset >= inside.size {
			return nil, fmt.Errorf("the offsets that Python 3.%d states make no sense", o.Minor)
		}
	}
	return o, nil
}
