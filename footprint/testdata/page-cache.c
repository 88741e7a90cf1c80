// A file that is read, and is not in the cache before.
#include "common.h"
int main(int argc, char **argv) {
	int fd = open(argv[1], O_CREAT | O_RDWR | O_TRUNC, 0600);
	static char data[MiB];
	memset(data, 7, sizeof data);
	for (int i = 0; i < 50; i++) if (write(fd, data, sizeof data) < 0) return 1;
	fsync(fd);
	posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
	lseek(fd, 0, SEEK_SET);
	begin();
	for (int i = 0; i < STEPS; i++, step()) if (read(fd, data, MiB / 2) < 0) return 1;
	end();
}
