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

// actionScript is the script of a step of the action.
func actionScript(t *testing.T, step string) string {
	t.Helper()
	text, err := os.ReadFile("../.github/actions/check/action.yml")
	if err != nil {
		t.Fatal(err)
	}
	_, from, _ := strings.Cut(string(text), step)
	_, block, ok := strings.Cut(from, "run: |\n")
	if !ok {
		t.Fatal("the action has no script")
	}
	var script strings.Builder
	for line := range strings.Lines(block) {
		inside, ok := strings.CutPrefix(line, "        ")
		if !ok {
			break
		}
		script.WriteString(inside)
	}
	return script.String()
}

// TestActionDownloads runs the step that downloads a release, with a release in a folder.
func TestActionDownloads(t *testing.T) {
	live.Waits(t)
	live.Linux(t)
	bash, _, _ := live.Tool(t, "bash"), live.Tool(t, "curl"), live.Tool(t, "sha256sum")
	releases, name := t.TempDir(), "strandline_1.2.3_linux_arm64"
	folder := filepath.Join(releases, "v1.2.3")
	prepare := exec.Command(bash, "-ec", `mkdir "$0"; cd "$0"; mkdir "$1"; echo program > "$1/strandline"; echo other > "$1/LICENSE"
tar -czf "$1.tar.gz" "$1"; rm -r "$1"; sha256sum "$1.tar.gz" > SHA256SUMS; sha256sum SHA256SUMS | cut -d ' ' -f 1`, folder, name)
	sum, err := prepare.Output()
	if err != nil {
		t.Fatal(err)
	}
	script := actionScript(t, "if: inputs.strandline == ''\n")
	for _, c := range []struct {
		system, version, sum string
		damaged, works       bool
	}{
		{"Linux", "v1.2.3", "", false, true},
		{"Linux", "v1.2.3", strings.TrimSpace(string(sum)), false, true},
		{"Linux", "v1.2.3", strings.Repeat("0", 64), false, false},
		{"Linux", "v1.2.4", "", false, false},
		{"Windows", "v1.2.3", "", false, false},
		{"Linux", "v1.2.3", "", true, false}, // the last: it stays damaged
	} {
		if c.damaged {
			if err := os.WriteFile(filepath.Join(folder, name+".tar.gz"), []byte("damaged"), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		temp := t.TempDir()
		run := exec.Command(bash, "--noprofile", "--norc", "-eo", "pipefail", "-c", script)
		run.Env = append(os.Environ(), "RELEASES=file://"+releases, "VERSION="+c.version, "SHA256="+c.sum, "RUNNER_OS="+c.system, "RUNNER_ARCH=ARM64", "RUNNER_TEMP="+temp)
		out, err := run.CombinedOutput()
		program, _ := os.ReadFile(filepath.Join(temp, "strandline"))
		if (err == nil) != c.works || (string(program) == "program\n") != c.works {
			t.Errorf("%+v: %v, %q; %s", c, err, program, out)
		}
	}
}

// TestAction runs the script of the GitHub action as GitHub does, with a program in the
// place of strandline that states its arguments and ends with some status.
func TestAction(t *testing.T) {
	live.Waits(t)
	live.Linux(t)
	bash := live.Tool(t, "bash")
	script := actionScript(t, "- id: check\n")
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
		run := exec.Command(bash, "--noprofile", "--norc", "-eo", "pipefail", "-c", script)
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
