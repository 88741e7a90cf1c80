// Package strandline_test checks the architecture: every package is in one
// column and imports only from columns to its left.
package strandline_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "strandline"

// columns are the packages from left to right: leaves, the sources, models and
// analyses of each wing, judgment, faces. Those of one column do not import each
// other.
var columns = [][]string{
	{"internal/lazyregexp", "internal/packed", "internal/safefile", "internal/secret", "internal/shell", "internal/sorts"},
	{"torch", "host", "judge", "face"}, // documentation alone
	{"docs", "examples", "finding", "units", "internal/budget", "internal/sheet", "internal/sqlite", "internal/licenses", "torch/ranges", "times", "internal/httpbounds", "internal/socket", "pausable", "pausable/state", "pausable/history", "plan/engine"}, // leaves; plan/engine is the one table of inference engines
	{"stack", "run/soak/load"}, // every model interns frames
	{"trend"},                  // arithmetic on series of numbers, for every wing
	{"host/calls/event", "host/sampling/sample"}, // what a process did or holds, whoever saw it
	{"host/code/pyframes"},                       // a walk of memory, for sources and analysis alike
	{"host/store/journal"},                       // the form of files, for models
	{"torch/pickle", "logs/text", "host/proc/procfs", "host/code/elffile", "host/calls/bpf", "host/calls/ptrace", "host/calls/polling", "host/gpu/nvsmi", "host/gpu/nvml", "host/sampling/engine"}, // sources
	{"logs/failure", "logs/table"}, // what the lines of a text state
	{"logs/engine"},                // also that memory ran out
	{"logs"},
	{"torch/snapshot", "torch/flight", "host/proc/vmmap", "host/store/recording", "host/store/series", "plan/model"}, // models
	{"record"},
	{"profiles"},
	{"profiles/jax", "profiles/nsys", "profiles/kineto", "profiles/proc", "profiles/figures", "profiles/levels", "profiles/printed", "profiles/promql", "profiles/sites"}, // sources that state it in that form
	{"logs/ranks"}, // what the processes of a job wrote, with the sizes that they state
	{"host/code/image", "host/sampling/levels"},
	{"host/proc/autograd", "host/code/cpython", "host/gpu/cudaalloc", "host/proc/glibcheap", "host/proc/hsperf"},
	{"host/code/unwind"},
	{"host/code/symbolize"},
	{
		"torch/timeline", "torch/allocator", "torch/replay", "torch/digest", "torch/purpose", "torch/compare", "torch/tile",
		"host/calls/ledger", "host/calls/malloc", "host/gpu/gpudriver", "host/proc/hooks", "host/proc/footprint", "host/gpu/gpuaccount", "host/sampling/sampler",
	},
	{"plan"},
	{"plan/serving", "plan/training"},
	{"plan/rl", "plan/observed"},
	{"input"},                           // the door: what files hold, in the models of all wings
	{"judge/shortage", "judge/verdict"}, // what snapshots and texts of a failure have in common
	{"judge/jobs"},                      // of jobs of many ranks
	{"judge/pauses"},                    // of pausable memory, which a watch sees too
	{"judge/texts"},                     // of texts, which are judged with snapshots too
	{"judge/snapshots", "judge/processes", "judge/tables", "judge/gate", "judge/samples", "judge/handovers"},
	{"judge/diagnosis"},           // all subjects: one verdict of what the door let in
	{"face/api", "face/api/page"}, // the JSON of all faces
	{"face/report", "face/export", "face/metrics", "face/web/engine", "face/web"},
	{"face/ci"},
	{"run/trace", "run/outside", "run/check", "run/soak", "run/planner"}, // what a command assembles, without output
	{"cli", "face/web/worker"},
	{"cmd/strandline", "cmd/site"},
}

// beside lists the imports inside a column that are allowed, and why.
var beside = map[string][]string{
	"torch/timeline":        {"torch/allocator"},                                 // sizes of blocks and segments
	"torch/purpose":         {"torch/timeline"},                                  // what memory is for depends on when it lived
	"torch/replay":          {"torch/timeline", "torch/allocator"},               // a history, sent through the allocator
	"torch/digest":          {"torch/timeline", "torch/purpose", "torch/replay"}, // sums up the analyses of one file
	"torch/compare":         {"torch/digest", "torch/timeline", "torch/purpose"}, // relates digests, with the types that they hold
	"torch/tile":            {"torch/timeline", "torch/purpose"},                 // draws lives, colored by purpose
	"face/api/page":         {"face/api"},                                        // the cards of findings
	"face/web":              {"face/web/engine"},                                 // the server of what the engine answers
	"face/web/engine":       {"face/export"},                                     // draws profiles of JAX as a history
	"host/calls/bpf":        {"host/proc/procfs"},                                // reads /proc of what it watches
	"host/calls/ptrace":     {"host/proc/procfs"},                                // so does this
	"host/gpu/gpudriver":    {"host/calls/ledger"},                               // stacks and processes are the ledger's
	"host/gpu/gpuaccount":   {"host/gpu/gpudriver"},                              // compares calls with the driver's count
	"host/sampling/sampler": {"host/proc/footprint"},                             // classifies what grows in a process
	"pausable":              {"internal/socket", "pausable/state"},               // finds the socket, and reads the answer
	"pausable/history":      {"internal/lazyregexp", "pausable/state"},           // a log of states
	"run/check":             {"run/trace"},                                       // the lines of a leak
	"run/soak":              {"run/trace"},                                       // its cause
}

