/*
 * Has each call of the driver fail, in each operation of the library, and compares after
 * each what the library, the driver and the memory say. It prints what it did, and ends
 * with 1 at the first difference.
 */
#include "faults.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

char doing[256];
struct block blocks[MOST];
int n_blocks;

/* The bytes of a block repeat after PERIOD; those of two seeds are shifted by rows. */
enum { ROW = 256, PERIOD = ROW * 256 };
static unsigned char rows[2 * PERIOD];

__attribute__((constructor)) static void make_rows(void)
{
	for (size_t i = 0; i < sizeof rows; i++)
		rows[i] = (unsigned char)(i * 7 + i / ROW);
}

static const unsigned char *bytes_of(const struct block *b) { return rows + (size_t)b->seed * ROW; }

unsigned char value(const struct block *b, size_t i) { return bytes_of(b)[i % PERIOD]; }

static size_t part(const struct block *b, size_t from) { return b->bytes - from < PERIOD ? b->bytes - from : PERIOD; }

static void fill(const struct block *b)
{
	for (size_t i = 0; i < b->bytes; i += PERIOD)
		memcpy(b->at + i, bytes_of(b), part(b, i));
}

static void compare(const struct block *b)
{
	for (size_t i = 0; i < b->bytes; i += PERIOD)
		if (memcmp(b->at + i, bytes_of(b), part(b, i)))
			for (size_t k = i;; k++)
				check(b->at[k] == value(b, k), "byte %zu of %zu of tag %s is altered", k, b->bytes, b->tag);
}

int allocate(struct block *b)
{
	pausable_region(b->tag, b->backup, 0);
	int kind = pausable_allocate((void **)&b->at, b->bytes, b->device);
	pausable_region(NULL, 0, 0);
	return kind;
}

void new_block(const char *tag, int backup, int device, size_t bytes)
{
	struct block *b = &blocks[n_blocks];
	*b = (struct block){.bytes = bytes, .device = device, .seed = (unsigned char)(31 * n_blocks + 1), .tag = tag, .backup = backup};
	check(!allocate(b), "cannot allocate");
	fill(b);
	n_blocks++;
}

struct said status_of(const char *tag)
{
	static char text[1 << 16];
	struct said s = {0};
	check(pausable_status(text, sizeof text) < sizeof text, "the status is too long");
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n")) {
		char name[64];
		struct said t;
		if (sscanf(line, "tag %63s %zu %zu %15s %15s %zu %zu", name, &t.bytes, &t.blocks, t.state, t.backup, &t.kept, &t.held) == 7 && !strcmp(name, tag))
			s = t;
	}
	return s;
}

/* held is what the library says that it holds of all devices, with what was not freed. */
static size_t held(void)
{
	static char text[1 << 16];
	size_t sum = 0, n, blocks;
	pausable_status(text, sizeof text);
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		if (sscanf(line, "tag %*s %*u %*u %*s %*s %*u %zu", &n) == 1 || sscanf(line, "freed %zu %zu", &blocks, &n) == 2)
			sum += n;
	return sum;
}

static void agree(void)
{
	const char *what;
	size_t used = 0;
	for (int d = 0; d < FAKE_DEVICES; d++)
		used += fake_used(d);
	check(!fake_misuses(&what), "the driver was misused: %s", what);
	check(held() == used, "the library holds %zu bytes, and the driver gave %zu", held(), used);
}

void same(const char *tag)
{
	for (int i = 0; i < n_blocks; i++)
		if (blocks[i].backup && (!tag || !strcmp(tag, blocks[i].tag)))
			compare(&blocks[i]);
}

static void clear(void)
{
	for (int d = 0; d < FAKE_DEVICES; d++)
		fake_fail(d, 0, 0, 0);
}

void active(const char *tag)
{
	struct said s = status_of(tag);
	check(!strcmp(s.state, "active") && s.held == s.bytes, "tag %s is %s and holds %zu of %zu bytes", tag, s.state, s.held, s.bytes);
}

