package cli

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"strandline/internal/test/live"
)

// A session is a fenced block of the documentation that shows a command and what
// it prints.
var session = regexp.MustCompile("(?ms)^```console\n\\$ strandline ([^\n]*)\n(.*?)^```$")

// example is a row of the table of examples: folder, verdict and exit status.
var example = regexp.MustCompile("(?m)^\\| \\[([a-z-]+)\\].*\\| `([a-z]+)`[^|]*\\| ([0-9]+) \\|$")

// TestExamples holds the table of examples against the program.
func TestExamples(t *testing.T) {
	t.Chdir("../examples")
	text, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	rows := example.FindAllStringSubmatch(string(text), -1)
	if len(rows) < 15 {
		t.Errorf("the table has %d rows", len(rows))
	}
	for _, row := range rows {
		files := []string{row[1]}
		if row[1] == "device-memory" {
			files = []string{"device-memory/server.trace", "device-memory/now.pickle"}
		}
		stdout, stderr, code := run(append([]string{"diagnose", "--json"}, files...)...)
		var doc struct{ Verdict string }
		if err := json.Unmarshal([]byte(stdout), &doc); err != nil {
			t.Errorf("%s: %v: %s", row[1], err, stderr)
		}
		if doc.Verdict != row[2] || strconv.Itoa(code) != row[3] {
			t.Errorf("%s: %s, exit status %d; the table has %s, %s", row[1], doc.Verdict, code, row[2], row[3])
		}
	}
}

// prompt is a line of the documentation that a person would type.
var prompt = regexp.MustCompile(`(?m)^ *\$ (.*)$`)

// notSessions are the beginnings of such lines that TestSessions does not run, and why.
var notSessions = map[string]string{
	"sqlite3 step-4.db ":                 "TestExportQueries asks them",
	"go tool pprof ":                     "the first time, Go builds pprof for several seconds",
	"strandline record -- python sum.py": "records a program, with PyTorch",
	"sudo strandline record":             "records a running process, as root",
	"sudo strandline doctor":             "inspects a running process, as root",
}

// TestSessions runs the commands that the documentation shows and compares their
// output with what is there.
func TestSessions(t *testing.T) {
	live.Sequential(t)
	t.Chdir("..")
	seen := 0
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, line := range prompt.FindAllStringSubmatch(session.ReplaceAllString(string(text), ""), -1) {
			known := func(start string) bool { return strings.HasPrefix(line[1], start) }
			if !slices.ContainsFunc(slices.Collect(maps.Keys(notSessions)), known) {
				t.Errorf("%s shows %q, which nothing runs", page, line[0])
			}
		}
		fresh := session.ReplaceAllStringFunc(string(text), func(block string) string {
			seen++
			command := session.FindStringSubmatch(block)[1]
			stdout, stderr, code := run(strings.Fields(command)...)
			if code > exitProblem && code != exitPartial {
				t.Errorf("%s: strandline %s: exit status %d: %s", page, command, code, stderr)
			}
			stdout = strings.ReplaceAll(stdout, "\r\n", "\n") // of CSV
			return "```console\n$ strandline " + command + "\n" + stdout + "```"
		})
		sameAsFile(t, page, fresh)
	}
	if seen < 48 {
		t.Errorf("the documentation shows %d sessions", seen)
	}
}

// asked is a command in the table of questions.
var asked = regexp.MustCompile("`strandline ([^`]+)`")

// TestQuestions runs the commands of the table of questions that need no process: those on
// examples, and plans.
func TestQuestions(t *testing.T) {
	live.Sequential(t)
	t.Chdir("..")
	text, err := os.ReadFile("docs/what-people-ask.md")
	if err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, line := range asked.FindAllStringSubmatch(string(text), -1) {
		if !strings.Contains(line[1], "examples/") && !strings.HasPrefix(line[1], "plan ") {
			continue
		}
		ran++
		if stdout, stderr, code := run(strings.Fields(line[1])...); code > exitProblem && code != exitPartial || stdout == "" {
			t.Errorf("strandline %s: exit status %d: %s", line[1], code, stderr)
		}
	}
	if ran < 15 || strings.Count(string(text), "\n| ") < 21 {
		t.Errorf("%d commands of the table ran", ran)
	}
}

func pages(t *testing.T) (out []string) {
	for _, pattern := range []string{"README.md", "CONTRIBUTING.md", "SECURITY.md", "deploy/*.md", "release/*.md", "docs/*.md", "docs/cases/*.md", "examples/*.md", "examples/*/*.md"} {
		found, err := filepath.Glob(pattern)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, found...)
	}
	if len(out) < 10 {
		t.Fatalf("found only the pages %v", out)
	}
	return out
}

var (
	link    = regexp.MustCompile(`\]\(([^)#]*)(#[^)]*)?\)`)
	heading = regexp.MustCompile(`(?m)^#+ (.*)$`)
	omitted = regexp.MustCompile(`[^\pL\pN _-]`) // of a heading, in the anchor that GitHub makes of it
)