// wings are the roots that do not import each other: what needs two of them is
// judgment.
var wings = []string{"torch", "host", "plan", "profiles", "logs"}

// across lists the imports from one wing into another that are allowed.
var across = map[string][]string{
	"profiles/proc":         {"host/proc/procfs", "host/proc/vmmap"}, // the forms of /proc, and what its mappings are for
	"host/sampling/engine":  {"plan/engine"},                         // what engines call their metrics
	"host/sampling/sampler": {"plan/engine"},                         // what an engine's command keeps in main memory
	"host/sampling/levels":  {"plan/engine"},                         // the same
	"logs/failure":          {"plan/engine"},                         // what engines call themselves, and what they advise
	"logs/engine":           {"plan/engine"},                         // the form of what logs state, and the settings in them
	"profiles/figures":      {"logs/text"},                           // the lines of any text
	"profiles/printed":      {"logs/engine"},                         // the lines of engines in service
	"plan/serving":          {"torch/allocator"},                     // the sizes of blocks and segments, which that package holds next to its simulation
}

// everywhere lists what is imported like a package of the standard library.
var everywhere = []string{"internal/lazyregexp", "internal/packed", "internal/safefile", "internal/secret", "internal/shell", "internal/sorts"}

// only lists packages that may import less than what is to their left.
var only = map[string][]string{
	"torch/ranges":          {},
	"torch/pickle":          {"finding", "units"}, // sources do not depend on analysis
	"plan/engine":           {},
	"logs/text":             {},
	"logs/failure":          {"internal/secret", "logs/text", "plan/engine"},
	"logs/table":            {"logs/text", "times"},
	"logs/engine":           {"logs/text", "logs/failure", "plan/engine"},
	"logs":                  {"logs/text", "logs/failure", "logs/table"},
	"host/store/recording":  {"finding", "host/store/journal", "host/gpu/nvsmi", "internal/budget", "internal/packed"},
	"host/gpu/nvsmi":        {},
	"host/sampling/engine":  {"host/sampling/sample", "internal/httpbounds", "plan/engine"},
	"host/gpu/nvml":         {"host/sampling/sample"},
	"plan/model":            {"internal/budget", "internal/packed", "finding", "units"},
	"profiles":              {"stack"},
	"profiles/jax":          {"internal/budget", "profiles", "stack", "units"},
	"profiles/figures":      {"logs/text", "profiles", "times"},
	"profiles/levels":       {"internal/budget", "profiles", "units"},
	"profiles/promql":       {"internal/httpbounds", "profiles", "units"},
	"times":                 {},
	"profiles/printed":      {"logs/engine", "profiles", "times", "units"},
	"profiles/proc":         {"host/proc/procfs", "host/proc/vmmap", "profiles", "times", "units"},
	"profiles/nsys":         {"internal/budget", "internal/sqlite", "profiles", "units"},
	"profiles/kineto":       {"internal/budget", "profiles", "stack", "units"},
	"profiles/sites":        {"profiles", "stack"},
	"judge/tables":          {"finding", "units", "stack", "trend", "profiles", "profiles/jax", "profiles/sites", "host/proc/hooks", "judge/shortage"},
	"host/proc/procfs":      {},
	"record":                {"host/proc/procfs", "internal/budget", "internal/packed", "internal/socket", "units"},
	"internal/socket":       {},
	"pausable/state":        {},
	"pausable":              {"internal/socket", "pausable/state"},
	"pausable/history":      {"pausable/state"},
	"host/code/elffile":     {},
	"host/calls/event":      {},
	"host/sampling/sample":  {"units"},
	"host/store/journal":    {"internal/budget", "internal/packed"},
	"host/store/series":     {"host/store/journal", "host/sampling/sample", "internal/budget"},
	"host/sampling/sampler": {"host/gpu/cudaalloc", "host/proc/footprint", "host/gpu/nvml", "host/gpu/nvsmi", "host/proc/procfs", "host/sampling/sample", "plan/engine", "record", "pausable", "pausable/state"},
	"host/code/pyframes":    {"host/calls/event"},
	"host/calls/bpf":        {"host/calls/event", "host/proc/procfs", "internal/packed"},
	"host/calls/ptrace":     {"host/calls/event", "host/proc/procfs", "host/code/pyframes"},
	"host/calls/polling":    {"host/calls/event"},
	"trend":                 {"finding", "units"}, // pure numbers
	"judge/gate":            {"finding", "units", "trend"},
	"host/sampling/levels":  {"host/proc/procfs", "host/sampling/sample", "plan/engine"},
	"judge/samples":         {"finding", "units", "trend", "host/sampling/sample", "judge/pauses", "plan/engine"},
	"judge/pauses":          {"finding", "units", "trend", "pausable/state", "pausable/history"},
	"judge/texts":           {"finding", "units", "stack", "trend", "internal/shell", "logs", "logs/failure", "logs/engine", "logs/table", "judge/shortage", "judge/verdict", "plan/engine"},
	"judge/shortage":        {"finding", "units"},
	"judge/verdict":         {"finding"},
}

