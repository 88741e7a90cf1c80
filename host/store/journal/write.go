// Package journal is the format of the files that strandline records: lines of JSON in
// frames of zstd. Such a file can be read while it is written and after its writer was
// killed, and standard tools decompress it. docs/recordings.md describes it.
package journal

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"
)

// Schema is the schema of the files that are written.
const Schema = "strandline.recording/3"

// A Kind is what a recording is of. The first byte of the file is its value.
type Kind byte

// The kinds.
const (
	Trace Kind = 0x5D
	Watch Kind = 0x5E
)

// marker is the skippable frame before each frame: a reader finds the next frame by it.
func (k Kind) marker() []byte {
	const magic, name = 0x184D2A00, "strandline"
	b := binary.LittleEndian.AppendUint32(nil, magic|uint32(k))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(name)))
	return append(b, name...)
}

// Is reports whether a file begins as a recording of a kind does.
func Is(r io.Reader, k Kind) bool {
	head := make([]byte, len(k.marker()))
	_, err := io.ReadFull(r, head)
	return err == nil && bytes.Equal(head, k.marker())
}

// ErrOther is the error for a file that is not a recording of the kind, or one of a
// version that is not known.
var ErrOther = errors.New("not a recording")

// A Writer appends to a file. Its lines are written together by [Writer.Flush].
type Writer struct {
	f    file
	kind Kind
	size int64 // of what is written whole
	z    *zstd.Encoder
	out  bytes.Buffer
	open bool // a frame is begun
	err  error
}

// file is what of [os.File] is used.
type file interface {
	io.WriterAt
	Truncate(size int64) error
}

// NewWriter returns a writer that continues a file of the kind, or an empty one.
func NewWriter(f *os.File, k Kind) (*Writer, error) {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return nil, err
	}
	if size > 0 && !Is(io.NewSectionReader(f, 0, size), k) {
		return nil, ErrOther
	}
	z, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(256<<10), zstd.WithLowerEncoderMem(true))
	if err != nil {
		return nil, err
	}
	return &Writer{f: f, kind: k, size: size, z: z}, nil
}

// Size is the size of what is written, bytes.
func (w *Writer) Size() int64 { return w.size }

// Begin ends the current frame and begins another one, whose first line is the header.
func (w *Writer) Begin(header any) {
	w.end()
	// the end of the frame before is written with the beginning of this one
	w.out.Write(w.kind.marker())
	w.z.Reset(&w.out)
	w.open = true
	w.Line(header)
}

var errNoFrame = errors.New("no frame is begun")

// Line adds a line to the current frame.
func (w *Writer) Line(v any) {
	if !w.open {
		w.err = errors.Join(w.err, errNoFrame)
		return
	}
	enc := json.NewEncoder(w.z)
	enc.SetEscapeHTML(false)
	w.err = errors.Join(w.err, enc.Encode(v))
}

// Flush writes the lines to the end of the file, in one piece. After an error, such as
// that of a full disk, the file is as before, and a new frame must be begun.
func (w *Writer) Flush() error {
	if w.open {
		w.err = errors.Join(w.err, w.z.Flush())
	}
	return w.write()
}

// End ends the current frame, and writes it.
func (w *Writer) End() error {
	w.end()
	return w.write()
}

func (w *Writer) end() {
	if w.open {
		w.err = errors.Join(w.err, w.z.Close())
		w.open = false
	}
}

func (w *Writer) write() error {
	n, err := 0, w.err
	if err == nil {
		n, err = w.f.WriteAt(w.out.Bytes(), w.size)
	}
	w.out.Reset()
	w.err = nil
	if err != nil {
		w.open = false
		w.f.Truncate(w.size)
		return err
	}
	w.size += int64(n)
	return nil
}
