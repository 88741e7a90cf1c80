package footprint

import (
	"encoding/binary"
	"testing"

	"strandline/host/proc/procfs"
)

// A memory is what is at some addresses; there are zeros at the others.
type memory map[int64][]byte

func (m memory) ReadAt(p []byte, at int64) (int, error) {
	clear(p)
	for start, content := range m {
		if start >= at && start < at+int64(len(p)) {
			copy(p[start-at:], content)
		}
	}
	return len(p), nil
}

// What is new in a mapping says what it is, where the kernel merged it with what was
// above it before: not the arenas of Python that are as old as the process.
func TestNewPartOfMapping(t *testing.T) {
	const base, mib, pool, chunk = 0x7f0000000000, 1 << 20, 16 << 10, 1<<20 + page
	const begins = base + 4*chunk // the old part
	m := memory{}
	for at := int64(begins); at < begins+4*mib; at += pool {
		h := make([]byte, 48)
		binary.LittleEndian.PutUint32(h, 3)
		binary.LittleEndian.PutUint32(h[36:], 1)
		binary.LittleEndian.PutUint32(h[40:], 200)
		binary.LittleEndian.PutUint32(h[44:], pool-32)
		m[at] = h
	}
	for at := int64(base); at < begins; at += chunk {
		h := make([]byte, 16)
		binary.LittleEndian.PutUint64(h[8:], chunk|2)
		m[at] = h
	}
	was := procfs.Mapping{Start: begins, End: begins + 4*mib}
	now := procfs.Mapping{Start: base, End: was.End}
	before := &Observation{regions: []procfs.Usage{{Mapping: was, RSS: 4 * mib}}}
	after := &Observation{regions: []procfs.Usage{{Mapping: now, RSS: now.Size()}}}
	some := grownRegions(before, after)
	if len(some) != 1 {
		t.Fatalf("%+v", some)
	}
	if found := look(m, &some[0], before.layout()); found.python > 0 || found.malloc != 4*chunk {
		t.Errorf("%.0f %% are pools of Python, %d bytes malloc's, want 0 and %d", 100*found.python, found.malloc, 4*chunk)
	}
	some[0].wider = false
	if found := look(m, &some[0], before.layout()); found.python == 0 {
		t.Error("the pools of this test are none")
	}
}