// testOnly lists packages for tests: they may import anything, and no other
// package imports them.
var testOnly = []string{"internal/test/synth", "internal/test/live", "internal/test/leaks", "internal/test/plantest", "internal/test/soakserver", "internal/test/eventtest"}

// emptyNames are names that do not describe what a package holds.
var emptyNames = []string{"util", "utils", "common", "helper", "helpers"}

func TestLayers(t *testing.T) {
	packages, err := importsOf(".")
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) == 0 {
		t.Fatal("found no package")
	}
	for _, name := range named() {
		if _, ok := packages[name]; !ok {
			t.Errorf("%s is in a table of layers_test.go and has no folder", name)
		}
	}
	for from, imports := range packages {
		for _, problem := range problems(from, imports) {
			t.Error(problem)
		}
	}
}

// named returns every package that a table names.
func named() (out []string) {
	out = slices.Concat(append(columns, everywhere, testOnly)...)
	for _, table := range []map[string][]string{beside, across, only} {
		for from, to := range table {
			out = append(append(out, from), to...)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

// problems are the rules that a package breaks.
func problems(from string, imports []string) (out []string) {
	for _, name := range strings.Split(from, "/") {
		if slices.Contains(emptyNames, name) {
			out = append(out, fmt.Sprintf("%s: the name %q does not describe what is in it; put the code where it belongs", from, name))
		}
	}
	if slices.Contains(testOnly, from) {
		return out
	}
	if column(from) < 0 {
		return append(out, fmt.Sprintf("%s is in no column: add it to the table in layers_test.go", from))
	}
	for _, to := range imports {
		if why := forbidden(from, to); why != "" {
			out = append(out, fmt.Sprintf("%s imports %s: %s", from, to, why))
		}
	}
	return out
}

// forbidden returns why from may not import to, or nothing if it may.
func forbidden(from, to string) string {
	list, restricted := only[from]
	switch a, b := column(from), column(to); {
	case slices.Contains(everywhere, to):
		return ""
	case slices.Contains(testOnly, to):
		return "that package is for tests"
	case restricted && !slices.Contains(list, to):
		return fmt.Sprintf("of ours it may import only %s", strings.Join(list, ", "))
	case b < 0:
		return "it is in no column: add it to the table in layers_test.go"
	case b > a:
		return "it is further right"
	case b == a && !slices.Contains(beside[from], to):
		return "it is in the same column"
	case wing(from) != "" && wing(to) != "" && wing(from) != wing(to) && !slices.Contains(across[from], to):
		return "it is of another wing"
	}
	return ""
}

// wing returns the wing that a package is in, or "".
func wing(name string) string {
	root, _, _ := strings.Cut(name, "/")
	if slices.Contains(wings, root) {
		return root
	}
	return ""
}

func column(name string) int {
	return slices.IndexFunc(columns, func(c []string) bool { return slices.Contains(c, name) })
}

// importsOf are the packages below root and what each imports of ours. Tests
// are left out.
func importsOf(root string) (map[string][]string, error) {
	out := map[string][]string{}
	err := filepath.WalkDir(root, func(file string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.IsDir() {
			if skipped(root, file, d.Name()) {
				return filepath.SkipDir
			}
			return nil
		}
		if !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return nil
		}
		imports, err := fileImports(file)
		name := filepath.ToSlash(filepath.Dir(file))
		out[name] = append(out[name], imports...)
		return err
	})
	for name, imports := range out {
		slices.Sort(imports)
		out[name] = slices.Compact(imports)
	}
	return out, err
}

// skipped reports whether the go command ignores a folder when it lists the packages
// of this module.
func skipped(root, folder, name string) bool {
	if folder == root {
		return false
	}
	_, err := os.Stat(filepath.Join(folder, "go.mod"))
	return err == nil || name[0] == '.' || name[0] == '_' || slices.Contains([]string{"testdata", "vendor", "node_modules"}, name)
}

// fileImports are the packages of ours that a file imports.
func fileImports(file string) (out []string, err error) {
	parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ImportsOnly)
	if err != nil {
		return nil, err
	}
	for _, spec := range parsed.Imports {
		name, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return nil, err
		}
		if ours, ok := strings.CutPrefix(name, module+"/"); ok {
			out = append(out, path.Clean(ours))
		}
	}
	return out, nil
}

