package input

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestFolder opens of a folder only files that can hold memory data, and any file that is named.
func TestFolder(t *testing.T) {
	const (
		oom     = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has a total capacity of 79.00 GiB of which 1.00 GiB is free. Of the allocated memory 70.00 GiB is allocated by PyTorch, and 1.00 GiB is reserved by PyTorch but unallocated.\n"
		printed = "2026-11-28 10:00:00 ERROR worker ended\n" + oom
		page    = "# Exit codes\n\n```\n" + oom + "```\n\n## More\n"
		program = "import torch\n\ndef test_oom():\n    raise RuntimeError('" + oom + "')\n"
	)
	folder := t.TempDir()
	for name, text := range map[string]string{
		"job.log": printed, "job.out": oom, "slurm.txt": printed, "quiet.err": "nothing\n",
		"notes.txt": page, "sample.txt": oom, "README.md": page, "test_oom.py": program, "page.log": page, "LICENSE": printed, "model.safetensors": printed,
	} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	logs := func(paths ...string) (names []string) {
		files, err := OpenPaths(paths, Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer files.Close()
		for _, f := range files.List {
			in, err := f.Read(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if _, ok := in.(*Log); ok {
				names = append(names, filepath.Base(f.Path))
			}
		}
		return names
	}
	if got, want := logs(folder), []string{"job.log", "job.out", "slurm.txt"}; !slices.Equal(got, want) {
		t.Errorf("of a folder: %v, not %v", got, want)
	}
	for _, name := range []string{"README.md", "test_oom.py", "sample.txt", "LICENSE"} {
		if got := logs(filepath.Join(folder, name)); len(got) != 1 {
			t.Errorf("%s is not read though it is named", name)
		}
	}
}
