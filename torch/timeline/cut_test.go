package timeline_test

import (
	"bytes"
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strandline/stack"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

const mib = 1 << 20

// A history writes events and, at the end, a snapshot.
type history struct {
	s      *snapshot.Snapshot
	events snapshot.Events
}

func newHistory() *history { return &history{s: snapshot.New()} }

// stack is one of a frame with that name.
func (h *history) stack(name string) stack.ID {
	if name == "" {
		return stack.None
	}
	return h.s.Stacks.Intern([]stack.FrameID{h.s.Stacks.Frame(stack.Frame{File: "train.py", Line: 1, Function: name}, nil)})
}

func (h *history) add(a snapshot.Action, addr uint64, size int64, name string) {
	e := &h.events
	e.Action, e.Addr, e.Size = append(e.Action, a), append(e.Addr, addr), append(e.Size, size)
	e.Stream, e.Stack = append(e.Stream, 0), append(e.Stack, h.stack(name))
	e.Time = append(e.Time, int64(10*len(e.Time)+10)) // event 0 is at 10
}

// segment is a segment of the final state, with its active blocks.
func (h *history) segment(addr uint64, size int64, kind, name string, active ...snapshot.Block) *snapshot.Segment {
	g := snapshot.Segment{Addr: addr, TotalSize: size, Type: h.s.StringID(kind), Stack: h.stack(name)}
	at := addr
	for _, b := range append(active, snapshot.Block{Addr: addr + uint64(size)}) {
		if at < b.Addr {
			g.Blocks = append(g.Blocks, snapshot.Block{Addr: at, Size: int64(b.Addr - at), Requested: 77})
		}
		if b.Size > 0 {
			g.Blocks = append(g.Blocks, b)
			g.ActiveSize += b.Size
			g.RequestedSize += b.Requested
			if b.State == snapshot.Allocated {
				g.AllocatedSize += b.Size
			}
		}
		at = b.Addr + uint64(b.Size)
	}
	h.s.Segments = append(h.s.Segments, g)
	return &h.s.Segments[len(h.s.Segments)-1]
}

func (h *history) snapshot() *snapshot.Snapshot {
	h.s.Traces = []snapshot.Trace{{Events: h.events}}
	return h.s
}

// layout spells segments out: kind, extent, function of the stack, blocks.
func layout(s *snapshot.Snapshot) string {
	name := func(id stack.ID) string {
		if frames := s.Stacks.Stack(id); len(frames) > 0 {
			return " " + frames[0].Function
		}
		return ""
	}
	var b strings.Builder
	for i := range s.Segments {
		g := &s.Segments[i]
		kind := s.String(g.Type)
		if g.Expandable {
			kind += ", expandable"
		}
		fmt.Fprintf(&b, "%s %x+%x%s:", kind, g.Addr, g.TotalSize, name(g.Stack))
		for _, p := range g.Blocks {
			switch p.State {
			case snapshot.Inactive:
				fmt.Fprintf(&b, " [%x]", p.Size)
			case snapshot.Pending:
				fmt.Fprintf(&b, " (%x/%x%s)", p.Requested, p.Size, name(p.Stack))
			default:
				fmt.Fprintf(&b, " %x/%x%s", p.Requested, p.Size, name(p.Stack))
			}
		}
		b.WriteByte('\n')
	}
	return b.String()
}

func cut(t *testing.T, s *snapshot.Snapshot, from, to int) *snapshot.Snapshot {
	t.Helper()
	out, err := timeline.Cut(s, 0, from, to)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestCutOfSegments(t *testing.T) {
	h := newHistory()
	const a, b = 0x10000000, 0x20000000
	h.add(snapshot.SegmentAlloc, a, 2*mib, "first")      // 0
	h.add(snapshot.Alloc, a, 700, "first")               // 1
	h.add(snapshot.Alloc, a+0x400, 100, "second")        // 2
	h.add(snapshot.FreeRequested, a, 700, "free")        // 3
	h.add(snapshot.FreeCompleted, a, 700, "free")        // 4
	h.add(snapshot.FreeRequested, a+0x400, 100, "free")  // 5
	h.add(snapshot.SegmentAlloc, b, 20*mib, "third")     // 6
	h.add(snapshot.Alloc, b, 19*mib+100, "third")        // 7
	h.add(snapshot.FreeCompleted, a+0x400, 100, "free")  // 8
	h.add(snapshot.SegmentFree, a, 2*mib, "empty")       // 9
	h.add(snapshot.FreeRequested, b, 19*mib+100, "free") // 10
	h.add(snapshot.FreeCompleted, b, 19*mib+100, "free") // 11
	h.add(snapshot.SegmentAlloc, a, 4*mib, "again")      // 12
	h.add(snapshot.Alloc, a, 3*mib, "again")             // 13
	h.segment(a, 4*mib, "large", "again", snapshot.Block{Addr: a, Size: 4 * mib, Requested: 3 * mib,
		State: snapshot.Allocated, Stack: h.stack("again")})
	h.segment(b, 20*mib, "large", "third")
	s := h.snapshot()
	final := "large 10000000+400000 again: 300000/400000 again\n" + "large 20000000+1400000 third: [1400000]\n"
	for to, want := range []string{
		0:  "",
		1:  "small 10000000+200000 first: [200000]\n",
		2:  "small 10000000+200000 first: 2bc/400 first [1ffc00]\n",
		3:  "small 10000000+200000 first: 2bc/400 first 64/200 second [1ffa00]\n",
		4:  "small 10000000+200000 first: (2bc/400 first) 64/200 second [1ffa00]\n",
		5:  "small 10000000+200000 first: [400] 64/200 second [1ffa00]\n",
		6:  "small 10000000+200000 first: [400] (64/200 second) [1ffa00]\n",
		8:  "small 10000000+200000 first: [400] (64/200 second) [1ffa00]\nlarge 20000000+1400000 third: 1300064/1400000 third\n",
		9:  "small 10000000+200000 first: [200000]\nlarge 20000000+1400000 third: 1300064/1400000 third\n",
		10: "large 20000000+1400000 third: 1300064/1400000 third\n",
		12: "large 20000000+1400000 third: [1400000]\n",
		13: "large 10000000+400000 again: [400000]\n" + "large 20000000+1400000 third: [1400000]\n",
		14: final,
	} {
		if want == "" && to > 0 {
			continue
		}
		out := cut(t, s, to/2, to)
		if got := layout(out); got != want {
			t.Errorf("before event %d:\n%swant\n%s", to, got, want)
		}
		if out.Faults != nil {
			t.Errorf("before event %d: %v", to, out.Faults)
		}
		if got := out.Traces[0]; got.Len() != to-to/2 || got.Len() > 0 && got.Time[0] != s.Traces[0].Time[to/2] {
			t.Errorf("events %d:%d are %+v", to/2, to, got.Events)
		}
	}
	if layout(s) != final {
		t.Errorf("the snapshot itself has changed:\n%s", layout(s))
	}
}

func TestCutOfExpandableSegments(t *testing.T) {
	const a, page = 0x10000000, 20 * mib
	h := newHistory()
	h.add(snapshot.SegmentMap, a, page, "one")             // 0
	h.add(snapshot.Alloc, a, page, "one")                  // 1
	h.add(snapshot.SegmentMap, a+page, 2*page, "two")      // 2
	h.add(snapshot.Alloc, a+page, 2*page, "two")           // 3
	h.add(snapshot.FreeRequested, a+page, 2*page, "two")   // 4
	h.add(snapshot.FreeCompleted, a+page, 2*page, "two")   // 5
	h.add(snapshot.SegmentUnmap, a+page, page, "empty")    // 6
	h.add(snapshot.FreeRequested, a, page, "one")          // 7
	h.add(snapshot.FreeCompleted, a, page, "one")          // 8
	h.add(snapshot.SegmentUnmap, a, page, "empty")         // 9
	h.add(snapshot.SegmentUnmap, a+2*page, page, "empty")  // 10
	h.add(snapshot.SegmentMap, a+8*page, 2*mib, "three")   // 11
	h.add(snapshot.SegmentUnmap, a+8*page, 2*mib, "empty") // 12
	for to, want := range []string{
		0:  "",
		1:  "large, expandable 10000000+1400000 one: [1400000]\n",
		2:  "large, expandable 10000000+1400000 one: 1400000/1400000 one\n",
		3:  "large, expandable 10000000+3c00000 one: 1400000/1400000 one [2800000]\n",
		4:  "large, expandable 10000000+3c00000 one: 1400000/1400000 one 2800000/2800000 two\n",
		6:  "large, expandable 10000000+3c00000 one: 1400000/1400000 one [2800000]\n",
		7:  "large, expandable 10000000+1400000 one: 1400000/1400000 one\nlarge, expandable 12800000+1400000 two: [1400000]\n",
		10: "large, expandable 12800000+1400000 two: [1400000]\n",
		11: "",
		12: "small, expandable 1a000000+200000 three: [200000]\n",
	} {
		if want == "" && to != 0 && to != 11 {
			continue
		}
		if got := layout(cut(t, h.snapshot(), 0, to)); got != want {
			t.Errorf("before event %d:\n%swant\n%s", to, got, want)
		}
	}
}

// What is left of a segment of the final state keeps what is known of it, and
// neighbors in the final state stay two.
func TestCutOfWhatRemains(t *testing.T) {
	const a, page = 0x10000000, 20 * mib
	h := newHistory()
	h.add(snapshot.SegmentMap, a+page, page, "late")
	h.segment(a, 2*page, "large", "early").Expandable = true
	h.segment(a+2*page, page, "large", "other").Expandable = true
	h.s.Segments[0].Pool = h.s.PoolID(snapshot.Pool{User: 3})
	out := cut(t, h.snapshot(), 0, 0)
	want := "large, expandable 10000000+1400000 early: [1400000]\nlarge, expandable 12800000+1400000 other: [1400000]\n"
	if got := layout(out); got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if pool := out.PoolOf(out.Segments[0].Pool); pool.User != 3 {
		t.Errorf("the pool is %v", pool)
	}
	if n := out.Segments[1].Blocks[0].Requested; n != 77 {
		t.Errorf("a segment to which nothing happened has changed: %d stale bytes", n)
	}
}

// A completion alone is of a block that was pending when the recording began.
func TestCutOfPendingBefore(t *testing.T) {
	h := newHistory()
	h.add(snapshot.FreeCompleted, 0x10000000, 100, "")
	h.add(snapshot.FreeRequested, 0x10000200, 100, "")
	h.add(snapshot.FreeCompleted, 0x10000200, 100, "")
	h.segment(0x10000000, 2*mib, "small", "")
	if got, want := layout(cut(t, h.snapshot(), 0, 0)), "small 10000000+200000: (64/200) 64/200 [1ffc00]\n"; got != want {
		t.Errorf("got %swant %s", got, want)
	}
}

func TestCutAnnotations(t *testing.T) {
	h := newHistory()
	for range 4 { // at 10, 20, 30, 40
		h.add(snapshot.OOM, 1<<30, 512, "")
	}
	for _, at := range []int64{5, 10, 15, 20, 25, 30, 35, 40, 45} {
		h.s.Annotations = append(h.s.Annotations, snapshot.Annotation{Name: fmt.Sprint(at), Time: at},
			snapshot.Annotation{Name: "other", Time: at, Device: 1})
	}
	for _, c := range []struct {
		from, to int
		want     string
	}{
		{0, 4, "5 10 15 20 25 30 35 40 45"},
		{0, 1, "5 10 15"},
		{1, 3, "15 20 25 30 35"},
		{3, 4, "35 40 45"},
		{2, 2, "25"},
		{4, 4, "45"},
		{0, 0, "5"},
	} {
		var got []string
		for _, a := range cut(t, h.snapshot(), c.from, c.to).Annotations {
			got = append(got, a.Name)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%d:%d: got %v, want %s", c.from, c.to, got, c.want)
		}
	}
}

func TestCutOfContradictions(t *testing.T) {
	h := newHistory()
	h.add(snapshot.Alloc, 0x50000000, 100, "")
	h.add(snapshot.SegmentAlloc, 0x30000000, 2*mib, "")
	h.add(snapshot.SegmentFree, 0x10000000, 2*mib, "")
	h.add(snapshot.SegmentFree, ^uint64(0)-5, 2*mib, "")
	h.add(snapshot.SegmentAlloc, 0x40000000, -5, "")
	h.segment(0x10000000, 4*mib, "large", "")
	out := cut(t, h.snapshot(), 0, 1)
	if got, want := layout(out), "small 10000000+200000: [200000]\nlarge 10200000+200000: [200000]\n"; got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	want := []string{
		"events after event 0 of device 0 that contradict the segments: 2, first: event 2 gives 0x10000000 to the driver, and later it is in a segment",
		"allocations that live after event 0 of device 0 and are left out, as they have no place in a segment: 1",
	}
	if !slices.Equal(out.Faults, want) {
		t.Errorf("got %q\nwant %q", out.Faults, want)
	}
}

func TestCutRefuses(t *testing.T) {
	h := newHistory()
	h.add(snapshot.OOM, 1<<30, 512, "")
	s := h.snapshot()
	for _, c := range [][3]int{{1, 0, 0}, {0, -1, 1}, {0, 1, 0}, {0, 0, 2}} {
		if out, err := timeline.Cut(s, c[0], c[1], c[2]); err == nil {
			t.Errorf("device %d, %d:%d gives %+v", c[0], c[1], c[2], out)
		}
	}
}

// TestCutOfFiles cuts small recorded snapshots anywhere.
func TestCutOfFiles(t *testing.T) {
	paths, err := filepath.Glob("../snapshot/testdata/w*")
	if err != nil || len(paths) == 0 {
		t.Fatal("no files", err)
	}
	rng := rand.New(rand.NewSource(1))
	for _, path := range paths {
		cutAnywhere(t, rng, path, 20)
	}
}

// TestCutOfDamagedFiles cuts files that end early: what is written can be read.
func TestCutOfDamagedFiles(t *testing.T) {
	for _, name := range []string{"w09_two_devices.default.end.pickle", "w06b_oom_fragmented.default.oom.pickle"} {
		whole, err := os.ReadFile(filepath.Join("../snapshot/testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		for n := len(whole) - 1; n > 0; n -= len(whole) / 40 {
			s, err := snapshot.Read(bytes.NewReader(whole[:n]), snapshot.Options{})
			if err != nil {
				continue
			}
			for _, d := range s.Devices() {
				events := d.Trace.Len()
				for _, wrong := range wrongCut(s, timeline.New(s, d), events/3, events/2) {
					t.Errorf("%s, %d bytes, device %d: %s", name, n, d.Index, wrong)
				}
			}
		}
	}
}

// TestCutOfFalseHistories cuts histories with events at wrong places: the
// segments are sound nevertheless.
func TestCutOfFalseHistories(t *testing.T) {
	rng := rand.New(rand.NewSource(3))
	for range 200 {
		s, err := snapshot.Open("../snapshot/testdata/w07_streams_pools.default.mempool.pickle", snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		e := &s.Traces[0].Events
		for range 1 + rng.Intn(10) {
			i, j := rng.Intn(e.Len()), rng.Intn(e.Len())
			e.Addr[i], e.Action[i] = e.Addr[j]+uint64(rng.Intn(3)*mib), snapshot.Action(rng.Intn(int(snapshot.OOM)))
		}
		var file bytes.Buffer
		if err := cut(t, s, 0, rng.Intn(e.Len())).Write(&file); err != nil {
			t.Fatal(err)
		}
		got, err := snapshot.Read(&file, snapshot.Options{})
		if err != nil || len(got.Faults) > 0 {
			t.Fatal(err, got.Faults)
		}
		for i := range got.Segments {
			if bad := wrongSums(&got.Segments[i]); bad != "" {
				t.Fatal(bad)
			}
		}
	}
}
