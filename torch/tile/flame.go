package tile

import (
	"cmp"
	"slices"

	"strandline/internal/sorts"
	"strandline/stack"
	"strandline/torch/timeline"
)

// A Flame is a tree of stacks, the outermost frame at its root.
type Flame struct {
	Nodes   []Node // depth first, node 0 is the root
	LeftOut int    // nodes too small
}

// A Node is a frame below its callers.
type Node struct {
	Frame  int // stack.FrameID, or one of those below
	Parent int
	Bytes  int64 // of a difference: what was added and what went, both
	Net    int64 // of a difference: what was added less what went
	Count  int
}

// Numbers in place of a frame's.
const (
	rootFrame     = -1
	stacksOff     = -2
	autogradFrame = -3
	beforeFrame   = -4 // older than the recording
)

// flameShare is the share of the whole below which a node is left out.
const flameShare = 4000

// flameDepth is how deep the tree is; of deeper stacks the innermost frames are
// left out.
const flameDepth = 256

// branch is a node while the tree grows.
type branch struct {
	Node
	below map[int]*branch
}

// FlameOf is the tree of stacks.
func FlameOf(t *stack.Table, sums []StackSum) Flame {
	root := &branch{Node: Node{Frame: rootFrame, Parent: none}}
	for _, s := range sums {
		root.grow(t, s)
	}
	var f Flame
	f.add(root, none, root.Bytes/flameShare)
	return f
}

// grow adds a stack below the root.
func (b *branch) grow(t *stack.Table, s StackSum) {
	at := b
	step := func(frame int) {
		next := at.below[frame]
		if next == nil {
			next = &branch{Node: Node{Frame: frame}}
			if at.below == nil {
				at.below = map[int]*branch{}
			}
			at.below[frame] = next
		}
		at = next
		at.Bytes += max(s.bytes, -s.bytes)
		at.Net += s.bytes
		at.Count += s.count
	}
	b.Bytes += max(s.bytes, -s.bytes)
	b.Net += s.bytes
	b.Count += s.count
	switch s.missing {
	case timeline.StacksOff:
		step(stacksOff)
	case timeline.AutogradThread:
		step(autogradFrame)
	case timeline.BeforeRecording:
		step(beforeFrame)
	}
	frames := t.Frames(s.stack)
	for _, frame := range slices.Backward(frames[max(0, len(frames)-flameDepth):]) {
		step(int(frame))
	}
}

// add appends a branch and what is below it, the heaviest first.
func (f *Flame) add(b *branch, parent int, minBytes int64) {
	at := len(f.Nodes)
	b.Parent = parent
	f.Nodes = append(f.Nodes, b.Node)
	below := make([]*branch, 0, len(b.below))
	for _, x := range b.below {
		if x.Bytes < minBytes {
			f.LeftOut++
			continue
		}
		below = append(below, x)
	}
	sorts.By(below, func(x, y *branch) int { return cmp.Or(cmp.Compare(y.Bytes, x.Bytes), cmp.Compare(x.Frame, y.Frame)) })
	for _, x := range below {
		f.add(x, at, minBytes)
	}
}
