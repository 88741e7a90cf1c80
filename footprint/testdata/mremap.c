// A buffer that is made larger and larger.
#include "common.h"
int main(void) {
	size_t size = 2 * MiB;
	char *p = mmap(0, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	memset(p, 7, size);
	begin();
	for (int i = 0; i < STEPS; i++, step()) {
		p = mremap(p, size, size + MiB / 2, MREMAP_MAYMOVE);
		memset(p + size, 7, MiB / 2);
		size += MiB / 2;
	}
	end();
}
