// Package docs holds the guides, for `strandline help guide`.
package docs

import (
	"embed"
	"path"
	"strings"
)

//go:embed *.md cases/*.md
var pages embed.FS

// A Guide is a page of the documentation.
type Guide struct{ Name, Title, Text string } // Text is Markdown

// Guides are all pages, by name; those of cases are named after their folder, too.
func Guides() (out []Guide) {
	for _, folder := range []string{".", "cases"} {
		entries, _ := pages.ReadDir(folder) // it is there, and so are its files
		for _, e := range entries {
			if e.IsDir() {
				continue
			}
			name := path.Join(folder, e.Name())
			text, _ := pages.ReadFile(name)
			title, _, _ := strings.Cut(string(text), "\n")
			out = append(out, Guide{strings.TrimSuffix(name, ".md"), strings.TrimPrefix(title, "# "), string(text)})
		}
	}
	return out
}
