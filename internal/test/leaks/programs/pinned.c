// Memory that is locked, so that the system cannot take it.
#include "pace.h"
NOINLINE void pin(size_t bytes) {
  void *p = mmap(0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  must(p != MAP_FAILED && mlock(p, bytes) == 0, "mlock");
}
int main(void) {
  begin();
  for (;;) {
    pin(MIB);
    pace(MIB);
  }
}
