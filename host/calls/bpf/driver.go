package bpf

import "strandline/host/calls/event"

// driverReads states how a function's arguments are read: the enum in driver.c, or 0 for
// functions whose first two arguments are known on entry.
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

// readsOf states how the arguments of each driver function are read.
var readsOf = map[string]driverReads{
	"cuMemAlloc_v2":                  readsOut,
	"cuMemAllocAsync":                readsOut,
	"cuMemAllocAsync_ptsz":           readsOut,
	"cuMemAllocFromPoolAsync":        readsOut,
	"cuMemAllocFromPoolAsync_ptsz":   readsOut,
	"cuMemAllocManaged":              readsOut,
	"cuMemHostAlloc":                 readsOut,
	"cuMemAllocHost_v2":              readsOut,
	"cuMemAllocPitch_v2":             readsPitch,
	"cuMemFree_v2":                   readsAtOnce,
	"cuMemFreeAsync":                 readsAtOnce,
	"cuMemFreeAsync_ptsz":            readsAtOnce,
	"cuArrayDestroy":                 readsAtOnce,
	"cuMemRelease":                   readsAtOnce,
	"cuMemUnmap":                     readsAtOnce,
	"cuMemAddressFree":               readsAtOnce,
	"cuIpcCloseMemHandle":            readsAtOnce,
	"cuMemFreeHost":                  readsAtOnce,
	"cuMemHostUnregister":            readsAtOnce,
	"cuArrayCreate_v2":               readsArray,
	"cuArray3DCreate_v2":             readsArray3D,
	"cuMemCreate":                    readsCreate,
	"cuMemMap":                       readsDirect,
	"cuMemHostRegister_v2":           readsDirect,
	"cuMemRetainAllocationHandle":    readsHandle,
	"cuMemImportFromShareableHandle": readsHandle,
	"cuIpcOpenMemHandle":             readsHandle,
	"cuIpcOpenMemHandle_v2":          readsHandle,
}

// arrayFormats maps the number of a CUDA array's format to the bytes per channel.
var arrayFormats = map[uint32]uint64{1: 1, 2: 2, 3: 4, 8: 1, 9: 2, 10: 4, 16: 2, 32: 4}

// settleDriver completes the event of a driver function: until then the length of an
// array is in channels, and Prot holds their format.
func settleDriver(e *event.Event) {
	if f := e.Op.Driver(); f != nil && (readsOf[f.Name] == readsArray || readsOf[f.Name] == readsArray3D) {
		e.Len *= max(arrayFormats[e.Prot], 1)
		e.Prot = 1
	}
}
