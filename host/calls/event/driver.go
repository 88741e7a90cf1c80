package event

// A DriverFunction is a function by which programs take memory from the driver of a
// GPU, or give it back.
type DriverFunction struct {
	Name   string
	Does   DriverAct
	Memory DriverMemory
}

// A DriverAct is what a driver function does.
type DriverAct uint8

// The acts. In each one's [Event], Addr is the address or the handle.
const (
	DriverAllocates DriverAct = iota // Len bytes
	DriverFrees
	DriverCreates    // a handle for Len bytes; Prot is where they are: 1 is a device
	DriverReleases   // a handle
	DriverBinds      // the memory of the handle Old at Addr, Len bytes
	DriverUnbinds    // Len bytes
	DriverRetains    // the handle of what is bound at Old, one more time
	DriverImports    // the handle of another process's memory
	DriverUnreserves // Len bytes of addresses
)

// DriverMemory is where the memory is.
type DriverMemory uint8

// The kinds of memory.
const (
	Device  DriverMemory = iota
	Managed              // moves between device and host
	Pinned               // on the host, and readable by the device
	Foreign              // owned by another process
	DriverMemories
)

func (m DriverMemory) String() string {
	return [...]string{Device: "device", Managed: "managed", Pinned: "pinned", Foreign: "foreign"}[m]
}

// driverFunctions are those of libcuda. Functions that had no suffix before CUDA 3.2
// have had _v2 since then; those with _ptsz are for programs that give each thread its
// own default stream. The numbers of the functions are not part of any file format.
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
	{"cuMemAddressFree", DriverUnreserves, Device},
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

// Driver returns the driver function that an event is a call of; nil for system calls.
func (o Op) Driver() *DriverFunction {
	if i := int(o) - int(driverOps); i >= 0 && i < len(driverFunctions) {
		return &driverFunctions[i]
	}
	return nil
}

// DriverFunctions yields the functions that are watched, by their Op.
func DriverFunctions(yield func(Op, *DriverFunction) bool) {
	for i := range driverFunctions {
		if !yield(driverOps+Op(i), &driverFunctions[i]) {
			return
		}
	}
}
