package gpudriver

import (
	"os"
	"slices"
	"testing"

	"strandline/host/calls/event"
	"strandline/host/calls/ledger"
	"strandline/host/code/symbolize"
	"strandline/host/store/recording"
)

// noDriver is a source of which nothing comes.
type noDriver struct{ detached []int }

func (*noDriver) AttachDriver(int, *os.File) (int, error) { return 0, nil }
func (n *noDriver) DetachDriver(pid int)                  { n.detached = append(n.detached, pid) }
func (*noDriver) DriverBudget(int) error                  { return nil }

// TestDriverLedger checks what lives after calls of the driver.
func TestDriverLedger(t *testing.T) {
	const mib = 1 << 20
	type call struct {
		function       string
		addr, len, old uint64
	}
	for _, c := range []struct {
		name          string
		calls         []call
		memory        event.DriverMemory
		bytes, pieces int64
	}{
		{"what is freed is gone", []call{{"cuMemAlloc_v2", 1 << 40, mib, 0}, {"cuMemAlloc_v2", 2 << 40, 3 * mib, 0}, {"cuMemFree_v2", 1 << 40, 0, 0}}, event.Device, 3 * mib, 1},
		{"freed by another function", []call{{"cuMemAllocAsync", 1 << 40, mib, 0}, {"cuMemFree_v2", 1 << 40, 0, 0}}, event.Device, 0, 0},
		{"managed memory is freed as that of devices", []call{{"cuMemAllocManaged", 1 << 40, mib, 0}, {"cuMemFree_v2", 1 << 40, 0, 0}}, event.Managed, 0, 0},
		{"what was there before is freed", []call{{"cuMemFree_v2", 1 << 40, 0, 0}, {"cuMemUnmap", 1 << 40, mib, 0}, {"cuMemRelease", 7, 0, 0}}, event.Device, 0, 0},
		{"an address inside is not a beginning", []call{{"cuMemAlloc_v2", 1 << 40, mib, 0}, {"cuMemFree_v2", 1<<40 + 4096, 0, 0}}, event.Device, mib, 1},
		{"the address is given again", []call{{"cuMemAlloc_v2", 1 << 40, mib, 0}, {"cuMemAlloc_v2", 1 << 40, 2 * mib, 0}}, event.Device, 2 * mib, 1},
		{"a handle that is mapped lives on", []call{{"cuMemCreate", 7, mib, 0}, {"cuMemMap", 1 << 40, mib, 7}, {"cuMemRelease", 7, 0, 0}}, event.Device, mib, 1},
		{"until that ends", []call{{"cuMemCreate", 7, mib, 0}, {"cuMemMap", 1 << 40, mib, 7}, {"cuMemRelease", 7, 0, 0}, {"cuMemUnmap", 1 << 40, 4 * mib, 0}}, event.Device, 0, 0},
		{"a handle that is unmapped lives on", []call{{"cuMemCreate", 7, mib, 0}, {"cuMemMap", 1 << 40, mib, 7}, {"cuMemUnmap", 1 << 40, mib, 0}}, event.Device, mib, 1},
		{"its number is given again", []call{{"cuMemCreate", 7, mib, 0}, {"cuMemMap", 1 << 40, mib, 7}, {"cuMemRelease", 7, 0, 0}, {"cuMemCreate", 7, 2 * mib, 0}}, event.Device, 3 * mib, 2},
		{"a second handle keeps it", []call{{"cuMemCreate", 7, mib, 0}, {"cuMemMap", 1 << 40, mib, 7}, {"cuMemRetainAllocationHandle", 9, 0, 1<<40 + 64}, {"cuMemRelease", 7, 0, 0}, {"cuMemUnmap", 1 << 40, mib, 0}}, event.Device, mib, 1},
		{"the same handle, twice", []call{{"cuMemCreate", 7, mib, 0}, {"cuMemMap", 1 << 40, mib, 7}, {"cuMemRetainAllocationHandle", 7, 0, 1 << 40}, {"cuMemRelease", 7, 0, 0}, {"cuMemUnmap", 1 << 40, mib, 0}, {"cuMemRelease", 7, 0, 0}}, event.Device, 0, 0},
		{"arrays do not lie where their handles do", []call{{"cuArrayCreate_v2", 100, mib, 0}, {"cuArrayCreate_v2", 200, mib, 0}, {"cuArrayDestroy", 100, 0, 0}}, event.Device, mib, 1},
		{"registered memory", []call{{"cuMemHostRegister_v2", 1 << 30, mib, 0}, {"cuMemHostRegister_v2", 2 << 30, mib, 0}, {"cuMemHostUnregister", 2 << 30, 0, 0}}, event.Pinned, mib, 1},
		{"a handle of another process", []call{{"cuIpcOpenMemHandle_v2", 1 << 40, 0, 0}, {"cuIpcOpenMemHandle_v2", 2 << 40, 0, 0}, {"cuIpcCloseMemHandle", 1 << 40, 0, 0}}, event.Foreign, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			source := &noDriver{}
			d := newDriver(source, ledger.NewStacks(), nil)
			for i, x := range c.calls {
				op := driverOp(t, x.function)
				e := &event.Event{Time: uint64(i + 1), PID: 5, Op: op, Addr: x.addr, Len: x.len, Old: x.old, Prot: onDevice}
				d.enter(e, op.Driver())
			}
			s := d.Sums()
			for m := range s.Bytes {
				bytes, pieces := int64(0), int64(0)
				if event.DriverMemory(m) == c.memory {
					bytes, pieces = c.bytes, c.pieces
				}
				if s.Bytes[m] != bytes || s.Count[m] != pieces {
					t.Errorf("%d bytes of %s memory in %d pieces, want %d in %d", s.Bytes[m], event.DriverMemory(m), s.Count[m], bytes, pieces)
				}
			}
			d.noticed(&event.Event{Time: 100, PID: 5, Op: event.Exit, Addr: 5})
			if s := d.Sums(); s.Bytes[c.memory] != 0 || s.Count[c.memory] != 0 {
				t.Errorf("%d bytes live after the process", s.Bytes[c.memory])
			}
			if len(source.detached) != 1 {
				t.Errorf("detached from %v", source.detached)
			}
		})
	}
}

