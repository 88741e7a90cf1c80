// Files in memory that are held open and not mapped: in no process's RSS.
#include "pace.h"
NOINLINE void hold(size_t bytes) {
  static char data[MIB];
  int fd = memfd_create("held", 0);
  must(fd >= 0, "memfd_create");
  memset(data, 1, sizeof data);
  for (size_t n = 0; n < bytes; n += sizeof data) must(write(fd, data, sizeof data) == sizeof data, "write");
}
int main(void) {
  begin();
  for (;;) {
    hold(MIB);
    pace(MIB);
  }
}