void paused(const char *tag)
{
	struct said s = status_of(tag);
	check(!strcmp(s.state, "paused") && !s.held, "tag %s is %s and holds %zu bytes", tag, s.state, s.held);
}

/* Without threads, the library works on the one that calls it. */
static int no_threads;
int __real_pthread_create(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *with, void *(*run)(void *), void *arg);
int __wrap_pthread_create(pthread_t *t, const pthread_attr_t *with, void *(*run)(void *), void *arg)
{
	return no_threads ? EAGAIN : __real_pthread_create(t, with, run, arg);
}

/* Without memory, its allocations fail from a number on: so many of them. */
static long memory_calls, memory_first, memory_n;
void *__real_malloc(size_t), *__wrap_malloc(size_t), *__real_calloc(size_t, size_t), *__wrap_calloc(size_t, size_t);
static int no_memory(void)
{
	long now = __atomic_add_fetch(&memory_calls, 1, __ATOMIC_RELAXED), first = __atomic_load_n(&memory_first, __ATOMIC_RELAXED);
	return now >= first && now - first < __atomic_load_n(&memory_n, __ATOMIC_RELAXED);
}
void *__wrap_malloc(size_t n) { return no_memory() ? NULL : __real_malloc(n); }
void *__wrap_calloc(size_t n, size_t size) { return no_memory() ? NULL : __real_calloc(n, size); }

static void memory_fail(long first, long n)
{
	__atomic_store_n(&memory_calls, 0, __ATOMIC_RELAXED);
	__atomic_store_n(&memory_first, first, __ATOMIC_RELAXED);
	__atomic_store_n(&memory_n, n, __ATOMIC_RELAXED);
}

/* The operations, each with its inverse, between the state in which all is active and the
 * one after it. */
static struct block extra;
static int is_there;

static int op_allocate(void)
{
	if (is_there)
		return 0;
	int kind = allocate(&extra);
	is_there = !kind;
	check(kind || extra.at, "no address, and no reason");
	return kind;
}
static int op_free(void)
{
	if (!is_there)
		return 0;
	int kind = pausable_release(extra.at);
	is_there = kind != 0;
	return kind;
}
int op_pause(void) { return pausable_pause("w"); }
int op_resume(void) { return pausable_resume("w"); }
/* It tells what it can, and changes nothing. */
static int op_status(void) { return status_of("w").blocks ? 0 : -1; }

static const struct op { const char *name; int (*run)(void), (*back)(void); int paused_before, paused_after; } ops[] = {
	{"allocate", op_allocate, op_free, 0, 0},
	{"pause", op_pause, op_resume, 0, 1},
	{"resume", op_resume, op_pause, 1, 0},
	{"free", op_free, op_allocate, 0, 0},
	{"status", op_status, op_status, 0, 0},
};
enum { OPS = sizeof ops / sizeof *ops };
static long n_tried, n_orders, n_starved; /* how often one and two operations were tried below, and one without memory */

/* fails has one operation fail in one way; where that lasts, for several tries. */
static void fails(const struct op *o, int device, long first, long n, int code)
{
	if (!o->paused_before)
		for (int d = 0; d < FAKE_DEVICES; d++) /* a kernel is still at work as it begins */
			for (int i = 0; i < n_blocks; i++)
				if (blocks[i].device == d && blocks[i].backup && !strcmp(blocks[i].tag, "w"))
					fake_launch(d, blocks[i].at, value(&blocks[i], 0), 1), i = n_blocks;
	fake_fail(device, first, n, code);
	int kind = o->run();
	for (int i = 0; i < 2 && n == FOREVER; i++)
		kind = o->run();
	clear();
	agree();
	struct said s = status_of("w");
	check(strcmp(s.state, "partial") || kind, "it succeeded in part");
	if (!strcmp(s.state, "active"))
		same("w");
	same("other");
	n_tried++;
}

