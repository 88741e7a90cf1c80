/*
 * Measures the library: what an allocation and its release cost beside the driver's time, and
 * what a block takes of the host's memory, with a driver that does nothing; or how fast it
 * gives memory back and takes it again, with the driver of the tests, beside the same calls
 * of that driver with memcpy for the copies. See cost.sh.
 */
#include "../../pausable/c/block.h"
#include "../../pausable/testdata/fake.h"

#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

static void must(int kind, const char *what)
{
	if (kind) {
		fprintf(stderr, "%s: %s\n", what, pausable_failure()->text);
		exit(1);
	}
}

static int by_size(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return x < y ? -1 : x > y;
}

#ifdef BLOCKS

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void live(size_t n)
{
	enum { ROUNDS = 11, PAIRS = 20000 };
	double times[ROUNDS];
	void **held = calloc(n, sizeof *held), *at;
	size_t before = mallinfo2().uordblks;
	for (size_t i = 0; i < n; i++)
		must(pausable_allocate(&held[i], 2 << 20, 0), "allocate");
	double bytes = (double)(mallinfo2().uordblks - before) / (double)n - (double)sizeof(struct block);
	for (int r = 0; r < ROUNDS; r++) {
		double began = seconds();
		for (int i = 0; i < PAIRS; i++) {
			must(pausable_allocate(&at, 2 << 20, 0), "allocate");
			must(pausable_release(at), "release");
		}
		times[r] = (seconds() - began) / PAIRS;
	}
	qsort(times, ROUNDS, sizeof *times, by_size);
	printf("%7zu blocks: an allocation and its release take %.0f ns; a block has a state of %zu bytes and %.0f bytes beside it\n",
		n, times[ROUNDS / 2] * 1e9, sizeof(struct block), bytes);
	for (size_t i = 0; i < n; i++)
		must(pausable_release(held[i]), "release");
	free(held);
}

int main(void)
{
	for (size_t n = 10; n <= 100000; n *= 100)
		live(n);
	live(100000);
	return 0;
}

#else

static volatile int running = 1;
static int seen; /* states of progress */

/* watch asks for the progress, as a program outside would. */
static void *watch(void *none)
{
	static char text[1 << 14];
	unsigned long long total, done, last = 0;
	while (running) {
		pausable_status(text, sizeof text);
		char *line = strstr(text, "doing ");
		if (line && sscanf(line, "doing %*s %*s %llu %llu", &total, &done) == 2 && done != last && done < total) {
			seen++;
			last = done;
		}
		usleep(5000);
	}
	return none;
}

/* processor is the time that this thread, which copies, has had of a processor: on a machine
 * with other work the time of the day says little. */
