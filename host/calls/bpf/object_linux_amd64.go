package bpf

import _ "embed"

//go:embed object/mappings.o
var object []byte
