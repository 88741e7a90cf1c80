package symbolize

import (
	"errors"
	"slices"

	"strandline/host/calls/event"
	"strandline/host/code/cpython"
	"strandline/host/code/image"
	"strandline/host/code/unwind"
	"strandline/host/proc/procfs"
)

// A Frame is one level of a stack. What is not known is empty.
type Frame = unwind.Frame

// A Stack is the frames of a call, innermost first. Complete reports whether it
// reaches down to where the thread began.
type Stack struct {
	Frames   []Frame
	Complete bool
}

// A Symbolizer turns samples of threads into stacks, using the images of their
// processes.
type Symbolizer struct {
	files  *image.Files
	images map[uint32]*named
	calls  []unwind.Call
	// Cut is called for processes whose stacks extend beyond the copy; Python for those
	// that run CPython, with where it keeps its frames; and Unread for those that run
	// CPython and where that is not known, with the reason.
	Cut    func(pid int)
	Python func(pid int, p event.PythonLayout)
	Unread func(pid int, why error)
}

// named is the image of a process and the named frames of the addresses in it.
type named struct {
	*image.Image
	python *cpython.Runtime // nil if there is none
	codes  *cpython.Codes
	unread bool // there is an interpreter, but its frames cannot be read
	native map[uint64]Frame
	// When the reading of the map began and ended, and which file code was mapped.
	read, known uint64
	mapped      []mappedCode
}

// mappedCode is where code of a file was mapped, and when: a library that was loaded,
// perhaps in place of another.
type mappedCode struct{ at, start, end uint64 }

// maxMapped bounds how many of these are kept; a sample waits only a moment.
const maxMapped = 1024

// New returns a Symbolizer that has looked at no process yet.
func New() *Symbolizer {
	return &Symbolizer{
		files: image.NewFiles(), images: map[uint32]*named{},
		Cut: func(int) {}, Python: func(int, event.PythonLayout) {}, Unread: func(int, error) {},
	}
}

// Close closes the files.
func (n *Symbolizer) Close() {
	for _, im := range n.images {
		im.Close()
	}
	n.files.Close()
}

// Forget drops what is known about a process that has ended or now runs another
// program.
func (n *Symbolizer) Forget(pid uint32) {
	if im := n.images[pid]; im != nil {
		im.Close()
		delete(n.images, pid)
	}
}

// maxImages bounds the processes whose images are kept: each has an open file.
const maxImages = 256

// Prepare reads the image of a process, so that its samples carry Python frames from
// the first one on. If there are many processes, only those that are sampled are read.
func (n *Symbolizer) Prepare(pid uint32) {
	if len(n.images) < maxImages {
		n.image(pid)
	}
}

// image returns the image of a process; nil if the process has ended.
func (n *Symbolizer) image(pid uint32) *named {
	im := n.images[pid]
	if im != nil {
		return im
	}
	began := event.Now()
	opened, err := image.Open(procfs.Process(pid), n.files)
	if err != nil {
		return nil
	}
	if len(n.images) >= maxImages {
		for other := range n.images {
			n.Forget(other)
			break
		}
	}
	im = &named{Image: opened, native: map[uint64]Frame{}, read: began, known: event.Now()}
	n.images[pid] = im
	n.findPython(pid, im)
	return im
}

func (n *Symbolizer) findPython(pid uint32, im *named) {
	r, err := cpython.Find(im.Image)
	if err != nil {
		if !im.unread && !errors.Is(err, cpython.ErrNone) {
			im.unread = true
			n.Unread(int(pid), err)
		}
		return
	}
	im.python, im.codes = r, r.Codes()
	n.Python(int(pid), r.Layout())
}

