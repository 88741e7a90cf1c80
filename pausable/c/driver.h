/* The entry points of CUDA's driver, which are found at run time. Types and layouts are
 * those of its documentation. */
#ifndef DRIVER_H
#define DRIVER_H

#include "pausable.h"

typedef int CUresult;
typedef int CUdevice;
typedef unsigned long long CUdeviceptr;
typedef unsigned long long CUhandle;
typedef void *CUcontext;
typedef void *CUstream;

enum { CUDA_SUCCESS, CUDA_OUT_OF_MEMORY = 2, CUDA_DEINITIALIZED = 4 };

struct location { int type, id; };
struct properties {
	int type, handles;
	struct location location;
	void *windows;
	struct { unsigned char compression, rdma; unsigned short usage; unsigned char reserved[4]; } flags;
};
struct access { struct location location; int flags; };
enum { DEVICE = 1, PINNED_TYPE = 1, READ_WRITE = 3, MINIMUM = 0, PORTABLE = 1, NON_BLOCKING = 1, RDMA_WITH_VMM = 110 };

#define DRIVER_CALLS(X) \
	X(cuInit, (unsigned)) \
	X(cuDeviceGet, (CUdevice *, int)) \
	X(cuDeviceGetAttribute, (int *, int, CUdevice)) \
	X(cuDevicePrimaryCtxRetain, (CUcontext *, CUdevice)) \
	X(cuCtxGetCurrent, (CUcontext *)) \
	X(cuCtxSetCurrent, (CUcontext)) \
	X(cuCtxSynchronize, (void)) \
	X(cuMemGetInfo_v2, (size_t *, size_t *)) \
	X(cuMemGetAllocationGranularity, (size_t *, const struct properties *, int)) \
	X(cuMemCreate, (CUhandle *, size_t, const struct properties *, unsigned long long)) \
	X(cuMemRelease, (CUhandle)) \
	X(cuMemAddressReserve, (CUdeviceptr *, size_t, size_t, CUdeviceptr, unsigned long long)) \
	X(cuMemAddressFree, (CUdeviceptr, size_t)) \
	X(cuMemMap, (CUdeviceptr, size_t, size_t, CUhandle, unsigned long long)) \
	X(cuMemUnmap, (CUdeviceptr, size_t)) \
	X(cuMemSetAccess, (CUdeviceptr, size_t, const struct access *, size_t)) \
	X(cuMemHostAlloc, (void **, size_t, unsigned)) \
	X(cuMemFreeHost, (void *)) \
	X(cuStreamCreate, (CUstream *, unsigned)) \
	X(cuStreamSynchronize, (CUstream)) \
	X(cuMemcpyDtoHAsync_v2, (void *, CUdeviceptr, size_t, CUstream)) \
	X(cuMemcpyHtoDAsync_v2, (CUdeviceptr, const void *, size_t, CUstream)) \
	X(cuGetErrorName, (CUresult, const char **))

#define X(name, arguments) CUresult(*name) arguments;
struct driver { DRIVER_CALLS(X) };
#undef X
extern struct driver cu;

enum { MOST_DEVICES = 64, STREAMS = 2 };

/* What is known of a device, from its first use on. */
struct device {
	int ready;
	CUdevice id;
	CUcontext primary;
	size_t granularity;
	unsigned char rdma;
	CUstream streams[STREAMS]; /* made at the first copy, and kept */
};

/* Finds the driver, and fails if there is none. */
int driver_load(struct pausable_failure *f);

/* The device with this index; NULL with a failure. */
struct device *device_of(int index, struct pausable_failure *f);

/* Whether a device was used already. */
int device_used(int index);

/* Runs work with the device's primary context, on a thread of its own unless that context
 * is current, so that the context of this thread stays what it is. */
typedef int device_work(void *arg, struct pausable_failure *f);
int on_device(int index, device_work *work, void *arg, struct pausable_failure *f);

/* Begins a thread of the library's own; nonzero if there cannot be one. */
int thread_begin(void *(*work)(void *), void *arg, unsigned long *thread);

/* Begins and joins such work beside others: what work returns is in result. */
struct job {
	int index;
	device_work *work;
	void *arg;
	int result;
	struct pausable_failure failure;
	unsigned long thread;
	int started;
};
void job_begin(struct job *j);
void job_end(struct job *j);

/* A failure of the driver's call name. Returns its kind, PAUSABLE_OK for success. */
int driver_failed(struct pausable_failure *f, CUresult code, const char *name, int device);
#define CU(f, device, call, ...) driver_failed(f, cu.call(__VA_ARGS__), #call, device)

/* SIZE(n) is a size for a text, as "1.5 GiB". (size.c) */
enum { SIZE_TEXT = 16 };
const char *size_text(uint64_t n, char to[SIZE_TEXT]);
#define SIZE(n) size_text(n, (char[SIZE_TEXT]){0})

/* Any failure. Returns kind. */
int failed(struct pausable_failure *f, int kind, int code, int device, const char *format, ...)
	__attribute__((format(printf, 5, 6)));

#endif
