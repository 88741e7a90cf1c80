// Package docs holds the guides, for `strandline help guide`. A test compares them with the
// pages of this folder.
package docs

import (
	_ "embed" // guides.gz
	"strings"
	"sync"

	"strandline/internal/packed"
)

// text is the pages, each behind its name; go test ./docs -update writes it.
//
//go:embed guides.gz
var text []byte

// A Guide is a page of the documentation.
type Guide struct{ Name, Title, Text string } // Text is Markdown

// Guides are all pages, by name; those of cases are named after their folder, too.
var Guides = sync.OnceValue(func() (out []Guide) {
	for _, page := range packed.OwnTexts(text) {
		title, _, _ := strings.Cut(page.Text, "\n")
		out = append(out, Guide{page.Name, strings.TrimPrefix(title, "# "), page.Text})
	}
	return out
})
