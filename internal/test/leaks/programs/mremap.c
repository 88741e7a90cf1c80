// One buffer that is made larger again and again.
#include "pace.h"
NOINLINE char *enlarge(char *p, size_t from, size_t to) {
  p = mremap(p, from, to, MREMAP_MAYMOVE);
  must(p != MAP_FAILED, "mremap");
  memset(p + from, 1, to - from);
  return p;
}
int main(void) {
  char *p = mmap(0, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  must(p != MAP_FAILED, "mmap");
  memset(p, 1, MIB);
  begin();
  for (size_t size = MIB;; size += MIB) {
    p = enlarge(p, size, size + MIB);
    pace(MIB);
  }
}
