/*
 * Gives the memory of blocks back, and takes it again. Both go in stages, each for all
 * blocks before the next one begins and for all devices at once, so that what was done can
 * be taken back as long as nothing is lost by that:
 *
 *	pause:  wait for the device, copy what is to be kept; unmap; release
 *	resume: does it fit? create; map; copy back
 *
 * A block that is unmapped keeps its contents until its memory is released, and a backup is
 * kept until the contents are back. So a pause can be taken back until the first release,
 * and a resume until the end.
 */
#include "backup.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The blocks of one device. */
struct part {
	int device;
	struct block **blocks;
	size_t n;
	uint64_t *done;
	int running; /* copies that could not be waited for */
};

struct operation {
	struct block **blocks; /* by device */
	size_t n;
	struct part parts[MOST_DEVICES];
	int n_parts;
};

/* Under the lock of the table but for done. */
static struct progress now;
static struct ended last;

struct progress progress_now(void)
{
	struct progress p = now;
	p.done = __atomic_load_n(&now.done, __ATOMIC_RELAXED);
	return p;
}

struct ended ended_last(void) { return last; }

/* A stage works on a part, with the device's context. */
static int run(struct operation *o, device_work *stage, struct pausable_failure *f)
{
	if (o->n_parts == 1)
		return on_device(o->parts[0].device, stage, &o->parts[0], f);
	struct job *jobs = calloc((size_t)o->n_parts, sizeof *jobs);
	int kind = PAUSABLE_OK;
	if (!jobs) { /* one after the other, then */
		for (int i = 0; i < o->n_parts; i++) {
			struct pausable_failure own;
			int failure = on_device(o->parts[i].device, stage, &o->parts[i], &own);
			if (failure && !kind)
				kind = failure, *f = own;
		}
		return kind;
	}
	for (int i = 0; i < o->n_parts; i++) {
		jobs[i] = (struct job){.index = o->parts[i].device, .work = stage, .arg = &o->parts[i]};
		job_begin(&jobs[i]);
	}
	for (int i = 0; i < o->n_parts; i++) {
		job_end(&jobs[i]);
		if (jobs[i].result && !kind)
			kind = jobs[i].result, *f = jobs[i].failure;
	}
	free(jobs);
	return kind;
}

/* keep_first notes the first failure of several. */
static void keep_first(int *kind, int another, struct pausable_failure *f, const struct pausable_failure *its)
{
	if (another && !*kind) {
		*kind = another;
		*f = *its;
	}
}

static int save(void *arg, struct pausable_failure *f)
{
	struct part *p = arg;
	struct copies c;
	int kind = CU(f, p->device, cuCtxSynchronize, );
	if (kind)
		return kind;
	kind = copies_begin(&c, p->device, p->done, f);
	for (size_t i = 0; i < p->n && !kind; i++)
		if (p->blocks[i]->state == ACTIVE && p->blocks[i]->wanted)
			kind = backup_save(p->blocks[i], &c, f);
	if (!kind)
		kind = copies_wait(&c, f);
	if (kind)
		p->running = copies_settle(&c);
	for (size_t i = 0; i < p->n && !kind; i++)
		if (p->blocks[i]->state == ACTIVE && p->blocks[i]->wanted)
			backup_saved(p->blocks[i]);
	copies_end(&c, p->running);
	return kind;
}

static int unmap(void *arg, struct pausable_failure *f)
{
	struct part *p = arg;
	int kind = PAUSABLE_OK;
	for (size_t i = 0; i < p->n && !kind; i++)
		kind = block_unmap(p->blocks[i], f);
	return kind;
}

/* remap takes a pause back. A block that the driver does not map keeps its memory and its
 * backup. */
static int remap(void *arg, struct pausable_failure *f)
{
	struct part *p = arg;
	int kind = PAUSABLE_OK;
	for (size_t i = 0; i < p->n; i++) {
		struct block *b = p->blocks[i];
		struct pausable_failure own;
		if (b->state != ACTIVE)
			continue;
		int failure = block_map(b, &own);
		if (!failure)
			failure = block_open(b, &own);
		keep_first(&kind, failure, f, &own);
		if (failure)
			continue;
		if (!p->running && !setting(PAUSABLE_RETAIN))
			backup_drop(b);
	}
	return kind;
}

