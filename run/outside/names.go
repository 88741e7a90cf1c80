package outside

import (
	"strandline/host/calls/event"
	"strandline/host/code/cpython"
	"strandline/host/code/image"
	"strandline/stack"
)

// names are the stacks that events name by a number. As the numbers are of about a
// second, those from before the last but one are forgotten.
type names struct {
	image   *image.Image
	runtime *cpython.Runtime // nil where no stacks are recorded
	codes   *cpython.Codes
	stacks  *stack.Table
	now     map[uint64]stack.ID
	before  map[uint64]stack.ID
}

// maxNames is when the older half of the numbers is forgotten. In a second it is
// not reached: stacks come at 2,700 at a time.
const maxNames = 1 << 17

// add names the frames of a stack.
func (n *names) add(s *event.RequestStack) {
	if n.runtime == nil {
		return
	}
	if len(n.now) >= maxNames || n.now == nil {
		n.before, n.now = n.now, map[uint64]stack.ID{}
	}
	var frames []stack.FrameID
	for _, f := range n.runtime.Frames(s.Frames) {
		if n.runtime.Shim(f) {
			continue
		}
		named, err := n.codes.Name(n.image, f)
		if err != nil {
			named = stack.Frame{File: "??", Function: "??"}
		}
		if !cpython.Internal(named) {
			frames = append(frames, n.stacks.Frame(named, nil))
		}
	}
	n.now[s.ID] = n.stacks.Intern(frames)
}

// of is the stack of a number.
func (n *names) of(id uint64) stack.ID {
	switch {
	case n.runtime == nil:
		return stack.None
	case id == 0: // a thread that runs no Python
		return stack.Empty
	}
	if s, ok := n.now[id]; ok {
		return s
	}
	return n.before[id]
}
