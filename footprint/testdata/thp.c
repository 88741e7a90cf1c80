// One byte in each huge page.
#include "common.h"
int main(void) {
	size_t size = 2 * MiB * STEPS / 2;
	char *p = mmap(0, size + 2 * MiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	p = (char *)(((size_t)p + 2 * MiB - 1) & ~(size_t)(2 * MiB - 1));
	madvise(p, size, MADV_HUGEPAGE);
	begin();
	for (int i = 0; i < STEPS / 2; i++, step()) p[2 * MiB * (size_t)i] = 1;
	end();
}
