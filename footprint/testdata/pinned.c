// Memory that is locked.
#include "common.h"
int main(void) {
	begin();
	for (int i = 0; i < STEPS; i++, step()) {
		char *p = mmap(0, 300 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
		mlock(p, 300 << 10);
	}
	end();
}
