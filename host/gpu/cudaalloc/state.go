package cudaalloc

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"strandline/internal/sorts"
)

// A Block is a piece of a segment.
type Block struct {
	Addr, Size, Requested uint64
	Stream                uint64
	Device                int
	Allocated             bool
	Pending               bool // freed, but waiting for another stream
	pool                  uint64
	mapped                bool
	prev, next            uint64
}

// A Segment is memory that the driver gave in one call, or a contiguous run of memory
// that it mapped.
type Segment struct {
	Device     int
	Stream     uint64
	Addr, Size uint64
	Small      bool // of the pool for small requests
	Expandable bool
	Private    bool    // from a pool of its own, as graphs have
	Pool       uint64  // which one: an arbitrary number
	Blocks     []Block // by address, without gaps
}

// errState states that a state cannot be read. As the process runs, the next attempt can
// succeed.
var errState = errors.New("what the allocator holds is not of a known form")

// State reads what the allocator holds, by device and address. The process keeps
// running: unless nothing is requested or freed while State reads, the result does not
// describe any single moment. A contradictory state is an error.
func (a *Allocator) State() ([]Segment, error) {
	if a.devices == 0 {
		return nil, errState
	}
	r := &stateReader{a: a, pid: int(a.im.Process), blocks: map[uint64]*Block{}, pools: map[uint64]pool{}}
	if err := r.read(); err != nil {
		return nil, err
	}
	return r.segments()
}

// Bounds on what is read from a possibly hostile process.
const (
	maxDevices   = 128
	maxBlocks    = 1 << 21
	maxTable     = 256 << 20
	maxObject    = 1 << 17 // of the allocator
	deviceObject = 1 << 13 // within which the pools of a device are
)

type stateReader struct {
	a      *Allocator
	pid    int
	blocks map[uint64]*Block // by the address of their record
	pools  map[uint64]pool
	shift  *uint64 // by how much the fields from the size on are displaced; nil until a record has shown it
	bytes  int
}

// A pool is a set of free blocks.
type pool struct{ small, private bool }

// The fields of a block's record, as in PyTorch 2.0 to 2.10. From 2.11 on a word with a
// number stands before the size.
const (
	numberBytes = 8

	blockDevice    = 0 // a byte; in 2.0 a word
	blockStream    = 8
	blockUses      = 16 // the streams that use it, a set
	blockSize      = 48
	blockRequested = 56
	blockPool      = 64
	blockAddr      = 72
	blockAllocated = 80
	blockMapped    = 81
	blockPrev      = 88
	blockNext      = 96
	blockEvents    = 104
	blockRecord    = 112 + numberBytes // bytes that are read
	setElements    = 24                // of a set: how many there are
)

func (r *stateReader) read() error {
	object := r.take(r.a.address, min(r.a.devices+16, maxObject))
	if object == nil {
		return errState
	}
	vector := object[r.a.devices:]
	from, to := order.Uint64(vector), order.Uint64(vector[8:])
	if to < from || (to-from)%8 != 0 || to-from > 8*maxDevices {
		return errState
	}
	if from == to {
		return nil // nothing has been requested yet
	}
	list := r.take(from, to-from)
	if list == nil {
		return errState
	}
	known, err := r.allocated(object[:r.a.devices])
	if err != nil {
		return err
	}
	if err := r.follow(known); err != nil {
		return err
	}
	pools := map[uint64]bool{}
	for ; len(list) > 0; list = list[8:] {
		for _, p := range r.poolsIn(order.Uint64(list)) {
			pools[p] = true
		}
	}
	for _, b := range r.blocks {
		pools[b.pool] = true
	}
	for p := range pools {
		free, err := r.free(p)
		if err != nil {
			return err
		}
		if err := r.follow(free); err != nil {
			return err
		}
	}
	return r.check()
}

