// Mappings made by a system call of its own, as libraries do that watch mmap.
#include "pace.h"
NOINLINE void *grow_pool(size_t bytes) {
  void *p = (void *)syscall(SYS_mmap, 0, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  must(p != MAP_FAILED, "mmap");
  memset(p, 1, bytes);
  return p;
}
NOINLINE int serve_one(size_t bytes) { return *(char *)grow_pool(bytes); }
int main(void) {
  begin();
  for (;;) {
    serve_one(151552);
    pace(151552);
  }
}
