package cli

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strandline/internal/test/live"
)

// TestAction runs the script of the GitHub action as GitHub does, with a program in the
// place of strandline that states its arguments and ends with some status.
func TestAction(t *testing.T) {
	live.Waits(t)
	live.Linux(t)
	bash := live.Tool(t, "bash")
	text, err := os.ReadFile("../.github/actions/check/action.yml")
	if err != nil {
		t.Fatal(err)
	}
	_, step, _ := strings.Cut(string(text), "- id: check\n")
	_, block, ok := strings.Cut(step, "run: |\n")
	if !ok {
		t.Fatal("the action has no script")
	}
	var script strings.Builder
	for line := range strings.Lines(block) {
		script.WriteString(strings.TrimPrefix(line, "        "))
	}
	work := t.TempDir()
	program := filepath.Join(work, "strandline")
	if err := os.WriteFile(program, []byte("#!/bin/sh\nprintf '%s\\n' \"$@\" > args\nexit \"$(cat status)\"\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	const command = `python -c "import soak"`
	for _, c := range []struct {
		options, status string
		want            []string // of the options; nil if it is not run
		exit            int
	}{
		{"", "0", []string{}, 0},
		{"--max-growth 4KiB/step  --baseline memory.json", "1", []string{"--max-growth", "4KiB/step", "--baseline", "memory.json"}, 1},
		{"--step-line '^step [0-9]+'\n--warmup 20\n", "125", []string{"--step-line", "^step [0-9]+", "--warmup", "20"}, 0},
		{`--step-line "it's \\d+ $HOME *" --metric host`, "4", []string{"--step-line", `it's \\d+ $HOME *`, "--metric", "host"}, 4},
		{`--step-line ^a\ b '--ab' ''  -o x`, "0", []string{"--step-line", "^a b", "--ab", "", "-o", "x"}, 0},
		{"--step-line '^step", "0", nil, 2},
	} {
		os.Remove(filepath.Join(work, "args"))
		os.Remove(filepath.Join(work, "output"))
		if err := os.WriteFile(filepath.Join(work, "status"), []byte(c.status), 0o644); err != nil {
			t.Fatal(err)
		}
		run := exec.Command(bash, "--noprofile", "--norc", "-eo", "pipefail", "-c", script.String())
		run.Dir = work
		run.Env = append(os.Environ(), "STRANDLINE="+program, "OPTIONS="+c.options, "COMMAND="+command, "GITHUB_OUTPUT=output")
		out, err := run.CombinedOutput()
		var failed *exec.ExitError
		if err != nil && !errors.As(err, &failed) || run.ProcessState.ExitCode() != c.exit {
			t.Errorf("%q: %v, want %d; %s", c.options, err, c.exit, out)
		}
		args, _ := os.ReadFile(filepath.Join(work, "args"))
		if c.want == nil {
			if len(args) > 0 || !strings.Contains(string(out), "::error") {
				t.Errorf("%q: runs %q, prints %s", c.options, args, out)
			}
			continue
		}
		want := slices.Concat([]string{"check", "--format", "github"}, c.want, []string{"--", "bash", "-c", command})
		if got := strings.Split(strings.TrimSuffix(string(args), "\n"), "\n"); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", c.options, got, want)
		}
		if output, _ := os.ReadFile(filepath.Join(work, "output")); string(output) != "status="+c.status+"\n" {
			t.Errorf("%q: output %q", c.options, output)
		}
	}
}