// TestLinks looks for the files and the headings that pages link to.
func TestLinks(t *testing.T) {
	live.Sequential(t)
	t.Chdir("..")
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			to := page
			if m[1] != "" {
				to = filepath.Join(filepath.Dir(page), m[1])
			}
			if _, err := os.Stat(to); err != nil {
				t.Errorf("%s links to %s, which is not there", page, m[1])
			} else if m[2] != "" && !slices.Contains(anchors(t, to), m[2]) {
				t.Errorf("%s links to %s, a heading that is not there", page, m[0])
			}
		}
	}
}

// anchors are those of a page's headings.
func anchors(t *testing.T, page string) (out []string) {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range heading.FindAllStringSubmatch(string(text), -1) {
		words := omitted.ReplaceAllString(strings.ToLower(m[1]), "")
		out = append(out, "#"+strings.ReplaceAll(words, " ", "-"))
	}
	return out
}

var (
	shellBlock  = regexp.MustCompile("(?ms)^```(?:sh|console|)\n(.*?)^```$|(?:^    [^\n]*\n)+")
	shellInline = regexp.MustCompile("`((?:sudo )?strandline [^`\n]+)`")
	quoted      = regexp.MustCompile(`'[^']*'`)
	invocation  = regexp.MustCompile(`(?:^|[;(|&] *|sudo |\$ )strandline ([a-z][^;|#$]*)`)
)

// commandLines are those that pages and help texts show, by the page or the command.
func commandLines(t *testing.T) map[string][]string {
	all := map[string][]string{}
	for _, page := range pages(t) {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range shellBlock.FindAllString(string(text), -1) {
			all[page] = append(all[page], strings.Split(strings.ReplaceAll(block, "\\\n", " "), "\n")...)
		}
		for _, m := range shellInline.FindAllStringSubmatch(string(text), -1) {
			all[page] = append(all[page], m[1])
		}
	}
	commands := newRoot(&globals{env: &Env{}}).Commands()
	for len(commands) > 0 {
		c := commands[0]
		all[c.CommandPath()] = strings.Split(c.Example, "\n")
		for _, m := range shellInline.FindAllStringSubmatch(c.Long, -1) {
			all[c.CommandPath()] = append(all[c.CommandPath()], m[1])
		}
		commands = append(commands[1:], c.Commands()...)
	}
	return all
}

// TestCommandLines looks for the commands and flags that pages and help texts show.
func TestCommandLines(t *testing.T) {
	t.Chdir("..")
	seen := 0
	for page, lines := range commandLines(t) {
		for _, line := range lines {
			seen += shows(t, page, strings.TrimSpace(line))
		}
	}
	if seen < 400 {
		t.Errorf("%d command lines are shown", seen)
	}
}

