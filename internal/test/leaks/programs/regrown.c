// One buffer that is mapped anew and copied, larger each time.
#include "pace.h"
NOINLINE char *append(char *p, size_t from, size_t to) {
  char *next = mmap(0, to, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  must(next != MAP_FAILED, "mmap");
  memcpy(next, p, from);
  memset(next + from, 1, to - from);
  munmap(p, from);
  return next;
}
int main(void) {
  char *p = mmap(0, MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  must(p != MAP_FAILED, "mmap");
  memset(p, 1, MIB);
  begin();
  for (size_t size = MIB;; size += MIB) {
    p = append(p, size, size + MIB);
    pace(MIB);
  }
}