static int release(void *arg, struct pausable_failure *f)
{
	struct part *p = arg;
	int kind = PAUSABLE_OK;
	for (size_t i = 0; i < p->n; i++) {
		struct pausable_failure own;
		keep_first(&kind, block_release(p->blocks[i], &own), f, &own);
	}
	return kind;
}

/* fits reports whether the memory for a resume is free, before anything is done. */
static int fits(void *arg, struct pausable_failure *f)
{
	struct part *p = arg;
	size_t needed = 0, available = 0, total = 0;
	int kind = PAUSABLE_OK, mapped = 0;
	for (size_t i = 0; i < p->n; i++) {
		needed += p->blocks[i]->held ? 0 : p->blocks[i]->size;
		mapped |= p->blocks[i]->mapped;
	}
	if (mapped) /* by a try before, whose copies may still run */
		kind = CU(f, p->device, cuCtxSynchronize, );
	if (!kind && needed)
		kind = CU(f, p->device, cuMemGetInfo_v2, &available, &total);
	if (kind || !needed)
		return kind;
	uint64_t margin = setting(PAUSABLE_MARGIN);
	available = available < margin ? 0 : available - margin;
	if (needed <= available)
		return PAUSABLE_OK;
	failed(f, PAUSABLE_DEVICE_MEMORY, CUDA_OUT_OF_MEMORY, p->device, "device %d has %s free%s, and %s are to come back: %s are missing", p->device,
		SIZE(available), margin ? " beyond the margin" : "", SIZE(needed), SIZE(needed - available));
	f->needed = needed;
	f->available = available;
	return f->kind;
}

static int create(void *arg, struct pausable_failure *f)
{
	struct part *p = arg;
	int kind = PAUSABLE_OK;
	for (size_t i = 0; i < p->n && !kind; i++)
		kind = block_create(p->blocks[i], f);
	return kind;
}

static int map(void *arg, struct pausable_failure *f)
{
	struct part *p = arg;
	int kind = PAUSABLE_OK;
	for (size_t i = 0; i < p->n && !kind; i++) {
		kind = block_map(p->blocks[i], f);
		if (!kind)
			kind = block_open(p->blocks[i], f);
	}
	return kind;
}

static int to_load(const struct block *b) { return b->stale && b->backup.valid; }

static int load(void *arg, struct pausable_failure *f)
{
	struct part *p = arg;
	struct copies c;
	int kind = copies_begin(&c, p->device, p->done, f);
	for (size_t i = 0; i < p->n && !kind; i++)
		if (to_load(p->blocks[i]))
			kind = backup_load(p->blocks[i], &c, f);
	if (!kind)
		kind = copies_wait(&c, f);
	for (size_t i = 0; i < p->n && !kind; i++)
		if (to_load(p->blocks[i]))
			kind = backup_loaded(p->blocks[i], &c, f);
	if (kind)
		p->running = copies_settle(&c);
	copies_end(&c, p->running);
	return kind;
}

/* take_back undoes a resume, as far as the driver lets it. Memory that still has the
 * contents of a block is not released. */
static int take_back(void *arg, struct pausable_failure *f)
{
	struct part *p = arg;
	int kind = PAUSABLE_OK;
	for (size_t i = 0; i < p->n && !p->running; i++) {
		struct block *b = p->blocks[i];
		struct pausable_failure own;
		int failure = block_unmap(b, &own);
		if (!failure && b->stale)
			failure = block_release(b, &own);
		keep_first(&kind, failure, f, &own);
	}
	return kind;
}

/* drop gives the memory of backups back that hold nothing now. */
static int drop(void *arg, struct pausable_failure *f)
{
	struct part *p = arg;
	(void)f;
	for (size_t i = 0; i < p->n; i++)
		backup_drop(p->blocks[i]);
	return PAUSABLE_OK;
}