// allocated returns the blocks that the program has: the allocator keeps them in tables
// by address, which are recognized by their maximum load. Such a table has a pointer,
// its number of places minus one, a shift, how far an element may be from its place,
// the maximum load as a float, and the number of elements.
func (r *stateReader) allocated(object []byte) (out []uint64, err error) {
	const (
		table = 32
		entry = 24 // how far it is from its place, -1 for none; key; value
	)
	half := math.Float32bits(0.5)
	found := false
	for at := 8; at+table <= len(object); at += 8 {
		t := object[at:]
		if order.Uint32(t[20:]) != half || t[16] > 63 || t[17] > 64 {
			continue
		}
		entries, last, n := order.Uint64(t), order.Uint64(t[8:]), order.Uint64(t[24:])
		if (last+1)&last != 0 || n > last+1 || entries == 0 {
			continue
		}
		found = true
		if n == 0 {
			continue
		}
		b := r.take(entries, (last+uint64(t[17]))*entry) // plus one more, which marks the end
		if b == nil {
			return nil, errState
		}
		for ; len(b) >= entry; b = b[entry:] {
			if int8(b[0]) >= 0 && order.Uint64(b[8:]) != 0 {
				out = append(out, order.Uint64(b[16:]))
			}
		}
	}
	if !found {
		return nil, errState
	}
	return out, nil
}

// follow reads blocks and their neighbors in memory.
func (r *stateReader) follow(at []uint64) error {
	for len(at) > 0 {
		var fresh []uint64
		for _, p := range at {
			if p != 0 && r.blocks[p] == nil {
				r.blocks[p] = &Block{}
				fresh = append(fresh, p)
			}
		}
		if len(r.blocks) > maxBlocks {
			return fmt.Errorf("it has more than %d blocks", maxBlocks)
		}
		records, err := r.records(fresh, blockRecord)
		if err != nil {
			return err
		}
		at = at[:0:0]
		for i, p := range fresh {
			b, err := r.parseBlock(records[i])
			if err != nil {
				return err
			}
			*r.blocks[p] = b
			at = append(at, b.prev, b.next)
		}
	}
	return nil
}

// parseBlock reads a record, the first of which shows where its fields are: its pool
// begins with a set.
func (r *stateReader) parseBlock(b []byte) (out Block, err error) {
	if r.shift == nil {
		for _, shift := range []uint64{0, numberBytes} {
			if _, trees := r.pool(order.Uint64(b[blockPool+shift:])); trees > 0 {
				r.shift = &shift
				break
			}
		}
		if r.shift == nil {
			return out, errState
		}
	}
	tail := b[*r.shift:]
	word := func(at int) uint64 { return order.Uint64(tail[at:]) }
	out = Block{
		Device: int(b[blockDevice]), Stream: order.Uint64(b[blockStream:]), Size: word(blockSize), Requested: word(blockRequested), Addr: word(blockAddr),
		Allocated: tail[blockAllocated] != 0, mapped: tail[blockMapped] != 0, pool: word(blockPool), prev: word(blockPrev), next: word(blockNext),
	}
	out.Pending = !out.Allocated && (order.Uint32(tail[blockEvents:]) != 0 || order.Uint64(b[blockUses+setElements:]) != 0)
	return out, nil
}

// A tree of the standard library: its comparison function (nothing from 2.15 on), then
// its header: a node whose color is 0, whose parent is the root, with the leftmost and
// the rightmost node. Then the number of elements.
const (
	treeHeader = 8
	treeRoot   = 16
	treeLeft   = 24
	treeRight  = 32
	treeCount  = 40
	treeSize   = 48

	nodeParent = 8
	nodeLeft   = 16
	nodeRight  = 24
	nodeValue  = 32
	nodeSize   = 40
)

// isTree reports whether memory at an address is a set of blocks: an empty one points to
// itself, and the root of another one points back to it.
func (r *stateReader) isTree(b []byte, addr uint64) bool {
	root, left, right, n := order.Uint64(b[treeRoot:]), order.Uint64(b[treeLeft:]), order.Uint64(b[treeRight:]), order.Uint64(b[treeCount:])
	if header := addr + treeHeader; n == 0 {
		return root == 0 && left == header && right == header
	} else if root == 0 || left == 0 || right == 0 || n > maxBlocks || order.Uint32(b[treeHeader:]) != 0 {
		return false
	} else {
		node := r.take(root, nodeSize)
		return node != nil && order.Uint64(node[nodeParent:]) == header
	}
}

// A pool begins with its sets of blocks: the free ones by size, from 2.13 on the same by
// address, and from 2.1 on those that are not mapped. After them it states whether it is
// for small blocks, and its owner.
const (
	maxTrees = 3
	poolSize = maxTrees*treeSize + 16
)

