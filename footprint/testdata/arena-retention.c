// Threads free 63 of 64 blocks: the arenas keep all of the memory.
#include "common.h"
enum { COUNT = 15000 };
static void *run(void *none) {
	char **p = malloc(COUNT * sizeof *p);
	for (int i = 0; i < STEPS; i++, step())
		for (int j = 0; j < COUNT / STEPS; j++) {
			char *block = malloc(1000);
			memset(block, 7, 1000);
			p[i * (COUNT / STEPS) + j] = block;
		}
	for (int i = 0; i < COUNT; i++) if (i % 64) free(p[i]);
	done();
	return none;
}
int main(void) {
	pthread_t t[4];
	begin();
	running = 4;
	for (int i = 0; i < 4; i++) pthread_create(&t[i], 0, run, 0);
	end();
}
