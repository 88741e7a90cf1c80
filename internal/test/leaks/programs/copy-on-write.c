// A child that writes to what it shares with its parent: each page becomes its
// own. The RSS of neither grows. It prints the number of the child.
#include "pace.h"
#include <sys/prctl.h>
int main(void) {
  char *p = malloc(most / 2);
  memset(p, 1, most / 2);
  pid_t child = fork();
  must(child >= 0, "fork");
  if (child) {
    printf("%d\n", child);
    fflush(stdout);
    pause();
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  for (size_t at = 0; at < most / 2; at += MIB) {
    for (size_t i = 0; i < MIB; i += 4096) p[at + i] = 2;
    pace(MIB);
  }
  pause();
}
