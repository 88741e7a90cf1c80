package docs

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strandline/internal/packed"
)

var update = flag.Bool("update", false, "write guides.gz from the pages")

// TestGuides compares the guides with the pages, and writes them.
func TestGuides(t *testing.T) {
	var pages []Guide
	for _, pattern := range []string{"*.md", "cases/*.md"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatal(files, err)
		}
		for _, file := range files {
			page, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			title, _, _ := strings.Cut(string(page), "\n")
			pages = append(pages, Guide{strings.TrimSuffix(filepath.ToSlash(file), ".md"), strings.TrimPrefix(title, "# "), string(page)})
		}
	}
	if *update {
		var list []packed.Text
		for _, g := range pages {
			list = append(list, packed.Text{Name: g.Name, Text: g.Text})
		}
		if text = packed.Texts(list); os.WriteFile("guides.gz", text, 0o666) != nil {
			t.Fatal("guides.gz cannot be written")
		}
	}
	for i, g := range Guides() {
		if i >= len(pages) || g != pages[i] {
			t.Fatalf("%s is not the page: go test ./docs -update writes guides.gz", g.Name)
		}
	}
	if n := len(Guides()); n != len(pages) {
		t.Errorf("%d guides of %d pages: go test ./docs -update writes guides.gz", n, len(pages))
	}
	if !slices.ContainsFunc(pages, func(g Guide) bool { return g.Name == "cases/kept-graph" && g.Title != "" }) {
		t.Error("no page of a case")
	}
}
