/* Allocates and frees blocks. */
#include "backup.h"
#include "block.h"

#include <stdlib.h>

/* take has the driver make a block, with its context. */
static int take(void *arg, struct pausable_failure *f)
{
	struct block *b = arg;
	uint64_t margin = setting(PAUSABLE_MARGIN);
	int kind = PAUSABLE_OK;
	if (margin) {
		size_t available, total;
		kind = CU(f, b->device, cuMemGetInfo_v2, &available, &total);
		if (!kind && (available < margin || available - margin < b->size)) {
			kind = failed(f, PAUSABLE_DEVICE_MEMORY, 0, b->device, "%s would leave less than the margin of %s of device %d",
				SIZE(b->size), SIZE(margin), b->device);
			f->needed = b->size;
			f->available = available < margin ? 0 : available - margin;
		}
	}
	if (!kind)
		kind = block_create(b, f);
	if (!kind)
		kind = block_reserve(b, f);
	if (!kind)
		kind = block_map(b, f);
	if (!kind)
		kind = block_open(b, f);
	return kind;
}

/* drop has the driver free a block, with its context. What it refuses is left. */
static int drop(void *arg, struct pausable_failure *f)
{
	struct block *b = arg;
	int kind = PAUSABLE_OK;
	if (b->mapped && b->open) /* kernels may still use it */
		kind = CU(f, b->device, cuCtxSynchronize, );
	if (!kind)
		kind = block_unmap(b, f);
	if (!kind)
		kind = block_release(b, f);
	if (!kind)
		kind = block_unreserve(b, f);
	if (!kind)
		backup_drop(b);
	return kind;
}

/* let_go frees a block that is not in the table, or notes what is left of it. */
static int let_go(struct block *b, struct pausable_failure *f)
{
	int kind = on_device(b->device, drop, b, f);
	if (!kind || (kind == PAUSABLE_DRIVER && f->code == CUDA_DEINITIALIZED)) { /* the latter as the process ends */
		free(b);
		return PAUSABLE_OK;
	}
	table_lock();
	remnant_add(b);
	table_unlock();
	return kind;
}

void remnants_retry(void)
{
	/* Those that are there now, once each: those that fail come back. */
	table_lock();
	struct block *left = NULL, *b;
	while ((b = remnant_take(0))) {
		b->chain = left;
		left = b;
	}
	table_unlock();
	while ((b = left)) {
		struct pausable_failure f;
		left = b->chain;
		let_go(b, &f);
	}
}

int pausable_allocate(void **at, size_t bytes, int device)
{
	struct pausable_failure *f = (struct pausable_failure *)pausable_failure();
	*at = NULL;
	if (use_begin())
		return failed(f, PAUSABLE_FORKED, 0, -1, "this process was forked from the one that allocated");
	if (!bytes)
		return PAUSABLE_OK;
	struct device *d = device_of(device, f);
	if (!d)
		return f->kind;
	if (bytes > SIZE_MAX - d->granularity) {
		failed(f, PAUSABLE_DEVICE_MEMORY, 0, device, "no device has %s", SIZE(bytes));
		f->needed = bytes;
		return f->kind;
	}
	remnants_retry();
	struct block *b = calloc(1, sizeof *b);
	if (!b)
		return failed(f, PAUSABLE_HOST_MEMORY, 0, device, "the host has no memory for the state of a block");
	b->device = device;
	b->bytes = bytes;
	b->size = (bytes + d->granularity - 1) / d->granularity * d->granularity;
	b->peers = setting(PAUSABLE_PEERS);
	b->handles = (int)setting(PAUSABLE_HANDLES);
	int kind = on_device(device, take, b, f);
	if (!kind) {
		table_lock();
		struct region r = region_now();
		b->tag = r.tag;
		b->wanted = (unsigned char)r.backup;
		if (!r.tag || table_add(b))
			kind = failed(f, PAUSABLE_HOST_MEMORY, 0, device, "the host has no memory for the table of blocks");
		table_unlock();
	}
	if (kind) {
		struct pausable_failure then;
		let_go(b, &then);
		return kind;
	}
	control_begin();
	*at = (void *)(uintptr_t)b->at;
	return PAUSABLE_OK;
}

/* removed takes a block that no pause or resume works on from the table. */
static struct block *removed(CUdeviceptr at)
{
	table_lock();
	struct block *b = table_find(at);
	if (b && b->busy) { /* wait until that is over */
		table_unlock();
		turn_take();
		table_lock();
		b = table_find(at);
		turn_give(); /* the next one needs the lock of the table first */
	}
	if (b)
		table_remove(b);
	else
		b = remnant_take(at);
	table_unlock();
	return b;
}

int pausable_release(void *at)
{
	struct pausable_failure *f = (struct pausable_failure *)pausable_failure();
	if (in_fork())
		return failed(f, PAUSABLE_FORKED, 0, -1, "this process was forked from the one that allocated");
	if (!at)
		return PAUSABLE_OK;
	struct block *b = removed((CUdeviceptr)(uintptr_t)at);
	if (!b)
		return failed(f, PAUSABLE_ARGUMENT, 0, -1, "no block begins at %p", at);
	int kind = let_go(b, f);
	if (!kind)
		remnants_retry();
	return kind;
}

void *pausable_malloc(size_t bytes, int device, void *stream)
{
	(void)stream;
	void *at;
	return pausable_allocate(&at, bytes, device) ? NULL : at;
}

void pausable_free(void *at, size_t bytes, int device, void *stream)
{
	(void)bytes, (void)device, (void)stream;
	pausable_release(at);
}
