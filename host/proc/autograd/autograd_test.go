package autograd

import (
	"errors"
	"fmt"
	"testing"

	"strandline/host/code/image"
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

// tensors has three objects that stand for tensors in Python: of one that was computed, of one
// that was not, and of none.
const tensors = `
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
extern void *_ZTVN5torch8autograd9generated12AddBackward0E[], *_ZTVN5torch8autograd14AccumulateGradE[];
static void **words(int n, int at, void *to) {
  void **w = calloc(n, 8);
  w[0] = (void *)1;
  w[at] = to;
  return w;
}
static void **tensor(void **table) { return words(8, 3, words(12, 3, words(16, 6, words(4, 0, table + 2)))); }
int main() {
  void **of[3] = {tensor(_ZTVN5torch8autograd9generated12AddBackward0E), tensor(_ZTVN5torch8autograd14AccumulateGradE), words(8, 3, words(12, 2, words(8, 1, 0)))};
  printf("%lu %lu %lu\n", (unsigned long)of[0], (unsigned long)of[1], (unsigned long)of[2]);
  fflush(stdout);
  pause();
}
`

func TestKeeps(t *testing.T) {
	const library = library + "void *_ZTVN5torch8autograd14AccumulateGradE[8] = {0, 0, (void *)1};\n"
	pid, out := live.Start(t, live.Build(t, tensors, map[string]string{"torch_cpu": library}, "-fPIC"))
	var at [3]uint64
	if _, err := fmt.Sscan(out, &at[0], &at[1], &at[2]); err != nil {
		t.Fatalf("%q: %v", out, err)
	}
	files := image.NewFiles()
	defer files.Close()
	im, err := image.Open(procfs.Process(pid), files)
	if err != nil {
		t.Fatal(err)
	}
	defer im.Close()
	g := GraphsOf(im)
	if !g.Keeps(at[0]) || g.Keeps(at[1]) || g.Keeps(at[2]) || g.Keeps(0) {
		t.Errorf("%t %t %t of %x", g.Keeps(at[0]), g.Keeps(at[1]), g.Keeps(at[2]), at)
	}
}

func TestNoPyTorch(t *testing.T) {
	pid, _ := live.Start(t, live.Build(t, `#include <unistd.h>
int main() { write(1, "ready\n", 6); pause(); }`, nil))
	if n, err := Nodes(procfs.Process(pid)); !errors.Is(err, errNone) {
		t.Errorf("%d nodes, %v", n, err)
	}
}
