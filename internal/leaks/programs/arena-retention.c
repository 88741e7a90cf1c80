// Threads that free nearly all that they allocated: what they keep holds the
// memory of their arenas. Each thread stays, so that the next has another arena.
#include "pace.h"
enum { BLOCKS = 16000 };
static void *burst(void *unused) {
  void **kept = malloc(BLOCKS * sizeof *kept);
  for (int i = 0; i < BLOCKS; i++) memset(kept[i] = malloc(1024), 1, 1024);
  for (int i = 0; i < BLOCKS; i++) if (i % 64) free(kept[i]);
  pause();
  return unused;
}
int main(void) {
  begin();
  for (;;) {
    pthread_t t;
    must(pthread_create(&t, 0, burst, 0) == 0, "pthread_create");
    pace(BLOCKS * 1024);
  }
}
