// Files of /dev/shm, mapped and unlinked, as workers of a data loader leave them.
#include "common.h"
int main(void) {
	begin();
	for (int i = 0; i < STEPS; i++, step()) {
		char name[64];
		snprintf(name, sizeof name, "/torch_%d_%d", getpid(), i);
		int fd = shm_open(name, O_CREAT | O_RDWR, 0600);
		if (ftruncate(fd, 300 << 10)) return 1;
		char *p = mmap(0, 300 << 10, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
		memset(p, 7, 300 << 10);
		shm_unlink(name);
		close(fd);
	}
	end();
}
