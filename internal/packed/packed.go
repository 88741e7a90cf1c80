// Package packed reads files that may be compressed (gzip, zstd), within bounds
// of memory. It looks at the first bytes, not at the name, and does not read
// archives. What it returns may still unpack to any size: the reader must stop. Of files
// that a crash may have cut off it reads the lines that are whole.
package packed

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"io"
	"strings"

	"github.com/klauspost/compress/zstd"
)

// Open unpacks what begins as gzip or zstd does; size is the number of packed
// bytes, 0 if it is unknown. What is neither comes as it is, under the name "".
func Open(in *bufio.Reader, size int64) (r io.ReadCloser, compression string, err error) {
	head, _ := in.Peek(4)
	switch {
	case bytes.HasPrefix(head, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(in)
		return z, "gzip", err
	case IsZstd(head):
		z, err := zstd.NewReader(in, zstd.WithDecoderMaxWindow(window(size)), zstd.WithDecoderConcurrency(2), zstd.WithDecoderLowmem(true))
		if err != nil {
			return nil, "zstd", err
		}
		return z.IOReadCloser(), "zstd", nil
	}
	return io.NopCloser(in), "", nil
}

// Own unpacks a file of the program itself, compressed by gzip to keep the program small.
func Own(data []byte) []byte {
	z, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		panic(err)
	}
	out, err := io.ReadAll(z)
	if err != nil {
		panic(err)
	}
	return out
}

// A Text is one of those that the program holds in a file together. Neither has a zero byte.
type Text struct{ Name, Text string }

// between is before the name of each text.
const between = "\x00"

// OwnTexts unpacks such a file of the program itself.
func OwnTexts(data []byte) (out []Text) {
	for part := range strings.SplitSeq(string(Own(data)), between) {
		if name, text, ok := strings.Cut(part, "\n"); ok {
			out = append(out, Text{name, text})
		}
	}
	return out
}

// Texts makes such a file.
func Texts(list []Text) []byte {
	var out bytes.Buffer
	z, err := gzip.NewWriterLevel(&out, gzip.BestCompression)
	if err != nil {
		panic(err) // no such level
	}
	for _, t := range list {
		z.Write([]byte(between + t.Name + "\n" + t.Text)) // into memory
	}
	z.Close()
	return out.Bytes()
}

// IsZstd reports whether a file that begins with head is compressed with zstd.
func IsZstd(head []byte) bool { return bytes.HasPrefix(head, []byte{0x28, 0xb5, 0x2f, 0xfd}) }

// window is the largest window of zstd that is accepted, in bytes: a frame declares
// it, and it is taken in memory at once. The usual levels ask for 8 MiB at most,
// --ultra --long=27 for 128.
func window(size int64) uint64 {
	const usual, maxWindow, ratio = 8 << 20, 128 << 20, 64
	if size == 0 { // not known
		return maxWindow
	}
	return uint64(min(max(ratio*size, usual), maxWindow))
}

// WholeLines is a [bufio.SplitFunc] for lines without their ends. A remainder without a
// line end is what was not written: the error is [io.ErrUnexpectedEOF].
func WholeLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return 0, nil, io.ErrUnexpectedEOF
	}
	return 0, nil, nil
}
