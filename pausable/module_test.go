package pausable_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"strandline/internal/test/live"
	"strandline/pausable"
	"strandline/record"
)

// TestModule runs the Python module with the embedded library, on the driver of testdata
// and on a PyTorch that only has what the module calls.
func TestModule(t *testing.T) {
	t.Parallel()
	gcc, python := live.Tool(t, "gcc"), live.Tool(t, "python3")
	library, err := pausable.Library()
	if err != nil {
		live.Missing(t, "Linux", err)
	}
	dir := t.TempDir()
	for source, library := range map[string]string{"fake": "libcuda.so.1", "nvml": "libnvidia-ml.so.1"} {
		if out, err := exec.Command(gcc, "-std=gnu11", "-O1", "-fPIC", "-shared", "-Wl,-soname,"+library, "testdata/"+source+".c",
			"-o", filepath.Join(dir, library), "-lpthread", "-ldl").CombinedOutput(); err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
	}
	module := live.OwnFolder(t)
	for _, folder := range []string{module, dir} {
		if err := record.WriteModule(folder); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, "strandline", pausable.Name), library, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	run := exec.Command(python, "testdata/module.py")
	run.Env = append(os.Environ(), "PYTHONPATH="+module, "SHARED="+dir, "LD_LIBRARY_PATH="+dir, "TMPDIR="+dir, "PYTHONDONTWRITEBYTECODE=1")
	out, err := run.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if string(out) != "ok\n" {
		t.Errorf("it prints\n%s", out)
	}
}
