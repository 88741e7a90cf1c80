package timeline_test

import (
	"bytes"
	"fmt"
	"maps"
	"math/rand"
	"path/filepath"
	"strings"
	"testing"

	need "strandline/internal/test/live"
	"strandline/stack"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// corpus is a folder of recorded snapshots; those of wild are of many people
// and PyTorch versions, and some contradict themselves.
func corpus(t *testing.T) string {
	root := need.Given(t, "STRANDLINE_CORPUS")
	return root
}

func TestCutOfCorpus(t *testing.T) {
	root := corpus(t)
	rng := rand.New(rand.NewSource(2))
	cuts := 0
	for _, pattern := range []string{"torch/*.pickle", "torch/writers/*.*", "torch/big/*.zst", "wild/*.*"} {
		paths, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(paths) == 0 {
			t.Fatal("no files ", pattern, err)
		}
		for _, path := range paths {
			if ext := filepath.Ext(path); ext != ".md" && !strings.HasSuffix(path, "reference.train.json") {
				cuts += cutAnywhere(t, rng, path, 6)
			}
		}
	}
	t.Log(cuts, "cuts")
}

// cutAnywhere cuts the trace of each device at the ends and n times elsewhere.
func cutAnywhere(t *testing.T, rng *rand.Rand, path string, n int) (cuts int) {
	s, err := snapshot.Open(path, snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range s.Devices() {
		line := timeline.New(s, d)
		events := d.Trace.Len()
		spans := [][2]int{{0, 0}, {0, events}, {events, events}}
		for range min(n, events) {
			a, b := rng.Intn(events+1), rng.Intn(events+1)
			spans = append(spans, [2]int{min(a, b), max(a, b)})
		}
		for _, span := range spans {
			for _, wrong := range wrongCut(s, line, span[0], span[1]) {
				t.Errorf("%s, device %d, events %d:%d: %s", filepath.Base(path), d.Index, span[0], span[1], wrong)
			}
			cuts++
		}
	}
	return cuts
}

// wrongCut returns how the file that is written of a cut differs from the moment
// in the history. What the history contradicts is left out of the comparison.
func wrongCut(s *snapshot.Snapshot, line *timeline.Timeline, from, to int) (wrong []string) {
	add := func(format string, args ...any) { wrong = append(wrong, fmt.Sprintf(format, args...)) }
	out, err := timeline.Cut(s, line.Device, from, to)
	if err != nil {
		return []string{err.Error()}
	}
	sound := len(s.Faults)+len(line.Faults) == 0 && s.Partial == nil
	if sound && len(out.Faults) > 0 {
		add("%v", out.Faults)
	}
	var file bytes.Buffer
	if err := out.Write(&file); err != nil {
		return []string{err.Error()}
	}
	got, err := snapshot.Read(&file, snapshot.Options{})
	if err != nil {
		return []string{err.Error()}
	}
	again := timeline.New(got, only(got, line.Device))
	if !sound {
		return wrong
	}
	if faults := append(got.Faults, again.Faults...); len(faults) > 0 {
		add("%v", faults)
	}
	if n := again.Trace.Len(); n != to-from {
		add("%d events", n)
	}
	if got, want := again.EndRequested, line.RequestedAt(to-1); got != want {
		add("%d bytes requested, want %d", got, want)
	}
	if got, want := again.EndReserved, line.ReservedAt(to-1); got != want {
		add("%d bytes reserved, want %d", got, want)
	}
	if got, want := live(again, to-from-1), live(line, to-1); !maps.Equal(got, want) {
		add("%d allocations live, want %d; or others do", len(got), len(want))
	}
	for i := range got.Segments {
		if bad := wrongSums(&got.Segments[i]); bad != "" {
			add("segment %d: %s", i, bad)
		}
	}
	legacy := s.TorchVersion() == "2.0" // blocks have stacks of their past
	if n := unused(got); n > 0 && !legacy {
		add("%d stacks that nothing has", n)
	}
	return wrong
}

func only(s *snapshot.Snapshot, device int) snapshot.Device {
	for _, d := range s.Devices() {
		if d.Index == device {
			return d
		}
	}
	return snapshot.Device{Index: device, Trace: &snapshot.Trace{Device: device}}
}

// live are the allocations after an event: bytes by address.
func live(t *timeline.Timeline, k int) map[uint64]int64 {
	out := map[uint64]int64{}
	for _, i := range t.LiveAt(k) {
		out[t.Addr(i)] = t.Size(i)
	}
	return out
}

// wrongSums returns what a segment states wrongly of its blocks.
func wrongSums(g *snapshot.Segment) string {
	sums := [4]int64{}
	at := g.Addr
	for _, b := range g.Blocks {
		if b.Addr != at || b.Size <= 0 {
			return fmt.Sprintf("a block of %d bytes at 0x%x", b.Size, b.Addr)
		}
		at += uint64(b.Size)
		sums[0] += b.Size
		if b.State.Active() {
			sums[1] += b.Size
			sums[2] += b.Requested
		}
		if b.State == snapshot.Allocated {
			sums[3] += b.Size
		}
	}
	if stated := [4]int64{g.TotalSize, g.ActiveSize, g.RequestedSize, g.AllocatedSize}; sums != stated {
		return fmt.Sprintf("it states %d, its blocks have %d", stated, sums)
	}
	return ""
}

// unused counts stacks that no event, block or segment has.
func unused(s *snapshot.Snapshot) (n int) {
	used := make([]bool, s.Stacks.Len())
	for i := range s.Segments {
		used[s.Segments[i].Stack] = true
		for _, b := range s.Segments[i].Blocks {
			used[b.Stack] = true
		}
	}
	for i := range s.Traces {
		for _, id := range s.Traces[i].Stack {
			used[id] = true
		}
	}
	for id := stack.Empty + 1; int(id) < len(used); id++ {
		if !used[id] {
			n++
		}
	}
	return n
}
