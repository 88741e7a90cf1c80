package tile

import (
	"cmp"
	"crypto/sha256"
	"fmt"
	"hash/fnv"
	"io"
	"math/bits"
	"path"
	"strconv"
	"strings"

	"strandline/stack"
	"strandline/torch/purpose"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
	"strandline/units"
)

// A Grouping states what is put together in one band.
type Grouping string

// The groupings.
const (
	ByLine     Grouping = "line"     // the innermost line of own code
	ByFunction Grouping = "function" // its function
	ByFile     Grouping = "file"     // its file
	ByStack    Grouping = "stack"    // the whole stack
	ByPurpose  Grouping = "purpose"  // what the memory is for
	ByPool     Grouping = "pool"     // pool and stream
	BySize     Grouping = "size"     // power of two of the request
	ByNote     Grouping = "annotation"
)

// A Key names a group by 48 bits of a hash of its identity: the same in every
// file.
type Key uint64

func (k Key) String() string { return fmt.Sprintf("%012x", uint64(k)) }

// ParseKey reads what String prints.
func ParseKey(s string) (Key, error) {
	n, err := strconv.ParseUint(s, 16, 48)
	if err != nil {
		return 0, fmt.Errorf("%q is not a key of a group", s)
	}
	return Key(n), nil
}

func keyOf(parts ...string) Key {
	h := fnv.New64a()
	for _, p := range parts {
		h.Write([]byte(p))
		h.Write([]byte{0})
	}
	return keyOfSum(h.Sum64())
}

func keyOfSum(sum uint64) Key { return Key((sum ^ sum>>48) & (1<<48 - 1)) }

// KeyOfSite is the key of a line of code, as [ByLine] groups it.
func KeyOfSite(s stack.Site) Key {
	return keyOf(s.File, strconv.FormatInt(s.Line, 10), s.Function)
}

// KeyOfMissing is the key of allocations without a line of own code, by the cause.
func KeyOfMissing(why timeline.Missing) Key { return keyOf("", string(why)) }

// A Group is what a grouping puts together.
type Group struct {
	Key      Key
	Label    string
	Site     stack.Site // of the groupings by code; the line is 0 where it is not one
	HasSite  bool
	missing  timeline.Missing // why a line of own code is missing, for the groupings by code
	Peak     int64            // most bytes live at once
	PeakAt   int              // event
	Kept     int64            // alive at the snapshot
	Allocs   int
	identity string
}

// Groupings are those that the history can serve.
func (h *History) Groupings() []Grouping {
	out := []Grouping{ByLine, ByFunction, ByFile, ByStack, ByPurpose, ByPool, BySize}
	if h.Trace.UserMetadata != nil {
		out = append(out, ByNote)
	}
	return out
}

// grouper puts allocations into groups.
type grouper struct {
	h       *History
	groups  []Group
	index   map[string]int32 // by identity
	byStack []int32          // group of a stack, none if not yet known
	of      func(i int) int32
}

func newGrouper(h *History, g Grouping) (*grouper, error) {
	x := &grouper{h: h, index: map[string]int32{}}
	stacks := func(make func(i int, id stack.ID) Group) {
		x.byStack = make32(h.Snap.Stacks.Len())
		without := map[timeline.Missing]int32{}
		x.of = func(i int) int32 {
			id := h.Stack(i)
			if id <= stack.Empty { // the cause is the allocation's, not the stack's
				why := h.Missing(i)
				g, ok := without[why]
				if !ok {
					g = x.add(foreign(why, nil))
					without[why] = g
				}
				return g
			}
			if x.byStack[id] == none {
				x.byStack[id] = x.add(make(i, id))
			}
			return x.byStack[id]
		}
	}
	switch g {
	case ByLine:
		stacks(x.line)
	case ByFunction:
		stacks(x.function)
	case ByFile:
		stacks(x.file)
	case ByStack:
		stacks(x.stack)
	case ByPurpose:
		purposes := purpose.Each(h.Timeline)
		x.of = func(i int) int32 {
			name, words := h.Purpose(i, purposes[i]), purposes[i].Words()
			if name != purposes[i].String() { // kept, and named for that
				words = name
			}
			return x.labeled(name, words)
		}
	case ByPool:
		x.of = x.pools()
	case BySize:
		x.of = x.classes(func(i int) uint8 { return sizeClass(h.Size(i)) }, sizeName)
	case ByNote:
		if h.Trace.UserMetadata == nil {
			return nil, fmt.Errorf("the file has no annotations of allocations")
		}
		x.of = func(i int) int32 {
			if b := h.Birth(i); b >= 0 {
				return x.named(h.Snap.String(h.Trace.UserMetadata[b]), "not annotated")
			}
			return x.named("", "not annotated")
		}
	default:
		return nil, fmt.Errorf("there is no grouping %q", string(g))
	}
	return x, nil
}

func make32(n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = none
	}
	return out
}

// add is the index of a group, a new one if there is none of its identity.
func (x *grouper) add(g Group) int32 {
	if i, ok := x.index[g.identity]; ok {
		return i
	}
	i := int32(len(x.groups))
	x.index[g.identity] = i
	x.groups = append(x.groups, g)
	return i
}