// Mapped takes in mappings, in chronological order. Which code is where matters for
// later samples.
func (n *Symbolizer) Mapped(e *event.Event) {
	im := n.images[e.PID]
	if im == nil || e.Prot&event.ProtExec == 0 || e.Flags&event.MapAnonymous != 0 {
		return
	}
	if len(im.mapped) == maxMapped {
		im.mapped = append(im.mapped[:0], im.mapped[maxMapped/2:]...)
	}
	im.mapped = append(im.mapped, mappedCode{e.Time, e.Addr, e.Addr + e.Len})
}

// outdated reports whether code was mapped between the reading of the map and a
// time.
func (im *named) outdated(at uint64) bool {
	return slices.ContainsFunc(im.mapped, func(m mappedCode) bool { return im.read <= m.at && m.at <= at })
}

// replaced returns for how many of the calls at a time, starting with the first, the
// map is right: it can be from a later moment, when other code was there.
func (im *named) replaced(calls []unwind.Call, at uint64) int {
	for i, c := range calls {
		for _, m := range im.mapped {
			if m.start <= c.PC && c.PC < m.end && at < m.at && m.at <= im.known {
				return i
			}
		}
	}
	return len(calls)
}

// refresh reads the map of a process again.
func (n *Symbolizer) refresh(pid uint32, im *named) bool {
	began := event.Now()
	if im.Refresh() != nil {
		return false
	}
	im.read, im.known = began, event.Now()
	clear(im.native)
	if im.python == nil {
		n.findPython(pid, im)
	}
	return true
}

var errReplaced = errors.New("other code lies there now")

// Stack steps through a sample. To look up what a process has mapped since its map was
// read, it reads the map again.
func (n *Symbolizer) Stack(s *event.Sample) Stack {
	im := n.image(s.PID)
	if im == nil {
		return Stack{}
	}
	if im.outdated(s.Time) {
		n.refresh(s.PID, im)
	}
	calls, err := n.unwind(im, s)
	if err != nil && im.read < s.Time && n.refresh(s.PID, im) {
		calls, err = n.unwind(im, s)
	}
	if right := im.replaced(calls, s.Time); right < len(calls) {
		calls, err = calls[:right], errReplaced
	}
	if errors.Is(err, unwind.ErrCopyEnds) {
		n.Cut(int(s.PID))
	}
	out := Stack{Complete: err == nil}
	if im.python == nil || len(s.Python) == 0 {
		for _, c := range calls {
			out.Frames = append(out.Frames, im.frame(unwind.Step{Call: c}))
		}
		return out
	}
	steps, whole := unwind.Merge(im.Image, im.python, calls, im.python.Frames(s.Python))
	out.Complete = out.Complete && whole && s.PythonState == event.Complete
	for _, step := range steps {
		if f := im.frame(step); step.Python == nil || !cpython.Internal(f.Frame) {
			out.Frames = append(out.Frames, f)
		}
	}
	return out
}

func (n *Symbolizer) unwind(im *named, s *event.Sample) (calls []unwind.Call, err error) {
	own := s.Regs.SP - s.Base
	if own > uint64(len(s.Stack)) {
		return nil, unwind.ErrCopyEnds
	}
	u := unwind.Sample{Stack: s.Stack[own:], InterruptedBase: s.InterruptedBase, Interrupted: s.Interrupted}
	for reg, v := range registersOf(&s.Regs) {
		u.Registers[reg] = v
		u.Known |= 1 << reg
	}
	n.calls, err = unwind.Calls(im.Image, &u, n.calls[:0])
	return n.calls, err
}

// maxNative bounds the addresses whose names are cached.
const maxNative = 1 << 16

// frame names a step. The names of native code are cached.
func (im *named) frame(s unwind.Step) Frame {
	if s.Python != nil {
		return unwind.Name(im.Image, im.codes, s)
	}
	f, known := im.native[s.Call.PC]
	if !known {
		f = unwind.Name(im.Image, im.codes, s)
		if len(im.native) >= maxNative {
			clear(im.native)
		}
		im.native[s.Call.PC] = f
	}
	return f
}
