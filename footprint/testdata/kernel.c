// Pipes that are full and that nobody reads.
#include "common.h"
int main(void) {
	static char data[256 << 10];
	begin();
	for (int i = 0; i < STEPS; i++, step()) {
		int p[2];
		if (pipe2(p, O_NONBLOCK) || fcntl(p[1], F_SETPIPE_SZ, sizeof data) < 0 || write(p[1], data, sizeof data) < 0) return 1;
	}
	end();
}
