package jax

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// TestSharedLocations reads a profile whose samples are each at a location of a thousand
// lines, a hundred times, and counts the frames that come of it.
func TestSharedLocations(t *testing.T) {
	varint := func(n int, v uint64) []byte { return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(n<<3)), v) }
	field := func(n int, parts ...[]byte) []byte {
		body := bytes.Join(parts, nil)
		return append(binary.AppendUvarint(binary.AppendUvarint(nil, uint64(n<<3|2)), uint64(len(body))), body...)
	}
	out := append(field(1, varint(1, 1), varint(2, 2)), field(1, varint(1, 3), varint(2, 4))...)
	for _, s := range []string{"", "allocations", "count", "space", "bytes"} {
		out = append(out, field(6, []byte(s))...)
	}
	out = append(out, field(5, varint(1, 1), varint(2, 1))...)
	line := field(4, varint(1, 1), varint(2, 7))
	out = append(out, field(4, varint(1, 1), bytes.Repeat(line, 1000))...)
	sample := field(2, field(1, bytes.Repeat([]byte{1}, 100)), field(2, []byte{1, 64}))
	out = append(out, bytes.Repeat(sample, 2000)...)
	f, err := Read(bytes.NewReader(out))
	if err != nil {
		t.Fatal(err)
	}
	frames := 0
	for _, u := range f.Uses {
		frames += len(u.Stack)
	}
	if f.Partial == nil || len(f.Uses) == 0 || frames > 3_000_000 {
		t.Errorf("%d frames of %d bytes, %v", frames, len(out), f.Partial)
	}
}
