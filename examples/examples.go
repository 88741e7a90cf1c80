// Package examples holds a recording of an example, for programs that exercise themselves.
package examples

import _ "embed" // a file

// Leak is a PyTorch snapshot, a pickle of 2,489 events.
//
//go:embed image-leak/step-4.pickle
var Leak []byte
