/* The entry points of the driver through which memory is taken and given back, and
 * pinned host memory. */
#define _GNU_SOURCE
#include "fk.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/mman.h>

#define EXPORT __attribute__((visibility("default")))
typedef uint64_t u64;
typedef unsigned long long CUdeviceptr;
typedef int CUresult;

static size_t up(size_t n, size_t a) { return (n + a - 1) / a * a; }
static void *grow(void *p, size_t n, size_t *cap, size_t elem) {
  if (n < *cap) return p;
  *cap = *cap ? *cap * 2 : 64;
  p = realloc(p, *cap * elem);
  if (!p) abort();
  return p;
}

struct host_block {
  uintptr_t addr;
  size_t size;
  int ours; /* allocated here; else registered */
};
static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static struct host_block *hosts;
static size_t n_hosts, cap_hosts;

/* ---------------------------------------------------------- host memory */

static void host_note(void *p, size_t n, int ours) {
  pthread_mutex_lock(&mu);
  hosts = grow(hosts, n_hosts, &cap_hosts, sizeof *hosts);
  hosts[n_hosts++] = (struct host_block){(uintptr_t)p, n, ours};
  pthread_mutex_unlock(&mu);
}
/* Size of the block that was forgotten, 0 if there was none. */
static size_t host_forget(void *p, int ours) {
  size_t size = 0;
  pthread_mutex_lock(&mu);
  for (size_t i = 0; i < n_hosts && !size; i++)
    if (hosts[i].addr == (uintptr_t)p && hosts[i].ours == ours) {
      size = hosts[i].size;
      hosts[i] = hosts[--n_hosts];
    }
  pthread_mutex_unlock(&mu);
  return size;
}
EXPORT int fk_is_host_ptr(const void *p) {
  uintptr_t x = (uintptr_t)p;
  int yes = 0;
  pthread_mutex_lock(&mu);
  for (size_t i = 0; i < n_hosts && !yes; i++)
    yes = x >= hosts[i].addr && x < hosts[i].addr + hosts[i].size;
  pthread_mutex_unlock(&mu);
  return yes;
}
/* As the real driver's: shared, and resident from the start. */
static int host_alloc(size_t n, void **out) {
  *out = NULL;
  if (!n) return FK_EINVAL;
  void *p = mmap(NULL, up(n, 4096), PROT_READ | PROT_WRITE,
                 MAP_SHARED | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (p == MAP_FAILED) return FK_ENOMEM;
  host_note(p, n, 1);
  *out = p;
  fk_log("hostalloc size=%zu addr=%#zx\n", n, (size_t)p);
  return FK_OK;
}
static int host_free(void *p) {
  size_t n = host_forget(p, 1);
  if (!n) return FK_EINVAL;
  munmap(p, up(n, 4096));
  fk_log("hostfree size=%zu addr=%#zx\n", n, (size_t)p);
  return FK_OK;
}

/* ------------------------------------------------- memory, driver API */

/* Each calls the model and none another entry point, so that one call of a
 * program is one call here.  Sizes of 0 are refused, which libcudart allows. */
static CUresult device_alloc(CUdeviceptr *out, size_t n) {
  void *p = NULL;
  CUresult rc = n ? fk_malloc(fk_device(), n, &p) : FK_EINVAL;
  *out = (CUdeviceptr)(uintptr_t)p;
  return rc;
}

EXPORT CUresult cuMemGetInfo_v2(size_t *fr, size_t *tot) {
  *fr = fk_free(fk_device());
  *tot = fk_total(fk_device());
  return 0;
}
EXPORT CUresult cuMemAlloc_v2(CUdeviceptr *p, size_t n) {
  return device_alloc(p, n);
}
EXPORT CUresult cuMemAllocPitch_v2(CUdeviceptr *p, size_t *pitch, size_t width,
                                   size_t height, unsigned elem) {
  (void)elem;
  *pitch = up(width, 512);
  return device_alloc(p, *pitch * height);
}
/* All of it counts as device memory, wherever it is touched. */
EXPORT CUresult cuMemAllocManaged(CUdeviceptr *p, size_t n, unsigned flags) {
  if (flags != 1 && flags != 2) return FK_EINVAL;
  return device_alloc(p, n);
}
EXPORT CUresult cuMemFree_v2(CUdeviceptr p) {
  fk_sync();
  return fk_release((void *)(uintptr_t)p);
}
/* Pools hold nothing back: what is freed is free on the device. */
EXPORT CUresult cuMemAllocAsync(CUdeviceptr *p, size_t n, void *stream) {
  (void)stream;
  return device_alloc(p, n);
}
EXPORT CUresult cuMemAllocAsync_ptsz(CUdeviceptr *p, size_t n, void *stream) {
  (void)stream;
  return device_alloc(p, n);
}
EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *p, size_t n, void *pool,
                                        void *stream) {
  (void)pool; (void)stream;
  return device_alloc(p, n);
}
EXPORT CUresult cuMemAllocFromPoolAsync_ptsz(CUdeviceptr *p, size_t n,
                                             void *pool, void *stream) {
  (void)pool; (void)stream;
  return device_alloc(p, n);
}
EXPORT CUresult cuMemFreeAsync(CUdeviceptr p, void *stream) {
  (void)stream;
  return fk_release((void *)(uintptr_t)p);
}
EXPORT CUresult cuMemFreeAsync_ptsz(CUdeviceptr p, void *stream) {
  (void)stream;
  return fk_release((void *)(uintptr_t)p);
}
EXPORT CUresult cuMemHostAlloc(void **p, size_t n, unsigned flags) {
  (void)flags;
  return host_alloc(n, p);
}
EXPORT CUresult cuMemAllocHost_v2(void **p, size_t n) {
  return host_alloc(n, p);
}
EXPORT CUresult cuMemFreeHost(void *p) { return host_free(p); }
EXPORT CUresult cuMemHostRegister_v2(void *p, size_t n, unsigned flags) {
  (void)flags;
  if (!p || !n) return FK_EINVAL;
  host_note(p, n, 0);
  return 0;
}
EXPORT CUresult cuMemHostUnregister(void *p) {
  return host_forget(p, 0) ? 0 : 713; /* CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED */
}
EXPORT CUresult cuMemHostGetDevicePointer_v2(CUdeviceptr *d, void *h,
                                             unsigned flags) {
  (void)flags;
  *d = (CUdeviceptr)(uintptr_t)h;
  return 0;
}

/* Memory of other processes: not supported (801), but the calls are there. */
struct ipc_handle {
  char reserved[64];
};
EXPORT CUresult cuIpcGetMemHandle(struct ipc_handle *h, CUdeviceptr p) {
  (void)h; (void)p;
  return 801;
}
EXPORT CUresult cuIpcOpenMemHandle_v2(CUdeviceptr *p, struct ipc_handle h,
                                      unsigned flags) {
  (void)p; (void)h; (void)flags;
  return 801;
}
EXPORT CUresult cuIpcCloseMemHandle(CUdeviceptr p) {
  (void)p;
  return 801;
}
EXPORT CUresult cuMemExportToShareableHandle(void *out, u64 handle, int type,
                                             u64 flags) {
  (void)out; (void)handle; (void)type; (void)flags;
  return 801;
}
EXPORT CUresult cuMemImportFromShareableHandle(u64 *handle, void *os,
                                               int type) {
  (void)handle; (void)os; (void)type;
  return 801;
}
