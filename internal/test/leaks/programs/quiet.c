// Mappings and blocks that come and go: nothing grows.
#include "pace.h"
int main(void) {
  begin();
  for (;;) {
    char *p = mmap(0, 151552, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0), *q = malloc(5000);
    memset(p, 1, 151552);
    memset(q, 1, 5000);
    munmap(p, 151552);
    free(q);
    struct timespec t = {0, 1000000};
    nanosleep(&t, 0);
  }
}
