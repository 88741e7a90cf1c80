package series

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/klauspost/compress/zstd"

	"strandline/host/sample"
)

// A Writer appends to a recording. There is one for a file at a time.
type Writer struct {
	f    *os.File
	path string
	most int64 // bytes of the file
	run  int64

	size  int64 // of what is written whole
	state *state
	z     *zstd.Encoder
	out   bytes.Buffer
	lines int // of the frame; 0 if none is begun
}

// errBusy says that another watch writes to the file.
var errBusy = errors.New("another watch writes to this file")

// leastSize is the least bound of a file.
const leastSize = 64 << 10

// perFrame is how many lines a frame has: what of it is torn is lost at most.
const perFrame = 600

// Open creates a recording, or goes on with one. The file will not become larger than
// most bytes: when it would, every other sample of it is dropped.
func Open(path string, most int64) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, err
	}
	w := &Writer{f: f, path: path, most: max(most, leastSize), run: time.Now().UnixNano()}
	if err := w.begin(); err != nil {
		f.Close()
		return nil, err
	}
	return w, nil
}

func (w *Writer) begin() (err error) {
	if err := lock(w.f); err != nil {
		return err
	}
	if w.size, err = w.f.Seek(0, io.SeekEnd); err != nil {
		return err
	}
	if w.size > 0 && !Is(io.NewSectionReader(w.f, 0, w.size)) {
		return fmt.Errorf("%s: %w; it is left alone", w.path, errOther)
	}
	w.z, err = zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.SpeedFastest), zstd.WithEncoderConcurrency(1), zstd.WithWindowSize(256<<10), zstd.WithLowerEncoderMem(true))
	return err
}

// Add appends a sample. After an error, such as that of a full disk, the recording is
// whole up to the sample before, and the next one can be added.
func (w *Writer) Add(s *sample.Sample) error {
	err := w.add(s)
	if err != nil {
		w.lines = 0
		w.out.Reset()
		w.f.Truncate(w.size)
		return err
	}
	if w.size > w.most {
		return w.thin()
	}
	return nil
}

func (w *Writer) add(s *sample.Sample) error {
	if w.lines == perFrame {
		if err := w.z.Close(); err != nil {
			return err
		}
		w.lines = 0
	}
	if w.lines == 0 {
		// the end of the frame before is written with the beginning of this one
		w.out.Write(marker)
		w.z.Reset(&w.out)
		w.state = newState()
		if err := w.encode(header{fileSchema, w.run}); err != nil {
			return err
		}
	}
	w.lines++
	if err := w.encode(w.state.changes(s)); err != nil {
		return err
	}
	if err := w.z.Flush(); err != nil {
		return err
	}
	return w.write()
}

func (w *Writer) encode(v any) error {
	enc := json.NewEncoder(w.z)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// write puts what is encoded at the end of the file, in one piece.
func (w *Writer) write() error {
	defer w.out.Reset()
	n, err := w.f.WriteAt(w.out.Bytes(), w.size)
	if err == nil {
		w.size += int64(n)
	}
	return err
}

// Close ends the recording.
func (w *Writer) Close() error {
	var err error
	if w.lines > 0 {
		if err = w.z.Close(); err == nil {
			err = w.write()
		}
	}
	return errors.Join(err, w.f.Sync(), w.f.Close())
}

// thin writes the file anew with every other sample, and puts it in place of the old
// one at once: whoever reads the old one reads it to its end.
func (w *Writer) thin() error {
	part := w.path + ".thinned"
	os.Remove(part) // of a watch that was killed
	thinner, err := Open(part, 1<<62)
	if err != nil {
		return err
	}
	if err := w.copyInto(thinner); err != nil {
		thinner.f.Close()
		os.Remove(part)
		return err
	}
	if err := os.Rename(part, w.path); err != nil {
		thinner.f.Close()
		os.Remove(part)
		return err
	}
	w.f.Close()
	w.f, w.size, w.lines = thinner.f, thinner.size, 0
	return nil
}

func (w *Writer) copyInto(to *Writer) error {
	n := 0
	_, err := Read(io.NewSectionReader(w.f, 0, w.size), func(s *sample.Sample) error {
		if n++; n%2 == 0 {
			return nil
		}
		return to.Add(s)
	})
	if err != nil {
		return err
	}
	if to.lines > 0 {
		if err := to.z.Close(); err != nil {
			return err
		}
		if err := to.write(); err != nil {
			return err
		}
	}
	return to.f.Sync()
}
