package strandline_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// decoders are the functions that turn the bytes of a file or an answer into values, by
// their package and name.
var decoders = map[string]bool{
	"encoding/json.Unmarshal": true, "encoding/json.NewDecoder": true, "encoding/csv.NewReader": true, "encoding/xml.Unmarshal": true,
	"compress/gzip.NewReader": true, "compress/flate.NewReader": true, "compress/zlib.NewReader": true, "github.com/klauspost/compress/zstd.NewReader": true,
	"github.com/google/pprof/profile.ParseUncompressed": true, "go.yaml.in/yaml/v3.NewDecoder": true, "go.yaml.in/yaml/v3.Unmarshal": true,
	"strandline/internal/sqlite.Open": true, "strandline/torch/pickle.Decode": true, "github.com/ulikunitz/xz.ReaderConfig": true,
}

// unbudgeted are the packages that decode without a budget of internal/budget, and why that
// bounds what they cost.
var unbudgeted = map[string]string{
	"logs/ranks":        "a record is one line of at most 64 KiB",
	"finding":           "a part of what another package decodes",
	"face/api/page":     "a part of what another package decodes",
	"face/export":       "reads what is built in",
	"host/code/elffile": "has budgets of its own, of the tables of a process's files together",
	"internal/packed":   "unpacks for a reader that counts what it keeps",
	"plan/rl":           "reads 1 MiB at most, and a list of known fields",
	"profiles/promql":   "keeps 500 series of 11,000 points at most",
	"run/soak/load":     "reads one answer of 16 MiB at most at a time, and keeps counts",
	"torch/compare":     "a part of a manifest",
}

// TestDecodersHaveABudget checks that each package that decodes files draws from a budget,
// or is listed with what bounds it.
func TestDecodersHaveABudget(t *testing.T) {
	decoding, budgeted := map[string]string{}, map[string]bool{}
	err := filepath.WalkDir(".", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "testdata" || d.Name() == "node_modules" || name == filepath.Join("internal", "test") || name != "." && strings.HasPrefix(d.Name(), ".")):
			return fs.SkipDir
		case !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			return err
		}
		pkg := path.Dir(filepath.ToSlash(name))
		names := map[string]string{}
		for _, i := range file.Imports {
			from, _ := strconv.Unquote(i.Path.Value)
			short := path.Base(from)
			if short == "v3" {
				short = path.Base(path.Dir(from))
			}
			if i.Name != nil {
				short = i.Name.Name
			}
			names[short] = from
			if from == module+"/internal/budget" {
				budgeted[pkg] = true
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok {
				if x, ok := s.X.(*ast.Ident); ok && decoders[names[x.Name]+"."+s.Sel.Name] {
					decoding[pkg] = name + ": " + x.Name + "." + s.Sel.Name
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for pkg, call := range decoding {
		if !budgeted[pkg] && unbudgeted[pkg] == "" {
			t.Errorf("%s decodes (%s) without a budget: draw what it keeps from internal/budget, or state in unbudgeted what bounds it", pkg, call)
		}
	}
	for pkg := range unbudgeted {
		if decoding[pkg] == "" || budgeted[pkg] {
			t.Errorf("%s is listed, and decodes nothing or has a budget", pkg)
		}
	}
	if len(decoding) < 15 {
		t.Errorf("only %d packages decode: the test does not see them", len(decoding))
	}
}
