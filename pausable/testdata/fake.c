/*
 * A driver of CUDA for tests, with four devices. Physical memory is a file in memory, so
 * that it can be unmapped and mapped elsewhere with what is in it, and reading an address
 * without a mapping is a fault. Copies and kernels only happen when something waits for
 * them. Any call can be made to fail, in which case nothing of it happens.
 *
 * What a real driver forbids, or what would be a fault on a device, counts as misuse.
 */
#define _GNU_SOURCE
#include "fake.h"

#include "../c/driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define CALL __attribute__((visibility("default")))
enum { INVALID = 1, UNKNOWN_HANDLE = 400, MANY = 4096, QUEUE = 1024, MOST_SITES = 256 };

struct range { CUdeviceptr at; size_t size; };
struct handle { int fd, device, mappings, released; size_t size; };
struct mapping { CUdeviceptr at; size_t size; struct handle *of; int open; };
struct pinned { void *at; size_t size; };
struct pending { void *to; const void *from; size_t n; int value; CUstream stream; int device; };

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct range ranges[MANY];
static struct handle handles[MANY];
static struct mapping mappings[MANY];
static struct pinned hosts[MANY];
static struct pending queue[QUEUE];
static int n_ranges, n_mappings, n_hosts, n_queue, misuses;
static char misused[256];
static size_t used[FAKE_DEVICES];
static long occupied[FAKE_DEVICES];
static struct { int device; } contexts[FAKE_DEVICES];
static struct { int device; } streams[64];
static int n_streams;
static __thread int current = -1;

/* Faults. */
static struct { long calls, first, n; int code; } faults[FAKE_DEVICES];
static long each, each_calls;
static int each_code, named_code, vanished = -1;
static const char *named;
static struct { /* shared with children */
	long all;
	struct { const char *name; long failures; } of[64];
	struct fake_site sites[MOST_SITES];
} *counts;

