package cli

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"strandline/finding"
	"strandline/internal/test/leaks"
	"strandline/internal/test/live"
)

// apartFrom are programs whose growth is no leak of the process, or is not in its resident memory,
// which a watch sees alone.
var apartFrom = []string{"page-cache", "file-mapping", "copy-on-write", "kernel", "thp", "memfd"}

// TestSameVerdict asks seven commands about the same programs. Each finds that a program leaks, or
// that it does not, and those that know the cause name the same one. The commands that they
// print are run.
func TestSameVerdict(t *testing.T) {
	live.Traces(t)
	live.Unraced(t, "it traces many programs, and starts no goroutine that others do not")
	timeout := live.Tool(t, "timeout")
	t.Parallel()
	tried := 0
	for _, p := range leaks.All() {
		if slices.Contains(apartFrom, p.Name) {
			continue
		}
		tried++
		t.Run(p.Name, func(t *testing.T) {
			t.Parallel()
			args := p.Command(t)
			pid, _ := live.Start(t, args[0], args[1:]...)
			v := &verdicts{program: p.Name, pid: strconv.Itoa(pid), printed: map[string]bool{}}
			traced, watched := filepath.Join(t.TempDir(), "a.trace"), filepath.Join(t.TempDir(), "a.strandline")
			watch := make(chan reply, 1)
			go func() { watch <- ask("watch", "--json", "--pid", v.pid, "--duration", "12s", "--out", watched) }()
			trace := ask("trace", "--json", "--pid", v.pid, "--duration", "10s", "--out", traced)
			if strings.Contains(trace.stderr, "only polling") {
				<-watch
				live.Missing(t, "BPF", strings.TrimSpace(trace.stderr))
			}
			v.judge(t, "trace --pid", trace, true)
			v.judge(t, "watch", <-watch, false)
			v.judge(t, "diagnose of the trace", ask("diagnose", "--json", traced), true)
			v.judge(t, "diagnose of the watch", ask("diagnose", "--json", watched), false)
			check := ask(append([]string{"check", "--json", "--at-most", "14s", "--"}, args...)...)
			if check.code == exitOK && p.Name != "quiet" { // on a busy machine it got little time
				check = ask(append([]string{"check", "--json", "--at-most", "40s", "--"}, args...)...)
			}
			v.judge(t, "check", check, true)
			v.refuse(t, "record --pid", ask("record", "--json", "--pid", v.pid, "--duration", "1s", "-o", filepath.Join(t.TempDir(), "recording")))
			v.judge(t, "trace --", ask(append([]string{"trace", "--json", "--", timeout, "10"}, args...)...), true)
			v.run(t)
		})
	}
	if tried < 10 {
		t.Errorf("%d programs", tried)
	}
}

// TestSameVerdictOfServer soaks a server, whose traffic lets two other commands judge it meanwhile.
func TestSameVerdictOfServer(t *testing.T) {
	live.Traces(t)
	live.Unraced(t, "it traces programs, and starts no goroutine that others do not")
	python := live.Tool(t, "python3")
	t.Parallel()
	for kind, program := range map[string]string{"objects": string(finding.PythonObjects), "steady": "quiet"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			pid, port := live.Start(t, python, "../bench/cases/programs/server.py", kind, "0")
			v := &verdicts{program: program, pid: strconv.Itoa(pid), printed: map[string]bool{}}
			answers := make(chan reply, 2)
			go func() { answers <- ask("trace", "--json", "--pid", v.pid, "--duration", "15s") }()
			go func() { answers <- ask("watch", "--json", "--pid", v.pid, "--duration", "15s") }()
			soak := ask("soak", "--json", "--url", "http://127.0.0.1:"+port+"/v1", "--requests", "60", "--settle", "300ms")
			v.judge(t, "soak", soak, true)
			for range cap(answers) {
				v.judge(t, "trace or watch", <-answers, false)
			}
			v.refuse(t, "record --pid", ask("record", "--json", "--pid", v.pid, "--duration", "1s", "-o", filepath.Join(t.TempDir(), "recording")))
			v.run(t)
		})
	}
}

// refuse compares the answer of a command that cannot judge a program: it says why, and which one
// can.
func (v *verdicts) refuse(t *testing.T, command string, a reply) {
	t.Helper()
	var doc struct{ Error string }
	if err := json.Unmarshal([]byte(a.stdout+a.stderr), &doc); err != nil || a.code == exitOK {
		t.Errorf("%s: exit status %d, %v: %s%s", command, a.code, err, a.stdout, a.stderr)
	}
	next := printedCommand.FindStringSubmatch(doc.Error)
	if next == nil {
		t.Fatalf("%s names no command that can: %s", command, doc.Error)
	}
	v.printed[next[1]] = true
}

// verdicts are what the commands say of a program.
type verdicts struct {
	program, pid string
	printed      map[string]bool // commands
}

// judge compares an answer with what the program does. A command that cannot judge yet, or whose
// program was ended by timeout before it grew enough, says so.
func (v *verdicts) judge(t *testing.T, command string, a reply, cause bool) {
	t.Helper()
	found, ok := documentOf(a.stdout)
	if !ok {
		t.Errorf("%s: exit status %d without a document: %s", command, a.code, a.stderr)
		return
	}
	for c := range commandsIn(found) {
		v.printed[c] = true
	}
	problems := slices.DeleteFunc(slices.Clone(found), func(f finding.Finding) bool { return f.Severity != finding.Problem })
	for _, f := range found {
		t.Logf("%s: %s %s: %s", command, f.Kind, f.Severity, f.Title)
	}
	if v.program == "quiet" {
		if len(problems) > 0 {
			t.Errorf("%s calls a quiet program a leak: %s", command, problems[0].Title)
		}
		return
	}
	if open := slices.ContainsFunc(found, func(f finding.Finding) bool { return f.Severity == finding.Warning }); len(problems) == 0 && !open && a.code != exitCannotJudge && a.code != exitCommand {
		t.Errorf("%s: %q has no leak: exit status %d", command, v.program, a.code)
	}
	for _, f := range problems {
		if kind := string(f.Kind); cause && kind != v.program && f.Kind != finding.Leak {
			t.Errorf("%s: %s is called %s: %s", command, v.program, kind, f.Title)
		}
	}
}

// run runs the commands that were printed, for a short time where they would watch. What they
// find is judged elsewhere.
func (v *verdicts) run(t *testing.T) {
	for command := range v.printed {
		args := strings.Fields(command)[1:]
		if slices.Contains(args, "PID") {
			t.Errorf("%q does not name the process, which is known", command)
			continue
		}
		switch args[0] {
		case "trace", "watch", "record":
			if !slices.Contains(args, "--duration") {
				args = slices.Insert(args, 1, "--duration", "1s")
			}
			for i := range args {
				if args[i] == "--duration" {
					args[i+1] = "1s"
				}
				if args[i] == "--out" || args[i] == "-o" {
					args[i+1] = filepath.Join(t.TempDir(), args[i+1])
				}
			}
		}
		if _, stderr, code := run(args...); code == exitUsage || code == exitCommand {
			t.Errorf("%q: exit status %d: %s", command, code, stderr)
		} else {
			t.Logf("%q: exit status %d", command, code)
		}
	}
}
