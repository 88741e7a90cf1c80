/* The driver's calls for one block, and what it holds after each. */
#include "block.h"

int block_reserve(struct block *b, struct pausable_failure *f)
{
	if (b->reserved)
		return PAUSABLE_OK;
	int kind = CU(f, b->device, cuMemAddressReserve, &b->at, b->size, 0, 0, 0);
	b->reserved = !kind;
	return kind;
}

int block_create(struct block *b, struct pausable_failure *f)
{
	if (b->held)
		return PAUSABLE_OK;
	struct device *d = device_of(b->device, f);
	if (!d)
		return f->kind;
	struct properties p = {
		.type = PINNED_TYPE,
		.handles = b->handles,
		.location = {DEVICE, d->id},
		.flags = {.rdma = d->rdma},
	};
	int kind = CU(f, b->device, cuMemCreate, &b->handle, b->size, &p, 0);
	if (kind == PAUSABLE_DEVICE_MEMORY)
		f->needed = b->size;
	b->held = !kind;
	return kind;
}

int block_map(struct block *b, struct pausable_failure *f)
{
	if (b->mapped)
		return PAUSABLE_OK;
	int kind = CU(f, b->device, cuMemMap, b->at, b->size, 0, b->handle, 0);
	b->mapped = !kind;
	return kind;
}

int block_open(struct block *b, struct pausable_failure *f)
{
	if (b->open)
		return PAUSABLE_OK;
	struct access who[MOST_DEVICES];
	size_t n = 0;
	for (int i = 0; i < MOST_DEVICES; i++) {
		if (i != b->device && !(b->peers >> i & 1))
			continue;
		struct device *d = device_of(i, f);
		if (!d)
			return f->kind;
		who[n++] = (struct access){{DEVICE, d->id}, READ_WRITE};
	}
	int kind = CU(f, b->device, cuMemSetAccess, b->at, b->size, who, n);
	b->open = !kind;
	return kind;
}

int block_unmap(struct block *b, struct pausable_failure *f)
{
	if (!b->mapped)
		return PAUSABLE_OK;
	int kind = CU(f, b->device, cuMemUnmap, b->at, b->size);
	if (!kind)
		b->mapped = b->open = 0;
	return kind;
}

int block_release(struct block *b, struct pausable_failure *f)
{
	if (!b->held)
		return PAUSABLE_OK;
	int kind = CU(f, b->device, cuMemRelease, b->handle);
	if (!kind) {
		b->held = 0;
		b->stale = 1;
	}
	return kind;
}

int block_unreserve(struct block *b, struct pausable_failure *f)
{
	if (!b->reserved)
		return PAUSABLE_OK;
	int kind = CU(f, b->device, cuMemAddressFree, b->at, b->size);
	b->reserved = kind != 0;
	return kind;
}