__attribute__((constructor)) static void begin(void)
{
	counts = mmap(NULL, sizeof *counts, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (counts == MAP_FAILED)
		abort();
}

static void misuse(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	vsnprintf(misused, sizeof misused, format, args);
	va_end(args);
	misuses++;
}

/* site is where in the program a call is, which returns to an address. */
static struct fake_site *site(const void *back)
{
	Dl_info of;
	int i = 0;
	if (!dladdr(back, &of))
		abort();
	size_t at = (size_t)((const char *)back - (const char *)of.dli_fbase) - 1;
	while (i < MOST_SITES - 1 && counts->sites[i].at && counts->sites[i].at != at)
		i++;
	counts->sites[i].at = at;
	return &counts->sites[i];
}

/* fault counts a call, and returns the code that it fails with. */
static CUresult fault(int device, const char *name, const void *back)
{
	struct fake_site *s = site(back);
	s->calls++;
	int i = 0, code = 0;
	while (counts->of[i].name && counts->of[i].name != name)
		i++;
	counts->of[i].name = name;
	if (device < 0 || device >= FAKE_DEVICES)
		device = 0;
	long now = ++faults[device].calls;
	if (faults[device].n && now >= faults[device].first && now - faults[device].first < faults[device].n)
		code = faults[device].code;
	if (each && ++each_calls % each == 0)
		code = each_code;
	if (named && !strcmp(named, name))
		code = named_code;
	if (code) {
		counts->of[i].failures++;
		counts->all++;
		s->failures++;
	}
	return code;
}

/* Each call holds the lock from BEGIN to END. */
#define BEGIN(device) \
	pthread_mutex_lock(&lock); \
	CUresult code = fault(device, __func__, __builtin_return_address(0)); \
	if (!code) {
#define END \
	} \
	pthread_mutex_unlock(&lock); \
	return code
#define IN_CONTEXT \
	if (current < 0) \
		misuse("%s without a context", __func__)

void fake_fail(int device, long first, long n, int code)
{
	pthread_mutex_lock(&lock);
	faults[device].calls = 0;
	faults[device].first = first;
	faults[device].n = n;
	faults[device].code = code;
	pthread_mutex_unlock(&lock);
}
void fake_fail_each(long n, int code)
{
	pthread_mutex_lock(&lock);
	each = n;
	each_code = code;
	pthread_mutex_unlock(&lock);
}
void fake_fail_name(const char *name, int code)
{
	pthread_mutex_lock(&lock);
	named = name;
	named_code = code;
	pthread_mutex_unlock(&lock);
}
void fake_vanish(int device)
{
	pthread_mutex_lock(&lock);
	vanished = device;
	pthread_mutex_unlock(&lock);
}
long fake_calls(int device) { return faults[device].calls; }
long fake_failures(void) { return counts->all; }
const char *fake_name(int i, long *n)
{
	*n = counts->of[i].failures;
	return counts->of[i].name;
}
const struct fake_site *fake_site(int i) { return i < MOST_SITES && counts->sites[i].at ? &counts->sites[i] : NULL; }
size_t fake_used(int device) { return used[device]; }
size_t fake_pinned(void)
{
	size_t sum = 0;
	for (int i = 0; i < n_hosts; i++)
		sum += hosts[i].size;
	return sum;
}
int fake_ranges(void) { return n_ranges; }
int fake_mappings(void) { return n_mappings; }
int fake_misuses(const char **what)
{
	*what = misused;
	return misuses;
}
void fake_occupy(int device, long bytes)
{
	pthread_mutex_lock(&lock);
	occupied[device] += bytes;
	pthread_mutex_unlock(&lock);
}

static size_t available(int device) { return FAKE_MEMORY - used[device] - (size_t)occupied[device]; }

/* overlaps reports whether something that still runs touches these bytes. */
static int overlaps(const void *at, size_t n)
{
	for (int i = 0; i < n_queue; i++) {
		const char *to = queue[i].to, *from = queue[i].from, *p = at;
		if ((to < p + n && p < to + queue[i].n) || (from && from < p + n && p < from + queue[i].n))
			return 1;
	}
	return 0;
}

static void enqueue(struct pending p)
{
	if (n_queue == QUEUE)
		abort();
	queue[n_queue++] = p;
}

/* finish has what was begun happen: of a stream, or of a device. */
static void finish(CUstream stream, int device)
{
	int left = 0;
	for (int i = 0; i < n_queue; i++) {
		struct pending p = queue[i];
		if (stream ? p.stream != stream : p.device != device)
			queue[left++] = p;
		else if (p.from)
			memcpy(p.to, p.from, p.n);
		else
			memset(p.to, p.value, p.n);
	}
	n_queue = left;
}

void fake_enter(int device) { current = device; }

void fake_launch(int device, void *at, int value, size_t n)
{
	pthread_mutex_lock(&lock);
	enqueue((struct pending){.to = at, .value = value, .n = n, .device = device});
	pthread_mutex_unlock(&lock);
}

CALL CUresult cuInit(unsigned flags)
{
	BEGIN(0)
	(void)flags;
	END;
}
CALL CUresult cuDeviceGet(CUdevice *d, int index)
{
	BEGIN(index)
	if (index >= FAKE_DEVICES)
		code = 101;
	else
		*d = index;
	END;
}
CALL CUresult cuDeviceGetPCIBusId(char *to, int size, CUdevice d)
{
	return snprintf(to, (size_t)size, "0000:%02x:00.0", d + 1) < size ? CUDA_SUCCESS : INVALID;
}
CALL CUresult cuDeviceGetAttribute(int *value, int attribute, CUdevice d)
{
	BEGIN(d)
	*value = attribute == RDMA_WITH_VMM;
	END;
}
CALL CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d)
{
	BEGIN(d)
	contexts[d].device = d;
	*c = &contexts[d];
	END;
}
CALL CUresult cuCtxGetCurrent(CUcontext *c)
{
	BEGIN(current)
	*c = current < 0 ? NULL : &contexts[current];
	END;
}
CALL CUresult cuCtxSetCurrent(CUcontext c)
{
	BEGIN(c ? ((__typeof__(&contexts[0]))c)->device : 0)
	current = c ? ((__typeof__(&contexts[0]))c)->device : -1;
	END;
}
CALL CUresult cuCtxSynchronize(void)
{
	BEGIN(current)
	IN_CONTEXT;
	finish(NULL, current);
	END;
}
CALL CUresult cuMemGetInfo_v2(size_t *free, size_t *total)
{
	BEGIN(current)
	IN_CONTEXT;
	*free = available(current < 0 ? 0 : current);
	*total = FAKE_MEMORY;
	END;
}
CALL CUresult cuMemGetAllocationGranularity(size_t *unit, const struct properties *p, int option)
{
	BEGIN(p->location.id)
	(void)option;
	*unit = FAKE_UNIT;
	END;
}
CALL CUresult cuMemAddressReserve(CUdeviceptr *at, size_t size, size_t align, CUdeviceptr hint, unsigned long long flags)
{
	BEGIN(current)
	(void)align, (void)hint, (void)flags;
	void *p = mmap(NULL, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (size % FAKE_UNIT || p == MAP_FAILED || n_ranges == MANY) {
		code = INVALID;
	} else {
		*at = (CUdeviceptr)(uintptr_t)p;
		ranges[n_ranges++] = (struct range){*at, size};
	}
	END;
}
CALL CUresult cuMemAddressFree(CUdeviceptr at, size_t size)
{
	BEGIN(current)
	int i = 0;
	while (i < n_ranges && (ranges[i].at != at || ranges[i].size != size))
		i++;
	for (int m = 0; m < n_mappings; m++)
		if (mappings[m].at < at + size && at < mappings[m].at + mappings[m].size)
			misuse("addresses are freed that are mapped");
	if (i == n_ranges) {
		misuse("addresses are freed that are not reserved");
		code = INVALID;
	} else {
		munmap((void *)(uintptr_t)at, size);
		ranges[i] = ranges[--n_ranges];
	}
	END;
}
CALL CUresult cuMemCreate(CUhandle *out, size_t size, const struct properties *p, unsigned long long flags)
{
	BEGIN(p->location.id)
	(void)flags;
	int i = 1;
	while (i < MANY && handles[i].size)
		i++;
	if (size % FAKE_UNIT || !size || p->type != PINNED_TYPE || p->location.type != DEVICE || i == MANY) {
		code = INVALID;
	} else if (size > available(p->location.id)) {
		code = CUDA_OUT_OF_MEMORY;
	} else {
		handles[i] = (struct handle){.fd = memfd_create("device", MFD_CLOEXEC), .device = p->location.id, .size = size};
		if (handles[i].fd < 0 || ftruncate(handles[i].fd, (off_t)(size < FAKE_PIECE ? size : FAKE_PIECE)))
			abort();
		used[p->location.id] += size;
		*out = (CUhandle)i;
	}
	END;
}

/* unref frees physical memory that is released and mapped nowhere. */
static void unref(struct handle *h)
{
	if (!h->released || h->mappings)
		return;
	close(h->fd);
	used[h->device] -= h->size;
	h->size = 0;
}

CALL CUresult cuMemRelease(CUhandle h)
{
	BEGIN(current)
	if (!h || h >= MANY || !handles[h].size || handles[h].released) {
		misuse("a handle is released that is none");
		code = UNKNOWN_HANDLE;
	} else {
		if (handles[h].mappings)
			misuse("a handle is released that is mapped");
		handles[h].released = 1;
		unref(&handles[h]);
	}
	END;
}
CALL CUresult cuMemMap(CUdeviceptr at, size_t size, size_t offset, CUhandle h, unsigned long long flags)
{
	BEGIN(current)
	(void)flags;
	int inside = 0;
	for (int i = 0; i < n_ranges; i++)
		inside |= at >= ranges[i].at && at + size <= ranges[i].at + ranges[i].size;
	for (int i = 0; i < n_mappings; i++)
		inside &= at + size <= mappings[i].at || mappings[i].at + mappings[i].size <= at;
	if (!inside || offset || !h || h >= MANY || handles[h].size != size || handles[h].released || n_mappings == MANY) {
		misuse("a mapping that cannot be");
		code = INVALID;
	} else {
		for (size_t n, done = 0; done < size; done += n) {
			n = size - done < FAKE_PIECE ? size - done : FAKE_PIECE;
			if (mmap((void *)(uintptr_t)(at + done), n, PROT_NONE, MAP_SHARED | MAP_FIXED, handles[h].fd, 0) == MAP_FAILED)
				abort();
		}
		handles[h].mappings++;
		mappings[n_mappings++] = (struct mapping){at, size, &handles[h], 0};
	}
	END;
}
CALL CUresult cuMemUnmap(CUdeviceptr at, size_t size)
{
	BEGIN(current)
	int i = 0;
	while (i < n_mappings && (mappings[i].at != at || mappings[i].size != size))
		i++;
	if (overlaps((void *)(uintptr_t)at, size))
		misuse("memory is unmapped while it is used");
	if (i == n_mappings) {
		misuse("memory is unmapped that is not mapped");
		code = INVALID;
	} else {
		if (mmap((void *)(uintptr_t)at, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0) == MAP_FAILED)
			abort();
		mappings[i].of->mappings--;
		unref(mappings[i].of);
		mappings[i] = mappings[--n_mappings];
	}
	END;
}
CALL CUresult cuMemSetAccess(CUdeviceptr at, size_t size, const struct access *who, size_t n)
{
	BEGIN(current)
	int i = 0, own = 0, gone = 0;
	while (i < n_mappings && (mappings[i].at != at || mappings[i].size != size))
		i++;
	for (size_t k = 0; i < n_mappings && k < n; k++) {
		own |= who[k].location.id == mappings[i].of->device && who[k].flags == READ_WRITE;
		gone |= who[k].location.id == vanished;
	}
	if (gone) {
		code = INVALID;
	} else if (!own) {
		misuse("access is set to what is not mapped, or not for its device");
		code = INVALID;
	} else {
		mappings[i].open = 1;
		mprotect((void *)(uintptr_t)at, size, PROT_READ | PROT_WRITE);
	}
	END;
}
CALL CUresult cuMemHostAlloc(void **at, size_t size, unsigned flags)
{
	BEGIN(current)
	IN_CONTEXT;
	(void)flags;
	*at = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (*at == MAP_FAILED || n_hosts == MANY)
		abort();
	hosts[n_hosts++] = (struct pinned){*at, size};
	END;
}
CALL CUresult cuMemFreeHost(void *at)
{
	BEGIN(current)
	IN_CONTEXT;
	int i = 0;
	while (i < n_hosts && hosts[i].at != at)
		i++;
	if (i == n_hosts) {
		misuse("pinned memory is freed that is none");
		code = INVALID;
	} else {
		if (overlaps(at, hosts[i].size))
			misuse("pinned memory is freed while it is used");
		munmap(at, hosts[i].size);
		hosts[i] = hosts[--n_hosts];
	}
	END;
}
CALL CUresult cuStreamCreate(CUstream *s, unsigned flags)
{
	BEGIN(current)
	IN_CONTEXT;
	(void)flags;
	if (n_streams == 64)
		abort();
	streams[n_streams].device = current;
	*s = &streams[n_streams++];
	END;
}
CALL CUresult cuStreamSynchronize(CUstream s)
{
	BEGIN(current)
	IN_CONTEXT;
	finish(s, 0);
	END;
}

/* copy begins a copy, if the driver could. */
static CUresult copy(CUdeviceptr on, void *to, const void *from, size_t n, CUstream s)
{
	for (int i = 0; i < n_mappings; i++) {
		if (on < mappings[i].at || on + n > mappings[i].at + mappings[i].size || !mappings[i].open)
			continue;
		enqueue((struct pending){.to = to, .from = from, .n = n, .stream = s, .device = current});
		return CUDA_SUCCESS;
	}
	misuse("a copy of memory that is not mapped");
	return INVALID;
}

CALL CUresult cuMemcpyDtoHAsync_v2(void *to, CUdeviceptr from, size_t n, CUstream s)
{
	BEGIN(current)
	IN_CONTEXT;
	code = copy(from, to, (void *)(uintptr_t)from, n, s);
	END;
}
CALL CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void *from, size_t n, CUstream s)
{
	BEGIN(current)
	IN_CONTEXT;
	code = copy(to, (void *)(uintptr_t)to, from, n, s);
	END;
}
CALL CUresult cuGetErrorName(CUresult of, const char **name)
{
	BEGIN(current)
	*name = of == CUDA_OUT_OF_MEMORY ? "CUDA_ERROR_OUT_OF_MEMORY" : "CUDA_ERROR_UNKNOWN";
	END;
}
