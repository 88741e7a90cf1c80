package purpose

import (
	"sort"
	"strings"

	"strandline/internal/lazyregexp"
	"strandline/stack"
	"strandline/torch/timeline"
)

// A Family is a tensor that is in the peak together with copies of it.
type Family struct {
	Site   stack.Site // of the tensor
	Stack  stack.ID
	Bytes  int64
	Copies []Copy // by birth
}

// A Copy is one of them.
type Copy struct {
	Site  stack.Site
	Stack stack.ID
	Op    string // "clone", or "_to_copy" for one in another type
	Bytes int64
	Times int // allocations that the history shows of this stack
}

// CopyBytes returns what the copies hold.
func (f *Family) CopyBytes() (n int64) {
	for i := range f.Copies {
		n += f.Copies[i].Bytes
	}
	return n
}

// operator is PyTorch's name of an operation in a C++ frame.
var operator = lazyregexp.New(`^at::_ops::(\w+)::(?:call|redispatch)`)

const (
	copyShare = 0.02 // of the peak: smaller copies are not looked at
	maxCopies = 16   // nor are more than these, the largest
)

// families finds copies in the peak beside what they are copies of. Only C++
// frames show that an operation copies, and files do not show what it read: a family
// is named where a single tensor can have been the source. Only that has the size,
// and nothing was made between the two that the copy could be of a piece of.
func (j *judge) families() (out []Family) {
	peak := j.t.PeakRequested
	if peak.Event == timeline.Never {
		return nil
	}
	index := map[int]int{} // of the source → in out
	root := map[int]int{}  // of a copy
	for _, c := range j.copiesAt(peak) {
		i, ok := j.source(c.alloc, c.op, root)
		if !ok || j.gone(i, peak.Event+1) || !j.together(i, c.alloc) {
			continue
		}
		root[c.alloc] = i
		if _, known := index[i]; !known {
			index[i] = len(out)
			out = append(out, Family{Site: j.site(i), Stack: j.t.Stack(i), Bytes: j.t.Size(i)})
		}
		f := &out[index[i]]
		f.Copies = append(f.Copies, Copy{Site: j.site(c.alloc), Stack: j.t.Stack(c.alloc), Op: c.op, Bytes: j.t.Size(c.alloc)})
	}
	j.countTimes(out)
	sort.SliceStable(out, func(a, b int) bool { return out[a].CopyBytes() > out[b].CopyBytes() })
	return out
}

func (j *judge) site(i int) stack.Site { return j.t.Snap.Stacks.Site(j.t.Stack(i)) }

// A copied is an allocation that a copying operation made.
type copied struct {
	alloc int
	op    string
}

// copiesAt are the largest copies of the peak that are made for a while, by
// birth.
func (j *judge) copiesAt(peak timeline.Point) (out []copied) {
	ops := map[stack.ID]string{}
	for _, i := range j.t.LiveAt(peak.Event) {
		if float64(j.t.Size(i)) < copyShare*float64(peak.Bytes) || j.t.Before(i) {
			continue
		}
		id := j.t.Stack(i)
		op, ok := ops[id]
		if !ok {
			op = copyOp(j.t.Snap.Stacks.Stack(id))
			ops[id] = op
		}
		if p := j.at(i, peak.Event); op != "" && (p == Activations || p == Temporaries) {
			out = append(out, copied{i, op})
		}
	}
	sort.SliceStable(out, func(a, b int) bool { return j.t.Size(out[a].alloc) > j.t.Size(out[b].alloc) })
	out = out[:min(len(out), maxCopies)]
	sort.Slice(out, func(a, b int) bool { return out[a].alloc < out[b].alloc })
	return out
}

// copyOp is the operator by which a stack copies a tensor, "" if it does anything
// else. Allocations are inside it. A move from another device has no source
// here, autocast's casts are not the program's, and reshape can make more of a
// tensor than it is.
func copyOp(frames []stack.Frame) (op string) {
	for i := range frames {
		if stack.OriginOf(frames[i]) != stack.Native {
			return op // Python called it
		}
		if strings.HasPrefix(frames[i].Function, "at::autocast::") {
			return ""
		}
		m := operator.FindStringSubmatch(frames[i].Function)
		switch {
		case m == nil, op == "" && (strings.HasPrefix(m[1], "empty") || m[1] == "copy_"):
		case m[1] == "to_device", m[1] == "to_dtype_layout", strings.Contains(m[1], "reshape"):
			return ""
		case op == "" && m[1] != "_to_copy" && m[1] != "clone":
			return ""
		case op == "":
			op = m[1]
		}
	}
	return "" // a thread without Python
}

// source is the only tensor that allocation c can be a copy of. Copies of one
// tensor count as that tensor.
func (j *judge) source(c int, op string, root map[int]int) (int, bool) {
	birth, size := j.t.Birth(c), j.t.Size(c)
	const none = -1
	found, larger := none, none // the newest of what it could be a piece of
	for _, i := range j.t.LiveAt(birth) {
		origin := i
		if r, ok := root[i]; ok {
			origin = r
		}
		switch n := j.t.Size(i); {
		case i == c:
		case copySize(n, size, op):
			if found != none && found != origin {
				return none, false
			}
			found = origin
		case origin == i && (n > size || n == size && op != "_to_copy"):
			larger = i
		}
	}
	return found, found != none && larger < found
}

// copySize reports whether a tensor of n bytes can be what a copy of size bytes is
// of: a copy in another type has half or twice its size, any other its own, and
// slightly less where a slice was copied (logits[:, :-1]).
func copySize(n, size int64, op string) bool {
	const slices = 16
	about := func(size int64) bool { return n >= size && n <= size+size/slices }
	if op == "_to_copy" {
		return about(2*size) || about(size/2)
	}
	return about(size)
}

// together reports whether a copy lives most of its life beside its source.
func (j *judge) together(source, c int) bool {
	end := func(i int) int {
		if death := j.t.Death(i); death != timeline.Never {
			return death
		}
		return j.events
	}
	birth := j.t.Birth(c)
	return 2*(min(end(source), end(c))-birth) >= end(c)-birth
}

// countTimes counts how often the history shows each copy.
func (j *judge) countTimes(families []Family) {
	times := map[stack.ID]int{}
	for i := range families {
		for _, c := range families[i].Copies {
			times[c.Stack] = 0
		}
	}
	if len(times) == 0 {
		return
	}
	for i := range j.t.Allocs {
		if n, ok := times[j.t.Stack(i)]; ok {
			times[j.t.Stack(i)] = n + 1
		}
	}
	for i := range families {
		for k := range families[i].Copies {
			families[i].Copies[k].Times = times[families[i].Copies[k].Stack]
		}
	}
}
