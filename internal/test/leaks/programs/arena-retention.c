// Threads that free nearly all that they allocated: what they keep holds the
// memory of their arenas. Each thread stays, so that the next has another arena.
// Little is in use at any time, whenever one looks.
#include "pace.h"
#include <malloc.h>
#include <semaphore.h>
enum { BLOCKS = 4000 };
static sem_t freed;
static void *burst(void *unused) {
  void **kept = malloc(BLOCKS * sizeof *kept);
  for (int i = 0; i < BLOCKS; i++) memset(kept[i] = malloc(1024), 1, 1024);
  for (int i = 0; i < BLOCKS; i++) if (i % 64) free(kept[i]);
  sem_post(&freed);
  pause();
  return unused;
}
int main(void) {
  mallopt(M_ARENA_MAX, 1000);
  sem_init(&freed, 0, 0);
  begin();
  for (;;) {
    pthread_t t;
    must(pthread_create(&t, 0, burst, 0) == 0, "pthread_create");
    sem_wait(&freed);
    pace(BLOCKS * 1024);
  }
}
