#include "backup.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>

int copies_begin(struct copies *c, int index, uint64_t *done, struct pausable_failure *f)
{
	*c = (struct copies){.device = device_of(index, f), .index = index, .done = done};
	if (!c->device)
		return f->kind;
	for (int i = 0; i < STREAMS; i++) {
		CUstream *s = &c->device->streams[i];
		int kind = *s ? PAUSABLE_OK : CU(f, index, cuStreamCreate, s, NON_BLOCKING);
		if (kind)
			return kind;
	}
	return PAUSABLE_OK;
}

/* landed waits for the copy that is on its way on a stream, and counts it. */
static int landed(struct copies *c, int stream, struct pausable_failure *f)
{
	int kind = c->flying[stream] ? CU(f, c->index, cuStreamSynchronize, c->device->streams[stream]) : PAUSABLE_OK;
	if (!kind) {
		__atomic_add_fetch(c->done, c->flying[stream], __ATOMIC_RELAXED);
		c->flying[stream] = 0;
	}
	return kind;
}

/* next chooses the stream of the next copy of n bytes and how much of it goes there. Each
 * stream has one copy on its way, so that what is done can be told while it happens. */
static int next(struct copies *c, size_t n, size_t *chunk, CUstream *stream, struct pausable_failure *f)
{
	int i = c->next++ % STREAMS;
	int kind = landed(c, i, f);
	*stream = c->device->streams[i];
	*chunk = n < CHUNK ? n : CHUNK;
	c->flying[i] = kind ? c->flying[i] : *chunk;
	return kind;
}

int copies_out(struct copies *c, void *to, CUdeviceptr from, size_t n, struct pausable_failure *f)
{
	int kind = PAUSABLE_OK;
	for (size_t at = 0, now; at < n && !kind; at += now) {
		CUstream stream;
		kind = next(c, n - at, &now, &stream, f);
		if (!kind)
			kind = CU(f, c->index, cuMemcpyDtoHAsync_v2, (char *)to + at, from + at, now, stream);
	}
	return kind;
}

int copies_in(struct copies *c, CUdeviceptr to, const void *from, size_t n, struct pausable_failure *f)
{
	int kind = PAUSABLE_OK;
	for (size_t at = 0, now; at < n && !kind; at += now) {
		CUstream stream;
		kind = next(c, n - at, &now, &stream, f);
		if (!kind)
			kind = CU(f, c->index, cuMemcpyHtoDAsync_v2, to + at, (const char *)from + at, now, stream);
	}
	return kind;
}

int copies_wait(struct copies *c, struct pausable_failure *f)
{
	int kind = PAUSABLE_OK;
	for (int i = 0; i < STREAMS && !kind; i++)
		kind = landed(c, i, f);
	return kind;
}

int copies_settle(struct copies *c)
{
	struct pausable_failure f;
	if (!c->device)
		return 0;
	for (int i = 0; i < STREAMS; i++)
		if (c->device->streams[i] && CU(&f, c->index, cuStreamSynchronize, c->device->streams[i]))
			return CU(&f, c->index, cuCtxSynchronize, );
	return 0;
}

unsigned char *copies_staging(struct copies *c, struct pausable_failure *f)
{
	if (c->staging)
		return c->staging;
	void *at = mmap(NULL, STAGING, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED) {
		failed(f, PAUSABLE_HOST_MEMORY, errno, -1, "the host has no %s to copy through: %s", SIZE(STAGING), strerror(errno));
		return NULL;
	}
	madvise(at, STAGING, MADV_DONTFORK); /* a disk would write to pages that are a child's */
	c->staging = at;
	return c->staging;
}

void copies_end(struct copies *c, int running)
{
	if (c->staging && !running) /* else it is given up, rather than written to as something else */
		munmap(c->staging, STAGING);
	c->staging = NULL;
}
