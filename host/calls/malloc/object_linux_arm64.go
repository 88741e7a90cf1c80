package malloc

import _ "embed"

// library is what build.sh builds.
//
//go:embed object/library_arm64.so
var library []byte