/* then has another operation follow the one that failed, and restores what was before. */
static void then(const struct op *o, const struct op *next)
{
	int kind = next->run();
	if (next->run == op_free && kind == PAUSABLE_ARGUMENT) /* any operation frees what could not be */
		kind = is_there = 0;
	check(!kind, "%s fails after it", next->name);
	agree();
	if (next->run == op_pause)
		paused("w");
	if (next->run == op_resume) {
		active("w");
		same("w");
	}
	same("other");
	if (o->run == op_free && is_there && next->run != op_free) { /* which was freed by now, or was not */
		kind = op_free();
		check(!kind || kind == PAUSABLE_ARGUMENT, "it cannot be freed");
		is_there = 0;
	}
	check(!(o->paused_before ? op_pause() : op_resume()), "the way back fails");
	check(!(o->run == op_free ? op_allocate() : op_free()), "the way back fails");
	if (!o->paused_before)
		same("w");
	same("other");
	agree();
	n_orders++;
}

/* one has one operation fail in one way, and tries again. */
static void one(const struct op *o, int device, long first, long n, int code)
{
	fails(o, device, first, n, code);
	int kind = o->run();
	check(!kind, "the second try fails");
	agree();
	(o->paused_after ? paused : active)("w");
	if (!o->paused_after)
		same("w");
	kind = o->back();
	check(!kind, "the way back fails");
	(o->paused_before ? paused : active)("w");
	if (!o->paused_before)
		same("w");
	same("other");
	agree();
}

void empty(void)
{
	for (int i = 0; i < n_blocks; i++)
		check(!pausable_release(blocks[i].at), "cannot free");
	n_blocks = 0;
	const char *what;
	for (int d = 0; d < FAKE_DEVICES; d++)
		check(!fake_used(d), "%zu bytes of device %d are left", fake_used(d), d);
	check(!fake_ranges() && !fake_mappings(), "%d ranges and %d mappings are left", fake_ranges(), fake_mappings());
	check(!fake_misuses(&what), "the driver was misused: %s", what);
}

const char *const kinds[] = {"none", "pinned", "pageable", "file"};

/* ways that calls fail: how many of them, and with which code. */
static const struct { long n; int code; } ways[] = {{1, BROKEN}, {FOREVER, BROKEN}, {1, OOM}, {2, BROKEN}};

static void each_call(int devices, int backup, int n_ways, int orders)
{
	for (int d = 0; d < devices; d++) {
		new_block("w", backup, d, 100000);
		new_block("w", backup, d, 3 * FAKE_UNIT);
		new_block("w", PAUSABLE_NONE, d, 1);
		new_block("other", PAUSABLE_PINNED, d, 5000);
	}
	extra = (struct block){.bytes = 2 * FAKE_UNIT, .device = devices - 1, .tag = "w", .backup = backup};
	op_pause(); /* streams are made once, and pinned memory is kept */
	op_resume();
	for (int i = 0; i < OPS; i++) {
		const struct op *o = &ops[i];
		snprintf(doing, sizeof doing, "%s, %d devices, backup %s", o->name, devices, kinds[backup]);
		if (o->run == op_free)
			check(!op_allocate(), "cannot allocate");
		if (o->paused_before)
			check(!op_pause(), "cannot pause");
		clear();
		check(!o->run(), "it fails by itself");
		long calls[FAKE_DEVICES];
		for (int d = 0; d < FAKE_DEVICES; d++)
			calls[d] = fake_calls(d);
		check(!o->back(), "the way back fails");
		for (int d = 0; d < devices; d++)
			for (long k = 1; k <= calls[d]; k++)
				for (int way = 0; way < n_ways; way++) {
					snprintf(doing, sizeof doing, "%s, %d devices, backup %s, call %ld of device %d, %ld failures",
						o->name, devices, kinds[backup], k, d, ways[way].n);
					one(o, d, k, ways[way].n, ways[way].code);
					for (int next = 0; next < OPS && orders && way < 2; next++) {
						size_t at = strlen(doing);
						snprintf(doing + at, sizeof doing - at, ", then %s", ops[next].name);
						fails(o, d, k, ways[way].n, ways[way].code);
						then(o, &ops[next]);
						doing[at] = 0;
					}
				}
		if (o->paused_before)
			check(!op_resume(), "cannot resume");
		if (is_there)
			check(!op_free(), "cannot free");
	}
	snprintf(doing, sizeof doing, "at the end");
	empty();
}

