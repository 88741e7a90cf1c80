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

// between is before the name of each page.
const between = "\x00"

// Guides are all pages, by name; those of cases are named after their folder, too.
var Guides = sync.OnceValue(func() (out []Guide) {
	for part := range strings.SplitSeq(string(packed.Own(text)), between) {
		if name, page, ok := strings.Cut(part, "\n"); ok {
			title, _, _ := strings.Cut(page, "\n")
			out = append(out, Guide{name, strings.TrimPrefix(title, "# "), page})
		}
	}
	return out
})
