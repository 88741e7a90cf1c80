// Maps, allocates and gives back: nothing grows.
#include "common.h"
int main(void) {
	begin();
	for (int i = 0; i < STEPS; i++, step()) {
		char *p = mmap(0, MiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		memset(p, 7, MiB);
		munmap(p, MiB);
		p = malloc(100000);
		memset(p, 7, 100000);
		free(p);
	}
	end();
}
