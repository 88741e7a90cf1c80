package cli

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
	"go.uber.org/goleak"

	"strandline/internal/test/live"
)

var update = flag.Bool("update", false, "rewrite the golden files, the output in the documentation and its picture")

func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == filtered { // by a trace of a command
		os.Exit(Main(Process()))
	}
	testscript.Main(tidy{m}, map[string]func(){
		"strandline": func() { os.Exit(Main(Process())) },
	})
}

// tidy runs the tests, and fails if one leaves a goroutine behind.
type tidy struct{ m *testing.M }

func (t tidy) Run() int {
	code := t.m.Run()
	if err := goleak.Find(); code == 0 && err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return code
}

// TestScripts runs the scripts that start no process but strandline, one after another.
func TestScripts(t *testing.T) {
	live.Sequential(t)
	scripts(t, "testdata/script")
}

// TestLiveScripts runs the scripts that start processes, or strandline in the background.
func TestLiveScripts(t *testing.T) {
	live.Waits(t)
	scripts(t, "testdata/live")
}

// scripts runs the scripts of a folder. Beside testscript's own commands there is
// `status N strandline ARG…`, which requires that exit status, and `serve`,
// `get` and `interrupt`; $DOCS is the folder of the pages, $EXAMPLES the folder of the examples, $SNAPSHOTS that
// of the reader's test files, $TABLES that of tables of memory_summary(), $LOGS
// that of compressed logs, $STANDIN that of the stand-in for PyTorch. [race] holds
// under the race detector.
func scripts(t *testing.T, dir string) {
	t.Helper()
	folders := map[string]string{"EXAMPLES": "../examples", "SNAPSHOTS": "../torch/snapshot/testdata", "TABLES": "../logs/testdata", "DOCS": "../docs", "LOGS": "testdata/logs", "STANDIN": "../record/testdata/standin"}
	for name, folder := range folders {
		path, err := filepath.Abs(folder)
		if err != nil {
			t.Fatal(err)
		}
		folders[name] = path
	}
	testscript.Run(t, testscript.Params{
		Dir: dir,
		Setup: func(env *testscript.Env) error {
			for name, path := range folders {
				env.Setenv(name, path)
			}
			// HOME is none there, and what lies in the folder of the test can be made by anyone.
			if cache, err := os.UserCacheDir(); err == nil {
				env.Setenv("XDG_CACHE_HOME", cache)
			}
			env.Values[served{}] = new(served)
			return nil
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"status":    wantStatus,
			"head":      head,
			"serve":     serve,
			"get":       get,
			"interrupt": interrupt,
		},
		Condition: func(name string) (bool, error) {
			if name != "race" {
				return false, fmt.Errorf("unknown condition %q", name)
			}
			return live.Raced, nil
		},
		RequireExplicitExec: true,
	})
}

func wantStatus(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: status N COMMAND ARG…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	got := 0
	if err := ts.Exec(args[1], args[2:]...); err != nil {
		var code *exec.ExitError
		if !errors.As(err, &code) {
			ts.Fatalf("%v", err)
		}
		got = code.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit status is %d, want %d", got, want)
	}
}

// head writes the first N bytes of a file to another.
func head(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 3 {
		ts.Fatalf("usage: head N FROM TO")
	}
	n, err := strconv.Atoi(args[0])
	ts.Check(err)
	data, err := os.ReadFile(ts.MkAbs(args[1]))
	ts.Check(err)
	ts.Check(os.WriteFile(ts.MkAbs(args[2]), data[:n], 0o666))
}

// run runs the program in this process, without a terminal.
func run(args ...string) (stdout, stderr string, code int) {
	return runWith(map[string]string{}, args...)
}

func runWith(environ map[string]string, args ...string) (stdout, stderr string, code int) {
	var out, err bytes.Buffer
	code = Main(&Env{args: args, stdin: bytes.NewReader(nil), stdout: &out, stderr: &err,
		getenv: func(name string) string { return environ[name] }})
	return out.String(), err.String(), code
}

// TestGolden compares whole outputs, short and long, exit statuses and messages with files.
// Paths are relative to the root of the repository.
func TestGolden(t *testing.T) {
	live.Sequential(t)
	golden, err := filepath.Abs("testdata/golden")
	if err != nil {
		t.Fatal(err)
	}
	t.Chdir("..")
	for _, c := range []struct {
		name string
		args []string
	}{
		{"diagnose-image-leak", []string{"diagnose", "examples/image-leak"}},
		{"diagnose-autograd-graph", []string{"diagnose", "examples/autograd-graph"}},
		{"diagnose-ranks", []string{"diagnose", "examples/ranks"}},
		{"diagnose-one-file", []string{"diagnose", "examples/autograd-graph/iter-60.pickle"}},
		{"compare-image-leak", []string{"compare", "examples/image-leak"}},
		{"compare-ranks", []string{"compare", "examples/ranks"}},
		{"compare-runs-gate", []string{"compare", "--runs", "examples/image-leak/step-2.pickle", "examples/image-leak/step-4.pickle", "--max-growth", "5%"}},
		{"simulate-replay", []string{"simulate", "examples/out-of-memory/oom.pickle"}},
		{"simulate-set", []string{"simulate", "examples/out-of-memory/oom.pickle", "--set", "expandable_segments:True", "--set", "", "--capacity", "3696MiB"}},
		{"simulate-search", []string{"simulate", "examples/peak/step-2.pickle", "--search"}},
		{"simulate-search-oom", []string{"simulate", "examples/out-of-memory/oom.pickle", "--search"}},
		{"simulate-change", []string{"simulate", "examples/peak/step-2.pickle", "--empty-cache", "every=1step", "--without", "w18_train.py"}},
		{"inspect-all", []string{"inspect", "examples/image-leak/step-4.pickle", "--at", "500", "--alloc", "500", "--pools"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			stdout, stderr, code := run(c.args...)
			long, _, _ := run(append(c.args, "-v")...)
			got := fmt.Sprintf("%s\n-- with -v\n%s\n-- stderr\n%s-- exit status %d\n", stdout, long, stderr, code)
			sameAsFile(t, filepath.Join(golden, c.name+".txt"), got)
		})
	}
}

// sameAsFile compares text with a file, or writes the file with -update.
func sameAsFile(t *testing.T, file, got string) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs; if that is meant, run go test ./cli -update. Got:\n%s\nwant:\n%s", filepath.Base(file), got, want)
	}
}

// TestNullIsNoTerminal checks that a watch whose output is thrown away, as that of a
// service, does not wait for keys from /dev/null and end.
func TestNullIsNoTerminal(t *testing.T) {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer null.Close()
	if isTerminal(null) {
		t.Error("the null device is taken for a terminal")
	}
}

// TestErrorsAsJSON prints names that terminals act on as escapes, in errors too.
func TestErrorsAsJSON(t *testing.T) {
	const name = "a\x1b[31m\u202e\u009b2J.pickle"
	_, stderr, code := run("diagnose", "--json", filepath.Join(t.TempDir(), name))
	var doc struct{ Error string }
	if err := json.Unmarshal([]byte(stderr), &doc); err != nil || code != exitUsage || !strings.Contains(doc.Error, name) {
		t.Errorf("exit status %d, %v: %s", code, err, stderr)
	}
	if strings.ContainsAny(stderr, "\x1b\u202e\u009b") {
		t.Errorf("it prints %q", stderr)
	}
}
