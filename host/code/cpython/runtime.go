package cpython

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"strconv"
	"strings"

	"strandline/host/calls/event"
	"strandline/host/code/image"
	"strandline/internal/lazyregexp"
)

// A Memory is the memory of a process, or a copy of parts of it.
type Memory interface {
	// Read fills b with what is at an address, or fails.
	Read(b []byte, addr uint64) error
}

// A Runtime is an interpreter in a process.
type Runtime struct {
	layout
	address uint64 // of _PyRuntime
	Object  *image.Object
}

// ErrNone states that a process runs no Python.
var ErrNone = errors.New("no Python runs in the process")

// Find finds the interpreter of a process.
func Find(im *image.Image) (*Runtime, error) {
	seen := map[*image.Object]bool{}
	for _, m := range im.Map.Mappings {
		if !m.Exec || m.Inode == 0 {
			continue
		}
		place, _ := im.Locate(m.Start)
		if place.Object == nil || seen[place.Object] {
			continue
		}
		seen[place.Object] = true
		addr, ok := place.Object.Data("_PyRuntime")
		if !ok {
			continue
		}
		r := &Runtime{address: addr + place.Bias(m.Start), Object: place.Object}
		o, err := r.readLayout(im, place.Bias(m.Start))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", place.Object.Path, err)
		}
		r.layout = *o
		return r, nil
	}
	return nil, ErrNone
}

func (r *Runtime) readLayout(mem Memory, bias uint64) (*layout, error) {
	block := make([]byte, blockSize)
	if err := mem.Read(block, r.address); err != nil {
		return nil, err
	}
	if string(block[:len(cookie)]) == cookie {
		return debugOffsets(block)
	}
	minor, err := r.minor(mem, bias)
	if err != nil {
		return nil, err
	}
	o, ok := layouts[minor]
	if !ok {
		return nil, fmt.Errorf("the layout of Python 3.%d is not known", minor)
	}
	o.Minor = uint32(minor)
	return &o, nil
}

// fileVersion matches the version in the name of a program or library.
var fileVersion = lazyregexp.New(`^(?:lib)?python3\.(\d{1,2})(?:$|[^\d])`)

// minor returns the minor version: from the variable that 3.11 and later export, otherwise
// from the name of the file.
func (r *Runtime) minor(mem Memory, bias uint64) (int, error) {
	if addr, ok := r.Object.Data("Py_Version"); ok {
		var b [8]byte
		if mem.Read(b[:], addr+bias) == nil {
			if v := binary.LittleEndian.Uint64(b[:]); v>>24 == 3 {
				return int(v >> 16 & 0xff), nil
			}
		}
	}
	if m := fileVersion.FindStringSubmatch(path.Base(strings.TrimSpace(r.Object.Path))); m != nil {
		return strconv.Atoi(m[1])
	}
	return 0, errors.New("the version of Python is not known")
}

// evaluator is the function that runs Python functions. Parts of it that the compiler
// moved elsewhere have names that begin with it.
const evaluator = "_PyEval_EvalFrameDefault"

// Evaluates reports whether an address is in the function that runs Python functions.
func (r *Runtime) Evaluates(im *image.Image, pc uint64) bool {
	place, ok := im.Locate(pc)
	return ok && place.Object == r.Object && strings.HasPrefix(r.Object.Function(place.Linked), evaluator)
}

// A Frame is one that a Python function runs in, as it is in memory.
type Frame struct {
	Address     uint64 // of the frame itself
	Code        uint64
	Instruction uint64
	Owner       uint8
	Entry       bool   // C called the function (3.11)
	Names       uint32 // as returned by [event.NamesOf] at that moment; 0 if not known
}

// Shim reports whether a frame does not belong to a function: from 3.12 on the
// evaluator keeps such a frame on the C stack below the functions that it runs.
func (r *Runtime) Shim(f Frame) bool { return r.Minor >= 12 && f.Owner >= 3 }

// Layout returns what a walk of the interpreter's frames needs to know.
func (r *Runtime) Layout() event.PythonLayout {
	p := event.PythonLayout{
		Runtime: r.address, CodeTag: uint64(r.codeMask), Interpreters: r.runtimeInterpreters, Threads: r.interpreterThreads,
		ThreadNext: r.threadNext, ThreadID: r.threadPthread, NativeID: r.threadNative, Frame: r.threadFrame, CFrameCurrent: r.cframeFrame,
		Code: r.frameCode, Previous: r.framePrevious, Instruction: r.frameInstruction, Owner: r.frameOwner, InstructionSize: 8,
		CodeFile: r.codeFile, CodeName: r.codeName,
	}
	if r.frameEntry != none {
		p.Owner = r.frameEntry // the byte before the owner
	}
	if r.Minor < 11 {
		p.InstructionSize = 4
	}
	return p
}

// Frames converts frames that were walked to the form of the interpreter's version.
func (r *Runtime) Frames(walked []event.PythonFrame) []Frame {
	out := make([]Frame, len(walked))
	for i, f := range walked {
		out[i] = Frame{Address: f.Frame, Code: f.Code, Instruction: f.Instruction, Owner: uint8(f.Owner), Names: f.Names}
		if r.frameEntry != none {
			out[i].Entry, out[i].Owner = f.Owner&0xff != 0, uint8(f.Owner>>8)
		}
	}
	return out
}

// words reads words; err is the error of the first that cannot be read.
type words struct {
	mem Memory
	err error
}

func (w *words) at(addr uint64, offset uint32) uint64 {
	var b [8]byte
	if w.err == nil {
		w.err = w.mem.Read(b[:], addr+uint64(offset))
	}
	if w.err != nil {
		return 0
	}
	return binary.LittleEndian.Uint64(b[:])
}
