package bpf

import _ "embed"

//go:embed object/mappings.o.gz
var object []byte
