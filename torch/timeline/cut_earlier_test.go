package timeline_test

import (
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// TestCutIsTheEarlierSnapshot holds cuts against the truth: a process that was
// dumped several times has in its later files the history of the earlier ones.
func TestCutIsTheEarlierSnapshot(t *testing.T) {
	paths, err := filepath.Glob(filepath.Join(corpus(t), "torch", "*.pickle"))
	if err != nil || len(paths) == 0 {
		t.Fatal("no files", err)
	}
	process := func(path string) string {
		parts := strings.Split(filepath.Base(path), ".")
		return strings.Join(parts[:len(parts)-2], ".")
	}
	runs := map[string][]*snapshot.Snapshot{}
	for _, path := range paths {
		s, err := snapshot.Open(path, snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		runs[process(path)] = append(runs[process(path)], s)
	}
	var c comparison
	for _, name := range slices.Sorted(maps.Keys(runs)) {
		for _, early := range runs[name] {
			for _, late := range runs[name] {
				c.compare(t, early, late)
			}
		}
	}
	t.Logf("%+v", c)
	if c.Pairs == 0 {
		t.Error("nothing compared")
	}
}

// A comparison counts what was compared, and of the blocks those that are
// smaller than they were.
type comparison struct{ Pairs, Segments, OtherPools, Blocks, Gone, Smaller int }

func (c *comparison) compare(t *testing.T, early, late *snapshot.Snapshot) {
	for _, d := range early.Devices() {
		n := d.Trace.Len()
		whole := only(late, d.Index).Trace
		if n == 0 || whole.Len() <= n || !sameEvents(d.Trace, whole.Slice(0, n)) {
			continue
		}
		out, err := timeline.Cut(late, d.Index, 0, n)
		if err != nil {
			t.Fatal(err)
		}
		c.Pairs++
		if len(out.Segments) != len(d.Segments) {
			t.Errorf("%s before event %d: %d segments, want %d", late.Name, n, len(out.Segments), len(d.Segments))
			continue
		}
		final := timeline.New(late, only(late, d.Index))
		dead := map[uint64]bool{} // by the end
		for _, i := range final.LiveAt(n - 1) {
			dead[final.Addr(i)] = final.Death(i) != timeline.Never
		}
		for i, j := range d.Segments {
			if wrong := c.segments(out, &out.Segments[i], early, &early.Segments[j], dead); wrong != "" {
				t.Errorf("%s before event %d, segment %d: %s", late.Name, n, i, wrong)
			}
		}
	}
}

func sameEvents(a *snapshot.Trace, b snapshot.Trace) bool {
	return slices.Equal(a.Action, b.Action) && slices.Equal(a.Addr, b.Addr) &&
		slices.Equal(a.Size, b.Size) && slices.Equal(a.Time, b.Time)
}

func (c *comparison) segments(s *snapshot.Snapshot, got *snapshot.Segment, e *snapshot.Snapshot, want *snapshot.Segment,
	dead map[uint64]bool) string {
	c.Segments++
	extent := func(s *snapshot.Snapshot, g *snapshot.Segment) string {
		return fmt.Sprintf("%s %t 0x%x %d on 0x%x, %d requested",
			s.String(g.Type), g.Expandable, g.Addr, g.TotalSize, s.Stream(g.Stream), g.RequestedSize)
	}
	if got, want := extent(s, got), extent(e, want); got != want {
		return got + ", want " + want
	}
	if s.PoolOf(got.Pool) != e.PoolOf(want.Pool) {
		c.OtherPools++
	}
	active := func(g *snapshot.Segment) (out []snapshot.Block) {
		return slices.DeleteFunc(slices.Clone(g.Blocks), func(b snapshot.Block) bool { return !b.State.Active() })
	}
	a, b := active(got), active(want)
	if len(a) != len(b) {
		return fmt.Sprintf("%d active blocks, want %d", len(a), len(b))
	}
	for i := range a {
		gone := dead[a[i].Addr]
		c.Blocks++
		if gone {
			c.Gone++
		}
		switch {
		case a[i].Addr != b[i].Addr || a[i].State != b[i].State || a[i].Requested != b[i].Requested,
			!reflect.DeepEqual(s.Stacks.Stack(a[i].Stack), e.Stacks.Stack(b[i].Stack)),
			a[i].Size > b[i].Size, a[i].Size < b[i].Size && !gone:
			return fmt.Sprintf("block %+v, want %+v", a[i], b[i])
		case a[i].Size < b[i].Size:
			c.Smaller++
		}
	}
	return ""
}
