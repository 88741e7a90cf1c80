package nvml

import _ "embed"

// program is the reader; build.sh builds it.
//
//go:embed object/reader_arm64
var program []byte
