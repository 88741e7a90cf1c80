// Package licenses holds the notices of the software that strandline is built from,
// for `strandline version --licenses` and the static site. A test compares the list
// with go.mod and the page's packages.
package licenses

import _ "embed" // THIRD_PARTY

// Text is the name, the version and the license of each module of others, of which
// the program, its page or the static site have parts. The package's test writes
// it (-update) and checks that it names what go.mod and ui/package-lock.json do.
//
//go:embed THIRD_PARTY
var Text string
