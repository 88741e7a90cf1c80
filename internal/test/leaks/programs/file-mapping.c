// A file that is mapped and read, as weights are.
#include "pace.h"
NOINLINE char *load(int fd, size_t from, size_t bytes) {
  char *p = mmap(0, bytes, PROT_READ, MAP_SHARED, fd, from);
  must(p != MAP_FAILED, "mmap");
  volatile char sum = 0;
  for (size_t i = 0; i < bytes; i += 4096) sum += p[i];
  return p;
}
int main(int argc, char **argv) {
  static char data[MIB];
  must(argc > 1, "the name of a file");
  int fd = open(argv[1], O_CREAT | O_TRUNC | O_RDWR, 0600);
  must(fd >= 0, argv[1]);
  unlink(argv[1]);
  for (size_t n = 0; n < most / 2; n += MIB) must(write(fd, data, MIB) == (ssize_t)MIB, "write");
  begin();
  for (size_t at = 0; at < most / 2; at += MIB) {
    load(fd, at, MIB);
    pace(MIB);
  }
  pause();
}
