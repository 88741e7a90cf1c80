// A child that writes to what it has in common with its parent.
#include "common.h"
int main(void) {
	size_t size = 40 * MiB;
	volatile int *writes = mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	char *p = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(p, 7, size);
	if (fork() == 0) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		while (!*writes) usleep(1000);
		for (int i = 0; i < STEPS; i++, step()) memset(p + size / STEPS * i, 8, size / STEPS);
		*writes = 0;
		stay();
	}
	begin();
	*writes = 1;
	while (*writes) usleep(1000);
	end();
}
