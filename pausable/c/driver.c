#include "driver.h"

#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

struct driver cu;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of all that is static here */
static int loaded;
static struct device devices[MOST_DEVICES];

int failed(struct pausable_failure *f, int kind, int code, int device, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	memset(f, 0, sizeof *f);
	f->kind = kind;
	f->code = code;
	f->device = device;
	vsnprintf(f->text, sizeof f->text, format, args);
	va_end(args);
	return kind;
}

int driver_failed(struct pausable_failure *f, CUresult code, const char *name, int device)
{
	if (code == CUDA_SUCCESS)
		return PAUSABLE_OK;
	const char *word = NULL;
	if (!cu.cuGetErrorName || cu.cuGetErrorName(code, &word) != CUDA_SUCCESS || !word)
		word = "an error without a name";
	return failed(f, code == CUDA_OUT_OF_MEMORY ? PAUSABLE_DEVICE_MEMORY : PAUSABLE_DRIVER, code, device,
		"%s on device %d: %s (%d)", name, device, word, code);
}

/* load finds the entry points, under the lock. */
static int load(struct pausable_failure *f)
{
	if (loaded)
		return PAUSABLE_OK;
	void *library = dlopen("libcuda.so.1", RTLD_NOW);
	if (!library) {
		const char *why = dlerror();
		return failed(f, PAUSABLE_NO_DRIVER, 0, -1, "there is no CUDA driver: %s", why ? why : "libcuda.so.1 cannot be loaded");
	}
	/* ISO C has no conversion from an object's pointer to a function's. */
#define X(name, arguments) { \
		void *at = dlsym(library, #name); \
		if (!at) \
			return failed(f, PAUSABLE_NO_DRIVER, 0, -1, "the CUDA driver has no %s: it is too old", #name); \
		memcpy(&cu.name, &at, sizeof at); \
	}
	DRIVER_CALLS(X)
#undef X
	int kind = CU(f, -1, cuInit, 0);
	loaded = !kind;
	return kind;
}

int driver_load(struct pausable_failure *f)
{
	pthread_mutex_lock(&lock);
	int kind = load(f);
	pthread_mutex_unlock(&lock);
	return kind;
}

/* prepare asks for what is known of a device, under the lock. */
static int prepare(int index, struct pausable_failure *f)
{
	struct device *d = &devices[index];
	int kind = load(f), rdma = 0;
	if (!kind)
		kind = CU(f, index, cuDeviceGet, &d->id, index);
	if (!kind)
		kind = CU(f, index, cuDeviceGetAttribute, &rdma, RDMA_WITH_VMM, d->id);
	d->rdma = rdma != 0;
	struct properties p = {.type = PINNED_TYPE, .location = {DEVICE, d->id}};
	if (!kind)
		kind = CU(f, index, cuMemGetAllocationGranularity, &d->granularity, &p, MINIMUM);
	if (!kind && !d->primary) /* once: it is counted */
		kind = CU(f, index, cuDevicePrimaryCtxRetain, &d->primary, d->id);
	if (!kind)
		__atomic_store_n(&d->ready, 1, __ATOMIC_RELEASE);
	return kind;
}

int device_used(int index) { return __atomic_load_n(&devices[index].ready, __ATOMIC_ACQUIRE); }

struct device *device_of(int index, struct pausable_failure *f)
{
	if (index < 0 || index >= MOST_DEVICES) {
		failed(f, PAUSABLE_ARGUMENT, 0, -1, "there is no device %d", index);
		return NULL;
	}
	if (device_used(index))
		return &devices[index];
	pthread_mutex_lock(&lock);
	int kind = device_used(index) ? PAUSABLE_OK : prepare(index, f);
	pthread_mutex_unlock(&lock);
	return kind ? NULL : &devices[index];
}

/* with_context runs a job on this thread, whose context it sets. */
static void with_context(struct job *j)
{
	struct device *d = device_of(j->index, &j->failure);
	if (!d)
		j->result = j->failure.kind;
	else if (!(j->result = CU(&j->failure, j->index, cuCtxSetCurrent, d->primary)))
		j->result = j->work(j->arg, &j->failure);
}

static void *run(void *job)
{
	with_context(job);
	return NULL;
}

int thread_begin(void *(*work)(void *), void *arg, unsigned long *thread)
{
	sigset_t all, before;
	pthread_t made;
	/* Handlers of the program do not run on this thread, but for those of faults. */
	static const int faults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP, SIGSYS};
	sigfillset(&all);
	for (size_t i = 0; i < sizeof faults / sizeof *faults; i++)
		sigdelset(&all, faults[i]);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int failure = pthread_create(&made, NULL, work, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	if (!failure)
		*thread = made;
	return failure;
}

void job_begin(struct job *j) { j->started = !thread_begin(run, j, &j->thread); }

void job_end(struct job *j)
{
	if (j->started) {
		pthread_join(j->thread, NULL);
		return;
	}
	/* There are no more threads: this one does it. */
	CUcontext before = NULL;
	if (cu.cuCtxGetCurrent)
		cu.cuCtxGetCurrent(&before);
	with_context(j);
	if (cu.cuCtxSetCurrent)
		cu.cuCtxSetCurrent(before);
}

int on_device(int index, device_work *work, void *arg, struct pausable_failure *f)
{
	struct device *d = device_of(index, f);
	if (!d)
		return f->kind;
	CUcontext now = NULL;
	if (cu.cuCtxGetCurrent(&now) == CUDA_SUCCESS && now == d->primary)
		return work(arg, f);
	struct job j = {.index = index, .work = work, .arg = arg};
	job_begin(&j);
	job_end(&j);
	if (j.result)
		*f = j.failure;
	return j.result;
}
