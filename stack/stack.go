// Package stack holds call stacks: frames interned once, stacks interned by
// content, and the rule that states which line of a stack is the user's own. It
// does not read or unwind stacks.
//
// A trace of a million events has a few hundred distinct stacks, so an event
// keeps an [ID] and everything that depends on the frames is computed once per
// stack. [None] and [Empty] differ: the first was not recorded, the second was,
// without frames. An ID means nothing in another [Table].
package stack

import (
	"cmp"
	"hash/maphash"
	"strconv"
	"strings"
)

// A Frame is one level of a call stack as its recorder named it. Line is 0
// where debug information is missing; for native code recorded by PyTorch it
// can be an offset into the object file.
type Frame struct {
	File     string `json:"file"`
	Line     int64  `json:"line"`
	Function string `json:"function"`
}

// Compare orders frames by file, line and function.
func (f Frame) Compare(g Frame) int {
	return cmp.Or(cmp.Compare(f.File, g.File), cmp.Compare(f.Line, g.Line), cmp.Compare(f.Function, g.Function))
}

// FrameID names a frame of a [Table].
type FrameID uint32

// ID names a stack of a [Table].
type ID uint32

// None is the stack of which nothing was recorded; Empty was recorded and has
// no frames (a thread without Python, for one).
const (
	None  ID = 0
	Empty ID = 1
)

// A Table interns frames and stacks. It is not safe for concurrent use while
// it is filled.
type Table struct {
	frames  []Frame
	frameID map[Frame]FrameID  // by the frame as it was recorded
	windows map[FrameID]string // files as they were recorded, where At has another spelling
	extra   map[FrameID]any

	ids    []FrameID // of all stacks, one after another
	starts []uint32  // stack i is ids[starts[i]:starts[i+1]]
	slots  []ID      // open addressing by hash of the content, 0 is free
	seed   uint64

	sites   []Site // computed on demand, by stack
	known   []bool
	origins []Origin // computed on demand, by frame
}

// NewTable makes an empty table.
func NewTable() *Table {
	return &Table{
		frameID: map[Frame]FrameID{},
		starts:  []uint32{0, 0, 0},
		slots:   make([]ID, 256),
		seed:    maphash.Bytes(maphash.MakeSeed(), nil) | 1,
	}
}

// Len is the number of stacks, None and Empty among them.
func (t *Table) Len() int { return len(t.starts) - 1 }

// Frame interns f. A frame with extra is kept apart from its twins. This is where
// Windows paths get slashes, so that no rule about files has to know both forms.
func (t *Table) Frame(f Frame, extra any) FrameID {
	if extra == nil {
		if id, ok := t.frameID[f]; ok {
			return id
		}
	}
	id := FrameID(len(t.frames))
	if extra == nil {
		t.frameID[f] = id
	}
	if file := slashed(f.File); file != f.File {
		if t.windows == nil {
			t.windows = map[FrameID]string{}
		}
		t.windows[id], f.File = f.File, file
	}
	t.frames = append(t.frames, f)
	if extra == nil {
		return id
	}
	if t.extra == nil {
		t.extra = map[FrameID]any{}
	}
	t.extra[id] = extra
	return id
}

// slashed is a Windows path with slashes. In a path of another system a backslash
// is a character like any other.
func slashed(file string) string {
	if !strings.Contains(file, `\`) {
		return file
	}
	drive := len(file) > 2 && file[1] == ':' && (file[2] == '\\' || file[2] == '/')
	if drive || strings.HasPrefix(file, `\\`) || !strings.Contains(file, "/") {
		return strings.ReplaceAll(file, `\`, "/")
	}
	return file
}

// FrameCount is the number of different frames; their ids are 0 and up.
func (t *Table) FrameCount() int { return len(t.frames) }

// At is the frame of an id, its file with slashes on Windows too.
func (t *Table) At(id FrameID) Frame { return t.frames[id] }

// Recorded is the frame of an id as its recorder spelled it.
func (t *Table) Recorded(id FrameID) Frame {
	f := t.frames[id]
	if file, ok := t.windows[id]; ok {
		f.File = file
	}
	return f
}

// Extra is what was given with the frame, or nil.
func (t *Table) Extra(id FrameID) any { return t.extra[id] }

// Intern is the ID of a stack, innermost frame first.
func (t *Table) Intern(frames []FrameID) ID {
	if len(frames) == 0 {
		return Empty
	}
	if 2*t.Len() >= len(t.slots) {
		t.grow()
	}
	mask := uint64(len(t.slots) - 1)
	for i := t.hash(frames) & mask; ; i = (i + 1) & mask {
		id := t.slots[i]
		if id == None {
			id = ID(t.Len())
			t.ids = append(t.ids, frames...)
			t.starts = append(t.starts, uint32(len(t.ids)))
			t.slots[i] = id
			return id
		}
		if same(t.Frames(id), frames) {
			return id
		}
	}
}

func same(a, b []FrameID) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i] != b[i] {
			return false
		}
	}
	return true
}

// hash is a polynomial in a secret odd number, so that no file can be made to
// collide. It takes two frames a step.
func (t *Table) hash(frames []FrameID) uint64 {
	h := uint64(len(frames))
	for ; len(frames) >= 2; frames = frames[2:] {
		h = (h ^ uint64(frames[0])<<32 ^ uint64(frames[1])) * t.seed
		h ^= h >> 29
	}
	if len(frames) > 0 {
		h = (h ^ uint64(frames[0])) * t.seed
		h ^= h >> 29
	}
	return h ^ h>>32
}

func (t *Table) grow() {
	t.slots = make([]ID, 2*len(t.slots))
	mask := uint64(len(t.slots) - 1)
	for id := Empty + 1; int(id) < t.Len(); id++ {
		i := t.hash(t.Frames(id)) & mask
		for t.slots[i] != None {
			i = (i + 1) & mask
		}
		t.slots[i] = id
	}
}

// Frames are the frames of a stack, innermost first.
func (t *Table) Frames(id ID) []FrameID { return t.ids[t.starts[id]:t.starts[id+1]] }

// shortDepth is how many frames of a stack are shown: more than any program has.
const shortDepth = 256

// Short is Stack for people: of a stack that is deeper than 256 frames, some in
// the middle are left out, and one in their place states how many.
func (t *Table) Short(id ID) []Frame {
	const outer = shortDepth / 4
	ids := t.Frames(id)
	out := make([]Frame, 0, min(len(ids), shortDepth))
	for i, f := range ids {
		switch left := len(ids) - shortDepth + 1; {
		case left <= 1 || i < shortDepth-1-outer || i >= len(ids)-outer:
			out = append(out, t.frames[f])
		case i == shortDepth-1-outer:
			out = append(out, Frame{Function: "(" + strconv.Itoa(left) + " frames left out)"})
		}
	}
	return out
}

// Stack is Frames, resolved.
func (t *Table) Stack(id ID) []Frame {
	ids := t.Frames(id)
	out := make([]Frame, len(ids))
	for i, f := range ids {
		out[i] = t.frames[f]
	}
	return out
}
