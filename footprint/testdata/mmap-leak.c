// Mappings of 148 KiB that nobody unmaps, among others that are.
#include "common.h"
int main(void) {
	begin();
	for (int i = 0; i < STEPS; i++, step()) {
		for (int j = 0; j < 4; j++) {
			char *kept = mmap(0, 148 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			memset(kept, 7, 148 << 10);
			char *gone = mmap(0, 64 << 10, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
			munmap(gone, 64 << 10);
		}
	}
	end();
}
