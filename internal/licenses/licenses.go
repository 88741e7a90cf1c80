// Package licenses holds the notices of the software that strandline is built from,
// for `strandline version --licenses`, the static site and the list of a release's parts.
// A test compares the list with the programs and the page's packages.
package licenses

import (
	_ "embed" // THIRD_PARTY.gz
	"strings"
	"sync"

	"strandline/internal/packed"
)

//go:embed THIRD_PARTY.gz
var text []byte

// Text is the name, the version and the license of each module of others, of which
// the program, its page or the static site have parts. The package's test writes
// it (-update) and checks that it names what they are built from.
var Text = sync.OnceValue(func() string { return string(packed.Own(text)) })

// rule is the line above and below the name of each part in [Text].
const rule = "================================================================================\n"

// A Notice is the license of a part.
type Notice struct {
	Name, Version string // Go's or npm's; the version starts with "v" for Go alone
	Text          string
}

// Notices are those of [Text], in its order. The first is Go's standard library, without a
// version.
func Notices() (out []Notice) {
	parts := strings.Split(Text(), rule)
	for i := 1; i+1 < len(parts); i += 2 {
		name, version, _ := strings.Cut(strings.TrimSpace(parts[i]), " ")
		out = append(out, Notice{Name: name, Version: version, Text: strings.TrimSpace(parts[i+1])})
	}
	return out
}
