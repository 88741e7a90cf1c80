// Bursts of malloc, each freed before the next, each larger. The allocator that
// is put before libc keeps what is freed.
#include "pace.h"
int main(void) {
  begin();
  for (int n = 64;; n += 64) {
    char **blocks = malloc(n * sizeof *blocks);
    for (int i = 0; i < n; i++) memset(blocks[i] = malloc(64 << 10), 1, 64 << 10);
    for (int i = 0; i < n; i++) free(blocks[i]);
    free(blocks);
    pace(64 * (64 << 10));
  }
}
