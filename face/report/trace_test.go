package report

import (
	"strings"
	"testing"

	"strandline/finding"
	"strandline/host/store/recording"
)

// Frames without symbols are one name where there are several, except for the first
// above the allocator.
func TestUnnamedFrames(t *testing.T) {
	var stack recording.Stack
	var f finding.Finding
	for _, x := range strings.Fields("libc.so.6:mmap libjemalloc.so.2:libjemalloc.so.2+0x1 libfoo.so:libfoo.so+0x2 libfoo.so:libfoo.so+0x3 libfoo.so:libfoo.so+0x4 libbar.so:libbar.so+0x5 app:main") {
		object, function, _ := strings.Cut(x, ":")
		object = "/usr/lib/" + object
		stack.Frames = append(stack.Frames, recording.Frame{Function: &function, Object: &object})
		f.Stack = append(f.Stack, finding.Frame{File: object, Function: function})
	}
	stack.Complete = true
	if got, want := placeOf(&stack), "libfoo.so+0x2 ← … 2 frames of libfoo.so without symbols ← libbar.so+0x5 ← main"; got != want {
		t.Errorf("place %q, want %q", got, want)
	}
	f.Site = (*finding.Site)(&f.Stack[2])
	var lines []string
	writeStack(func(label, text string) { lines = append(lines, label+":"+text) }, &f)
	if got := strings.Join(lines, "\n"); len(lines) != 3 || !strings.Contains(got, "called from:… 2 frames of libfoo.so without symbols") {
		t.Errorf("stack %q", got)
	}
}

// Stacks that print the same are one row.
func TestMergedRows(t *testing.T) {
	function, resident := "grow", int64(5)
	row := recording.Stack{Call: "mmap", Complete: true, LiveBytes: 7, LiveCount: 1, ResidentBytes: &resident, Trend: []int64{0, 7}, Frames: []recording.Frame{{Function: &function}}}
	other := row
	other.Call = "brk"
	got := mergedHost([]recording.Stack{row, other, row})
	if len(got) != 2 || got[0].LiveBytes != 14 || got[0].LiveCount != 2 || *got[0].ResidentBytes != 10 || got[0].Trend[1] != 14 || got[1].LiveBytes != 7 {
		t.Errorf("got %+v", got)
	}
	if row.Trend[1] != 7 {
		t.Error("the stacks themselves have changed")
	}
	device, pinned := recording.GPUStack{Stack: row, Owner: "PyTorch", Memory: "device"}, recording.GPUStack{Stack: row, Owner: "PyTorch", Memory: "pinned host"}
	if got := mergedDriver([]recording.GPUStack{device, pinned, device}); len(got) != 2 || got[0].LiveBytes != 14 || got[1].LiveBytes != 7 {
		t.Errorf("of the driver: %+v", got)
	}
}
