// What the programs share: they say that they run, and grow at a pace, until
// they have grown enough to be seen and not so much that the machine suffers.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define NOINLINE __attribute__((noinline, noclone))
#define MIB (1ul << 20)

static const size_t most = 512 * MIB;

static void must(int ok, const char *what) {
  if (ok) return;
  perror(what);
  exit(1);
}

// begin reports that the program runs. What it grows by comes after it.
static void begin(void) {
  puts("ready");
  fflush(stdout);
}

// pace waits so long that adding bytes each time makes 16 MiB a second. It does
// not return once the program has grown enough.
static size_t grown;
static void pace(size_t bytes) {
  grown += bytes;
  while (grown >= most) pause();
  struct timespec t = {0, (long)(bytes * 1000000000.0 / (16 * MIB))};
  nanosleep(&t, 0);
}
