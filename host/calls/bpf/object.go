package bpf

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"

	"github.com/cilium/ebpf"
)

// load reads a compressed object.
func load(object []byte) (*ebpf.CollectionSpec, error) {
	r, err := gzip.NewReader(bytes.NewReader(object))
	if err != nil {
		return nil, fmt.Errorf("the built-in programs: %w", err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		return nil, fmt.Errorf("the built-in programs: %w", err)
	}
	return ebpf.LoadCollectionSpecFromReader(bytes.NewReader(plain))
}
