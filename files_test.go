package strandline_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// creators are the functions of package os that create files, or write through what
// another user put in the way; openers those that may wait for a pipe.
var (
	creators = []string{"Create", "CreateTemp", "Link", "Mkdir", "MkdirAll", "MkdirTemp", "OpenFile", "Rename", "Symlink", "WriteFile"}
	openers  = []string{"Open", "ReadFile"}
)

// openedOtherwise lists the files and folders of the program that do not use
// internal/safefile, and why.
var openedOtherwise = map[string]string{
	"internal/safefile":         "it is what the others use",
	"internal/test":             "tests' own files",
	"face/export/public_gen.go": "a generator, run by hand",
	"cmd/site":                  "reads what the Go toolchain has",
	"host/proc/procfs":          "reads /proc and control groups",
	"host/sampling/sampler":     "reads /proc and control groups",
	"internal/socket":           "reads /proc",
	"record/periods_linux.go":   "reads /proc",
	"record/signals_unix.go":    "opens the terminal",
	"run/check/baseline.go":     "reads a setting of the kernel",
	"record/module.go":          "writes into a folder that no other user can write to",
	"cli/models.go":             "reads a file that the user named",
	"torch/snapshot/read.go":    "reads a file that the user named",
}

// TestFilesAreOpenedSafely finds files that are opened or created by package os alone,
// which follows the links of other users and waits for their pipes.
func TestFilesAreOpenedSafely(t *testing.T) {
	used := map[string]bool{}
	err := filepath.WalkDir(".", func(file string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && skipped(".", file, d.Name()):
			return filepath.SkipDir
		case d.IsDir() || filepath.Ext(file) != ".go" || strings.HasSuffix(file, "_test.go"):
			return nil
		}
		name := filepath.ToSlash(file)
		for place := range openedOtherwise {
			if name == place || strings.HasPrefix(name, place+"/") {
				used[place] = true
				return nil
			}
		}
		files := token.NewFileSet()
		parsed, err := parser.ParseFile(files, file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(parsed, func(n ast.Node) bool {
			s, ok := n.(*ast.SelectorExpr)
			if !ok {
				return true
			}
			if pkg, ok := s.X.(*ast.Ident); ok && pkg.Name == "os" && (slices.Contains(creators, s.Sel.Name) || slices.Contains(openers, s.Sel.Name)) {
				t.Errorf("%s: os.%s: use internal/safefile, or state in openedOtherwise why not", files.Position(s.Pos()), s.Sel.Name)
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for place := range openedOtherwise {
		if !used[place] {
			t.Errorf("openedOtherwise names %s, which is not there", place)
		}
	}
}
