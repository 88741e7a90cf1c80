package processes

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"strandline/finding"
	"strandline/host/calls/event"
	"strandline/host/calls/ledger"
	"strandline/host/proc/footprint"
)

// What is left of a growth that calls explain is not a separate finding.
func TestUnmadeLeavesRests(t *testing.T) {
	const mib = 1 << 20
	h := host{sums: &ledger.Sums{}, looks: &footprint.Growth{RSS: 80 * mib, Before: &footprint.Observation{}, After: &footprint.Observation{}, Parts: []footprint.Part{
		{Class: finding.MmapLeak, Bytes: 8 * mib, Steady: true, Confidence: 0.9},
		{Class: finding.MemoryFiles, Bytes: 8 * mib, Steady: true, Confidence: 0.9, Outside: true},
	}}}
	for _, c := range []struct {
		resident int64
		want     int
	}{{79 * mib, 1}, {20 * mib, 2}} {
		found := []finding.Finding{{Kind: finding.Remap, Evidence: &finding.CallGrowthEvidence{ResidentBytes: c.resident}}}
		if got, _ := h.unattributed(found); len(got) != c.want || got[len(got)-1].Kind != finding.MemoryFiles {
			t.Errorf("with %d bytes explained: got %+v, want %d findings", c.resident, got, c.want)
		}
	}
}

// Classes are reported with no more bytes than grew, the largest first.
func TestUnmadeAddsUp(t *testing.T) {
	const mib = 1 << 20
	h := host{sums: &ledger.Sums{}, looks: &footprint.Growth{RSS: 50 * mib, Parts: []footprint.Part{
		{Class: finding.HeapLeak, Bytes: 40 * mib}, {Class: finding.HugePages, Bytes: 20 * mib}, {Class: finding.Pinned, Bytes: 20 * mib},
	}}}
	found := []finding.Finding{{Kind: finding.Remap, Evidence: &finding.CallGrowthEvidence{ResidentBytes: 4 * mib}}}
	var got []int64
	unmade, rest := h.unattributed(found)
	for _, f := range unmade {
		got = append(got, *f.Bytes/mib)
	}
	if !slices.Equal(got, []int64{40, 6}) || rest != 0 {
		t.Errorf("beside 4 MiB of 50 that are reported, got %v MiB, and %d bytes are left", got, rest)
	}
}

// A mapping that is being filled is not one that is never unmapped, where the calls are known.
func TestFilled(t *testing.T) {
	const mib = 1 << 20
	looks := &footprint.Growth{RSS: 50 * mib, Parts: []footprint.Part{{Class: finding.MmapLeak, Bytes: 48 * mib, Steady: true, Confidence: 0.9}}}
	for _, c := range []struct {
		blind bool
		want  finding.Severity
	}{{true, finding.Problem}, {false, finding.Warning}} {
		h := host{sums: &ledger.Sums{Blind: c.blind}, looks: looks}
		if found, _ := h.unattributed(nil); len(found) != 1 || found[0].Severity != c.want || Undecided(found) != !c.blind {
			t.Errorf("blind %v: %+v, want a %s", c.blind, found, c.want)
		}
	}
}

// What neither calls nor classes explain is called unexplained, with what is known of
// it.
func TestUnexplained(t *testing.T) {
	const mib = 1 << 20
	share := 0.1
	sums := func() *ledger.Sums {
		return &ledger.Sums{Growth: 50 * mib, Anon: 45 * mib, File: 5 * mib, Older: 40 * mib, Explained: &share, Checkpoints: make([]uint64, 9), Grown: make([]int64, 9)}
	}
	for _, c := range []struct {
		name  string
		looks *footprint.Growth
		want  []finding.Kind
		says  string
	}{
		{"not observed", nil, []finding.Kind{finding.Unexplained}, "40 MiB became resident in mappings that existed before"},
		{"a class explains it", &footprint.Growth{RSS: 50 * mib, Parts: []footprint.Part{{Class: finding.HeapLeak, Bytes: 46 * mib, Steady: true, Confidence: 0.9}}}, []finding.Kind{finding.HeapLeak}, ""},
		{"a class explains a part", &footprint.Growth{RSS: 50 * mib, Parts: []footprint.Part{{Class: finding.HeapLeak, Bytes: 20 * mib, Steady: true, Confidence: 0.9}}}, []finding.Kind{finding.HeapLeak, finding.Unexplained}, "observed from outside, it is 20 MiB heap-leak"},
	} {
		var got []finding.Kind
		var says []string
		for _, f := range Host(sums(), c.looks, nil) {
			got = append(got, f.Kind)
			says = append(says, f.Detail...)
		}
		if !slices.Equal(got, c.want) || !strings.Contains(strings.Join(says, "; "), c.says) {
			t.Errorf("%s: got %v, %q", c.name, got, says)
		}
	}
}

// Where no calls could be seen, calls are not mentioned, nor what was mapped
// before.
func TestUnexplainedByPolling(t *testing.T) {
	const mib = 1 << 20
	none := 0.0
	for _, blind := range []bool{false, true} {
		f, ok := unexplainedGrowth(&ledger.Sums{Growth: 10 * mib, Older: 10 * mib, Explained: &none, Checkpoints: make([]uint64, 9), Blind: blind})
		text := fmt.Sprint(f.Title, f.Detail, f.Remedies)
		if !ok || strings.Contains(text, "existed before") == blind || strings.Contains(text, "doctor") != blind {
			t.Errorf("blind %v: %s", blind, text)
		}
	}
}

