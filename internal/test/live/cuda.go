package live

import (
	"path/filepath"
	"testing"
)

// libcuda is a driver for tests: it has the functions by which memory is taken
// and returned, and hands out addresses of a device that is not there.
const libcuda = `
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
typedef uint64_t ptr;
#define EXPORT __attribute__((visibility("default"), noinline))
static ptr next = 0x7a0000000000;
static ptr take(size_t n) { return __sync_fetch_and_add(&next, (n + 0x1fffff) & ~0x1fffffull); }
static int give(ptr *p, size_t n) { if (n > 1ull << 40) return 2; *p = take(n); return 0; }
EXPORT int cuMemAlloc_v2(ptr *p, size_t n) { return give(p, n); }
EXPORT int cuMemAllocPitch_v2(ptr *p, size_t *pitch, size_t w, size_t h, unsigned e) { *pitch = (w + 511) & ~511ull; return cuMemAlloc_v2(p, *pitch * h + 0 * e); }
EXPORT int cuMemAllocManaged(ptr *p, size_t n, unsigned f) { return give(p, n + 0 * f); }
EXPORT int cuMemAllocAsync(ptr *p, size_t n, void *s) { return give(p, s ? n : n); }
EXPORT int cuMemAllocFromPoolAsync(ptr *p, size_t n, void *pool, void *s) { return give(p, pool == s ? n : n); }
EXPORT int cuMemFree_v2(ptr p) { return !p; }
EXPORT int cuMemFreeAsync(ptr p, void *s) { return !p && s; }
EXPORT int cuMemHostAlloc(void **p, size_t n, unsigned f) { return !(*p = malloc(n + 0 * f)); }
EXPORT int cuMemFreeHost(void *p) { free(p); return 0; }
EXPORT int cuMemHostRegister_v2(void *p, size_t n, unsigned f) { return !p || !n || f > 9; }
EXPORT int cuMemHostUnregister(void *p) { return !p; }
EXPORT int cuMemCreate(ptr *h, size_t n, const void *prop, unsigned long long f) { static ptr handles = 1000; *h = handles++; return !n || !prop || f; }
EXPORT int cuMemRelease(ptr h) { return !h; }
EXPORT int cuMemMap(ptr p, size_t n, size_t off, ptr h, unsigned long long f) { return !p || !n || off || !h || f; }
EXPORT int cuMemUnmap(ptr p, size_t n) { return !p || !n; }
EXPORT int cuMemRetainAllocationHandle(ptr *h, void *p) { *h = 1000; return !p; }
struct ipc { char x[64]; };
EXPORT int cuIpcOpenMemHandle_v2(ptr *p, struct ipc h, unsigned f) { return give(p, 4096 + 0 * h.x[f]); }
EXPORT int cuIpcCloseMemHandle(ptr p) { return !p; }
EXPORT int cuArray3DCreate_v2(ptr *a, const size_t *d) { return give(a, d[0]); }
EXPORT int cuArrayDestroy(ptr a) { return !a; }
`

// Libcuda builds a driver for tests, and returns where it is.
func Libcuda(t testing.TB) string {
	t.Helper()
	dir := t.TempDir()
	file := filepath.Join(dir, "libcuda.so.1")
	compile(t, "gcc", dir, "cuda.c", libcuda, "-shared", "-fPIC", "-o", file)
	return file
}
