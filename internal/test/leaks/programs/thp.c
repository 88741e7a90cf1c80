// Memory in huge pages of which little is touched.
#include "pace.h"
int main(void) {
  begin();
  char *p = mmap(0, most + 2 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  must(p != MAP_FAILED, "mmap");
  p = (char *)(((uintptr_t)p + 2 * MIB - 1) & ~(2 * MIB - 1));
  must(madvise(p, most, MADV_HUGEPAGE) == 0, "madvise");
  for (;;) {
    *p = 1;
    p += 2 * MIB;
    pace(2 * MIB);
  }
}
