/* Substitute of libcuda.so.1: the device model (see fk.h), virtual memory management
 * and contexts.  Its entry points are those of the real library, so that a probe on
 * them sees what it would see there. */
#define _GNU_SOURCE
#include "fk.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#define EXPORT __attribute__((visibility("default")))
#define VA_PER_DEVICE ((uintptr_t)1 << 41) /* 2 TiB of malloc VA per device */

typedef uint64_t u64;
typedef unsigned long long CUdeviceptr;
typedef int CUresult;

/* ---------------------------------------------------------------- config */

static struct {
  int devices, sm, sms;
  size_t total, context, copy_limit;
  u64 event_lag, kernel;
  uintptr_t base;
  FILE *log;
} cfg;

static size_t parse_size(const char *name, size_t dflt) {
  const char *s = getenv(name);
  if (!s || !*s) return dflt;
  char *end;
  double v = strtod(s, &end);
  switch (*end) {
    case 'k': case 'K': v *= 1024.0; break;
    case 'm': case 'M': v *= 1048576.0; break;
    case 'g': case 'G': v *= 1073741824.0; break;
  }
  return (size_t)v;
}

static u64 parse_int(const char *name, u64 dflt) {
  const char *s = getenv(name);
  return s && *s ? strtoull(s, NULL, 0) : dflt;
}

/* ------------------------------------------------------------- the model */

struct block {
  uintptr_t addr;
  size_t size;
};
struct arena { /* live blocks, sorted by address */
  uintptr_t base;
  struct block *b;
  size_t n, cap;
  size_t used; /* bytes, including VMM handles */
};
struct reservation {
  uintptr_t addr;
  size_t size;
};
struct handle {
  int device;
  size_t size;
  int refs; /* 1 for the handle itself, plus 1 for each mapping */
};
struct mapping {
  uintptr_t addr;
  size_t size;
  struct handle *h;
};

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static struct arena arenas[FK_MAX_DEVICES];
static struct reservation *resv;
static size_t n_resv, cap_resv;
static uintptr_t resv_next;
static struct mapping *maps; /* sorted by address */
static size_t n_maps, cap_maps;
static u64 work, synced;
static __thread int cur_device;

struct context {
  int device;
  size_t size; /* taken from the device while it exists */
};
static struct context primary[FK_MAX_DEVICES];
static __thread struct context *cur_context; /* NULL: the primary one */

static size_t up(size_t n, size_t a) { return (n + a - 1) / a * a; }

static void *grow(void *p, size_t n, size_t *cap, size_t elem) {
  if (n < *cap) return p;
  *cap = *cap ? *cap * 2 : 64;
  p = realloc(p, *cap * elem);
  if (!p) abort();
  return p;
}

EXPORT void fk_log(const char *fmt, ...) {
  if (!cfg.log) return;
  va_list ap;
  va_start(ap, fmt);
  vfprintf(cfg.log, fmt, ap);
  va_end(ap);
}

static void die(const char *what) {
  fprintf(stderr, "fake cuda: ");
  perror(what);
  abort();
}

__attribute__((constructor)) static void fk_init(void) {
  cfg.devices = (int)parse_int("FAKE_CUDA_DEVICES", 1);
  if (cfg.devices < 0) cfg.devices = 0;
  if (cfg.devices > FK_MAX_DEVICES) cfg.devices = FK_MAX_DEVICES;
  cfg.sm = (int)parse_int("FAKE_CUDA_SM", 90);
  cfg.sms = (int)parse_int("FAKE_CUDA_SM_COUNT", 132);
  cfg.total = parse_size("FAKE_CUDA_TOTAL_MEM", (size_t)80 << 30);
  cfg.total = cfg.total / FK_PAGE * FK_PAGE;
  cfg.context = parse_size("FAKE_CUDA_CONTEXT_MEM", 0);
  cfg.copy_limit = parse_size("FAKE_CUDA_COPY_LIMIT", (size_t)1 << 20);
  cfg.event_lag = parse_int("FAKE_CUDA_EVENT_LAG", 0);
  cfg.kernel = parse_int("FAKE_CUDA_KERNEL_NS", 0);
  cfg.base = (uintptr_t)parse_int("FAKE_CUDA_BASE", 0x7a0000000000ull);
  const char *log = getenv("FAKE_CUDA_LOG");
  if (log && *log) {
    cfg.log = fopen(log, "w");
    if (!cfg.log) die(log);
    setvbuf(cfg.log, NULL, _IOLBF, 0);
  }
  for (int d = 0; d < cfg.devices; d++) {
    struct arena *a = &arenas[d];
    primary[d].device = d;
    void *want = (void *)(cfg.base + (uintptr_t)d * VA_PER_DEVICE);
    void *got = mmap(want, VA_PER_DEVICE, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) die("reserving device addresses");
    a->base = up((uintptr_t)got, FK_PAGE);
    madvise(got, VA_PER_DEVICE, MADV_DONTDUMP);
    madvise(got, VA_PER_DEVICE, MADV_NOHUGEPAGE);
  }
  resv_next = cfg.base - ((uintptr_t)1 << 44); /* 16 TiB below */
}

