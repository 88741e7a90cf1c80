package hostleak

import (
	"errors"

	"strandline/bpf"
	"strandline/cpython"
	"strandline/elf"
	"strandline/image"
	"strandline/procfs"
	"strandline/unwind"
)

// Names makes stacks of what was caught of threads, by the images of their
// processes.
type Names struct {
	files  *image.Files
	images map[uint32]*named
	calls  []unwind.Call
	// Cut is told of processes whose stacks go on beyond the copy, Python of those
	// that run CPython and where it keeps its frames.
	Cut    func(pid int)
	Python func(pid int, p bpf.Python)
}

// named is the image of a process and the frames of the addresses in it.
type named struct {
	*image.Image
	python *cpython.Runtime // nil where there is none
	codes  *cpython.Codes
	native map[uint64]Frame
	read   uint64 // when the map was
}

// NewNames has looked at no process yet.
func NewNames() *Names {
	return &Names{
		files: image.NewFiles(), images: map[uint32]*named{},
		Cut: func(int) {}, Python: func(int, bpf.Python) {},
	}
}

// Close closes the files.
func (n *Names) Close() {
	for _, im := range n.images {
		im.Close()
	}
	n.files.Close()
}

// Forget drops what is known of a process, which has ended or runs another
// program now.
func (n *Names) Forget(pid uint32) {
	if im := n.images[pid]; im != nil {
		im.Close()
		delete(n.images, pid)
	}
}

// mostImages bounds the processes whose images are kept: each is an open file.
const mostImages = 256

// Prepare reads the image of a process, so that its samples carry the frames of
// Python from the first on. Of many processes those that are sampled are read.
func (n *Names) Prepare(pid uint32) {
	if len(n.images) < mostImages {
		n.image(pid)
	}
}

// image is that of a process; nil if it has ended.
func (n *Names) image(pid uint32) *named {
	im := n.images[pid]
	if im != nil {
		return im
	}
	opened, err := image.Open(procfs.Process(pid), n.files)
	if err != nil {
		return nil
	}
	if len(n.images) >= mostImages {
		for other := range n.images {
			n.Forget(other)
			break
		}
	}
	im = &named{Image: opened, native: map[uint64]Frame{}, read: bpf.Now()}
	n.images[pid] = im
	n.findPython(pid, im)
	return im
}

func (n *Names) findPython(pid uint32, im *named) {
	r, err := cpython.Find(im.Image)
	if err != nil {
		return
	}
	im.python, im.codes = r, r.Codes()
	p := bpf.Python{
		Runtime: r.Address, CodeTag: uint64(r.CodeMask), Interpreters: r.RuntimeInterpreters, Threads: r.InterpreterThreads,
		ThreadNext: r.ThreadNext, ThreadID: r.ThreadPthread, NativeID: r.ThreadNative, Frame: r.ThreadFrame, CFrameCurrent: r.CFrameFrame,
		Code: r.FrameCode, Previous: r.FramePrevious, Instruction: r.FrameInstruction, Owner: r.FrameOwner, InstructionSize: 8,
	}
	if r.FrameEntry != cpython.None {
		p.Owner = r.FrameEntry // the byte before the owner
	}
	if r.Minor < 11 {
		p.InstructionSize = 4
	}
	n.Python(int(pid), p)
}

// Stack steps through a sample. What a process has mapped since its map was read
// is looked up by reading it again.
func (n *Names) Stack(s *bpf.Sample) Stack {
	im := n.image(s.PID)
	if im == nil {
		return Stack{}
	}
	calls, err := n.unwind(im, s)
	if err != nil && im.read < s.Time && im.Refresh() == nil {
		im.read = bpf.Now()
		clear(im.native)
		if im.python == nil {
			n.findPython(s.PID, im)
		}
		calls, err = n.unwind(im, s)
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
	steps, whole := unwind.Merge(im.Image, im.python, calls, im.pythonFrames(s))
	out.Complete = out.Complete && whole && s.PythonState == bpf.Complete
	for _, step := range steps {
		out.Frames = append(out.Frames, im.frame(step))
	}
	return out
}

// pythonFrames are the frames as the interpreter's version has them.
func (im *named) pythonFrames(s *bpf.Sample) []cpython.Frame {
	out := make([]cpython.Frame, len(s.Python))
	for i, f := range s.Python {
		out[i] = cpython.Frame{Address: f.Frame, Code: f.Code, Instruction: f.Instruction, Owner: uint8(f.Owner)}
		if im.python.FrameEntry != cpython.None {
			out[i].Entry, out[i].Owner = f.Owner&0xff != 0, uint8(f.Owner>>8)
		}
	}
	return out
}

func (n *Names) unwind(im *named, s *bpf.Sample) (calls []unwind.Call, err error) {
	own := s.Regs.SP - s.Base
	if own > uint64(len(s.Stack)) {
		return nil, unwind.ErrCopyEnds
	}
	u := unwind.Sample{Stack: s.Stack[own:]}
	for reg, v := range map[int]uint64{
		elf.RIP: s.Regs.IP, elf.RSP: s.Regs.SP, elf.RBP: s.Regs.BP, elf.RBX: s.Regs.BX,
		elf.R12: s.Regs.R12, elf.R12 + 1: s.Regs.R13, elf.R12 + 2: s.Regs.R14, elf.R12 + 3: s.Regs.R15,
	} {
		u.Registers[reg] = v
		u.Known |= 1 << reg
	}
	n.calls, err = unwind.Calls(im.Image, &u, n.calls[:0])
	return n.calls, err
}

// frame names a step. The names of native code are kept.
func (im *named) frame(s unwind.Step) Frame {
	if s.Python != nil {
		return unwind.Name(im.Image, im.codes, s)
	}
	f, known := im.native[s.Call.PC]
	if !known {
		f = unwind.Name(im.Image, im.codes, s)
		im.native[s.Call.PC] = f
	}
	return f
}
