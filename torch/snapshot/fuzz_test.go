package snapshot_test

import (
	"bytes"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"strandline/torch/snapshot"
)

// FuzzRead takes any bytes: nothing may panic or allocate far beyond the input,
// and what is read without loss must have the same sums after it was written.
func FuzzRead(f *testing.F) {
	files, _ := filepath.Glob(filepath.Join("testdata", "w*"))
	for _, name := range files {
		if b, err := os.ReadFile(name); err == nil && len(b) < 25_000 {
			f.Add(b)
		}
	}
	f.Add([]byte(trace(entry(`, "pool_id": [0, 3], "frames": [` + frame + `]`))))
	f.Fuzz(func(t *testing.T, in []byte) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		s, err := snapshot.Read(bytes.NewReader(in), snapshot.Options{Size: int64(len(in))})
		runtime.ReadMemStats(&after)
		if got := after.TotalAlloc - before.TotalAlloc; got > readBound(len(in)) && (err != nil || s.Format.Compression == "") {
			t.Errorf("%d bytes of input make it allocate %d", len(in), got)
		}
		if err != nil || s.Partial != nil {
			return
		}
		again := reread(t, written(t, s))
		if a, b := sums(s), sums(again); a != b {
			t.Errorf("read %+v, then %+v", a, b)
		}
	})
}

// total is what a snapshot adds up to.
type total struct {
	segments, blocks, events, annotations int
	device, size, requested, active       int64
	addr, time                            uint64
}

func sums(s *snapshot.Snapshot) (n total) {
	n.segments, n.blocks, n.events = counts(s)
	n.annotations = len(s.Annotations)
	for i := range s.Segments {
		g := &s.Segments[i]
		n.device += int64(g.Device)
		n.size += g.TotalSize
		n.active += g.ActiveSize
		for _, b := range g.Blocks {
			n.addr += b.Addr
			n.requested += b.Requested
		}
	}
	for i := range s.Traces {
		e := &s.Traces[i].Events
		for k := range e.Action {
			n.addr += e.Addr[k]
			n.size += e.Size[k]
			if e.Time != nil {
				n.time += uint64(e.Time[k])
			}
		}
	}
	return n
}
