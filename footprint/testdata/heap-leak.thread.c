// Small blocks that a thread leaks in an arena of its own.
#include "common.h"
static void *run(void *none) {
	for (int i = 0; i < STEPS; i++, step())
		for (int j = 0; j < 2000; j++)
			memset(malloc(200), 7, 200);
	done();
	return none;
}
int main(void) {
	pthread_t t;
	begin();
	running = 1;
	pthread_create(&t, 0, run, 0);
	end();
}