static int by_device(const void *a, const void *b)
{
	const struct block *x = *(struct block *const *)a, *y = *(struct block *const *)b;
	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

static int concerned(const struct block *b, const struct tag *tag, int pausing)
{
	if (tag && b->tag != tag)
		return 0;
	return b->state == (pausing ? ACTIVE : PAUSED) || (pausing && (b->held || b->mapped));
}

/* choose collects the blocks of a tag, and marks them. */
static int choose(struct operation *o, const char *name, int pausing, struct pausable_failure *f)
{
	uint64_t total = 0;
	table_lock();
	struct tag *tag = name ? tag_named(name, 0) : NULL;
	for (struct block *b = table_first(); b; b = b->after)
		o->n += (size_t)concerned(b, tag, pausing);
	if ((!name || tag) && o->n)
		o->blocks = calloc(o->n, sizeof(struct block *));
	size_t n = 0;
	for (struct block *b = table_first(); b && o->blocks && n < o->n; b = b->after) {
		if (!concerned(b, tag, pausing))
			continue;
		b->was_state = b->state;
		b->was_held = b->held;
		b->was_backup = b->backup.valid ? b->backup.kind : PAUSABLE_NONE;
		b->busy = 1;
		total += pausing ? (b->state == ACTIVE && b->wanted ? b->bytes : 0) : to_load(b) ? b->bytes : 0;
		o->blocks[n++] = b;
	}
	if (o->blocks) {
		now.doing = pausing ? "pause" : "resume";
		now.tag = tag;
		now.total = total;
		__atomic_store_n(&now.done, 0, __ATOMIC_RELAXED);
	}
	table_unlock();
	if (name && !tag)
		return failed(f, PAUSABLE_ARGUMENT, 0, -1, "there is no tag %.64s", name);
	if (o->n && !o->blocks)
		return failed(f, PAUSABLE_HOST_MEMORY, 0, -1, "the host has no memory for a list of %zu blocks", o->n);
	if (!o->n)
		return PAUSABLE_OK;
	qsort(o->blocks, o->n, sizeof(struct block *), by_device);
	for (size_t i = 0; i < o->n; i++) {
		struct part *p = o->n_parts ? &o->parts[o->n_parts - 1] : NULL;
		if (!p || p->device != o->blocks[i]->device) {
			p = &o->parts[o->n_parts++];
			*p = (struct part){.device = o->blocks[i]->device, .blocks = &o->blocks[i], .done = &now.done};
		}
		p->n++;
	}
	return PAUSABLE_OK;
}

static void end(struct operation *o, int kind, const struct timespec *began)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	table_lock();
	for (size_t i = 0; i < o->n && o->blocks; i++)
		o->blocks[i]->busy = 0;
	if (now.doing)
		last = (struct ended){progress_now(), (uint64_t)((t.tv_sec - began->tv_sec) * 1000000000L + t.tv_nsec - began->tv_nsec), last.count + 1, kind};
	now.doing = NULL;
	table_unlock();
	free(o->blocks);
}

/* remain adds to a failure what could not be taken back. */
static void remain(const struct operation *o, int pausing, struct pausable_failure *f)
{
	size_t n = 0, bytes = 0;
	for (size_t i = 0; i < o->n; i++) {
		const struct block *b = o->blocks[i];
		if (pausing ? b->state != b->was_state : b->held && !b->was_held) {
			n++;
			bytes += b->size;
		}
	}
	size_t at = strlen(f->text);
	if (n)
		snprintf(f->text + at, sizeof f->text - at, "; of it, %zu blocks of %s %s; try again", n, SIZE(bytes),
			pausing ? "could not be mapped again" : "still hold memory");
}

/* room reports whether the host has the memory of all backups, before anything is copied. What
 * is pinned is the driver's, and not of the process's control groups. */
