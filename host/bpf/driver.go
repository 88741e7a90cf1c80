package bpf

// A DriverFunction is one by which programs take memory from the driver of a GPU,
// or give it back.
type DriverFunction struct {
	Name   string
	Does   DriverAct
	Memory DriverMemory
	reads  driverReads
}

// A DriverAct is what a function of the driver does.
type DriverAct uint8

// The acts. In an [Event] of each Addr is the address or the handle.
const (
	DriverAllocates DriverAct = iota // Len bytes
	DriverFrees
	DriverCreates  // the handle of Len bytes; Prot is where they lie: 1 is a device
	DriverReleases // a handle
	DriverBinds    // Len bytes at Addr are those of the handle Old
	DriverUnbinds  // Len bytes
	DriverRetains  // the handle of what is bound at Old, once more
	DriverImports  // the handle of memory of another process
)

// DriverMemory is where the memory is.
type DriverMemory uint8

// The kinds of memory.
const (
	Device  DriverMemory = iota
	Managed              // moves between the device and the host
	Pinned               // of the host, which the device can read
	Foreign              // of another process, whose it is
	DriverMemories
)

func (m DriverMemory) String() string {
	return [...]string{Device: "device", Managed: "managed", Pinned: "pinned", Foreign: "foreign"}[m]
}

// driverReads is how a function's arguments are read: the enum of driver.c, and
// 0 for those of which the first two are known when they are called.
type driverReads uint8

const (
	readsAtOnce driverReads = iota
	readsOut
	readsDirect
	readsCreate
	readsHandle
	readsPitch
	readsArray
	readsArray3D
)

// driverFunctions are those of libcuda. What had no suffix before CUDA 3.2 has
// _v2 since; _ptsz are those for programs whose threads have streams of their
// own. Their numbers are part of no file.
var driverFunctions = []DriverFunction{
	{"cuMemAlloc_v2", DriverAllocates, Device, readsOut},
	{"cuMemAllocPitch_v2", DriverAllocates, Device, readsPitch},
	{"cuMemAllocAsync", DriverAllocates, Device, readsOut},
	{"cuMemAllocAsync_ptsz", DriverAllocates, Device, readsOut},
	{"cuMemAllocFromPoolAsync", DriverAllocates, Device, readsOut},
	{"cuMemAllocFromPoolAsync_ptsz", DriverAllocates, Device, readsOut},
	{"cuMemFree_v2", DriverFrees, Device, readsAtOnce},
	{"cuMemFreeAsync", DriverFrees, Device, readsAtOnce},
	{"cuMemFreeAsync_ptsz", DriverFrees, Device, readsAtOnce},
	{"cuMemAllocManaged", DriverAllocates, Managed, readsOut},
	{"cuArrayCreate_v2", DriverCreates, Device, readsArray},
	{"cuArray3DCreate_v2", DriverCreates, Device, readsArray3D},
	{"cuArrayDestroy", DriverReleases, Device, readsAtOnce},
	{"cuMemCreate", DriverCreates, Device, readsCreate},
	{"cuMemRelease", DriverReleases, Device, readsAtOnce},
	{"cuMemMap", DriverBinds, Device, readsDirect},
	{"cuMemUnmap", DriverUnbinds, Device, readsAtOnce},
	{"cuMemRetainAllocationHandle", DriverRetains, Device, readsHandle},
	{"cuMemImportFromShareableHandle", DriverImports, Foreign, readsHandle},
	{"cuIpcOpenMemHandle", DriverAllocates, Foreign, readsHandle},
	{"cuIpcOpenMemHandle_v2", DriverAllocates, Foreign, readsHandle},
	{"cuIpcCloseMemHandle", DriverFrees, Foreign, readsAtOnce},
	{"cuMemHostAlloc", DriverAllocates, Pinned, readsOut},
	{"cuMemAllocHost_v2", DriverAllocates, Pinned, readsOut},
	{"cuMemFreeHost", DriverFrees, Pinned, readsAtOnce},
	{"cuMemHostRegister_v2", DriverAllocates, Pinned, readsDirect},
	{"cuMemHostUnregister", DriverFrees, Pinned, readsAtOnce},
}

// driverOps is the [Op] of the first of them.
const driverOps Op = 64

// Driver is the driver's function that an event is of; nil for system calls.
func (o Op) Driver() *DriverFunction {
	if i := int(o) - int(driverOps); i >= 0 && i < len(driverFunctions) {
		return &driverFunctions[i]
	}
	return nil
}

// arrayFormats are the bytes of a channel of CUDA's arrays by the number of their
// format.
var arrayFormats = map[uint32]uint64{1: 1, 2: 2, 3: 4, 8: 1, 9: 2, 10: 4, 16: 2, 32: 4}

// settleDriver completes the event of a function of the driver: the length of an
// array is in channels until then, and Prot their format.
func (e *Event) settleDriver() {
	if f := e.Op.Driver(); f != nil && (f.reads == readsArray || f.reads == readsArray3D) {
		e.Len *= max(arrayFormats[e.Prot], 1)
		e.Prot = 1
	}
}