// trees returns how many sets of blocks stand in memory at an address.
func (r *stateReader) trees(b []byte, addr uint64) (n int) {
	for n < maxTrees && len(b) >= treeSize && r.isTree(b, addr) {
		b, addr, n = b[treeSize:], addr+treeSize, n+1
	}
	return n
}

// pool reads a pool, and returns the number of its sets, 0 if there is none.
func (r *stateReader) pool(addr uint64) ([]byte, int) {
	b := r.take(addr, poolSize)
	return b, r.trees(b, addr)
}

// poolsIn returns the pools in the state of a device.
func (r *stateReader) poolsIn(device uint64) (out []uint64) {
	b := r.take(device, deviceObject)
	for n := uint64(deviceObject); b == nil && n > 1<<10; n /= 2 {
		b = r.take(device, n)
	}
	for at := 0; at+poolSize <= len(b); at += 8 {
		if n := r.trees(b[at:], device+uint64(at)); n > 0 {
			out = append(out, device+uint64(at))
			at += n*treeSize - 8
		}
	}
	return out
}

// free returns the free blocks of a pool.
func (r *stateReader) free(at uint64) (out []uint64, err error) {
	b, trees := r.pool(at)
	if trees == 0 {
		return nil, errState
	}
	rest := b[trees*treeSize:]
	r.pools[at] = pool{small: rest[0] != 0, private: order.Uint64(rest[8:]) != 0}
	n := order.Uint64(b[treeCount:])
	nodes := []uint64{order.Uint64(b[treeRoot:])}
	for len(nodes) > 0 && nodes[0] != 0 {
		records, err := r.records(nodes, nodeSize)
		if err != nil {
			return nil, err
		}
		nodes = nodes[:0:0]
		for _, b := range records {
			out = append(out, order.Uint64(b[nodeValue:]))
			for _, child := range []uint64{order.Uint64(b[nodeLeft:]), order.Uint64(b[nodeRight:])} {
				if child != 0 {
					nodes = append(nodes, child)
				}
			}
		}
		if uint64(len(out)+len(nodes)) > n {
			return nil, errState
		}
	}
	if uint64(len(out)) != n {
		return nil, errState
	}
	return out, nil
}

// check makes sure that what was read is consistent.
func (r *stateReader) check() error {
	for at, b := range r.blocks {
		if _, known := r.pools[b.pool]; !known || b.Addr == 0 || b.Size == 0 || b.Size > 1<<46 || b.Device >= maxDevices {
			return errState
		}
		if b.Allocated && (b.Requested > b.Size || !b.mapped) {
			return errState
		}
		if n := r.blocks[b.next]; b.next != 0 && (n.prev != at || n.Addr != b.Addr+b.Size || n.pool != b.pool) {
			return errState
		}
		if p := r.blocks[b.prev]; b.prev != 0 && p.next != at {
			return errState
		}
	}
	return nil
}

// segments returns the runs of mapped blocks.
func (r *stateReader) segments() (out []Segment, err error) {
	for _, b := range r.blocks {
		if b.prev != 0 {
			continue
		}
		expandable := false
		for at := b; at != nil; at = r.blocks[at.next] {
			expandable = expandable || !at.mapped
		}
		var s *Segment
		for at := b; at != nil; at = r.blocks[at.next] {
			if !at.mapped {
				s = nil
				continue
			}
			if s == nil {
				p := r.pools[at.pool]
				out = append(out, Segment{Device: at.Device, Stream: at.Stream, Addr: at.Addr, Small: p.small, Private: p.private, Pool: at.pool, Expandable: expandable})
				s = &out[len(out)-1]
			}
			s.Size += at.Size
			s.Blocks = append(s.Blocks, *at)
		}
	}
	sorts.By(out, func(x, y Segment) int { return cmp.Or(cmp.Compare(x.Device, y.Device), cmp.Compare(x.Addr, y.Addr)) })
	for i := range out[:max(len(out)-1, 0)] {
		if out[i].Device == out[i+1].Device && out[i].Addr+out[i].Size > out[i+1].Addr {
			return nil, errState
		}
	}
	return out, nil
}