static double processor(void)
{
	struct timespec t;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static double rate(size_t n, double began) { return (double)n / (processor() - began) / (1 << 30); }

enum { ROUNDS = 5, PIECE = 32 << 20 };

/* What a pause and a resume do, without the library: the same calls of the driver, and memcpy
 * between the same kinds of memory. Memory for a backup that is pageable is new each time. */
struct directly { int pageable; CUdeviceptr device; CUhandle handle; char *host; };

static void host_memory(struct directly *d, size_t n, int flags)
{
	d->host = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
	if (d->host == MAP_FAILED)
		exit(1);
	madvise(d->host, n, MADV_HUGEPAGE); /* as the library does */
}

static void pieces(char *to, const char *from, size_t n)
{
	for (size_t at = 0; at < n; at += PIECE)
		memcpy(to + at, from + at, n - at < PIECE ? n - at : PIECE);
}

static double directly_in(struct directly *d, size_t n)
{
	struct properties p = {.type = PINNED_TYPE, .location = {DEVICE, 0}};
	struct access own = {{DEVICE, 0}, READ_WRITE};
	double began = processor();
	if (cu.cuMemCreate(&d->handle, n, &p, 0) || cu.cuMemMap(d->device, n, 0, d->handle, 0) || cu.cuMemSetAccess(d->device, n, &own, 1))
		exit(1);
	pieces((char *)(uintptr_t)d->device, d->host, n);
	if (d->pageable)
		munmap(d->host, n);
	return rate(n, began);
}

static double directly_out(struct directly *d, size_t n)
{
	double began = processor();
	if (d->pageable)
		host_memory(d, n, 0);
	pieces(d->host, (const char *)(uintptr_t)d->device, n);
	if (cu.cuMemUnmap(d->device, n) || cu.cuMemRelease(d->handle))
		exit(1);
	return rate(n, began);
}

static double middle(double *x)
{
	qsort(x, ROUNDS, sizeof *x, by_size);
	return x[ROUNDS / 2];
}

/* measured does both in turn, each time with memory that it has just written: what was written
 * before, and other memory was mapped since, can take the processor much longer to read. */
static void measured(size_t n, int pageable, void **block)
{
	double out[ROUNDS], in[ROUNDS], direct_out[ROUNDS], direct_in[ROUNDS];
	struct directly d = {.pageable = pageable};
	must(pausable_region("w", pageable ? PAUSABLE_PAGEABLE : PAUSABLE_PINNED, 0), "region");
	must(pausable_allocate(block, n, 0), "allocate");
	memset(*block, 1, n);
	if (cu.cuMemAddressReserve(&d.device, n, 0, 0, 0))
		exit(1);
	host_memory(&d, n, MAP_POPULATE);
	must(pausable_pause(NULL), "pause"); /* which pins memory, and that is kept */
	for (int r = -1; r < ROUNDS; r++) {
		double now[4], began = processor();
		must(pausable_resume(NULL), "resume");
		now[3] = rate(n, began);
		began = processor();
		must(pausable_pause(NULL), "pause");
		now[2] = rate(n, began);
		now[0] = directly_in(&d, n);
		now[1] = directly_out(&d, n);
		if (r >= 0)
			direct_in[r] = now[0], direct_out[r] = now[1], out[r] = now[2], in[r] = now[3];
	}
	must(pausable_resume(NULL), "resume");
	munmap(d.host, n);
	cu.cuMemAddressFree(d.device, n);
	printf("%.2f GiB, %s, medians of %d in processor time: pause %.2f GiB/s, directly %.2f (%.0f %%); resume %.2f GiB/s, directly %.2f (%.0f %%)\n",
		(double)n / (1 << 30), pageable ? "pageable" : "pinned", ROUNDS, middle(out), middle(direct_out), 100 * middle(out) / middle(direct_out),
		middle(in), middle(direct_in), 100 * middle(in) / middle(direct_in));
}

/* at_once does both once, one after the other, so that the host has one backup at a time. */
static void at_once(size_t n)
{
	void *block;
	pthread_t thread;
	struct directly d = {0};
	must(pausable_region("w", PAUSABLE_PINNED, 0), "region");
	must(pausable_allocate(&block, n, 0), "allocate");
	for (size_t i = 0; i < FAKE_PIECE; i++)
		((unsigned char *)block)[i] = (unsigned char)(i * 7 + i / 251);
	if (cu.cuMemAddressReserve(&d.device, n, 0, 0, 0))
		exit(1);
	host_memory(&d, n, MAP_POPULATE);
	double direct_in = directly_in(&d, n), direct_out = directly_out(&d, n);
	munmap(d.host, n);
	cu.cuMemAddressFree(d.device, n);
	if (pthread_create(&thread, NULL, watch, NULL))
		exit(1);
	double began = processor();
	must(pausable_pause(NULL), "pause");
	double first = rate(n, began);
	for (size_t at = 0; at < n; at += FAKE_PIECE) {
		const unsigned char *kept = pausable_backup((char *)block + at, FAKE_PIECE);
		for (size_t i = 0; i < FAKE_PIECE; i++)
			if (!kept || kept[i] != (unsigned char)(i * 7 + i / 251))
				exit(1);
	}
	began = processor();
	must(pausable_resume(NULL), "resume");
	double in = rate(n, began);
	began = processor(); /* into memory that is pinned already */
	must(pausable_pause(NULL), "pause");
	double out = rate(n, began);
	must(pausable_resume(NULL), "resume");
	running = 0;
	pthread_join(thread, NULL);
	printf("%.2f GiB at once, pinned: the first pause %.2f GiB/s, the second %.2f, directly %.2f (%.0f %%); resume %.2f GiB/s, directly %.2f (%.0f %%); %d states of progress seen\n",
		(double)n / (1 << 30), first, out, direct_out, 100 * out / direct_out, in, direct_in, 100 * in / direct_in, seen);
	for (size_t i = 0; i < FAKE_PIECE; i++)
		if (((unsigned char *)block)[i] != (unsigned char)(i * 7 + i / 251))
			exit(1);
	must(pausable_release(block), "release");
}

int main(int argc, char **argv)
{
	size_t n = (size_t)((argc > 1 ? atof(argv[1]) : 1) * (1 << 30)) / PIECE * PIECE;
	void *block;
	pthread_t thread;
	fake_enter(0);
	pausable_set(PAUSABLE_PINNED_POOL, n);
	if (FAKE_PIECE < FAKE_MEMORY) {
		at_once(n / FAKE_PIECE * FAKE_PIECE);
		return 0;
	}
	for (int pageable = 0; pageable < 2; pageable++) {
		measured(n, pageable, &block);
		if (pthread_create(&thread, NULL, watch, NULL))
			return 1;
		must(pausable_pause(NULL), "pause");
		must(pausable_resume(NULL), "resume");
		running = 0;
		pthread_join(thread, NULL);
		printf("%d states of progress seen in one of both\n", seen);
		if (((unsigned char *)block)[n - 1] != 1)
			return 1;
		must(pausable_release(block), "release");
		running = 1, seen = 0;
	}
	return 0;
}
#endif
