//go:build unix

package cli

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"strandline/internal/test/live"
)

// TestHostileFiles runs every command on small files that once made one hang, panic
// or take gigabytes.
func TestHostileFiles(t *testing.T) {
	live.Sequential(t)
	names, err := filepath.Glob("testdata/hostile/*")
	if err != nil || len(names) == 0 {
		t.Fatalf("there are no files (%v)", err)
	}
	dir := t.TempDir()
	for _, name := range names {
		for _, command := range snapshotCommands {
			args := strings.Fields(strings.NewReplacer("FILE", name, "DIR", dir).Replace(command))
			stdout, stderr, code := run(args...)
			if code < 0 || code > exitPartial {
				t.Errorf("%v: exit status %d: %s", args, code, stderr)
			}
			if strings.Contains(stdout, "-9,223,372") || strings.Contains(stdout, " -8,388,608 TiB") {
				t.Errorf("%v: a sum has overflowed: %s", args, stdout)
			}
			if n := len(stdout) + len(stderr); n > mutantOutput {
				t.Errorf("%v prints %d bytes", args, n)
			}
		}
	}
}

// FuzzDiagnose judges any bytes, as `strandline diagnose FILE` does: nothing may
// panic, and the time and the memory may not grow beyond the bytes. A file of n
// bytes may take 2 s and 100 µs a byte, and the program may allocate, all in all,
// 256 MiB and 8 KiB a byte: a packed byte can hold twenty events, each of which is
// looked at by every detector. The time is looked at where STRANDLINE_TIMED is set.
func FuzzDiagnose(f *testing.F) {
	live.Sequential(f)
	for _, pattern := range []string{"testdata/hostile/*", "../torch/snapshot/testdata/w*", "../torch/replay/testdata/*.json", "../examples/munmap-leak/server.trace", "../logs/testdata/*"} {
		names, _ := filepath.Glob(pattern)
		for _, name := range names {
			if data, err := os.ReadFile(name); err == nil && len(data) < 50_000 {
				f.Add(data)
			}
		}
	}
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, data []byte) {
		file := filepath.Join(dir, "file")
		if err := os.WriteFile(file, data, 0o666); err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		began := spent()
		var out, messages counted
		code := Main(&Env{args: []string{"diagnose", file}, stdin: strings.NewReader(""), stdout: &out, stderr: &messages, getenv: func(string) string { return "" }})
		runtime.ReadMemStats(&after)
		if code < 0 || code > exitPartial {
			t.Errorf("exit status %d", code)
		}
		if got, bound := after.TotalAlloc-before.TotalAlloc, uint64(256<<20+8<<10*len(data)); got > bound {
			t.Errorf("%d bytes of input make it allocate %d, not %d at most", len(data), got, bound)
		}
		if n := out.n + messages.n; n > mutantOutput+10*len(data) {
			t.Errorf("%d bytes of input make it print %d", len(data), n)
		}
		// Tests are not timed: a machine may do other things. A fuzzer's run is.
		if took, bound := spent()-began, mutantTime+time.Duration(len(data))*100*time.Microsecond; took > bound && os.Getenv("STRANDLINE_TIMED") != "" {
			t.Errorf("%d bytes of input take %v, not %v at most", len(data), took, bound)
		}
	})
}