/* Reads the environment again, before the first use of a device. */
EXPORT void fk_reset(void) {
  for (int d = 0; d < cfg.devices; d++)
    munmap((void *)arenas[d].base, VA_PER_DEVICE);
  fk_init();
}

EXPORT int fk_device_count(void) { return cfg.devices; }
EXPORT int fk_device(void) { return cur_device; }
EXPORT int fk_set_device(int dev) {
  if (dev < 0 || dev >= cfg.devices) return FK_EINVAL;
  cur_device = dev;
  cur_context = NULL;
  return FK_OK;
}
EXPORT size_t fk_total(int dev) { (void)dev; return cfg.total; }
EXPORT size_t fk_context(void) { return cfg.context; }
EXPORT size_t fk_copy_limit(void) { return cfg.copy_limit; }
EXPORT int fk_sm(void) { return cfg.sm; }
EXPORT int fk_sm_count(void) { return cfg.sms; }

static size_t free_locked(int dev) {
  size_t u = arenas[dev].used + cfg.context + fk_others(dev);
  return u > cfg.total ? 0 : cfg.total - u;
}
EXPORT size_t fk_used(int dev) {
  pthread_mutex_lock(&mu);
  size_t r = arenas[dev].used;
  pthread_mutex_unlock(&mu);
  return r;
}
EXPORT size_t fk_free(int dev) {
  pthread_mutex_lock(&mu);
  size_t r = free_locked(dev);
  pthread_mutex_unlock(&mu);
  return r;
}

/* First fit over the device's address range, whole 2 MiB pages. */
EXPORT int fk_malloc(int dev, size_t n, void **out) {
  *out = NULL;
  if (n == 0) return FK_OK;
  size_t size = up(n, FK_PAGE);
  pthread_mutex_lock(&mu);
  struct arena *a = &arenas[dev];
  if (size < n || size > free_locked(dev)) {
    pthread_mutex_unlock(&mu);
    fk_log("malloc dev=%d size=%zu FAIL free=%zu\n", dev, n, free_locked(dev));
    return FK_ENOMEM;
  }
  uintptr_t at = a->base;
  size_t i;
  for (i = 0; i < a->n; i++) {
    if (a->b[i].addr - at >= size) break;
    at = a->b[i].addr + a->b[i].size;
  }
  if (at + size > a->base + VA_PER_DEVICE - FK_PAGE) {
    pthread_mutex_unlock(&mu);
    return FK_ENOMEM;
  }
  a->b = grow(a->b, a->n, &a->cap, sizeof *a->b);
  memmove(a->b + i + 1, a->b + i, (a->n - i) * sizeof *a->b);
  a->b[i] = (struct block){at, size};
  a->n++;
  a->used += size;
  fk_enter(dev, a->used);
  pthread_mutex_unlock(&mu);
  *out = (void *)at;
  fk_log("malloc dev=%d size=%zu addr=%#zx\n", dev, n, (size_t)at);
  return FK_OK;
}