/* again has one operation fail for a while, and then each call of the next try. */
static void again(const struct op *o, long first)
{
	long k = 0, calls;
	do {
		fails(o, 0, first, FOREVER, BROKEN);
		fake_fail(0, ++k, 1, BROKEN);
		o->run();
		calls = fake_calls(0);
		clear();
		agree();
		same("other");
		check(!o->run(), "the last try fails");
		(o->paused_after ? paused : active)("w");
		if (!o->paused_after)
			same("w");
		check(!o->back(), "the way back fails");
		if (!o->paused_before)
			same("w");
		same("other");
		agree();
	} while (calls >= k);
}

static void each_again(int backup)
{
	new_block("w", backup, 0, 100000);
	new_block("w", backup, 0, FAKE_UNIT);
	new_block("other", PAUSABLE_PINNED, 0, 5000);
	extra = (struct block){.bytes = 2 * FAKE_UNIT, .tag = "w", .backup = backup};
	for (int i = 0; i < OPS; i++) {
		const struct op *o = &ops[i];
		if (o->run == op_free)
			check(!op_allocate(), "cannot allocate");
		if (o->paused_before)
			check(!op_pause(), "cannot pause");
		clear();
		check(!o->run(), "it fails by itself");
		long calls = fake_calls(0);
		check(!o->back(), "the way back fails");
		for (long k = 1; k <= calls; k++) {
			snprintf(doing, sizeof doing, "%s, backup %s, call %ld and all later ones, then each one", o->name, kinds[backup], k);
			again(o, k);
		}
		if (o->paused_before)
			check(!op_resume(), "cannot resume");
		if (is_there)
			check(!op_free(), "cannot free");
	}
	empty();
}

/* starved has an operation fail at its kth allocation, and at all later ones or none, and
 * reports whether there was one. */
static int starved(const struct op *o, long k, long n)
{
	memory_fail(k, n);
	int kind = o->run(), any = memory_calls >= k;
	memory_fail(0, 0);
	fake_fail_name(NULL, 0);
	check(!kind || kind == PAUSABLE_HOST_MEMORY, "the failure is of kind %d", kind);
	agree();
	same("other");
	check(!o->run(), "the second try fails");
	(o->paused_after ? paused : active)("w");
	check(!o->back(), "the way back fails");
	if (!o->paused_before)
		same("w");
	return any;
}

/* each_memory has each allocation of the library fail; with broken, the driver frees no
 * pinned memory either. */
static void each_memory(int devices, int broken)
{
	for (int d = 0; d < devices; d++)
		new_block("w", PAUSABLE_PINNED, d, 100000 * (size_t)(d + 1));
	new_block("other", PAUSABLE_PINNED, 0, 5000);
	extra = (struct block){.bytes = 2 * FAKE_UNIT, .tag = "w", .backup = PAUSABLE_PINNED};
	for (int i = 0; i < OPS; i++) {
		const struct op *o = &ops[i];
		if (o->run == op_free)
			check(!op_allocate(), "cannot allocate");
		if (o->paused_before)
			check(!op_pause(), "cannot pause");
		int any = 1;
		for (long k = 1; any; k++)
			for (int way = 0; way < 2; way++) {
				snprintf(doing, sizeof doing, "%s, %d devices, without memory from allocation %ld on, way %d", o->name, devices, k, way);
				fake_fail_name(broken ? "cuMemFreeHost" : NULL, BROKEN);
				any = starved(o, k, way ? FOREVER : 1);
				n_starved++;
			}
		if (o->paused_before)
			check(!op_resume(), "cannot resume");
		if (is_there)
			check(!op_free(), "cannot free");
	}
	empty();
}

