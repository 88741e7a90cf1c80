package cli

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCompareFailedLog compares the levels of a log that ends as memory runs out.
func TestCompareFailedLog(t *testing.T) {
	dir := t.TempDir()
	steps := strings.Repeat("step 1 loss 2.0 allocated 10.0 GiB reserved 16.0 GiB\n", 2000)
	const oom = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 24.00 GiB of which 2.00 GiB is free. Including non-PyTorch memory, this process has 22.00 GiB memory in use. Of the allocated memory 10.00 GiB is allocated by PyTorch, and 6.00 GiB is reserved by PyTorch but unallocated.\n"
	before, after := filepath.Join(dir, "before.log"), filepath.Join(dir, "after.log")
	for path, text := range map[string]string{before: steps + oom, after: strings.ReplaceAll(steps, "16.0", "12.0")} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, stderr, code := run("compare", before, after)
	if want := "SHRANK  reserved: peak 16 → 12 GiB (-4 GiB)"; code != 0 || !strings.HasPrefix(out, want) || !strings.Contains(out, "memory ran out in") {
		t.Errorf("status %d, %s%s", code, out, stderr)
	}
}
