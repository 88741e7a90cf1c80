// Memory files that are held open and no longer mapped.
#include "common.h"
int main(void) {
	static char data[300 << 10];
	begin();
	for (int i = 0; i < STEPS; i++, step()) {
		int fd = memfd_create("held", 0);
		if (write(fd, data, sizeof data) < 0) return 1;
	}
	end();
}