// TestDriverState checks the places of held memory: memory with a handle is counted
// once, where the handle is bound.
func TestDriverState(t *testing.T) {
	const mib = 1 << 20
	stacks := ledger.NewStacks()
	nccl := stacks.Intern(symbolize.Stack{Frames: []symbolize.Frame{{Object: "/x/libnccl.so.2"}}})
	d := newDriver(&noDriver{}, stacks, nil)
	d.library[5] = "/usr/lib/libcuda.so.1"
	for i, c := range []struct {
		function       string
		addr, len, old uint64
	}{
		{"cuMemAlloc_v2", 100 * mib, 2 * mib, 0}, {"cuMemAlloc_v2", 102 * mib, 2 * mib, 0}, // side by side
		{"cuMemAlloc_v2", 110 * mib, mib, 0},
		{"cuMemCreate", 7, 4 * mib, 0}, {"cuMemMap", 200 * mib, 4 * mib, 7}, {"cuMemMap", 300 * mib, 4 * mib, 7}, // bound twice
		{"cuMemCreate", 8, 2 * mib, 0}, // bound nowhere
		{"cuArrayCreate_v2", 9, mib, 0},
		{"cuMemAllocManaged", 400 * mib, 3 * mib, 0},
		{"cuIpcOpenMemHandle_v2", 500 * mib, 0, 0},
		{"cuMemHostAlloc", 600 * mib, mib, 0},
	} {
		op := driverOp(t, c.function)
		d.enter(&event.Event{Time: uint64(i + 1), PID: 5, Op: op, Addr: c.addr, Len: c.len, Old: c.old, Prot: onDevice}, op.Driver())
	}
	l := d.ledgers[event.Device]
	l.SetStack(5, 3, 110*mib, 1, nccl)
	s := d.State()
	want := []recording.GPUPiece{
		{PID: 5, Addr: 0, Bytes: 3 * mib, Owner: "unknown"},
		{PID: 5, Addr: 100 * mib, Bytes: 4 * mib, Owner: "NCCL"}, // of the same place as the next
		{PID: 5, Addr: 110 * mib, Bytes: mib, Owner: "NCCL"},
		{PID: 5, Addr: 200 * mib, Bytes: 4 * mib, Owner: "unknown"},
	}
	if !slices.Equal(s.Pieces, want) || !slices.Equal(s.PIDs, []int{5}) || s.Managed != 3*mib || s.Foreign != 1 {
		t.Errorf("%+v", s)
	}
	var sum int64
	for _, p := range s.Pieces {
		sum += p.Bytes
	}
	if all := d.Sums().Bytes[event.Device]; sum != all {
		t.Errorf("pieces of %d bytes, and %d in all", sum, all)
	}
}

// driverOp is the op of a function of the driver.
func driverOp(t *testing.T, name string) event.Op {
	t.Helper()
	for op := range event.Op(255) {
		if f := op.Driver(); f != nil && f.Name == name {
			return op
		}
	}
	t.Fatalf("no function %s", name)
	return 0
}

