#include "backup.h"

#include <pthread.h>
#include <stdlib.h>

/* Memory that no block uses now. To pin it takes longer than to copy it. */
struct kept {
	struct kept *next;
	void *at;
	size_t size;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct kept *pool;
static uint64_t total;

/* cut takes a buffer out of the pool. */
static void *cut(struct kept **from, size_t *size)
{
	struct kept *k = *from;
	void *at = k->at;
	*size = k->size;
	*from = k->next;
	total -= k->size;
	free(k);
	return at;
}

void *pinned_take(size_t bytes, size_t *size)
{
	void *at = NULL;
	pthread_mutex_lock(&lock);
	struct kept **best = NULL;
	for (struct kept **k = &pool; *k; k = &(*k)->next)
		if ((*k)->size >= bytes && (*k)->size / 2 <= bytes && (!best || (*k)->size < (*best)->size))
			best = k;
	if (best)
		at = cut(best, size);
	pthread_mutex_unlock(&lock);
	if (!at && cu.cuMemHostAlloc(&at, bytes, PORTABLE) == CUDA_SUCCESS)
		*size = bytes;
	return at;
}

/* keep puts a buffer into the pool, and reports whether there was memory to note it. */
static int keep(void *at, size_t size)
{
	struct kept *k = malloc(sizeof *k);
	if (!k)
		return 0;
	*k = (struct kept){pool, at, size};
	pool = k;
	total += size;
	return 1;
}

void pinned_give(void *at, size_t size)
{
	uint64_t limit = setting(PAUSABLE_PINNED_POOL);
	pthread_mutex_lock(&lock);
	if (!keep(at, size))
		cu.cuMemFreeHost(at);
	/* What the driver does not free is kept beyond the limit until the next time. */
	for (struct kept **k = &pool; *k && total > limit;) {
		if (cu.cuMemFreeHost((*k)->at) == CUDA_SUCCESS)
			cut(k, &size);
		else
			k = &(*k)->next;
	}
	pthread_mutex_unlock(&lock);
}

uint64_t pinned_kept(void)
{
	pthread_mutex_lock(&lock);
	uint64_t n = total;
	pthread_mutex_unlock(&lock);
	return n;
}