EXPORT int fk_release(void *p) {
  if (!p) return FK_OK;
  uintptr_t x = (uintptr_t)p;
  pthread_mutex_lock(&mu);
  for (int d = 0; d < cfg.devices; d++) {
    struct arena *a = &arenas[d];
    for (size_t i = 0; i < a->n; i++) {
      if (a->b[i].addr != x) continue;
      size_t size = a->b[i].size;
      memmove(a->b + i, a->b + i + 1, (a->n - i - 1) * sizeof *a->b);
      a->n--;
      a->used -= size;
      fk_enter(d, a->used);
      madvise(p, size, MADV_DONTNEED);
      pthread_mutex_unlock(&mu);
      fk_log("free dev=%d size=%zu addr=%#zx\n", d, size, (size_t)x);
      return FK_OK;
    }
  }
  pthread_mutex_unlock(&mu);
  fk_log("free addr=%#zx UNKNOWN\n", (size_t)x);
  return FK_EINVAL;
}

EXPORT int fk_is_device_ptr(const void *p, int *dev) {
  uintptr_t x = (uintptr_t)p;
  int yes = 0;
  pthread_mutex_lock(&mu);
  for (int d = 0; d < cfg.devices && !yes; d++)
    if (x >= arenas[d].base && x < arenas[d].base + VA_PER_DEVICE) {
      *dev = d;
      yes = 1;
    }
  for (size_t i = 0; i < n_maps && !yes; i++)
    if (x >= maps[i].addr && x < maps[i].addr + maps[i].size) {
      *dev = maps[i].h->device;
      yes = 1;
    }
  pthread_mutex_unlock(&mu);
  return yes;
}

/* Copies larger than the limit are skipped: the values of big tensors do not
 * matter and committing their pages would cost host memory. */
EXPORT void fk_copy(void *dst, const void *src, size_t n) {
  if (dst && src && n <= cfg.copy_limit) memmove(dst, src, n);
}
EXPORT void fk_fill(void *dst, int v, size_t n) {
  if (dst && n <= cfg.copy_limit) memset(dst, v, n);
}

/* Kernels and copies take time one after another, if they take any. */
enum { QUEUE = 1024 }; /* launches that a program may be ahead of the device, as on a real one */
static u64 done;       /* when the device will have done all, in ns */

static u64 clock_ns(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (u64)t.tv_sec * 1000000000 + (u64)t.tv_nsec;
}
static void wait_until(u64 ns) {
  struct timespec t = {(time_t)(ns / 1000000000), (long)(ns % 1000000000)};
  while (cfg.kernel && clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &t, NULL)) continue;
}

