package bpf

import (
	"bytes"

	"github.com/cilium/ebpf"

	"strandline/internal/packed"
)

// load reads a compressed object.
func load(object []byte) (*ebpf.CollectionSpec, error) {
	return ebpf.LoadCollectionSpecFromReader(bytes.NewReader(packed.Own(object)))
}
