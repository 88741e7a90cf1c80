package cpython

import (
	"encoding/binary"
	"errors"
	"fmt"
	"path"
	"regexp"
	"strconv"
	"strings"

	"strandline/host/image"
)

// A Memory is that of a process, or a copy of parts of it.
type Memory interface {
	// Read fills b with what is at an address, or fails.
	Read(b []byte, addr uint64) error
}

// A Runtime is an interpreter in a process.
type Runtime struct {
	Offsets
	Address uint64 // of _PyRuntime
	Object  *image.Object
}

// ErrNone says that a process runs no Python.
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
		r := &Runtime{Address: addr + place.Bias(m.Start), Object: place.Object}
		o, err := r.offsets(im, place.Bias(m.Start))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", place.Object.Path, err)
		}
		r.Offsets = *o
		return r, nil
	}
	return nil, ErrNone
}

func (r *Runtime) offsets(mem Memory, bias uint64) (*Offsets, error) {
	block := make([]byte, blockSize)
	if err := mem.Read(block, r.Address); err != nil {
		return nil, err
	}
	if string(block[:len(cookie)]) == cookie {
		return debugOffsets(block)
	}
	minor, err := r.minor(mem, bias)
	if err != nil {
		return nil, err
	}
	o, ok := offsets[minor]
	if !ok {
		return nil, fmt.Errorf("the layout of Python 3.%d is not known", minor)
	}
	o.Minor = uint32(minor)
	return &o, nil
}

// fileVersion is the version in the name of a program or library.
var fileVersion = regexp.MustCompile(`^(?:lib)?python3\.(\d{1,2})(?:$|[^\d])`)

// minor is the version, as the variable says that 3.11 and later export, else by
// the name of the file.
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
	return 0, errors.New("the version of Python cannot be told")
}

// evaluator is the function that runs Python's functions. Parts that the
// compiler put elsewhere have names that begin with it.
const evaluator = "_PyEval_EvalFrameDefault"

// Evaluates tells whether an address is in the function that runs Python's
// functions.
func (r *Runtime) Evaluates(im *image.Image, pc uint64) bool {
	place, ok := im.Locate(pc)
	return ok && place.Object == r.Object && strings.HasPrefix(r.Object.Function(place.Linked), evaluator)
}

// A Thread names a thread in both ways that versions of Python keep.
type Thread struct {
	Native  int    // its number as the process sees it, in its own namespace
	Pthread uint64 // what pthread_self gives: on x86-64 the base of fs
}

// Bounds of what is read of a process that may be hostile.
const (
	mostThreads = 1 << 14
	mostFrames  = 1 << 10
)

// A Frame is one that Python's functions run in, as it stands in memory.
type Frame struct {
	Address     uint64 // of the frame itself
	Code        uint64
	Instruction uint64
	Owner       uint8
	Entry       bool   // C called the function (3.11)
	Mark        uint32 // of the code at that moment; 0 is not known
}

// Shim tells a frame that is no function's: from 3.12 on the evaluator keeps one
// on the stack of C below the functions that it runs.
func (r *Runtime) Shim(f Frame) bool { return r.Minor >= 12 && f.Owner >= 3 }

// ErrNoThread says that a thread runs no Python.
var ErrNoThread = errors.New("the interpreter does not know the thread, or it runs no Python")

// State is the address of the interpreter's state of a thread that runs Python. Up
// to CPython 3.11 the state of a thread that is being made bears the number of its
// maker.
func (r *Runtime) State(mem Memory, t Thread) (uint64, error) {
	w := words{mem: mem}
	steps := 0
	for interp := w.at(r.Address, r.RuntimeInterpreters); interp != 0 && steps < mostThreads; interp = w.at(interp, r.InterpreterNext) {
		steps++
		for state := w.at(interp, r.InterpreterThreads); state != 0 && steps < mostThreads; state = w.at(state, r.ThreadNext) {
			steps++
			if r.is(&w, state, t) && r.innermost(&w, state) != 0 {
				return state, w.err
			}
		}
	}
	if w.err != nil {
		return 0, w.err
	}
	return 0, ErrNoThread
}

func (r *Runtime) is(w *words, state uint64, t Thread) bool {
	if r.ThreadNative != None {
		return w.at(state, r.ThreadNative) == uint64(t.Native) && t.Native != 0
	}
	return w.at(state, r.ThreadPthread) == t.Pthread && t.Pthread != 0
}

// innermost is the address of the frame that a state is in; 0 if it runs nothing.
func (r *Runtime) innermost(w *words, state uint64) uint64 {
	at := w.at(state, r.ThreadFrame)
	if r.CFrameFrame != None && at != 0 {
		at = w.at(at, r.CFrameFrame)
	}
	return at
}

// Frames are those of a thread, innermost first. They are those of one moment
// only if the thread does not run meanwhile. With an error, those that were read
// are returned.
func (r *Runtime) Frames(mem Memory, t Thread) ([]Frame, error) {
	state, err := r.State(mem, t)
	if err != nil {
		return nil, err
	}
	w := words{mem: mem}
	at := r.innermost(&w, state)
	var out []Frame
	b := make([]byte, r.frameSize())
	for at != 0 && w.err == nil && len(out) < mostFrames {
		if err := mem.Read(b, at); err != nil {
			return out, err
		}
		f := r.frame(b)
		f.Address = at
		out = append(out, f)
		at = binary.LittleEndian.Uint64(b[r.FramePrevious:])
	}
	if at != 0 && w.err == nil {
		return out, errDeep
	}
	return out, w.err
}

var errDeep = errors.New("too many frames")

// frameSize is how much of a frame is read.
func (r *Runtime) frameSize() uint32 {
	n := max(r.FrameCode, r.FramePrevious, r.FrameInstruction) + 8
	for _, flag := range []uint32{r.FrameOwner, r.FrameEntry} {
		if flag != None {
			n = max(n, flag+1)
		}
	}
	return n
}

// frame reads a frame's bytes.
func (r *Runtime) frame(b []byte) Frame {
	f := Frame{
		Code:        binary.LittleEndian.Uint64(b[r.FrameCode:]) &^ uint64(r.CodeMask),
		Instruction: binary.LittleEndian.Uint64(b[r.FrameInstruction:]),
	}
	if r.Minor < 11 { // a number of four bytes
		f.Instruction &= 1<<32 - 1
	}
	if r.FrameOwner != None {
		f.Owner = b[r.FrameOwner]
	}
	if r.FrameEntry != None {
		f.Entry = b[r.FrameEntry] != 0
	}
	return f
}

// words reads words; err stays with the first that cannot be read.
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
