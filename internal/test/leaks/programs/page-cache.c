// A file that is written and not mapped. The system keeps it in its cache, which
// is charged to the control group and is in no process's RSS.
#include "pace.h"
int main(int argc, char **argv) {
  static char data[MIB];
  memset(data, 1, sizeof data);
  must(argc > 1, "the name of a file");
  int fd = open(argv[1], O_CREAT | O_TRUNC | O_RDWR, 0600);
  must(fd >= 0, argv[1]);
  unlink(argv[1]);
  begin();
  for (;;) {
    must(write(fd, data, MIB) == (ssize_t)MIB, "write");
    pace(MIB);
  }
}
