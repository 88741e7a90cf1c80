// Handlers of signals that map: by a timer at moments of chance, by a fault, on
// the stack of the thread and, with an argument, on one of their own.
#include "maps.h"
#include <math.h>
#include <setjmp.h>

static volatile double sink;
static int own;

static NOINLINE int below(int n, int i) { return n ? below(n - 1, i) + 1 : map_here(i); }
static NOINLINE void rings(int n) { below(n % 5, next_call()); }
static NOINLINE void faults(int n, siginfo_t *info, void *context)
{
	below(n % 3, next_call());
	*(void **)info->si_addr = mmap((void *)((long)info->si_addr & ~4095L), 4096, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
	(void)context;
}

static NOINLINE double works(int n)
{
	char text[64];
	double sum = 0;
	for (int i = 1; i < 50; i++) {
		sum += sqrt(i + n) + strlen(text) * 0;
		snprintf(text, sizeof text, "%f", sum);
	}
	return n ? works(n - 1) + sum : sum;
}

static NOINLINE int touches(char *p) { return *(volatile char *)p + 1; }

static void handle(int signal, void *handler)
{
	struct sigaction a = {.sa_handler = handler, .sa_flags = SA_RESTART | SA_SIGINFO | (own ? SA_ONSTACK : 0)};
	sigaction(signal, &a, 0);
}

static void run(void)
{
	struct itimerval every = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
	if (own) {
		stack_t s = {.ss_sp = malloc(64 << 10), .ss_size = 64 << 10};
		sigaltstack(&s, 0);
	}
	handle(SIGALRM, rings);
	handle(SIGSEGV, faults);
	char *reserved = mmap(0, SIZES * 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	setitimer(ITIMER_REAL, &every, 0);
	for (int i = 0; calls < 5 * SIZES; i++) {
		sink += works(i % 9);
		if (i < SIZES)
			sink += touches(reserved + i * 4096);
	}
	setitimer(ITIMER_REAL, &never, 0);
}

int main(int argc, char **argv)
{
	own = argc > 1 && argv[1][0] == 'o';
	on_every_line(run);
}
