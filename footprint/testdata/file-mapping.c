// A file that is mapped and read, page by page.
#include "common.h"
int main(int argc, char **argv) {
	size_t size = 40 * MiB;
	int fd = open(argv[1], O_CREAT | O_RDWR | O_TRUNC, 0600);
	static char data[MiB];
	memset(data, 7, sizeof data);
	for (int i = 0; i < 40; i++) if (write(fd, data, sizeof data) < 0) return 1;
	char *p = mmap(0, size, PROT_READ, MAP_SHARED, fd, 0);
	volatile char sum = 0;
	begin();
	for (size_t at = 0; at < size; at += 4096) {
		sum += p[at];
		if (at % (size / STEPS / 4096 * 4096) == 0) step();
	}
	end();
}
