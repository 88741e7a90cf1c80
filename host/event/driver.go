package event

// A DriverFunction is one by which programs take memory from the driver of a GPU,
// or give it back.
type DriverFunction struct {
	Name   string
	Does   DriverAct
	Memory DriverMemory
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

// driverFunctions are those of libcuda. What had no suffix before CUDA 3.2 has
// _v2 since; _ptsz are those for programs whose threads have streams of their
// own. Their numbers are part of no file.
var driverFunctions = []DriverFunction{
	{"cuMemAlloc_v2", DriverAllocates, Device},
	{"cuMemAllocPitch_v2", DriverAllocates, Device},
	{"cuMemAllocAsync", DriverAllocates, Device},
	{"cuMemAllocAsync_ptsz", DriverAllocates, Device},
	{"cuMemAllocFromPoolAsync", DriverAllocates, Device},
	{"cuMemAllocFromPoolAsync_ptsz", DriverAllocates, Device},
	{"cuMemFree_v2", DriverFrees, Device},
	{"cuMemFreeAsync", DriverFrees, Device},
	{"cuMemFreeAsync_ptsz", DriverFrees, Device},
	{"cuMemAllocManaged", DriverAllocates, Managed},
	{"cuArrayCreate_v2", DriverCreates, Device},
	{"cuArray3DCreate_v2", DriverCreates, Device},
	{"cuArrayDestroy", DriverReleases, Device},
	{"cuMemCreate", DriverCreates, Device},
	{"cuMemRelease", DriverReleases, Device},
	{"cuMemMap", DriverBinds, Device},
	{"cuMemUnmap", DriverUnbinds, Device},
	{"cuMemRetainAllocationHandle", DriverRetains, Device},
	{"cuMemImportFromShareableHandle", DriverImports, Foreign},
	{"cuIpcOpenMemHandle", DriverAllocates, Foreign},
	{"cuIpcOpenMemHandle_v2", DriverAllocates, Foreign},
	{"cuIpcCloseMemHandle", DriverFrees, Foreign},
	{"cuMemHostAlloc", DriverAllocates, Pinned},
	{"cuMemAllocHost_v2", DriverAllocates, Pinned},
	{"cuMemFreeHost", DriverFrees, Pinned},
	{"cuMemHostRegister_v2", DriverAllocates, Pinned},
	{"cuMemHostUnregister", DriverFrees, Pinned},
}

// driverOps is the [Op] of the first of driverFunctions.
const driverOps Op = 64

// Driver is the driver's function that an event is of; nil for system calls.
func (o Op) Driver() *DriverFunction {
	if i := int(o) - int(driverOps); i >= 0 && i < len(driverFunctions) {
		return &driverFunctions[i]
	}
	return nil
}

// DriverFunctions are the functions that are watched, by their Op.
func DriverFunctions(yield func(Op, *DriverFunction) bool) {
	for i := range driverFunctions {
		if !yield(driverOps+Op(i), &driverFunctions[i]) {
			return
		}
	}
}
