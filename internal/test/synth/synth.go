// Package synth makes snapshots of any length for tests and benchmarks. They
// obey the rules of the format: replaying the events gives the segments. They
// are regular as no real program is: to show that a rule about programs holds,
// use a recorded file.
package synth

import (
	"fmt"
	"math/rand/v2"

	"strandline/stack"
	"strandline/torch/snapshot"
)

const (
	blockSize   = 2 << 20 // bytes of every block
	perSegment  = 10      // blocks
	maxBlocks   = 2000    // live at most
	stacks      = 180     // distinct ones, as a training job has
	base        = 0x7a0000000000
	startTime   = 1_700_000_000_000_000 // µs
	betweenTime = 12                    // µs
)

// Trace is a snapshot of one device with n events at least (a free is two, so
// it may be one more). The same n gives the same snapshot.
func Trace(n int) *snapshot.Snapshot {
	g := generator{s: snapshot.New(), rand: rand.New(rand.NewPCG(1, 2))}
	g.s.Name = fmt.Sprintf("synthetic, %d events", n)
	g.makeStacks()
	g.reserve(n + 2)
	for len(g.e.Action) < n {
		if live := len(g.live); live > 0 && (live == maxBlocks || g.rand.IntN(100) < 49) {
			g.release(g.rand.IntN(live))
		} else {
			g.alloc()
		}
	}
	g.s.Traces[0].Events = g.e
	g.segments()
	return g.s
}

type generator struct {
	s      *snapshot.Snapshot
	rand   *rand.Rand
	e      snapshot.Events
	stacks []stack.ID
	slots  []slot // of all segments
	live   []int  // slots in use
	free   []int  // slots not in use
	from   []stack.ID
}

// A slot is the place of one block.
type slot struct {
	live      bool
	requested int64 // stale when not live
	stack     stack.ID
}

// makeStacks interns stacks of 20 to 40 frames that share their outer part.
func (g *generator) makeStacks() {
	t := g.s.Stacks
	frame := func(file string, line int, name string) stack.FrameID {
		return t.Frame(stack.Frame{File: file, Line: int64(line), Function: name}, nil)
	}
	const torch = "/usr/lib/python3/dist-packages/torch/nn/modules/"
	for i := range stacks {
		var frames []stack.FrameID
		for depth := range 8 + i%20 {
			frames = append(frames, frame(torch+"module.py", 1700+depth*(1+i%4), "_call_impl"))
		}
		frames = append(frames, frame("/home/user/model.py", 10+i, fmt.Sprintf("layer%d", i)))
		for depth := range 12 {
			frames = append(frames, frame("/home/user/train.py", 100+depth, "step"))
		}
		g.stacks = append(g.stacks, t.Intern(frames))
	}
}

func (g *generator) reserve(n int) {
	g.e = snapshot.Events{
		Action: make([]snapshot.Action, 0, n), Addr: make([]uint64, 0, n), Size: make([]int64, 0, n),
		Stream: make([]snapshot.StreamID, 0, n), Stack: make([]stack.ID, 0, n), Time: make([]int64, 0, n),
	}
}

func (g *generator) event(a snapshot.Action, addr uint64, size int64, id stack.ID) {
	g.e.Time = append(g.e.Time, startTime+int64(len(g.e.Action))*betweenTime)
	g.e.Action = append(g.e.Action, a)
	g.e.Addr = append(g.e.Addr, addr)
	g.e.Size = append(g.e.Size, size)
	g.e.Stream = append(g.e.Stream, 0)
	g.e.Stack = append(g.e.Stack, id)
}

func address(slot int) uint64 { return base + uint64(slot)*blockSize }

// alloc takes a free slot, of a new segment if there is none.
func (g *generator) alloc() {
	id := g.stacks[g.rand.IntN(stacks)]
	if len(g.free) == 0 {
		g.event(snapshot.SegmentAlloc, address(len(g.slots)), perSegment*blockSize, id)
		g.from = append(g.from, id)
		for i := range perSegment {
			g.free = append(g.free, len(g.slots)+perSegment-1-i)
		}
		g.slots = append(g.slots, make([]slot, perSegment)...)
	}
	i := g.free[len(g.free)-1]
	g.free = g.free[:len(g.free)-1]
	g.live = append(g.live, i)
	const rounding = 512 // bytes
	g.slots[i] = slot{true, blockSize - g.rand.Int64N(rounding), id}
	g.event(snapshot.Alloc, address(i), g.slots[i].requested, id)
}

// release frees the k-th live slot.
func (g *generator) release(k int) {
	i := g.live[k]
	g.live[k] = g.live[len(g.live)-1]
	g.live = g.live[:len(g.live)-1]
	g.free = append(g.free, i)
	g.slots[i].live = false
	id := g.stacks[g.rand.IntN(stacks)]
	g.event(snapshot.FreeRequested, address(i), g.slots[i].requested, id)
	g.event(snapshot.FreeCompleted, address(i), g.slots[i].requested, id)
}

// segments states what is left after all events.
func (g *generator) segments() {
	large, pool := g.s.StringID("large"), g.s.PoolID(snapshot.Pool{})
	for first := 0; first < len(g.slots); first += perSegment {
		seg := snapshot.Segment{
			Addr: address(first), TotalSize: perSegment * blockSize, Type: large, Pool: pool, Stack: g.from[first/perSegment],
		}
		for i := first; i < first+perSegment; i++ {
			g.block(&seg, i)
		}
		g.s.Segments = append(g.s.Segments, seg)
	}
}

// block adds a slot to its segment; free neighbors are one block.
func (g *generator) block(seg *snapshot.Segment, i int) {
	b := snapshot.Block{Addr: address(i), Size: blockSize, Requested: g.slots[i].requested, Stack: stack.Empty}
	if g.slots[i].live {
		b.State, b.Stack = snapshot.Allocated, g.slots[i].stack
		seg.AllocatedSize += b.Size
		seg.ActiveSize += b.Size
		seg.RequestedSize += b.Requested
	} else if n := len(seg.Blocks); n > 0 && seg.Blocks[n-1].State == snapshot.Inactive {
		seg.Blocks[n-1].Size += b.Size
		return
	}
	seg.Blocks = append(seg.Blocks, b)
}
