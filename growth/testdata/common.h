// Each program prints a line when it begins to grow, and grows by a step at a
// time for about a second. Then it stays as it is.
#define _GNU_SOURCE
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MiB = 1 << 20, STEPS = 100 };

static void begin(void) {
	puts("grows");
	fflush(stdout);
	usleep(300000); // the first look
}
static void step(void) { usleep(6000); }
static void end(void) { for (;;) pause(); }
