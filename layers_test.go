// Package strandline_test keeps the architecture: every package stands in one
// column and imports only from columns to its left.
package strandline_test

import (
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "strandline"

// columns are the packages from left to right. Those of one column do not
// import each other.
var columns = [][]string{
	{"finding", "units"}, // leaves
	{"stack"},            // every model interns frames
	{"pickle", "logs", "packed", "procfs", "elf", "bpf", "ptrace", "nvsmi"}, // sources
	{"snapshot", "series", "vmmap", "recording", "model"},
	{"image"},
	{"cpython", "glibc"},
	{"unwind"},
	{"timeline", "purpose", "compare", "trend", "allocator", "replay", "tile", "hostleak", "footprint", "plan", "account"},
	{"detect"},
	{"report", "export", "web/engine", "web", "metrics"},
	{"internal/cli", "web/worker"},
	{"cmd/strandline", "cmd/site"},
}

// beside are the imports inside a column that are in order all the same.
var beside = map[string][]string{
	"purpose":   {"timeline"},
	"replay":    {"timeline", "allocator"},
	"compare":   {"timeline", "trend", "purpose", "replay"},
	"tile":      {"timeline", "purpose"},
	"web":       {"web/engine"},
	"bpf":       {"procfs"},
	"ptrace":    {"bpf", "procfs"},
	"hostleak":  {"trend"},
	"footprint": {"trend"},
	"plan":      {"allocator"},
	"account":   {"hostleak"},
}

// only are packages that may import less than what stands to their left.
var only = map[string][]string{
	"pickle":    {"finding", "units"}, // sources know nothing of analysis
	"logs":      {"finding", "units"},
	"packed":    {},
	"recording": {"finding", "nvsmi"},
	"nvsmi":     {},
	"model":     {"finding", "units"},
	"procfs":    {},
	"elf":       {},
	"bpf":       {"procfs"},
	"trend":     {"finding", "units", "series"}, // pure numbers
}

// testOnly are packages for tests: they import what they like, and no other
// package imports them.
var testOnly = []string{"internal/synth", "internal/live", "internal/leaks"}

// emptyNames say nothing of what a package holds.
var emptyNames = []string{"util", "utils", "common", "helper", "helpers"}

func TestLayers(t *testing.T) {
	packages, err := importsOf(".")
	if err != nil {
		t.Fatal(err)
	}
	if len(packages) == 0 {
		t.Fatal("found no package")
	}
	for from, imports := range packages {
		for _, problem := range problems(from, imports) {
			t.Error(problem)
		}
	}
}

// problems are the rules that a package breaks.
func problems(from string, imports []string) (out []string) {
	for _, name := range strings.Split(from, "/") {
		if slices.Contains(emptyNames, name) {
			out = append(out, fmt.Sprintf("%s: the name %q says nothing of what is in it; put the code where it belongs", from, name))
		}
	}
	if slices.Contains(testOnly, from) {
		return out
	}
	if column(from) < 0 {
		return append(out, fmt.Sprintf("%s stands in no column: add it to the table in layers_test.go", from))
	}
	for _, to := range imports {
		if why := forbidden(from, to); why != "" {
			out = append(out, fmt.Sprintf("%s imports %s: %s", from, to, why))
		}
	}
	return out
}

// forbidden says why from may not import to, or nothing if it may.
func forbidden(from, to string) string {
	list, restricted := only[from]
	switch a, b := column(from), column(to); {
	case slices.Contains(testOnly, to):
		return "that package is for tests"
	case restricted && !slices.Contains(list, to):
		return fmt.Sprintf("of ours it may import only %s", strings.Join(list, ", "))
	case b < 0:
		return "it stands in no column: add it to the table in layers_test.go"
	case b > a:
		return "it stands further right"
	case b == a && !slices.Contains(beside[from], to):
		return "it stands in the same column"
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

// skipped tells folders in which the go command looks for no packages of this
// module.
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

// TestLayersAreGuarded shows that the guard sees what it is for.
func TestLayersAreGuarded(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"detect", "timeline", ""},
		{"compare", "timeline", ""},
		{"snapshot", "units", ""},
		{"units", "finding", "same column"},
		{"timeline", "compare", "same column"},
		{"snapshot", "timeline", "further right"},
		{"stack", "snapshot", "further right"},
		{"trend", "snapshot", "may import only"},
		{"pickle", "stack", "may import only"},
		{"report", "web", "same column"},
		{"report", "internal/synth", "for tests"},
		{"report", "nowhere", "add it to the table"},
		{"nowhere", "units", "add it to the table"},
		{"web/util", "units", "says nothing"},
		{"internal/synth", "web", ""},
	} {
		got := strings.Join(problems(c.from, []string{c.to}), "; ")
		if c.want == "" && got != "" || !strings.Contains(got, c.want) {
			t.Errorf("%s imports %s: got %q, want %q", c.from, c.to, got, c.want)
		}
	}
}