// TestPrintedCommands looks for the commands and flags that findings and messages print.
func TestPrintedCommands(t *testing.T) {
	printed := regexp.MustCompile("`(strandline (?:[^`\"\\\\]|\\\\.)+)`")
	verb := regexp.MustCompile(`%[-+.0-9]*[a-z]`)
	seen := 0
	for _, folder := range []string{"../judge", "../run", "../face", "../host", "../record", "../logs", "../plan", "."} {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			for _, m := range printed.FindAllStringSubmatch(string(text), -1) {
				seen++
				shows(t, path, verb.ReplaceAllString(m[1], "7"))
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if seen < 20 {
		t.Errorf("%d commands are printed", seen)
	}
}

// shows looks for the commands and flags of a line; where says what shows it.
func shows(t *testing.T, where, line string) (seen int) {
	t.Helper()
	for _, m := range invocation.FindAllStringSubmatch(quoted.ReplaceAllString(line, "TEXT"), -1) {
		seen++
		words := strings.Fields(m[1])
		command, rest, err := newRoot(&globals{env: &Env{}}).Find(words)
		if err != nil {
			t.Errorf("%s: %s: %v", where, line, err)
			continue
		}
		for _, word := range rest {
			if word == "--" {
				break
			}
			flag, _, _ := strings.Cut(strings.Trim(word, "`\"')…[]"), "=")
			name, long := strings.CutPrefix(flag, "--")
			if long && command.Flag(name) == nil && name != "help" {
				t.Errorf("%s: %s: no flag %s of %s", where, line, flag, command.CommandPath())
			}
		}
	}
	return seen
}

// documented are the fields that a page names.
func documented(t *testing.T, page string) map[string]bool {
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	named := map[string]bool{}
	for _, m := range regexp.MustCompile("`(?:[a-z]+\\[\\]\\.)?([a-z_0-9]+)(?:\\[\\])?`").FindAllStringSubmatch(string(text), -1) {
		named[m[1]] = true
	}
	return named
}

// TestJSONIsDocumented looks up every field that commands print in docs/json.md.
//
// long: one row a command with a document
func TestJSONIsDocumented(t *testing.T) {
	live.Sequential(t)
	t.Chdir("..")
	named := documented(t, "docs/json.md")
	oneFile := "examples/image-leak/step-4.pickle"
	cut := filepath.Join(t.TempDir(), "cut.pickle") // which is not replayed exactly
	whole, err := os.ReadFile(oneFile)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(cut, whole[:60000], 0o666); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{
		{"diagnose", "examples/image-leak"},
		{"diagnose", "examples/autograd-graph"},
		{"diagnose", "examples/cache"},
		{"diagnose", "examples/ranks"},
		{"diagnose", "examples/out-of-memory"},
		{"diagnose", "examples/varied-lengths/default.pickle.gz"},
		{"diagnose", "examples/out-of-memory/oom.pickle"},
		{"diagnose", "examples/out-of-memory/job.log"},
		{"diagnose", "examples/memory-tables"},
		{"diagnose", "logs/testdata/cached.txt"},
		{"diagnose", "logs/testdata/limit.txt"},
		{"diagnose", "examples/logits"},
		{"diagnose", "examples/graphs"},
		{"diagnose", "judge/snapshots/testdata/waiting.pickle"},
		{"diagnose", "judge/snapshots/testdata/tiny.pickle.gz"},
		{"diagnose", "torch/snapshot/testdata/w07_streams_pools.default.pending.pickle"},
		{"diagnose", oneFile},
		{"diagnose", oneFile, "--capacity", "80GiB"},
		{"compare", "examples/ranks"},
		{"compare", "examples/cache", "--max-growth", "1MiB"},
		{"compare", "--runs", "examples/image-leak/step-2.pickle", oneFile, "--max-growth", "1%"},
		{"compare", "--runs", "torch/snapshot/testdata/w21_writers.list.train.pickle", oneFile, "--max-growth", "1%"},
		{"inspect", oneFile, "--at", "500", "--alloc", "500", "--pools"},
		{"simulate", "examples/out-of-memory/oom.pickle", "--set", "", "--capacity", "3GiB"},
		{"simulate", "examples/image-leak/step-4.pickle", "--search"},
		{"simulate", cut},
		{"export", oneFile, "--to", "pickle", "-o", filepath.Join(t.TempDir(), "out.pickle")},
		{"plan", "--model", "DeepSeek-R1", "--gpu", "H200", "--gpus", "16", "--formats"},
		{"plan", "--model", "Llama-3.1-8B", "--gpu", "H100", "--solve", "requests"},
		{"plan", "--model", "Llama-3.1-8B", "--gpu", "H100", "--method", "textbook"},
		{"plan", "--check", "examples/plan/server.log", "--model", "Qwen2.5-VL-7B"},
		{"plan", "train", "--model", "Llama-3.1-8B", "--gpu", "H100", "--gpus", "8"},
		{"plan", "gpus"},
		{"plan", "models"},
		{"plan", "rl", "--phases", "examples/plan/phases.yaml"},
		{"plan", "rl", "--phases", "examples/pausable/phases.yaml", "--check", "examples/pausable/untidy.pausable"},
		{"plan", "rl", "--phases", "examples/pausable/phases.yaml", "--check", "judge/handovers/testdata/traced.strandline", "--host-link", "20"},
		{"hooks", "--pid", strconv.Itoa(os.Getpid())},
		{"diagnose", "examples/munmap-leak/server.trace"},
		{"diagnose", "examples/device-memory/server.trace", "examples/device-memory/now.pickle"},
		{"doctor"},
		{"version"},
		{"config", "version"},
		{"diagnose", "examples/jax"},
		{"inspect", "examples/jax/step-40.prof"},
		{"inspect", "examples/nothing"},
		{"check", "--json", "--", "sh", "-c", "exit 0"},
		{"watch", "--pid", strconv.Itoa(os.Getpid()), "--duration", "30ms", "--interval", "10ms"},
	} {
		stdout, stderr, _ := run(append(args, "--json")...)
		if stdout == "" {
			stdout = stderr
		}
		var all []any // more than one of watch
		for d := json.NewDecoder(strings.NewReader(stdout)); d.More(); {
			var doc any
			if err := d.Decode(&doc); err != nil {
				t.Fatalf("%v: %v", args, err)
			}
			all = append(all, doc)
		}
		if !strings.HasPrefix(strings.TrimLeft(stdout, "{ \n"), `"schema"`) {
			t.Errorf("%v: the document does not begin with schema", args)
		}
		for _, field := range fields(all, nil) {
			if !named[field] {
				t.Errorf("%v prints the field %s, which docs/json.md does not name", args, field)
				named[field] = true // say so once
			}
		}
	}
}

// fields are the names in a document.
func fields(v any, into []string) []string {
	switch v := v.(type) {
	case map[string]any:
		for name, x := range v {
			into = fields(x, append(into, name))
		}
	case []any:
		for _, x := range v {
			into = fields(x, into)
		}
	}
	slices.Sort(into)
	return slices.Compact(into)
}
