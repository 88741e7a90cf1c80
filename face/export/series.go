package export

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"strandline/internal/sorts"
	"strandline/profiles"
	"strandline/profiles/jax"
	"strandline/stack"
	"strandline/torch/snapshot"
	"strandline/units"
)

// maxDrawn is how many allocations of a series become events.
const maxDrawn = 2_000_000

// second is a second in the unit of a snapshot's times.
const second = 1_000_000

// Series makes a snapshot of several files that hold allocations with stacks: file by
// file, a second apart, what is gone is freed and what is new is allocated, within an
// annotation of the file's name. Such files
// give allocations no identity: of those of one stack and size the oldest are taken to
// go first. Each has a segment of its own, since the files do not show the allocator's.
// Stacks begin with the innermost line that is not of an installed package. Devices are
// numbered in the order of their labels; executables belong to none.
func Series(files []*profiles.File) (*snapshot.Snapshot, error) {
	d := drawn{Snapshot: snapshot.New(), live: map[piece][]uint64{}}
	d.Drawn = true
	labels := d.devices(files)
	for i, f := range files {
		counts := map[piece]int64{}
		for k := range f.Uses {
			u := &f.Uses[k]
			if u.Size <= 0 || u.Kind == jax.Executable {
				continue
			}
			p := piece{slices.Index(labels, u.Device), d.stack(usedFrames(u)), u.Size}
			counts[p] = units.Sum(counts[p], u.Count)
		}
		at := int64(i+1) * second
		if err := d.moment(at, counts); err != nil {
			return nil, err
		}
		for k := range d.Traces {
			d.Annotations = append(d.Annotations, snapshot.Annotation{Name: filepath.Base(f.Name), Device: k, Time: at},
				snapshot.Annotation{Name: filepath.Base(f.Name), Device: k, Time: at + 1, End: true})
		}
	}
	d.end()
	return d.Snapshot, nil
}

// piece is what allocations have in common.
type piece struct {
	device int
	stack  stack.ID
	size   int64
}

// drawn is a snapshot that is being made.
type drawn struct {
	*snapshot.Snapshot
	live map[piece][]uint64 // addresses, oldest first
	next uint64             // the address after the last one
	n    int64              // allocations
}

// devices makes a trace for each device, and returns their labels.
func (d *drawn) devices(files []*profiles.File) (labels []string) {
	for _, f := range files {
		for i := range f.Uses {
			if u := &f.Uses[i]; u.Kind != jax.Executable && !slices.Contains(labels, u.Device) {
				labels = append(labels, u.Device)
			}
		}
	}
	slices.Sort(labels)
	d.Traces = nil
	for i := range max(len(labels), 1) {
		d.Traces = append(d.Traces, snapshot.Trace{Device: i})
	}
	d.next = 1 << 32
	d.Streams = []uint64{0}
	return labels
}

// stack interns frames from the site on.
func (d *drawn) stack(frames []stack.Frame) stack.ID {
	if i := slices.Index(frames, jax.Site(frames)); i > 0 {
		frames = frames[i:]
	}
	ids := make([]stack.FrameID, len(frames))
	for i, f := range frames {
		ids[i] = d.Stacks.Frame(f, nil)
	}
	return d.Stacks.Intern(ids)
}

// moment frees and allocates until there are so many of each piece.
func (d *drawn) moment(at int64, counts map[piece]int64) error {
	var pieces []piece
	for p := range d.live {
		pieces = append(pieces, p)
	}
	for p := range counts {
		if _, known := d.live[p]; !known {
			pieces = append(pieces, p)
		}
	}
	sorts.By(pieces, func(a, b piece) int {
		return cmp.Or(cmp.Compare(a.device, b.device), cmp.Compare(a.stack, b.stack), cmp.Compare(a.size, b.size))
	})
	for _, p := range pieces {
		for int64(len(d.live[p])) > counts[p] {
			addr := d.live[p][0]
			d.live[p] = d.live[p][1:]
			for _, action := range []snapshot.Action{snapshot.FreeRequested, snapshot.FreeCompleted, snapshot.SegmentFree} {
				d.event(action, p, addr, at)
			}
		}
	}
	for _, p := range pieces {
		more := max(counts[p]-int64(len(d.live[p])), 0)
		if d.n = units.Sum(d.n, more); d.n > maxDrawn {
			return fmt.Errorf("more than %s arrays cannot be drawn; `strandline diagnose` judges them", units.Count(maxDrawn))
		}
		for range more {
			d.event(snapshot.SegmentAlloc, p, d.next, at)
			d.event(snapshot.Alloc, p, d.next, at)
			d.live[p] = append(d.live[p], d.next)
			d.next += uint64(p.size+511) &^ 511
		}
	}
	return nil
}

func (d *drawn) event(action snapshot.Action, p piece, addr uint64, at int64) {
	t := &d.Traces[p.device]
	t.Action = append(t.Action, action)
	t.Addr = append(t.Addr, addr)
	t.Size = append(t.Size, p.size)
	t.Stream = append(t.Stream, 0)
	t.Stack = append(t.Stack, p.stack)
	t.Time = append(t.Time, at)
}

// end adds the segments of what lives at the end.
func (d *drawn) end() {
	kind := d.StringID("large")
	for p, list := range d.live {
		for _, addr := range list {
			d.Segments = append(d.Segments, snapshot.Segment{
				Device: p.device, Addr: addr, TotalSize: p.size, AllocatedSize: p.size, ActiveSize: p.size, RequestedSize: p.size,
				Type: kind, Pool: d.PoolID(snapshot.Pool{}), Stack: p.stack,
				Blocks: []snapshot.Block{{Addr: addr, Size: p.size, Requested: p.size, Stack: p.stack, State: snapshot.Allocated}},
			})
		}
	}
	sorts.By(d.Segments, func(a, b snapshot.Segment) int {
		return cmp.Or(cmp.Compare(a.Device, b.Device), cmp.Compare(a.Addr, b.Addr))
	})
}
