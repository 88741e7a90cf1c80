// Data that waits in sockets: the kernel's memory.
#include "pace.h"
#include <sys/resource.h>
NOINLINE size_t fill_socket(void) {
  static char data[64 << 10];
  int fds[2], room = 1 << 20;
  must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, fds) == 0, "socketpair");
  setsockopt(fds[0], SOL_SOCKET, SO_SNDBUF, &room, sizeof room);
  size_t sent = 0;
  for (ssize_t n; (n = write(fds[0], data, sizeof data)) > 0;) sent += n;
  return sent;
}
int main(void) {
  struct rlimit files;
  getrlimit(RLIMIT_NOFILE, &files);
  files.rlim_cur = files.rlim_max;
  setrlimit(RLIMIT_NOFILE, &files);
  begin();
  for (;;) pace(fill_socket());
}
