package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"strandline/internal/test/live"
)

// fakeSMI puts an nvidia-smi in the way that knows one device and some processes.
func fakeSMI(t *testing.T, used int, processes ...[2]int) {
	t.Helper()
	dir := t.TempDir()
	script := fmt.Sprintf("#!/bin/sh\ncase $1 in\n*gpu=*) echo '0, GPU-a, %d MiB, 81559 MiB' ;;\n*) ", used)
	for _, p := range processes {
		script += fmt.Sprintf("echo 'GPU-a, %d, %d MiB'; ", p[0], p[1])
	}
	if err := os.WriteFile(filepath.Join(dir, "nvidia-smi"), []byte(script+";;\nesac\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	if err := os.WriteFile(filepath.Join(dir, "libnvidia-ml.so.1"), []byte("the driver's is not asked"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LD_LIBRARY_PATH", dir)
}

// watchedProcess is of the document what the tests look at.
type watchedProcess struct {
	PID     int
	Command string
	Host    struct {
		Anonymous int64 `json:"anonymous_bytes"`
	}
	Devices []struct {
		Used      int64  `json:"used_bytes"`
		Allocated *int64 `json:"allocated_bytes"`
	}
}

type watchedDocument struct {
	Schema    string
	Processes []watchedProcess
	Devices   []struct {
		Remainder *int64 `json:"remainder_bytes"`
	}
	Findings []any
}

// untilDevices runs a watch, longer and longer until it has seen the devices.
func untilDevices(t *testing.T, args ...string) string {
	t.Helper()
	live.Waits(t)
	for d := 50 * time.Millisecond; ; d *= 2 {
		stdout, stderr, code := run(append(args, "--interval", "10ms", "--duration", d.String())...)
		if code > exitProblem {
			t.Fatalf("exit status %d: %s", code, stderr)
		}
		if strings.Contains(stdout, `"remainder_bytes":`) || strings.Contains(stdout, "not attributed to any process") {
			return stdout
		}
	}
}

// TestWatchAsksTheLibrary has a library in place of the driver's.
func TestWatchAsksTheLibrary(t *testing.T) {
	live.Waits(t)
	live.Linux(t)
	cc := live.Tool(t, "gcc") // builds the library in place of the driver's
	dir := t.TempDir()
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-w", "-o", filepath.Join(dir, "libnvidia-ml.so.1"), "../host/gpu/nvml/testdata/fake.c").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	says := fmt.Sprintf("device GPU-a X 1000 0 900 100\ndevice GPU-b X 1000 0 900 100\ninstance MIG-x X 1000 700 300 0\nprocess compute %d 600\n", os.Getpid())
	if err := os.WriteFile(filepath.Join(dir, "says"), []byte(says), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("LD_LIBRARY_PATH", dir)
	t.Setenv("FAKE_NVML", filepath.Join(dir, "says"))
	lines := strings.Split(strings.TrimSpace(untilDevices(t, "watch", "--json")), "\n")
	var doc watchedDocument
	if err := json.Unmarshal([]byte(lines[len(lines)-1]), &doc); err != nil {
		t.Fatal(err)
	}
	own := slices.IndexFunc(doc.Processes, func(p watchedProcess) bool { return p.PID == os.Getpid() }) // among those that others record
	if own < 0 || len(doc.Processes[own].Devices) != 1 || doc.Processes[own].Devices[0].Used != 600 {
		t.Errorf("processes %+v", doc.Processes)
	}
	if len(doc.Devices) != 3 || doc.Devices[1].Remainder != nil || doc.Devices[2].Remainder == nil || *doc.Devices[2].Remainder != 100 {
		t.Errorf("devices %+v", doc.Devices)
	}
	text := untilDevices(t, "watch")
	if !strings.Contains(text, "device 0: 0 B of 1000 B used, 0 B not attributed to any process, 100 B reserved by the driver\n") ||
		!strings.Contains(text, "device 1 part 0: 700 B of 1000 B used, 100 B not attributed to any process\n") {
		t.Error(text)
	}
}

func TestWatch(t *testing.T) {
	live.Waits(t)
	live.Linux(t)
	own := os.Getpid()
	fakeSMI(t, 1000, [2]int{own, 600}, [2]int{1 << 29, 300})
	lines := strings.Split(strings.TrimSpace(untilDevices(t, "watch", "--json")), "\n")
	var doc watchedDocument
	for i, line := range lines {
		doc = watchedDocument{}
		if err := json.Unmarshal([]byte(line), &doc); err != nil {
			t.Fatalf("line %d: %v: %s", i, err, line)
		}
		if want := "strandline.sample/1"; i < len(lines)-1 && doc.Schema != want {
			t.Errorf("line %d: schema %s", i, doc.Schema)
		}
	}
	i := slices.IndexFunc(doc.Processes, func(p watchedProcess) bool { return p.PID == own })
	if len(lines) < 2 || doc.Schema != "strandline.watch/1" || i < 0 || doc.Findings == nil {
		t.Fatalf("%d lines, the last is %s", len(lines), lines[len(lines)-1])
	}
	p := doc.Processes[i]
	if p.Command == "" || p.Host.Anonymous <= 0 || len(p.Devices) != 1 || p.Devices[0].Used != 600<<20 || p.Devices[0].Allocated != nil {
		t.Errorf("%+v", p)
	}
	if d := doc.Devices; len(d) != 1 || d[0].Remainder == nil || *d[0].Remainder != 100<<20 {
		t.Errorf("devices %+v", d)
	}
}

func TestWatchText(t *testing.T) {
	live.Waits(t)
	live.Linux(t)
	fakeSMI(t, 1000, [2]int{os.Getpid(), 600})
	stdout := untilDevices(t, "watch", "--pid", fmt.Sprint(os.Getpid()))
	for _, want := range []string{fmt.Sprintf("pid %d", os.Getpid()), "0: 600 MiB", "device 0: 1000 MiB of 79.6 GiB used", "watched for"} {
		if !strings.Contains(stdout, want) {
			t.Errorf("%q is missing in\n%s", want, stdout)
		}
	}
}

func TestWatchUsage(t *testing.T) {
	for args, want := range map[string]string{
		"--pid 0":                    "--pid 0 is not a process ID",
		"--pid 999999999":            "999999999",
		"--duration 0s":              "want a time above 0",
		"--interval 1ms":             "want at least 10ms",
		"--pid 1 --duration forever": "--duration",
		"something":                  "takes only flags",
	} {
		_, stderr, code := run(append([]string{"watch"}, strings.Fields(args)...)...)
		if code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit status %d: %s", args, code, stderr)
		}
	}
}

// TestWatchRecording judges a recording that a watch wrote, once it has a leak.
func TestWatchRecording(t *testing.T) {
	live.Waits(t)
	live.Linux(t)
	path := filepath.Join(t.TempDir(), "run.strandline")
	own := fmt.Sprint(os.Getpid())
	for range 2 { // the second goes on with the file
		if _, stderr, code := run("watch", "--pid", own, "--duration", "30ms", "--interval", "10ms", "--out", path); code > exitProblem || stderr != "" {
			t.Fatalf("exit status %d: %s", code, stderr)
		}
	}
	stdout, stderr, code := run("diagnose", path, "--json")
	var doc struct {
		Schema, Verdict string
		Processes       []struct{ Basis []string }
	}
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil || code > exitProblem || stderr != "" {
		t.Fatalf("exit status %d: %s %s %v", code, stdout, stderr, err)
	}
	if doc.Schema != "strandline.diagnose/1" || len(doc.Processes) != 1 || !strings.Contains(doc.Processes[0].Basis[0], "samples") {
		t.Errorf("%s", stdout)
	}
	if stdout, _, _ = run("diagnose", path); !strings.Contains(stdout, "pid") || !strings.Contains(stdout, own) {
		t.Errorf("the text is %s", stdout)
	}
	for _, args := range [][]string{{"diagnose", path, path}, {"view", path, path, "--no-open"}} {
		if _, stderr, code := run(args...); code != exitUsage || !strings.Contains(stderr, "recording of a watch") {
			t.Errorf("%v: exit status %d: %s", args, code, stderr)
		}
	}
	if _, stderr, code := run("view", path, "--redact", "both"); code != exitUsage || !strings.Contains(stderr, "--redact is for snapshots") {
		t.Errorf("names of a recording: exit status %d: %s", code, stderr)
	}
	if err := os.WriteFile(path, []byte("precious"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, stderr, code := run("watch", "--pid", own, "--duration", "10ms", "--out", path); code != exitUsage || !strings.Contains(stderr, "left alone") {
		t.Errorf("another file: exit status %d: %s", code, stderr)
	}
}

// onFirst calls a function at the first write.
type onFirst struct {
	strings.Builder
	do func()
}

func (w *onFirst) Write(b []byte) (int, error) {
	if w.Len() == 0 {
		w.do()
	}
	return w.Builder.Write(b)
}

// startCat starts a process that runs until end closes its input and waits for it.
func startCat(t *testing.T) (cat *exec.Cmd, end func()) {
	t.Helper()
	cat = exec.Command("cat")
	in, err := cat.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cat.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cat.Process.Kill() })
	return cat, func() { in.Close(); cat.Wait() }
}

// TestWatchEnds interrupts a watch, and ends the process that it watches.
func TestWatchEnds(t *testing.T) {
	live.Waits(t)
	live.Linux(t)
	ctx, interrupt := context.WithCancel(t.Context())
	cat, end := startCat(t)
	for _, c := range []struct {
		pid  int
		do   func()
		want int
	}{{os.Getpid(), interrupt, exitInterrupted}, {cat.Process.Pid, end, exitOK}} {
		out, messages := &onFirst{do: c.do}, &strings.Builder{}
		args := []string{"watch", "--pid", fmt.Sprint(c.pid), "--json", "--duration", "1h", "--interval", "10ms"}
		code := Main(&Env{args: args, stdin: strings.NewReader(""), stdout: out, stderr: messages, context: ctx, getenv: func(string) string { return "" }})
		if code != c.want || !strings.Contains(out.String(), "strandline.watch/1") || messages.Len() > 0 {
			t.Errorf("exit status %d, want %d: %s %s", code, c.want, out.String(), messages.String())
		}
		ctx = t.Context()
	}
}
