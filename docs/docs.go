// Package docs holds the guides, for `strandline help guide`.
package docs

import (
	"embed"
	"strings"
)

//go:embed *.md
var pages embed.FS

// A Guide is a page of the documentation.
type Guide struct{ Name, Title, Text string } // Text is Markdown

// Guides are all pages, by name.
func Guides() (out []Guide) {
	entries, _ := pages.ReadDir(".") // it is there, and so are its files
	for _, e := range entries {
		text, _ := pages.ReadFile(e.Name())
		title, _, _ := strings.Cut(string(text), "\n")
		out = append(out, Guide{strings.TrimSuffix(e.Name(), ".md"), strings.TrimPrefix(title, "# "), string(text)})
	}
	return out
}
