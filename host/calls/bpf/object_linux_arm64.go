package bpf

import _ "embed"

//go:embed object/mappings_arm64.o.gz
var object []byte
