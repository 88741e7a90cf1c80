package malloc

import _ "embed"

// library is what build.sh builds.
//
//go:embed object/library_amd64.so
var library []byte
