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

static double seconds(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

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

static double rate(size_t n, double began) { return (double)n / (seconds() - began) / (1 << 30); }

enum { ROUNDS = 5, PIECE = 32 << 20 };

/* directly does what a pause and a resume do, without the library. */
static void directly(size_t n, double *out, double *in)
{
	struct properties p = {.type = PINNED_TYPE, .location = {DEVICE, 0}};
	struct access own = {{DEVICE, 0}, READ_WRITE};
	CUdeviceptr device;
	CUhandle h;
	char *host = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
	if (host == MAP_FAILED || cu.cuMemAddressReserve(&device, n, 0, 0, 0))
		exit(1);
	for (int r = -1; r < ROUNDS; r++) {
		double began = seconds();
		if (cu.cuMemCreate(&h, n, &p, 0) || cu.cuMemMap(device, n, 0, h, 0) || cu.cuMemSetAccess(device, n, &own, 1))
			exit(1);
		for (size_t at = 0; at < n; at += PIECE)
			memcpy((char *)(uintptr_t)device + at, host + at, PIECE);
		if (r >= 0)
			in[r] = rate(n, began);
		began = seconds();
		for (size_t at = 0; at < n; at += PIECE)
			memcpy(host + at, (char *)(uintptr_t)device + at, PIECE);
		if (cu.cuMemUnmap(device, n) || cu.cuMemRelease(h))
			exit(1);
		if (r >= 0)
			out[r] = rate(n, began);
	}
	munmap(host, n);
	cu.cuMemAddressFree(device, n);
}

int main(int argc, char **argv)
{
	size_t n = (size_t)(argc > 1 ? atol(argv[1]) : 1) << 30;
	double out[ROUNDS], in[ROUNDS], direct_out[ROUNDS], direct_in[ROUNDS];
	void *block;
	pthread_t thread;
	fake_enter(0);
	pausable_set(PAUSABLE_PINNED_POOL, n);
	must(pausable_region("w", PAUSABLE_PINNED, 0), "region");
	must(pausable_allocate(&block, n, 0), "allocate");
	memset(block, 1, n);
	must(pausable_pause(NULL), "pause");
	directly(n, direct_out, direct_in); /* while the device has room */
	must(pausable_resume(NULL), "resume");
	must(pausable_pause(NULL), "pause"); /* pins memory, which is kept */
	must(pausable_resume(NULL), "resume");
	if (pthread_create(&thread, NULL, watch, NULL))
		return 1;
	for (int r = 0; r < ROUNDS; r++) {
		double began = seconds();
		must(pausable_pause(NULL), "pause");
		out[r] = rate(n, began);
		began = seconds();
		must(pausable_resume(NULL), "resume");
		in[r] = rate(n, began);
	}
	running = 0;
	pthread_join(thread, NULL);
	qsort(out, ROUNDS, sizeof *out, by_size);
	qsort(in, ROUNDS, sizeof *in, by_size);
	qsort(direct_out, ROUNDS, sizeof *out, by_size);
	qsort(direct_in, ROUNDS, sizeof *in, by_size);
	printf("%zu GiB, medians of %d: pause %.2f GiB/s, directly %.2f (%.0f %%); resume %.2f GiB/s, directly %.2f (%.0f %%); %d states of progress seen\n",
		n >> 30, ROUNDS, out[ROUNDS / 2], direct_out[ROUNDS / 2], 100 * out[ROUNDS / 2] / direct_out[ROUNDS / 2],
		in[ROUNDS / 2], direct_in[ROUNDS / 2], 100 * in[ROUNDS / 2] / direct_in[ROUNDS / 2], seen);
	return ((unsigned char *)block)[n - 1] != 1;
}
#endif
