// Bursts of malloc, each freed before the next. The allocator that is put before libc keeps what
// is freed, and reuses none of it: jemalloc does not split a free extent that is over 64 times
// larger than a request (lg_extent_max_active_fit).
#include "pace.h"
enum { BLOCKS = 128, SIZE = 64 << 10 };
int main(void) {
  begin();
  for (;;) {
    char *blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++) memset(blocks[i] = malloc(SIZE), 1, SIZE);
    for (int i = 0; i < BLOCKS; i++) free(blocks[i]);
    pace(BLOCKS * SIZE);
  }
}
