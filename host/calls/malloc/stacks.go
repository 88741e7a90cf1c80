package malloc

import "strandline/host/code/symbolize"

// stacks are distinct stacks by number, as a tree: those of a program begin alike. Number 0
// is no stack. The zero value is empty.
type stacks struct {
	frames []symbolize.Frame
	nodes  []node
	frame  map[symbolize.Frame]int32
	node   map[node]int32
}

// A node is a frame and the stack that called it.
type node struct{ caller, frame int32 }

// maxNodes bounds them; each takes some 60 bytes.
const maxNodes = 1 << 19

// number returns that of a stack, 0 if there is no room for another.
func (t *stacks) number(s symbolize.Stack) int {
	if t.nodes == nil {
		t.nodes, t.frame, t.node = make([]node, 1), map[symbolize.Frame]int32{}, map[node]int32{}
	}
	at := int32(0)
	for i := len(s.Frames) - 1; i >= 0; i-- {
		f, known := t.frame[s.Frames[i]]
		if !known {
			f = int32(len(t.frames))
			t.frames, t.frame[s.Frames[i]] = append(t.frames, s.Frames[i]), f
		}
		n, known := t.node[node{at, f}]
		if !known {
			if len(t.nodes) == maxNodes {
				return 0
			}
			n = int32(len(t.nodes))
			t.nodes, t.node[node{at, f}] = append(t.nodes, node{at, f}), n
		}
		at = n
	}
	return int(at)
}

// at returns the frames of the stack with a number, innermost first.
func (t *stacks) at(n int) (out []symbolize.Frame) {
	for i := int32(n); i > 0; i = t.nodes[i].caller {
		out = append(out, t.frames[t.nodes[i].frame])
	}
	return out
}