static int room(const struct operation *o, struct pausable_failure *f)
{
	uint64_t pageable = 0, pinned = 0, kept = pinned_kept();
	for (size_t i = 0; i < o->n; i++) {
		const struct block *b = o->blocks[i];
		if (b->state == ACTIVE && !b->backup.kind && b->wanted != PAUSABLE_FILE)
			*(b->wanted == PAUSABLE_PAGEABLE ? &pageable : &pinned) += b->wanted ? b->bytes : 0;
	}
	pinned -= kept < pinned ? kept : pinned;
	if (!pageable && !pinned)
		return PAUSABLE_OK;
	uint64_t needed = pageable, available = pageable ? host_available(1) : 0;
	if (needed <= available) {
		needed += pinned;
		available = host_available(0);
	}
	if (needed <= available)
		return PAUSABLE_OK;
	return failed(f, PAUSABLE_HOST_MEMORY, 0, -1, "the host has %s available, and backups of what is to be paused need %s", SIZE(available), SIZE(needed));
}

/* What follows changes states outside of the stages, each of which can fail before it has
 * begun, without a thread or a context. */
static int pause_blocks(struct operation *o, struct pausable_failure *f)
{
	struct pausable_failure ignored;
	int kind = room(o, f);
	if (kind)
		return kind;
	kind = run(o, save, f);
	if (!kind)
		kind = run(o, unmap, f);
	if (kind)
		run(o, remap, &ignored);
	for (size_t i = 0; i < o->n; i++) {
		struct block *b = o->blocks[i];
		if (!kind || !b->open)
			b->state = PAUSED;
		else if (b->state == ACTIVE)
			b->backup.valid = 0; /* from now on the program writes */
	}
	if (!kind)
		return run(o, release, f);
	remain(o, 1, f);
	return kind;
}

static int resume_blocks(struct operation *o, struct pausable_failure *f)
{
	struct pausable_failure ignored;
	int kind = run(o, fits, f);
	if (kind)
		return kind;
	kind = run(o, create, f);
	if (!kind)
		kind = run(o, map, f);
	if (!kind)
		kind = run(o, load, f);
	if (kind) {
		run(o, take_back, &ignored);
		remain(o, 0, f);
		return kind;
	}
	for (size_t i = 0; i < o->n; i++) {
		o->blocks[i]->state = ACTIVE;
		o->blocks[i]->stale = o->blocks[i]->backup.valid = 0;
	}
	if (!setting(PAUSABLE_RETAIN))
		run(o, drop, &ignored); /* or the next pause uses it */
	return PAUSABLE_OK;
}

static int operate(const char *tag, int pausing)
{
	struct pausable_failure *f = (struct pausable_failure *)pausable_failure();
	if (use_begin())
		return failed(f, PAUSABLE_FORKED, 0, -1, "this process was forked from the one that allocated");
	struct timespec began;
	const char *what = pausing ? "pause" : "resume";
	turn_take();
	log_state("before", what, tag, 0);
	clock_gettime(CLOCK_MONOTONIC, &began);
	remnants_retry();
	struct operation o = {.blocks = NULL};
	int kind = choose(&o, tag, pausing, f);
	if (!kind && o.n)
		kind = pausing ? pause_blocks(&o, f) : resume_blocks(&o, f);
	end(&o, kind, &began);
	log_state("after", what, tag, kind);
	turn_give();
	return kind;
}

int pausable_pause(const char *tag) { return operate(tag, 1); }
int pausable_resume(const char *tag) { return operate(tag, 0); }

const void *pausable_backup(const void *at, size_t bytes)
{
	const void *out = NULL;
	CUdeviceptr from = (CUdeviceptr)(uintptr_t)at;
	if (in_fork())
		return NULL;
	table_lock();
	struct block *b = table_around(from);
	if (b && !b->busy && b->backup.whole && b->backup.at && bytes <= b->bytes - (from - b->at))
		out = (const char *)b->backup.at + (from - b->at);
	table_unlock();
	return out;
}

uint64_t pausable_size(const void *at)
{
	if (in_fork())
		return 0;
	table_lock();
	struct block *b = table_find((CUdeviceptr)(uintptr_t)at);
	uint64_t n = b ? b->size : 0;
	table_unlock();
	return n;
}
