// Each program prints a line, waits for SIGUSR1, grows by a step at a time for
// about a second, and is called "grown" when it has.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MiB = 1 << 20, STEPS = 100 };

static volatile int running; // threads that are not done

static void begin(void) {
	sigset_t set;
	int sig;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigprocmask(SIG_BLOCK, &set, 0);
	puts("waits");
	fflush(stdout);
	sigwait(&set, &sig);
}
static void step(void) { usleep(6000); }
static void stay(void) { for (;;) pause(); }
static void end(void) {
	while (running) usleep(1000);
	prctl(PR_SET_NAME, "grown");
	stay();
}
static void done(void) {
	__sync_fetch_and_sub(&running, 1);
	stay();
}
