package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"strandline/finding"
	"strandline/internal/test/live"
)

// TestPrintedCommandsRun runs each command that the findings on examples and on tables of PyTorch
// tell a person to run. What the input cannot know is filled in: a process, a script.
func TestPrintedCommandsRun(t *testing.T) {
	live.Sequential(t)
	python := live.Tool(t, "python3")
	t.Chdir("..")
	inputs, err := filepath.Glob("examples/*")
	if err != nil {
		t.Fatal(err)
	}
	tables, err := filepath.Glob("logs/testdata/*.txt")
	if err != nil {
		t.Fatal(err)
	}
	script := filepath.Join(t.TempDir(), "train.py")
	if err := os.WriteFile(script, []byte("print('done')\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	ran := map[string]bool{}
	for _, input := range append(inputs, tables...) {
		a := ask("diagnose", "--json", input)
		found, ok := documentOf(a.stdout)
		if !ok {
			continue // the folder has none of its own
		}
		screen := ask("diagnose", input)
		commands := commandsIn(found)
		for c := range commandsIn([]finding.Finding{{Detail: []string{withoutLabels(screen.stdout)}}}) {
			commands[c] = true
		}
		for command := range commands {
			if ran[command] {
				continue
			}
			ran[command] = true
			if strings.Contains(command, "TRAIN.py") && namesScript(found) {
				t.Errorf("%s: %q, though the stacks name the program", input, command)
			}
			args := strings.Fields(command)[1:]
			switch {
			case slices.Contains(args, "PID"), args[0] == "check" && slices.Contains(args, "COMMAND"):
				continue // those of processes are run by TestSameVerdict
			case args[0] == "record":
				at := slices.Index(args, "python")
				if at < 2 || args[at-1] != "--" {
					t.Fatalf("%s: %q", input, command)
				}
				args = slices.Concat([]string{"record", "-o", filepath.Join(t.TempDir(), "recording")}, args[1:at], []string{python, script})
			}
			if _, stderr, code := run(args...); code != exitOK && code != exitProblem && code != exitPartial {
				t.Errorf("%s: %q: exit status %d: %s", input, command, code, stderr)
			}
		}
	}
	if len(ran) < 20 {
		t.Errorf("%d commands", len(ran))
	}
}

// withoutLabels is a screen whose lines begin with what a person pastes.
func withoutLabels(screen string) string {
	const indent = 6
	var out strings.Builder
	for line := range strings.Lines(screen) {
		if len(line) > indent && (strings.HasPrefix(line, "NEXT ") || strings.HasPrefix(line, "FIX ")) {
			line = line[indent:]
		}
		out.WriteString(line)
	}
	return out.String()
}

// namesScript reports whether the stacks of findings begin in a program's own file.
func namesScript(found []finding.Finding) bool {
	return slices.ContainsFunc(found, func(f finding.Finding) bool {
		return slices.ContainsFunc(f.Stack, func(x finding.Frame) bool {
			return x.Function == "<module>" && strings.HasSuffix(x.File, ".py") && !strings.Contains(x.File, "-packages/")
		})
	})
}

// A reply is a command with what it printed.
type reply struct {
	stdout, stderr string
	code           int
}

// ask runs a command.
func ask(args ...string) (a reply) {
	a.stdout, a.stderr, a.code = run(args...)
	return a
}

// documentOf are the findings of the last JSON document of an output.
func documentOf(stdout string) (found []finding.Finding, ok bool) {
	dec := json.NewDecoder(strings.NewReader(stdout))
	for {
		var doc struct {
			Findings []finding.Finding
			Runs     []struct{ Findings []finding.Finding }
		}
		if dec.Decode(&doc) != nil {
			return found, ok
		}
		found, ok = doc.Findings, true
		for _, r := range doc.Runs {
			found = append(found, r.Findings...)
		}
	}
}

var printedCommand = regexp.MustCompile("`(strandline [^`]+)`")

// commandsIn are the commands of strandline that findings tell a person to run.
func commandsIn(found []finding.Finding) map[string]bool {
	out := map[string]bool{}
	add := func(text string) {
		for line := range strings.Lines(text) {
			line, _, _ = strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "sudo "), "   #")
			if strings.HasPrefix(line, "strandline ") {
				out[strings.TrimSpace(line)] = true
			}
		}
		for _, m := range printedCommand.FindAllStringSubmatch(text, -1) {
			out[m[1]] = true
		}
	}
	for _, f := range found {
		for _, text := range append([]string{f.Brief.Next, f.Brief.Fact, f.Title}, f.Detail...) {
			add(text)
		}
		for _, r := range f.Remedies {
			add(r.Setting)
			add(r.Text)
			add(r.Detail)
		}
	}
	return out
}
