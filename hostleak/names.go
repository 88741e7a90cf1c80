package hostleak

import (
	"errors"
	"fmt"

	"strandline/bpf"
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
	// Cut is told of processes whose stacks go on beyond the copy.
	Cut func(pid int)
}

// named is the image of a process and the frames of the addresses in it.
type named struct {
	*image.Image
	frames map[uint64]Frame
	read   uint64 // when the map was
}

// NewNames has looked at no process yet.
func NewNames() *Names {
	return &Names{files: image.NewFiles(), images: map[uint32]*named{}, Cut: func(int) {}}
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

// Stack steps through a sample. What a process has mapped since its map was read
// is looked up by reading it again.
func (n *Names) Stack(s *bpf.Sample) Stack {
	im := n.images[s.PID]
	if im == nil {
		opened, err := image.Open(procfs.Process(s.PID), n.files)
		if err != nil {
			return Stack{} // it has ended
		}
		im = &named{opened, map[uint64]Frame{}, bpf.Now()}
		n.images[s.PID] = im
	}
	calls, err := n.unwind(im, s)
	if err != nil && im.read < s.Time && im.Refresh() == nil {
		clear(im.frames)
		im.read = bpf.Now()
		calls, err = n.unwind(im, s)
	}
	if errors.Is(err, unwind.ErrCopyEnds) {
		n.Cut(int(s.PID))
	}
	out := Stack{Complete: err == nil}
	for _, c := range calls {
		out.Frames = append(out.Frames, im.frame(c.PC))
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

// frame names the function that holds an address: where it has no name, by the
// object and the place in it.
func (im *named) frame(pc uint64) Frame {
	f, known := im.frames[pc]
	if known {
		return f
	}
	if place, ok := im.Locate(pc); ok && place.Object != nil {
		f.Object = place.Object.Path
		if f.Function = place.Object.Function(place.Linked); f.Function == "" {
			f.Function = fmt.Sprintf("%s+%#x", place.Object.Name(), place.Linked)
		}
	} else {
		f.Function = fmt.Sprintf("%#x", pc)
		f.Object = place.Mapping.Path
	}
	im.frames[pc] = f
	return f
}
