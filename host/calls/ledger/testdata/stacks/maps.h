// What the programs have in common: each maps memory below stacks of a kind, for
// every line that it reads, and keeps it. The size identifies the call.
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))
#define SIZES 200

static int calls;

// map_here maps memory for the call with a number.
static NOINLINE int map_here(int i)
{
	void *p = mmap(0, 4096 * (i % SIZES + 1), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	return p != MAP_FAILED;
}

static int next_call(void) { return __sync_fetch_and_add(&calls, 1); }

static void on_every_line(void (*run)(void))
{
	char line[16];
	puts("ready");
	fflush(stdout);
	while (fgets(line, sizeof line, stdin)) {
		calls = 0;
		run();
		puts("done");
		fflush(stdout);
	}
}