EXPORT void fk_work(void) {
  __atomic_add_fetch(&work, 1, __ATOMIC_RELAXED);
  if (!cfg.kernel) return;
  u64 now = clock_ns(), old = __atomic_load_n(&done, __ATOMIC_RELAXED), new;
  do new = (old > now ? old : now) + cfg.kernel;
  while (!__atomic_compare_exchange_n(&done, &old, new, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  if (new > now + QUEUE * cfg.kernel) wait_until(new - QUEUE * cfg.kernel);
}
EXPORT u64 fk_tick(void) { return __atomic_load_n(&work, __ATOMIC_RELAXED); }
EXPORT u64 fk_done(void) { return __atomic_load_n(&done, __ATOMIC_RELAXED); }
EXPORT void fk_sync(void) {
  wait_until(fk_done());
  __atomic_store_n(&synced, fk_tick() + 1, __ATOMIC_RELAXED);
}
EXPORT int fk_event_ready(struct fk_event *e) {
  if (!e || !e->recorded) return 1;
  if (cfg.kernel) return clock_ns() >= e->done;
  u64 now = fk_tick();
  return now >= e->tick + cfg.event_lag ||
         e->tick < __atomic_load_n(&synced, __ATOMIC_RELAXED);
}

/* ------------------------------------------- virtual memory management */

EXPORT CUresult cuMemGetAllocationGranularity(size_t *g, const void *prop,
                                              int opt) {
  (void)prop; (void)opt;
  *g = FK_PAGE;
  return 0;
}

EXPORT CUresult cuMemAddressReserve(CUdeviceptr *ptr, size_t size,
                                    size_t align, CUdeviceptr hint, u64 flags) {
  (void)flags; (void)hint;
  if (align < FK_PAGE) align = FK_PAGE;
  if (!size || size % FK_PAGE) return FK_EINVAL;
  pthread_mutex_lock(&mu);
  uintptr_t want = up(resv_next, align);
  void *p = mmap((void *)want, size, PROT_NONE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE |
                     MAP_FIXED_NOREPLACE, -1, 0);
  if (p == MAP_FAILED) {
    pthread_mutex_unlock(&mu);
    return FK_ENOMEM;
  }
  madvise(p, size, MADV_DONTDUMP);
  resv_next = want + size;
  resv = grow(resv, n_resv, &cap_resv, sizeof *resv);
  resv[n_resv++] = (struct reservation){(uintptr_t)p, size};
  pthread_mutex_unlock(&mu);
  *ptr = (CUdeviceptr)p;
  fk_log("reserve size=%zu addr=%#llx\n", size, *ptr);
  return 0;
}

EXPORT CUresult cuMemAddressFree(CUdeviceptr ptr, size_t size) {
  CUresult rc = FK_EINVAL;
  pthread_mutex_lock(&mu);
  for (size_t i = 0; i < n_resv; i++)
    if (resv[i].addr == ptr && resv[i].size == size) {
      munmap((void *)ptr, size);
      resv[i] = resv[--n_resv];
      rc = 0;
      break;
    }
  pthread_mutex_unlock(&mu);
  fk_log("unreserve size=%zu addr=%#llx rc=%d\n", size, ptr, rc);
  return rc;
}

/* CUmemAllocationProp: {type, handleTypes, {locationType, locationId}, ...} */
EXPORT CUresult cuMemCreate(u64 *out, size_t size, const int *prop, u64 flags) {
  (void)flags;
  int dev = prop[3];
  if (dev < 0 || dev >= cfg.devices || !size || size % FK_PAGE)
    return FK_EINVAL;
  pthread_mutex_lock(&mu);
  if (size > free_locked(dev)) {
    size_t f = free_locked(dev);
    pthread_mutex_unlock(&mu);
    fk_log("create dev=%d size=%zu FAIL free=%zu\n", dev, size, f);
    return FK_ENOMEM;
  }
  struct handle *h = calloc(1, sizeof *h);
  h->device = dev;
  h->size = size;
  h->refs = 1;
  arenas[dev].used += size;
  fk_enter(dev, arenas[dev].used);
  pthread_mutex_unlock(&mu);
  *out = (u64)(uintptr_t)h;
  fk_log("create dev=%d size=%zu\n", dev, size);
  return 0;
}

static void unref(struct handle *h) {
  if (--h->refs) return;
  arenas[h->device].used -= h->size;
  fk_enter(h->device, arenas[h->device].used);
  free(h);
}

EXPORT CUresult cuMemRelease(u64 handle) {
  pthread_mutex_lock(&mu);
  unref((struct handle *)(uintptr_t)handle);
  pthread_mutex_unlock(&mu);
  return 0;
}

static size_t map_pos(uintptr_t addr) { /* first mapping at or after addr */
  size_t lo = 0, hi = n_maps;
  while (lo < hi) {
    size_t m = (lo + hi) / 2;
    if (maps[m].addr < addr) lo = m + 1; else hi = m;
  }
  return lo;
}

EXPORT CUresult cuMemMap(CUdeviceptr ptr, size_t size, size_t off, u64 handle,
                         u64 flags) {
  (void)flags;
  struct handle *h = (struct handle *)(uintptr_t)handle;
  CUresult rc = FK_EINVAL;
  pthread_mutex_lock(&mu);
  int inside = 0;
  for (size_t i = 0; i < n_resv && !inside; i++)
    inside = ptr >= resv[i].addr && ptr + size <= resv[i].addr + resv[i].size;
  size_t i = map_pos(ptr);
  int clash = (i < n_maps && maps[i].addr < ptr + size) ||
              (i > 0 && maps[i - 1].addr + maps[i - 1].size > ptr);
  if (inside && !clash && size + off <= h->size) {
    maps = grow(maps, n_maps, &cap_maps, sizeof *maps);
    memmove(maps + i + 1, maps + i, (n_maps - i) * sizeof *maps);
    maps[i] = (struct mapping){ptr, size, h};
    n_maps++;
    h->refs++;
    rc = 0;
  }
  pthread_mutex_unlock(&mu);
  fk_log("map addr=%#llx size=%zu rc=%d\n", ptr, size, rc);
  return rc;
}

EXPORT CUresult cuMemSetAccess(CUdeviceptr ptr, size_t size, const void *desc,
                               size_t count) {
  (void)desc; (void)count;
  return mprotect((void *)ptr, size, PROT_READ | PROT_WRITE) ? FK_EINVAL : 0;
}

EXPORT CUresult cuMemUnmap(CUdeviceptr ptr, size_t size) {
  pthread_mutex_lock(&mu);
  size_t i = map_pos(ptr), done = 0;
  while (i < n_maps && maps[i].addr < ptr + size) {
    done += maps[i].size;
    unref(maps[i].h);
    memmove(maps + i, maps + i + 1, (n_maps - i - 1) * sizeof *maps);
    n_maps--;
  }
  if (done) {
    madvise((void *)ptr, size, MADV_DONTNEED);
    mprotect((void *)ptr, size, PROT_NONE);
  }
  pthread_mutex_unlock(&mu);
  fk_log("unmap addr=%#llx size=%zu rc=%d\n", ptr, size, done != size);
  return done == size ? 0 : FK_EINVAL;
}

/* -------------------------------------------------------------- contexts */

EXPORT CUresult cuCtxGetCurrent(void **c) {
  *c = cur_context ? cur_context : &primary[cur_device];
  return 0;
}
EXPORT CUresult cuCtxGetDevice(int *d) {
  *d = cur_device;
  return 0;
}
EXPORT CUresult cuCtxSetCurrent(void *c) {
  struct context *x = c;
  if (!x) return 0;
  cur_device = x->device;
  cur_context = x == &primary[x->device] ? NULL : x;
  return 0;
}
EXPORT CUresult cuDevicePrimaryCtxGetState(int d, unsigned *fl, int *active) {
  (void)d;
  *fl = 0;
  *active = 1;
  return 0;
}
/* The primary contexts are there, and paid for, from the start. */
EXPORT CUresult cuDevicePrimaryCtxRetain(void **c, int d) {
  if (d < 0 || d >= cfg.devices) return 101; /* CUDA_ERROR_INVALID_DEVICE */
  *c = &primary[d];
  return 0;
}
EXPORT CUresult cuDevicePrimaryCtxRelease_v2(int d) { (void)d; return 0; }
EXPORT CUresult cuDevicePrimaryCtxReset_v2(int d) { (void)d; return 0; }
static CUresult context_new(void **c, int d) {
  if (d < 0 || d >= cfg.devices) return 101;
  struct context *x = calloc(1, sizeof *x);
  pthread_mutex_lock(&mu);
  if (cfg.context > free_locked(d)) {
    pthread_mutex_unlock(&mu);
    free(x);
    return FK_ENOMEM;
  }
  x->device = d;
  x->size = cfg.context;
  arenas[d].used += x->size;
  pthread_mutex_unlock(&mu);
  fk_log("context dev=%d size=%zu\n", d, x->size);
  *c = x;
  return cuCtxSetCurrent(x);
}
EXPORT CUresult cuCtxCreate_v2(void **c, unsigned flags, int d) {
  (void)flags;
  return context_new(c, d);
}
EXPORT CUresult cuCtxCreate_v3(void **c, const void *affinity, int n,
                               unsigned flags, int d) {
  (void)affinity; (void)n; (void)flags;
  return context_new(c, d);
}
EXPORT CUresult cuCtxCreate_v4(void **c, const void *params, unsigned flags,
                               int d) {
  (void)params; (void)flags;
  return context_new(c, d);
}
EXPORT CUresult cuCtxDestroy_v2(void *c) {
  struct context *x = c;
  if (!x || x == &primary[x->device]) return 201; /* CUDA_ERROR_INVALID_CONTEXT */
  if (cur_context == x) cur_context = NULL;
  pthread_mutex_lock(&mu);
  arenas[x->device].used -= x->size;
  pthread_mutex_unlock(&mu);
  fk_log("nocontext dev=%d size=%zu\n", x->device, x->size);
  free(x);
  return 0;
}
