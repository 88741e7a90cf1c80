package autograd

import (
	"errors"
	"testing"

	"strandline/host/proc/procfs"
	"strandline/internal/test/live"
)

// library exports the tables of two classes as PyTorch does, of which one is of nodes.
const library = `
void *_ZTVN5torch8autograd9generated12AddBackward0E[8] = {0, 0, (void *)1};
void *_ZTVN5torch8autograd12AutogradMetaE[8] = {0, 0, (void *)1};
`

// keeper makes 30,000 nodes, frees a third of them, and has as many other objects.
const keeper = `
#include <stdlib.h>
#include <unistd.h>
extern void *_ZTVN5torch8autograd9generated12AddBackward0E[], *_ZTVN5torch8autograd12AutogradMetaE[];
int main() {
  enum { N = 30000 };
  static void **nodes[N];
  for (int i = 0; i < N; i++) {
    *(nodes[i] = malloc(200)) = _ZTVN5torch8autograd9generated12AddBackward0E + 2;
    *(void **)malloc(50) = _ZTVN5torch8autograd12AutogradMetaE + 2;
  }
  for (int i = 0; i < N; i += 3) free(nodes[i]);
  write(1, "ready\n", 6);
  pause();
}
`

func TestNodes(t *testing.T) {
	pid, _ := live.Start(t, live.Build(t, keeper, map[string]string{"torch_cpu": library}, "-fPIC"))
	n, err := Nodes(procfs.Process(pid))
	if err != nil || n != 20000 { // the tables are those of the library: nothing is copied into the program
		t.Errorf("%d nodes, %v; want 20000", n, err)
	}
}

func TestNoPyTorch(t *testing.T) {
	pid, _ := live.Start(t, live.Build(t, `#include <unistd.h>
int main() { write(1, "ready\n", 6); pause(); }`, nil))
	if n, err := Nodes(procfs.Process(pid)); !errors.Is(err, errNone) {
		t.Errorf("%d nodes, %v", n, err)
	}
}
