#include "block.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;

static struct tag *tags;
static struct block **slots; /* a power of two of them */
static size_t n_slots, n_blocks;
static struct block *first, *last; /* in the order of allocation */
static struct block *remnants;
static struct region everywhere, at_start;
static __thread struct region here;
static int started; /* at_start is set */

void table_lock(void) { pthread_mutex_lock(&lock); }
void table_unlock(void) { pthread_mutex_unlock(&lock); }
void turn_take(void) { pthread_mutex_lock(&turn); }
void turn_give(void) { pthread_mutex_unlock(&turn); }

struct tag *tag_first(void) { return tags; }

struct tag *tag_named(const char *name, int make)
{
	struct tag **at = &tags;
	for (; *at; at = &(*at)->next)
		if (!strcmp((*at)->name, name))
			return *at;
	struct tag *t = make ? calloc(1, sizeof *t) : NULL;
	if (t) {
		strncpy(t->name, name, sizeof t->name - 1);
		*at = t;
	}
	return t;
}

int pausable_region(const char *tag, int backup, int all)
{
	struct pausable_failure *f = (struct pausable_failure *)pausable_failure();
	if (use_begin())
		return failed(f, PAUSABLE_FORKED, 0, -1, "this process was forked from the one that allocated");
	if (tag && strlen(tag) >= sizeof tags->name)
		return failed(f, PAUSABLE_ARGUMENT, 0, -1, "a tag has at most %zu bytes", sizeof tags->name - 1);
	if (backup < PAUSABLE_NONE || backup > PAUSABLE_FILE)
		return failed(f, PAUSABLE_ARGUMENT, 0, -1, "there is no kind %d of backups", backup);
	int off = tag && !*tag;
	table_lock();
	struct region r = {tag && !off ? tag_named(tag, 1) : NULL, backup, off};
	if (!tag || off || r.tag)
		*(all ? &everywhere : &here) = r;
	table_unlock();
	if (tag && !off && !r.tag)
		return failed(f, PAUSABLE_HOST_MEMORY, 0, -1, "the host has no memory for a tag");
	control_begin();
	return PAUSABLE_OK;
}

/* innermost is the region of this thread, or without one that of all, or of the start. */
static struct region innermost(void)
{
	if (!started)
		started = !region_at_start(&at_start.backup) || (at_start.tag = tag_named("default", 1));
	return here.tag || here.off ? here : everywhere.tag || everywhere.off ? everywhere : at_start;
}

struct region region_now(void)
{
	struct region r = innermost();
	if (!r.tag)
		r.tag = tag_named("default", 1);
	return r;
}

int region_open(void)
{
	table_lock();
	int open = innermost().tag != NULL;
	table_unlock();
	return open;
}

int pausable_in_region(void) { return !in_fork() && region_open(); }

/* Addresses are multiples of the device's unit, mostly 2 MiB. */
static struct block **slot(CUdeviceptr at) { return &slots[(at * 0x9e3779b97f4a7c15ULL >> 32) & (n_slots - 1)]; }

static int widen(void)
{
	size_t n = n_slots ? 2 * n_slots : 64;
	struct block **wider = calloc(n, sizeof(struct block *));
	if (!wider)
		return slots == NULL; /* a full table is slower, and works */
	free(slots);
	slots = wider;
	n_slots = n;
	for (struct block *b = first; b; b = b->after) {
		struct block **to = slot(b->at);
		b->chain = *to;
		*to = b;
	}
	return 0;
}

int table_add(struct block *b)
{
	if (n_blocks >= n_slots && widen())
		return 1;
	struct block **to = slot(b->at);
	b->chain = *to;
	*to = b;
	b->before = last;
	b->after = NULL;
	*(last ? &last->after : &first) = b;
	last = b;
	n_blocks++;
	return 0;
}

struct block *table_find(CUdeviceptr at)
{
	struct block *b = n_slots ? *slot(at) : NULL;
	while (b && b->at != at)
		b = b->chain;
	return b;
}

struct block *table_around(CUdeviceptr at)
{
	struct block *b = first;
	while (b && (at < b->at || at - b->at >= b->bytes))
		b = b->after;
	return b;
}

void table_remove(struct block *b)
{
	struct block **at = slot(b->at);
	while (*at != b)
		at = &(*at)->chain;
	*at = b->chain;
	*(b->before ? &b->before->after : &first) = b->after;
	*(b->after ? &b->after->before : &last) = b->before;
	n_blocks--;
}

struct block *table_first(void) { return first; }

void remnant_add(struct block *b)
{
	b->state = FREED;
	b->chain = remnants;
	remnants = b;
}

struct block *remnant_take(CUdeviceptr at)
{
	struct block **to = &remnants;
	while (*to && at && (*to)->at != at)
		to = &(*to)->chain;
	struct block *b = *to;
	if (b)
		*to = b->chain;
	return b;
}

struct block *remnant_all(void) { return remnants; }

int block_known(CUdeviceptr at)
{
	table_lock();
	struct block *b = remnants;
	while (b && b->at != at)
		b = b->chain;
	int known = b || table_find(at);
	table_unlock();
	return known;
}
