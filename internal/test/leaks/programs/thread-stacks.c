// Threads that never end, with their stacks.
#include "pace.h"
static void *idle(void *unused) {
  volatile char used[200 << 10];
  memset((char *)used, 1, sizeof used);
  pause();
  return unused;
}
int main(void) {
  begin();
  for (int i = 0;; i++) {
    pthread_attr_t a;
    pthread_attr_init(&a);
    pthread_attr_setstacksize(&a, MIB);
    pthread_t t;
    must(pthread_create(&t, &a, idle, 0) == 0, "pthread_create");
    pace(MIB);
  }
}