// TestHTTPIsBounded checks that requests are sent and answered by package httpbounds alone,
// whose bounds hold for all.
func TestHTTPIsBounded(t *testing.T) {
	functions := []string{"DefaultClient", "DefaultTransport", "Get", "Head", "Post", "PostForm", "ListenAndServe", "Serve"}
	types := []string{"Client", "Transport", "Server"}
	packages, err := importsOf(".")
	if err != nil {
		t.Fatal(err)
	}
	for name := range packages {
		if name == "internal/httpbounds" || slices.Contains(testOnly, name) {
			continue
		}
		files, err := filepath.Glob(filepath.Join(filepath.FromSlash(name), "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
			if err != nil {
				t.Fatal(err)
			}
			of := func(n ast.Node, names []string) {
				if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains(names, s.Sel.Name) {
					if x, ok := s.X.(*ast.Ident); ok && x.Name == "http" && x.Obj == nil {
						t.Errorf("%s uses http.%s; use package internal/httpbounds", file, s.Sel.Name)
					}
				}
			}
			ast.Inspect(parsed, func(n ast.Node) bool {
				of(n, functions)
				if c, ok := n.(*ast.CompositeLit); ok { // made here
					of(c.Type, types)
				}
				return true
			})
		}
	}
}

// TestPathsAreNoPatterns checks that folders are listed and never matched: the name of a
// folder can be a pattern of others.
func TestPathsAreNoPatterns(t *testing.T) {
	packages, err := importsOf(".")
	if err != nil {
		t.Fatal(err)
	}
	folders := []string{"record/python", "record/python/strandline"}
	for name := range packages {
		if !slices.Contains(testOnly, name) {
			folders = append(folders, name)
		}
	}
	pattern := regexp.MustCompile(`\b(filepath|fs)\.Glob\(|\bimport glob\b|\bfrom glob\b|\.r?glob\(`)
	files := 0
	for _, folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range entries {
			name := filepath.Join(folder, e.Name())
			if !strings.HasSuffix(name, ".go") && !strings.HasSuffix(name, ".py") || strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			files++
			if found := pattern.Find(text); found != nil {
				t.Errorf("%s: %s; list the folder", name, found)
			}
		}
	}
	if files < 100 {
		t.Errorf("%d files were read", files)
	}
}

// TestLayersAreGuarded shows that the guard sees what it is for.
func TestLayersAreGuarded(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"judge/snapshots", "torch/timeline", ""},
		{"torch/compare", "torch/timeline", ""},
		{"torch/snapshot", "units", ""},
		{"plan/serving", "torch/allocator", ""},
		{"units", "finding", "same column"},
		{"torch/compare", "torch/digest", ""},
		{"torch/digest", "torch/compare", "same column"},
		{"torch/timeline", "torch/compare", "same column"},
		{"torch/snapshot", "torch/timeline", "further right"},
		{"stack", "torch/snapshot", "further right"},
		{"trend", "stack", "may import only"},
		{"torch/pickle", "stack", "may import only"},
		{"host/proc/footprint", "torch/snapshot", "another wing"},
		{"plan", "torch/snapshot", "another wing"},
		{"plan/serving", "logs/engine", "another wing"},
		{"face/report", "face/web", "same column"},
		{"face/report", "internal/test/synth", "for tests"},
		{"face/report", "nowhere", "add it to the table"},
		{"nowhere", "units", "add it to the table"},
		{"face/web/util", "units", "does not describe"},
		{"internal/test/synth", "face/web", ""},
	} {
		got := strings.Join(problems(c.from, []string{c.to}), "; ")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s imports %s: got %q, want %q", c.from, c.to, got, c.want)
		}
	}
}
