/* A driver of CUDA that does nothing and succeeds, so that what takes time is not the driver. */
#include "../../pausable/c/driver.h"

static CUdeviceptr next = 1ULL << 40;

CUresult cuInit(unsigned flags) { return (int)flags; }
CUresult cuDeviceGet(CUdevice *d, int index) { return *d = index, 0; }
CUresult cuDeviceGetAttribute(int *value, int which, CUdevice d) { return *value = which * 0 + d * 0, 0; }
CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d) { return *c = &next + d * 0, 0; }
CUresult cuCtxGetCurrent(CUcontext *c) { return *c = &next, 0; }
CUresult cuCtxSetCurrent(CUcontext c) { return !c; }
CUresult cuCtxSynchronize(void) { return 0; }
CUresult cuMemGetInfo_v2(size_t *free, size_t *total) { return *free = *total = 1ULL << 40, 0; }
CUresult cuMemGetAllocationGranularity(size_t *unit, const struct properties *p, int option) { return *unit = 2 << 20, !p || option; }
CUresult cuMemCreate(CUhandle *h, size_t size, const struct properties *p, unsigned long long flags) { return *h = 1, !size || !p || flags; }
CUresult cuMemRelease(CUhandle h) { return !h; }
CUresult cuMemAddressReserve(CUdeviceptr *at, size_t size, size_t align, CUdeviceptr hint, unsigned long long flags)
{
	*at = next;
	next += size;
	return align || hint || flags;
}
CUresult cuMemAddressFree(CUdeviceptr at, size_t size) { return !at || !size; }
CUresult cuMemMap(CUdeviceptr at, size_t size, size_t offset, CUhandle h, unsigned long long flags) { return !at || !size || offset || !h || flags; }
CUresult cuMemUnmap(CUdeviceptr at, size_t size) { return !at || !size; }
CUresult cuMemSetAccess(CUdeviceptr at, size_t size, const struct access *who, size_t n) { return !at || !size || !who || !n; }
CUresult cuMemHostAlloc(void **at, size_t size, unsigned flags) { return *at = NULL, !size || flags; }
CUresult cuMemFreeHost(void *at) { return !at; }
CUresult cuStreamCreate(CUstream *s, unsigned flags) { return *s = &next, !flags; }
CUresult cuStreamSynchronize(CUstream s) { return !s; }
CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t n, CUstream s) { return !to || !from || !n || !s; }
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t n, CUstream s) { return !to || !from || !n || !s; }
CUresult cuGetErrorName(CUresult code, const char **name) { return *name = "an error", code * 0; }
