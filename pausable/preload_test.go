package pausable

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"strandline/internal/test/live"
)

// TestPreload has the embedded library replace cudaMalloc in a program; see
// testdata/preloaded.c.
func TestPreload(t *testing.T) {
	t.Parallel()
	library, err := Library()
	if err != nil {
		live.Missing(t, "Linux", err)
	}
	gcc, dir := live.Tool(t, "gcc"), t.TempDir()
	in := func(name string) string { return filepath.Join(dir, name) }
	if err := os.WriteFile(in(Name), library, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"-shared", "-Wl,-soname,libcuda.so.1", "testdata/fake.c", "-o", in("libcuda.so.1"), "-lpthread", "-ldl"},
		{"-shared", "-Wl,-soname,libcudart.so.12", "testdata/runtime.c", "-o", in("libcudart.so.12")},
		{"-shared", "testdata/preloaded.c", "-o", in("loaded.so"), "-L" + dir, "-l:libcudart.so.12", "-ldl", "-lpthread"},
		{"-DMAIN", "testdata/preloaded.c", "-o", in("program"), "-ldl", "-lpthread"},
	} {
		args = append([]string{"-std=gnu11", "-O1", "-Wall", "-Wextra", "-Werror", "-fPIC"}, args...)
		if out, err := exec.Command(gcc, args...).CombinedOutput(); err != nil {
			t.Fatalf("gcc %s: %v\n%s", args, err, out)
		}
	}
	preload := "LD_PRELOAD=" + in(Name)
	for _, c := range []struct {
		name, argument string
		env            []string
		code           int
	}{
		{"a region", "region", []string{preload}, 0},
		{"not asked for", "region", []string{preload, "TMS_INIT_ENABLE=0", "TMS_INIT_ENABLE_CPU_BACKUP=1"}, 0},
		{"from the start", "start", []string{preload, "TMS_INIT_ENABLE=1"}, 0},
		{"with a backup", "backup", []string{preload, "TMS_INIT_ENABLE=true", "TMS_INIT_ENABLE_CPU_BACKUP=yes"}, 0},
		{"in pageable memory", "backup", []string{preload, "TMS_INIT_ENABLE=1", "TMS_INIT_ENABLE_CPU_BACKUP=1", "TMS_INIT_CPU_BACKUP_BACKEND=mmap"}, 0},
		{"in a file", "backup", []string{preload, "TMS_INIT_ENABLE=1", "TMS_INIT_ENABLE_DISK_BACKUP=1", "TMS_DISK_BACKUP_DIR=" + dir}, 0},
		{"nothing preloaded", "region", nil, 3},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			program := exec.Command(in("program"), in("loaded.so"), c.argument)
			program.Env = append(os.Environ(), append(c.env, "LD_LIBRARY_PATH="+dir)...)
			out, err := program.CombinedOutput()
			var exit *exec.ExitError
			if err != nil && !errors.As(err, &exit) {
				t.Fatal(err)
			}
			if code := program.ProcessState.ExitCode(); code != c.code {
				t.Errorf("it ended with %d, %v\n%s", code, err, out)
			}
		})
	}
}
