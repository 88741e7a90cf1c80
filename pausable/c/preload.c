/*
 * Replaces cudaMalloc and cudaFree of CUDA's runtime in a process that was started with the
 * library in LD_PRELOAD. What is allocated while a region is open is pausable, whoever
 * allocates it; everything else goes to the runtime. A program that has the runtime linked
 * into it, or takes memory by other functions, is not reached: pausable_hooked is 0 then.
 */
#include "block.h"

#include <dlfcn.h>
#include <string.h>

enum { MEMORY_ALLOCATION = 2, NOT_INITIALIZED = 3, UNKNOWN = 999 }; /* of the runtime */

static uint64_t calls;

/* of_runtime finds a function of the runtime, which may be loaded where only those who asked
 * for it look. */
static void *of_runtime(const char *name)
{
	static const char *const libraries[] = {"libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0"};
	void *at = dlsym(RTLD_NEXT, name);
	for (size_t i = 0; !at && i < sizeof libraries / sizeof *libraries; i++) {
		void *library = dlopen(libraries[i], RTLD_LAZY | RTLD_NOLOAD);
		if (library)
			at = dlsym(library, name);
	}
	return at;
}

/* REAL(name, at) points at to the runtime's function, which is NULL if there is none. */
#define REAL(name, at) do { \
		static void *found; \
		void *now = __atomic_load_n(&found, __ATOMIC_RELAXED); \
		if (!now) \
			__atomic_store_n(&found, now = of_runtime(name), __ATOMIC_RELAXED); \
		memcpy(&(at), &now, sizeof now); /* ISO C has no conversion to a function's pointer */ \
	} while (0)

/* code is the runtime's for what failed. Its numbers are the driver's. */
static int code(int kind)
{
	switch (kind) {
	case PAUSABLE_OK:
		return 0;
	case PAUSABLE_DEVICE_MEMORY:
	case PAUSABLE_HOST_MEMORY:
		return MEMORY_ALLOCATION;
	case PAUSABLE_DRIVER:
		return pausable_failure()->code;
	}
	return UNKNOWN;
}

int cudaMalloc(void **at, size_t bytes)
{
	int (*malloc)(void **, size_t), (*current)(int *), device = 0;
	__atomic_add_fetch(&calls, 1, __ATOMIC_RELAXED);
	REAL("cudaMalloc", malloc);
	REAL("cudaGetDevice", current);
	if (!malloc || !current)
		return NOT_INITIALIZED;
	if (!at || use_begin() || !region_open())
		return malloc(at, bytes);
	int failure = current(&device);
	return failure ? failure : code(pausable_allocate(at, bytes, device));
}

int cudaFree(void *at)
{
	int (*free)(void *);
	if (at && !in_fork() && block_known((CUdeviceptr)(uintptr_t)at))
		return code(pausable_release(at));
	REAL("cudaFree", free);
	return free ? free(at) : NOT_INITIALIZED;
}

uint64_t pausable_hooked(void) { return __atomic_load_n(&calls, __ATOMIC_RELAXED); }
