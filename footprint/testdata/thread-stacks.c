// Threads that do nothing.
#include "common.h"
static void *run(void *none) { stay(); return none; }
int main(void) {
	begin();
	for (int i = 0; i < STEPS; i++, step()) {
		pthread_t t;
		pthread_create(&t, 0, run, 0);
	}
	end();
}
