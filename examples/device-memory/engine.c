/* gcc -shared -fPIC -o libengine.so engine.c -lcudart */
#include <stddef.h>

int cudaMalloc(void **, size_t);

/* Takes device memory past PyTorch, and keeps it. */
void *grow_workspace(size_t bytes) {
  void *p;
  return cudaMalloc(&p, bytes) ? NULL : p;
}