// TestPeaks follows what calls with one stack hold. Calls of other sizes count with
// them, and so do those without a stack.
func TestPeaks(t *testing.T) {
	stacks := ledger.NewStacks()
	stack := stacks.Intern(symbolize.Stack{Frames: []symbolize.Frame{{Object: "/x/libengine.so"}}})
	d := newDriver(&noDriver{}, stacks, nil)
	l := d.ledgers[event.Device]
	now := uint64(0)
	call := func(function string, addr, size uint64) {
		now++
		op := driverOp(t, function)
		d.enter(&event.Event{Time: now, PID: 5, Op: op, Addr: addr, Len: size, Class: uint32(size)}, op.Driver())
		if size > 0 && addr != 900 { // all but one have their stack copied
			l.SetStack(5, now, addr, 1, stack)
		}
	}
	for at, step := range [][]func(){
		{func() { call("cuMemAlloc_v2", 100, 10) }},
		{func() { call("cuMemAlloc_v2", 200, 20) }, func() { call("cuMemAlloc_v2", 300, 10) }},
		{func() { call("cuMemFree_v2", 100, 0) }, func() { call("cuMemAlloc_v2", 900, 20) }},
		{func() { call("cuMemFree_v2", 200, 0) }, func() { call("cuMemFree_v2", 300, 0) }, func() { call("cuMemFree_v2", 900, 0) }},
		// Freed before the first look, one after the other.
		{func() { call("cuMemAlloc_v2", 900, 40) }, func() { call("cuMemFree_v2", 900, 0) }, func() { call("cuMemAlloc_v2", 400, 40) }, func() { call("cuMemFree_v2", 400, 0) }},
		{func() { call("cuMemAlloc_v2", 500, 7) }},
	} {
		for _, f := range step {
			f()
		}
		d.peak(uint64(1000 * (at + 1)))
	}
	s := d.Sums()
	if want := (Peak{Bytes: 60, From: 1000, At: 3000, Until: 4000, Times: 3}); len(s.Uses) != 1 || s.Uses[0].Peak != want {
		t.Errorf("%+v, want %+v", s.Uses, want)
	}
	if most := d.courses[peakKey{event.Device, stack}].now; most.Bytes != 7 {
		t.Errorf("%+v is held", most)
	}
	d.noticed(&event.Event{Time: now + 1, PID: 5, Op: event.Exit, Addr: 5})
	d.peak(7000)
	if most := d.courses[peakKey{event.Device, stack}].now; most.Bytes != 0 {
		t.Errorf("%+v is held by a process that ended", most)
	}
}

// TestLateFree leaves what was put at the address after the free began.
func TestLateFree(t *testing.T) {
	d := newDriver(&noDriver{}, ledger.NewStacks(), nil)
	for _, e := range []event.Event{
		{Time: 9, PID: 5, Op: driverOp(t, "cuMemAlloc_v2"), Addr: 4096, Len: 77},
		{Time: 8, PID: 5, Op: driverOp(t, "cuMemFree_v2"), Addr: 4096},
	} {
		d.enter(&e, e.Op.Driver())
	}
	if s := d.Sums(); s.Bytes[event.Device] != 77 {
		t.Errorf("%d bytes", s.Bytes[event.Device])
	}
}

func TestOwners(t *testing.T) {
	frame := func(function, object string) symbolize.Frame {
		f := symbolize.Frame{Object: object}
		f.Function = function
		return f
	}
	driver, runtime := frame("cuMemAlloc_v2", "/usr/lib/libcuda.so.570.1"), frame("cudaMalloc", "/usr/lib/libcudart.so.12")
	line := symbolize.Frame{}
	line.Function, line.File, line.Line = "serve", "/srv/app.py", 3
	for _, c := range []struct {
		want   string
		frames []symbolize.Frame
	}{
		{"PyTorch's allocator", []symbolize.Frame{driver, runtime, frame("", "/x/libc10_cuda.so"), frame("", "/x/libtorch_cuda.so")}},
		{"PyTorch", []symbolize.Frame{driver, runtime, frame("", "/x/libtorch_cuda.so")}},
		{"NCCL", []symbolize.Frame{driver, runtime, frame("ncclCommInitRank", "/x/libtorch_cuda.so")}},
		{"NCCL", []symbolize.Frame{driver, frame("", "/x/libnccl.so.2"), frame("", "/x/libtorch_cuda.so")}},
		{"cuBLAS", []symbolize.Frame{driver, runtime, frame("cublasCreate_v2", "/x/libcublas.so.12"), frame("", "/x/libtorch_cuda.so")}},
		{"cuBLAS", []symbolize.Frame{driver, frame("", "/x/libcublasLt.so.12")}},
		{"CUDA graphs", []symbolize.Frame{driver, frame("cudaGraphInstantiate", "/usr/lib/libcudart.so.12"), frame("", "/x/libtorch_cuda.so")}},
		{"libengine.so", []symbolize.Frame{driver, runtime, frame("grow", "/x/libengine.so"), frame("ffi_call", "/x/libffi.so.8"), line}},
		{"Python (app.py)", []symbolize.Frame{driver, frame("ffi_call", "/x/libffi.so.8"), frame("", "/x/_ctypes.cpython-311.so"), line}},
		{"unknown", nil},
		{"unknown", []symbolize.Frame{driver}},
	} {
		if got := ownerOf(c.frames); got != c.want {
			t.Errorf("%q, want %q, of %+v", got, c.want, c.frames)
		}
	}
}
