/*
 * Adds to the driver of a simulated device what pausable memory needs of it: streams, whose
 * copies happen at once, and waiting for a context. It takes the place of libcuda.so.1, and
 * that library is the next one.
 *
 * With FAKE_PINNED no memory can be pinned. Where FAKE_SHARED names a file, the devices are those of all processes that name it: what
 * one has the others have not. With NVML defined, this is the library that lists the
 * processes; nvidia-smi beside this reads the file, too.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { MOST = 64, DEVICES = 8, OUT_OF_MEMORY = 2, NOT_FOUND = 6, TOO_SMALL = 7 };

/* What each process has of each device. */
struct process { int64_t pid; uint64_t used[DEVICES]; };
static struct process *processes;

size_t fk_used(int device);
size_t fk_context(void);

__attribute__((constructor)) static void begin(void)
{
	const char *path = getenv("FAKE_SHARED");
	int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
	if (fd < 0)
		return;
	void *at = ftruncate(fd, MOST * sizeof *processes) ? MAP_FAILED : mmap(NULL, MOST * sizeof *processes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	close(fd);
	if (at != MAP_FAILED)
		processes = at;
}

static int lives(const struct process *p)
{
	int64_t pid = __atomic_load_n(&p->pid, __ATOMIC_ACQUIRE);
	return pid && (!kill((pid_t)pid, 0) || errno != ESRCH);
}

#ifdef NVML

struct listed { unsigned pid; unsigned long long used; unsigned instances[2]; };
static char devices[DEVICES];

int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
int nvmlDeviceGetHandleByPciBusId_v2(const char *id, void **device)
{
	const char *bus = strchr(id, ':');
	unsigned long n = bus ? strtoul(bus + 1, NULL, 16) : 0; /* the index of the device, and 1 */
	*device = &devices[n ? n - 1 : 0];
	return n && n <= DEVICES ? 0 : NOT_FOUND;
}
int nvmlDeviceGetComputeRunningProcesses_v3(void *device, unsigned *n, struct listed *to)
{
	unsigned found = 0;
	for (int i = 0; i < MOST && processes; i++) {
		uint64_t used = processes[i].used[(char *)device - devices];
		if (!lives(&processes[i]) || !used)
			continue;
		if (found == *n)
			return TOO_SMALL;
		to[found++] = (struct listed){(unsigned)processes[i].pid, used, {0}};
	}
	*n = found;
	return 0;
}

#else

typedef unsigned long long ptr;
static struct process *own;

/* NEXT is the driver's own function. */
#define NEXT(name) ((__typeof__(&name))dlsym(RTLD_NEXT, #name))

/* note says what this process has now. */
static int note(int code)
{
	for (int i = 0; i < MOST && processes && !own; i++) {
		int64_t was = processes[i].pid;
		if (!lives(&processes[i]) && __atomic_compare_exchange_n(&processes[i].pid, &was, getpid(), 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE))
			own = &processes[i];
	}
	for (int d = 0; d < DEVICES && own; d++) {
		if (fk_used(d) || own->used[d]) /* a context stays */
			own->used[d] = fk_used(d) + fk_context();
	}
	return code;
}

size_t fk_free(int device)
{
	size_t n = NEXT(fk_free)(device), others = 0;
	for (int i = 0; i < MOST && processes; i++)
		if (&processes[i] != own && lives(&processes[i]))
			others += processes[i].used[device];
	return others < n ? n - others : 0;
}

int fk_device(void);
int cuMemCreate(ptr *handle, size_t n, const int *with, ptr flags)
{
	return n > fk_free(with[3]) ? OUT_OF_MEMORY : note(NEXT(cuMemCreate)(handle, n, with, flags));
}
int cuMemAlloc_v2(ptr *at, size_t n) { return n > fk_free(fk_device()) ? OUT_OF_MEMORY : note(NEXT(cuMemAlloc_v2)(at, n)); }
int cuMemRelease(ptr handle) { return note(NEXT(cuMemRelease)(handle)); }
int cuMemUnmap(ptr at, size_t n) { return note(NEXT(cuMemUnmap)(at, n)); }
int cuMemFree_v2(ptr at) { return note(NEXT(cuMemFree_v2)(at)); }
size_t fk_total(int device);
int cuMemGetInfo_v2(size_t *available, size_t *total)
{
	*available = fk_free(fk_device());
	*total = fk_total(fk_device());
	return 0;
}

int cuDeviceGetPCIBusId(char *to, int size, int device) { return snprintf(to, (size_t)size, "0000:%02x:00.0", device + 1) >= size; }
int cuMemHostAlloc(void **at, size_t n, unsigned flags) { return getenv("FAKE_PINNED") ? OUT_OF_MEMORY : NEXT(cuMemHostAlloc)(at, n, flags); }
int cuCtxSynchronize(void) { return 0; }
int cuStreamCreate(void **stream, unsigned flags)
{
	static char streams[1024];
	static unsigned n;
	*stream = &streams[__sync_fetch_and_add(&n, 1) % sizeof streams];
	return (int)(flags & ~1u);
}
int cuStreamSynchronize(void *stream) { return !stream; }
int cuMemcpyDtoHAsync_v2(void *to, ptr from, size_t n, void *stream)
{
	memcpy(to, (const void *)from, n);
	return !stream;
}
int cuMemcpyHtoDAsync_v2(ptr to, const void *from, size_t n, void *stream)
{
	memcpy((void *)to, from, n);
	return !stream;
}
#endif
