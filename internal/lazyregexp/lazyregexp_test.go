package lazyregexp_test

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"strandline/internal/lazyregexp"
)

func TestCompiledOnce(t *testing.T) {
	r := lazyregexp.New(`(\d+) of (\d+)`)
	for range 2 {
		if m := r.FindStringSubmatch("3 of 4"); len(m) != 3 || m[1] != "3" || m[2] != "4" {
			t.Errorf("found %q", m)
		}
	}
}

// A text without the words that every match has is passed over, and no other.
func TestWords(t *testing.T) {
	for _, expr := range []string{
		`(?m)^ *Name +Self CPU.*\b(?:Self )?[A-Z]+ Mem\b`, `size=(\d+)(?: more)?`, `(?i)size=(\d+)`, `(?:of){2,}|to`, `(?:of){0,2}x?`, `a*`, "\uFFFD+", `(of)+ (the|a) b`,
	} {
		for _, s := range []string{"", "size=12", "Size=12 more", "ofof", "to", "of the b", "of b", "  Name  Self CPU  CUDA Mem", "Self CPU", "\xff\xff", "\uFFFD"} {
			want := regexp.MustCompile(expr)
			got := lazyregexp.Of(expr)
			if got.MatchString(s) != want.MatchString(s) || got.Match([]byte(s)) != want.Match([]byte(s)) {
				t.Errorf("%q matches %q: %t, want %t", expr, s, got.MatchString(s), want.MatchString(s))
			}
			if got, want := got.FindAllString(s, -1), want.FindAllString(s, -1); !slices.Equal(got, want) {
				t.Errorf("%q finds %q in %q, want %q", expr, got, s, want)
			}
			if got, want := got.ReplaceAllString(s, "-"), want.ReplaceAllString(s, "-"); got != want {
				t.Errorf("%q makes %q of %q, want %q", expr, got, s, want)
			}
		}
	}
}

// TestSources compiles the expressions in all sources of this module: a fault in
// one would show only when it is used.
func TestSources(t *testing.T) {
	const root = "../.."
	found := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		if d.Name() == "testdata" || d.Name() == "node_modules" || path != root && strings.HasPrefix(d.Name(), ".") && d.Name() != ".." {
			return fs.SkipDir
		}
		n, err := compileFolder(t, path)
		found += n
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if found < 100 {
		t.Errorf("found only %d expressions: does the search for them still work?", found)
	}
}

// compileFolder compiles the expressions in one folder and returns their number.
func compileFolder(t *testing.T, folder string) (found int, err error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return 0, err
	}
	files := token.NewFileSet()
	var parsed []*ast.File
	constants := map[string]ast.Expr{}
	for _, name := range names {
		f, err := parser.ParseFile(files, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return found, err
		}
		parsed = append(parsed, f)
		for _, d := range f.Decls {
			if d, ok := d.(*ast.GenDecl); ok && d.Tok == token.CONST {
				for _, s := range d.Specs {
					s := s.(*ast.ValueSpec)
					for i, v := range s.Values {
						constants[s.Names[i].Name] = v
					}
				}
			}
		}
	}
	for _, f := range parsed {
		ast.Inspect(f, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !isNew(call.Fun) {
				return true
			}
			found++
			expr, err := constant(call.Args[0], constants)
			if err == nil {
				_, err = regexp.Compile(expr)
			}
			if err != nil {
				t.Errorf("%s: %v", files.Position(call.Pos()), err)
			}
			return true
		})
	}
	return found, nil
}

// isNew reports whether a function is lazyregexp.New.
func isNew(f ast.Expr) bool {
	s, ok := f.(*ast.SelectorExpr)
	if !ok || s.Sel.Name != "New" {
		return false
	}
	p, ok := s.X.(*ast.Ident)
	return ok && p.Name == "lazyregexp"
}

// constant returns the value of an expression of string literals and constants.
func constant(e ast.Expr, constants map[string]ast.Expr) (string, error) {
	switch e := e.(type) {
	case *ast.BasicLit:
		return strconv.Unquote(e.Value)
	case *ast.ParenExpr:
		return constant(e.X, constants)
	case *ast.Ident:
		if v, ok := constants[e.Name]; ok {
			return constant(v, constants)
		}
	case *ast.BinaryExpr:
		if e.Op == token.ADD {
			x, err := constant(e.X, constants)
			if err != nil {
				return "", err
			}
			y, err := constant(e.Y, constants)
			return x + y, err
		}
	}
	return "", fmt.Errorf("the expression is not of literals and constants; compile it where it is made")
}