/* first_use has each call fail that a process makes once, in a process of its own. */
static void first_use(int backup)
{
	for (long k = 1;; k++) {
		fflush(NULL);
		pid_t child = fork();
		if (!child) {
			snprintf(doing, sizeof doing, "first use, backup %s, call %ld", kinds[backup], k);
			struct block b = {.bytes = 100000, .tag = "w", .backup = backup, .seed = 5};
			fake_fail(0, k, 1, BROKEN);
			if (allocate(&b))
				check(!allocate(&b), "the second try to allocate fails");
			fill(&b);
			if (op_pause())
				check(!op_pause(), "the second try to pause fails");
			if (op_resume())
				check(!op_resume(), "the second try to resume fails");
			if (backup)
				compare(&b);
			int any = fake_calls(0) >= k;
			if (pausable_release(b.at))
				check(!pausable_release(b.at), "the second try to free fails");
			empty();
			_exit(any ? 0 : 77);
		}
		int status;
		while (waitpid(child, &status, 0) < 0 && errno == EINTR)
			;
		if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
			return;
		check(WIFEXITED(status) && !WEXITSTATUS(status), "the child for call %ld ended with %#x", k, status);
	}
}

/* Threads, each with blocks of its own, while calls fail here and there. */
enum { THREADS = 4, ROUNDS = 12, TRIES = 1000 };

static int insist(int kind, int (*what)(void *), void *arg)
{
	for (int i = 0; kind && i < TRIES; i++)
		kind = what(arg);
	check(!kind, "it fails for ever");
	return kind;
}
static int try_allocate(void *b) { return allocate(b); }
static int try_free(void *b) { return pausable_release(((struct block *)b)->at); }
/* What could not be freed is tried again by any call, also of another thread. */
static int free_again(void *b)
{
	int kind = try_free(b);
	return kind == PAUSABLE_ARGUMENT ? PAUSABLE_OK : kind;
}
static int try_pause(void *b) { return pausable_pause(((struct block *)b)->tag); }
static int try_resume(void *b) { return pausable_resume(((struct block *)b)->tag); }

static void *work(void *arg)
{
	static const char *tags[THREADS] = {"t0", "t1", "t2", "t3"};
	int me = (int)(size_t)arg;
	for (int round = 0; round < ROUNDS; round++) {
		struct block b[2];
		for (int i = 0; i < 2; i++) {
			b[i] = (struct block){.bytes = (size_t)(round + 1) * 10000 + (size_t)i * FAKE_UNIT, .device = (me + i) % FAKE_DEVICES,
				.seed = (unsigned char)(me * 16 + round), .tag = tags[me], .backup = 1 + (round + me) % 3};
			insist(allocate(&b[i]), try_allocate, &b[i]);
			fill(&b[i]);
		}
		insist(try_pause(b), try_pause, b);
		char text[4096];
		pausable_status(text, sizeof text);
		if (round % 4 == 3) { /* freed while paused */
			insist(try_free(&b[0]), free_again, &b[0]);
			insist(try_resume(b), try_resume, b);
			compare(&b[1]);
		} else {
			insist(try_resume(b), try_resume, b);
			compare(&b[0]);
			compare(&b[1]);
			insist(try_free(&b[0]), free_again, &b[0]);
		}
		insist(try_free(&b[1]), free_again, &b[1]);
	}
	return NULL;
}

static void threads(long each)
{
	snprintf(doing, sizeof doing, "%d threads, each %ldth call fails", THREADS, each);
	pthread_t t[THREADS];
	fake_fail_each(each, BROKEN);
	for (size_t i = 0; i < THREADS; i++)
		if (pthread_create(&t[i], NULL, work, (void *)i))
			exit(1);
	for (int i = 0; i < THREADS; i++)
		pthread_join(t[i], NULL);
	fake_fail_each(0, 0);
	agree();
	empty();
}

/* How much is done: all, some of all that there is, or what concerns threads. */
enum { ALL, SOME, CONCURRENT };