// An allocator that took one large mapping and fills it grows as the looks show; the call
// names the place.
func TestMappingThatAnAllocatorFills(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		name string
		part footprint.Part
		at   int // the checkpoint at which it was mapped
		want finding.Severity
		mib  int64
	}{
		{"steadily, mapped late", footprint.Part{Bytes: 52 * mib, Steady: true, Confidence: 0.7}, 13, finding.Problem, 52},
		{"steadily, mapped early", footprint.Part{Bytes: 52 * mib, Steady: true, Confidence: 0.7}, 4, finding.Problem, 52},
		{"no more than the calls made", footprint.Part{Bytes: 20 * mib, Steady: true, Confidence: 0.7}, 13, finding.Warning, 13},
		{"not steadily", footprint.Part{Bytes: 52 * mib, Confidence: 0.7}, 4, finding.Info, 13},
	} {
		c.part.Class = finding.AllocatorRetention
		steps := make([]int64, 17)
		steps[c.at] = 13
		u := over(made(event.Map, ledger.Anonymous, 1<<20, "libc.so.6:mmap", "libjemalloc.so.2:je_malloc", "server:reply"), steps...)
		s := traceOf(u)
		s.Growth = c.part.Bytes
		looks := &footprint.Growth{After: &footprint.Observation{Allocator: "libjemalloc.so.2"}, RSS: c.part.Bytes, Age: time.Hour, Parts: []footprint.Part{c.part}}
		found := Host(s, looks, nil)
		if len(found) == 0 || found[0].Kind != finding.AllocatorRetention || found[0].Severity != c.want || *found[0].Bytes != c.mib*mib || found[0].Site == nil || found[0].Site.Function != "reply" {
			t.Errorf("%s: %+v", c.name, found)
		}
	}
}

// A heap of which looks show more than the calls of the trace made has the place that
// requested most, and the advice that belongs to the calls.
func TestHeapBeyondTheCalls(t *testing.T) {
	const mib = 1 << 20
	steps := make([]int64, 17)
	steps[4] = 8
	u := over(made(event.Map, ledger.Anonymous, 1<<20, "libc.so.6:mmap", "libc.so.6:malloc", "libtorch_cpu.so:dnnl::impl::cpu::x64::jit_generator::create_kernel", "libtorch_cpu.so:conv"), steps...)
	s := traceOf(u)
	s.Growth = 40 * mib
	looks := &footprint.Growth{After: &footprint.Observation{}, RSS: 40 * mib, Age: time.Hour, Parts: []footprint.Part{{Class: finding.HeapLeak, Bytes: 40 * mib, Steady: true, Confidence: 0.9}}}
	found := Host(s, looks, nil)
	if len(found) != 1 || *found[0].Bytes != 40*mib || found[0].Site == nil || !strings.Contains(fmt.Sprint(found[0].Remedies), "ONEDNN_PRIMITIVE_CACHE_CAPACITY") {
		t.Errorf("%+v", found)
	}
}

// A child copies some of what it shares by running; much, or a large part of its memory, is
// a working set that is held twice.
func TestChildThatCopies(t *testing.T) {
	const mib = 1 << 20
	for _, c := range []struct {
		copied, rss int64 // MiB
		pid         uint32
		want        finding.Severity
	}{{5, 137, 2, finding.Warning}, {5, 20, 2, finding.Problem}, {14, 1000, 2, finding.Problem}, {5, 20, 3, finding.Warning}} { // 2 has ended
		h := host{sums: &ledger.Sums{Processes: []ledger.Process{{PID: 1, RSS: 200 * mib}, {PID: c.pid, RSS: c.rss * mib}}},
			looks: &footprint.Growth{Age: time.Hour, Parts: []footprint.Part{{Class: finding.CopyOnWrite, Bytes: c.copied * mib, Process: 2, Outside: true, Steady: true, Confidence: 0.9}}}}
		if found, _ := h.unattributed(nil); len(found) != 1 || found[0].Severity != c.want || Undecided(found) != (c.want == finding.Warning) {
			t.Errorf("%d of %d MiB: %+v", c.copied, c.rss, found)
		}
	}
}

// A process that uses more of a database's buffers maps nothing; one that keeps segments does.
func TestSharedMemoryThatIsTouched(t *testing.T) {
	const mib = 1 << 20
	segments := made(event.Map, ledger.Shared, mib, "main:attach")
	for _, c := range []struct {
		uses  []ledger.Use
		blind bool
		want  finding.Severity
	}{{nil, false, finding.Warning}, {nil, true, finding.Problem}, {[]ledger.Use{*segments}, false, finding.Problem}} {
		h := host{sums: &ledger.Sums{Uses: c.uses, Blind: c.blind}, looks: &footprint.Growth{RSS: 50 * mib, Age: time.Hour,
			Parts: []footprint.Part{{Class: finding.SharedMemory, Bytes: 48 * mib, Steady: true, Confidence: 0.9}}}}
		if found, _ := h.unattributed(nil); len(found) != 1 || found[0].Severity != c.want || Undecided(found) != (c.want == finding.Warning) {
			t.Errorf("%d uses, blind %v: %+v", len(c.uses), c.blind, found)
		}
	}
}
