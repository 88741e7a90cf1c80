//go:build !linux

package cudaalloc

import "encoding/binary"

var order = binary.LittleEndian

// take is not available here.
func (*stateReader) take(uint64, uint64) []byte { return nil }

// records is not available here.
func (*stateReader) records([]uint64, int) ([][]byte, error) { return nil, errState }
