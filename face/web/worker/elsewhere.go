//go:build !js

package main

import (
	"fmt"
	"os"
)

// main refuses to run outside of a browser.
func main() {
	fmt.Fprintln(os.Stderr, "worker: it runs in a browser; `go run ./cmd/site OUT` builds it")
	os.Exit(2)
}
