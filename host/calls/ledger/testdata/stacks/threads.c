// Threads that map while they run, and as they end.
#include "maps.h"

static pthread_key_t key;

static NOINLINE int down(int n, int i) { return n ? down(n - 1, i) + n : map_here(i); }
static void ends(void *i) { down(3, (int)(long)i); }

static void *works(void *x)
{
	for (int n = 0; n < 20; n++) {
		int i = next_call();
		down(n, i);
		usleep(500);
		pthread_setspecific(key, (void *)(long)(i + 1));
	}
	return x;
}

static void run(void)
{
	if (!key)
		pthread_key_create(&key, ends);
	for (int round = 0; round < 8; round++) {
		pthread_t all[8];
		for (int k = 0; k < 8; k++)
			pthread_create(&all[k], 0, works, 0);
		for (int k = 0; k < 8; k++)
			pthread_join(all[k], 0);
	}
}

int main(void) { on_every_line(run); }
