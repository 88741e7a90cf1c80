package cli

import (
	"bytes"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"strandline/docs"
)

// allCommands are the program's, with the program itself.
func allCommands() (out []*cobra.Command) {
	out = []*cobra.Command{newRoot(&globals{env: &Env{}})}
	for i := 0; i < len(out); i++ {
		out = append(out, out[i].Commands()...)
	}
	return slices.DeleteFunc(out, func(c *cobra.Command) bool { return c.Hidden || strings.Contains(c.CommandPath(), "completion ") })
}

// TestHelpFits holds the help to the width of a terminal, and the one of diagnose to a
// screen.
func TestHelpFits(t *testing.T) {
	const rows = 40
	for _, c := range allCommands() {
		var text bytes.Buffer
		help(&text, c)
		lines := strings.Split(strings.TrimSuffix(text.String(), "\n"), "\n")
		for _, line := range lines {
			if n := utf8.RuneCountInString(line); n > helpColumns {
				t.Errorf("%s --help: %d columns: %s", c.CommandPath(), n, line)
			}
		}
		if c.Name() == "diagnose" && len(lines) > rows {
			t.Errorf("%s --help: %d lines, more than %d", c.CommandPath(), len(lines), rows)
		}
	}
}

// TestSections looks for each flag of the commands that have sections in one of them.
func TestSections(t *testing.T) {
	left := maps.Clone(sections)
	for _, c := range allCommands() {
		shown := map[string]int{}
		for _, s := range left[c.CommandPath()] {
			for _, name := range s.flags {
				shown[name]++
			}
		}
		c.LocalFlags().VisitAll(func(f *pflag.Flag) {
			if left[c.CommandPath()] != nil && f.Name != "help" && !f.Hidden && shown[f.Name] != 1 {
				t.Errorf("%s: --%s is in %d sections", c.CommandPath(), f.Name, shown[f.Name])
			}
		})
		delete(left, c.CommandPath())
	}
	if len(left) > 0 {
		t.Errorf("sections of commands that are not there: %v", left)
	}
}

// TestSynonyms looks for the commands that the words are for, and for words that are one.
func TestSynonyms(t *testing.T) {
	commands := map[string]bool{}
	for _, c := range allCommands() {
		commands[c.CommandPath()] = true
	}
	for path, words := range synonyms {
		if !commands[path] {
			t.Errorf("%s is not a command", path)
		}
		for _, word := range words {
			if commands["strandline "+word] {
				t.Errorf("%s is a command, not a word for %s", word, path)
			}
		}
	}
}

// TestGuidesAreInside looks in the sources for texts that name a page: who has the program
// alone can read it.
func TestGuidesAreInside(t *testing.T) {
	page := regexp.MustCompile(`docs/[\w./-]+\.md`)
	cited := regexp.MustCompile(`strandline help guide ([a-z-]+)`)
	names := map[string]bool{}
	for _, guide := range docs.Guides() {
		names[guide.Name] = true
		if guide.Title == "" || len(guide.Text) < 200 {
			t.Errorf("guide %s: %q, %d bytes", guide.Name, guide.Title, len(guide.Text))
		}
	}
	for command, guide := range guides {
		if !names[guide] {
			t.Errorf("%s has the guide %s, which is not there", command, guide)
		}
	}
	seen := 0
	err := filepath.WalkDir("..", func(name string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && name != ".." && (d.Name()[0] == '.' || slices.Contains([]string{"testdata", "node_modules", "release", "bench"}, d.Name())):
			return fs.SkipDir
		case filepath.Ext(name) != ".go" || strings.HasSuffix(name, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if found := page.FindString(lit.Value); found != "" {
					t.Errorf("%s names %s, which is not in the program: `strandline help guide NAME`", name, found)
				}
				for _, m := range cited.FindAllStringSubmatch(lit.Value, -1) {
					seen++
					if !names[m[1]] {
						t.Errorf("%s names the guide %s, which is not there", name, m[1])
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if seen < 3 {
		t.Errorf("%d texts name a guide", seen)
	}
}