static void one_at_a_time(int reach)
{
	for (int backup = PAUSABLE_NONE; backup <= PAUSABLE_FILE && reach != CONCURRENT; backup++) {
		fake_enter(backup == PAUSABLE_PINNED ? -1 : 0); /* without, the library begins threads */
		each_call(1, backup, reach == ALL ? 4 : 2, reach == ALL || backup == PAUSABLE_PINNED);
		fake_enter(-1);
	}
	for (int backup = PAUSABLE_NONE; backup <= PAUSABLE_FILE; backup++)
		if (reach == ALL || backup == PAUSABLE_PINNED)
			each_call(FAKE_DEVICES, backup, reach == ALL ? 4 : 1, reach == ALL && backup == PAUSABLE_PINNED);
	if (reach == CONCURRENT)
		return;
	each_again(PAUSABLE_PINNED);
	each_memory(2, 0);
	no_threads = 1;
	each_call(2, PAUSABLE_PINNED, 2, 0);
	no_threads = 0;
	if (reach != ALL)
		return;
	pausable_set(PAUSABLE_VERIFY, 1);
	each_call(1, PAUSABLE_PINNED, 4, 0);
	pausable_set(PAUSABLE_VERIFY, 0);
	pausable_set(PAUSABLE_RETAIN, 1);
	each_call(1, PAUSABLE_PINNED, 4, 0);
	each_call(1, PAUSABLE_FILE, 4, 0);
	pausable_set(PAUSABLE_RETAIN, 0);
	pausable_set(PAUSABLE_MARGIN, 1);
	each_call(1, PAUSABLE_PINNED, 4, 0);
	pausable_set(PAUSABLE_MARGIN, 0);
}

/* report prints how often each call failed, and returns how many never did. */
static int report(long alone, long failures)
{
	const char *name;
	long n;
	int never = 0;
	printf("%ld calls failed: %ld one operation at a time, %ld with %d threads\n", failures, alone, failures - alone, THREADS);
	printf("%ld failures of an operation, %ld of them with another one after it; %ld without memory\n", n_tried, n_orders, n_starved);
	for (int i = 0; (name = fake_name(i, &n)); i++) {
		printf("%8ld %s\n", n, name);
		never += !n;
	}
	const struct fake_site *s;
	for (int i = 0; (s = fake_site(i)); i++)
		printf("site %zu %ld %ld\n", s->at, s->calls, s->failures);
	return never;
}

int main(int argc, char **argv)
{
	int reach = argc != 4 ? -1 : !strcmp(argv[3], "all") ? ALL : !strcmp(argv[3], "some") ? SOME : !strcmp(argv[3], "concurrent") ? CONCURRENT : -1;
	if (reach < 0) {
		fprintf(stderr, "usage: faults FOLDER CYCLES all|some|concurrent\n");
		return 2;
	}
	snprintf(doing, sizeof doing, "start");
	for (int backup = PAUSABLE_NONE; backup <= PAUSABLE_FILE && reach != CONCURRENT; backup++)
		first_use(backup); /* before this process uses it */
	char own[300];
	snprintf(own, sizeof own, "%s/exits", argv[1]);
	check(!mkdir(own, 0700), "cannot make %s", own);
	exits(own);
	pausable_set_folder(argv[1]);
	one_at_a_time(reach);
	pausable_set(PAUSABLE_PINNED_POOL, 0); /* all of it is freed each time */
	each_call(1, PAUSABLE_PINNED, 2, 0);
	if (reach != CONCURRENT)
		each_memory(1, 1);
	long alone = fake_failures();
	for (long each = 101; each < 200; each += 24) /* more calls than an operation makes */
		threads(each);
	long failures = fake_failures();
	full();
	stated();
	running();
	unpinned();
	peers();
	retained();
	damage();
	folders(argv[1]);
	forked(argv[1]);
	hosts();
	logged(argv[1]);
	cycles(atoi(argv[2]), PAUSABLE_PINNED, PAUSABLE_PAGEABLE);
	cycles(100, PAUSABLE_FILE, PAUSABLE_FILE);
	if (report(alone, failures) && reach != CONCURRENT) {
		fprintf(stderr, "some calls never failed\n");
		return 1;
	}
	return 0;
}