func (x *grouper) named(name, empty string) int32 { return x.labeled(name, cmp.Or(name, empty)) }

func (x *grouper) labeled(name, label string) int32 {
	if i, ok := x.index[name]; ok {
		return i
	}
	return x.add(Group{Key: keyOf(name), Label: label, identity: name})
}

// line is the group of a stack by its site; stacks without own code are
// separated by why they have none.
func (x *grouper) line(i int, id stack.ID) Group {
	site := x.h.Snap.Stacks.Site(id)
	if site == (stack.Site{}) {
		return foreign(x.h.Missing(i), x.h.Snap.Stacks.Stack(id))
	}
	return Group{Key: KeyOfSite(site), Label: fmt.Sprintf("%s:%d %s", base(site.File), site.Line, site.Function),
		Site: site, HasSite: true, identity: fmt.Sprintf("%s\x00%d\x00%s", site.File, site.Line, site.Function)}
}

func (x *grouper) function(i int, id stack.ID) Group {
	site := x.h.Snap.Stacks.Site(id)
	if site == (stack.Site{}) {
		return foreign(x.h.Missing(i), x.h.Snap.Stacks.Stack(id))
	}
	site.Line = 0
	return Group{Key: keyOf(site.File, site.Function), Label: base(site.File) + " " + site.Function,
		Site: site, HasSite: true, identity: site.File + "\x00" + site.Function}
}

func (x *grouper) file(i int, id stack.ID) Group {
	site := x.h.Snap.Stacks.Site(id)
	if site == (stack.Site{}) {
		return foreign(x.h.Missing(i), x.h.Snap.Stacks.Stack(id))
	}
	site.Line, site.Function = 0, ""
	return Group{Key: keyOf(site.File), Label: base(site.File), Site: site, HasSite: true, identity: site.File}
}

func (x *grouper) stack(i int, id stack.ID) Group {
	g := x.line(i, id)
	text, key := sha256.New(), fnv.New64a() // stacks may be long, and many
	for _, f := range x.h.Snap.Stacks.Stack(id) {
		fmt.Fprintf(io.MultiWriter(text, key), "%s\x00%d\x00%s\x00", f.File, f.Line, f.Function)
	}
	g.identity = string(text.Sum(nil))
	key.Write([]byte{0})
	g.Key = keyOfSum(key.Sum64())
	return g
}

// foreign is the group of allocations without a line of own code, by the cause.
// Native code names the operator, where it was recorded.
func foreign(why timeline.Missing, frames []stack.Frame) Group {
	label := string(why)
	if op := operator(frames); op != "" {
		label += " · " + op
	}
	return Group{Key: keyOf("", label), Label: label, missing: why, identity: "\x00" + label}
}

// operator is the innermost operator of PyTorch that native frames name, such
// as at::native::add.
func operator(frames []stack.Frame) string {
	for _, f := range frames {
		name := f.Function
		if !strings.HasPrefix(name, "at::_ops::") && !strings.HasPrefix(name, "at::native::") {
			continue
		}
		if i := strings.IndexAny(name, "(<"); i > 0 {
			name = name[:i]
		}
		name = strings.TrimPrefix(strings.TrimPrefix(name, "at::_ops::"), "at::native::")
		name, _, _ = strings.Cut(name, "::")
		if !strings.HasPrefix(name, "empty") {
			return name
		}
	}
	return ""
}

// pools groups by the pool and the stream of an allocation. Before PyTorch 2.12
// events do not name the pool: it is taken from the segment which holds the address
// at the end.
func (x *grouper) pools() func(i int) int32 {
	h := x.h
	find := newPlaces(h)
	type key struct {
		pool   snapshot.Pool
		stream uint64
		gone   bool
	}
	known := map[key]int32{}
	return func(i int) int32 {
		pool, stream, ok := find.of(i)
		k := key{pool, stream, !ok}
		g, seen := known[k]
		if !seen {
			name := fmt.Sprintf("pool %v, stream %#x", pool, stream)
			if !ok {
				name = "segment is gone"
			}
			g = x.named(name, "")
			known[k] = g
		}
		return g
	}
}

// classes groups by one of few numbers, of which each has a name.
func (x *grouper) classes(of func(i int) uint8, name func(class uint8) string) func(i int) int32 {
	var known [256]int32 // group plus 1
	return func(i int) int32 {
		class := of(i)
		if known[class] == 0 {
			known[class] = x.named(name(class), "") + 1
		}
		return known[class] - 1
	}
}

// sizeClass is the power of two that a request fits in; 0 is for no bytes.
func sizeClass(n int64) uint8 {
	if n <= 0 {
		return 0
	}
	return uint8(1 + bits.Len64(uint64(n-1)))
}

func sizeName(class uint8) string {
	if class == 0 {
		return "0 B"
	}
	return "up to " + units.Bytes(int64(1)<<min(class-1, 62))
}

func base(file string) string { return path.Base(strings.ReplaceAll(file, `\`, "/")) }
