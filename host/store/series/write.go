package series

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"strandline/host/sampling/sample"
	"strandline/host/store/journal"
	"strandline/internal/budget"
	"strandline/internal/safefile"
)

// A Writer appends to a recording. There is one for a file at a time.
type Writer struct {
	f        *os.File
	path     string
	maxBytes int64 // bytes of the file
	run      int64

	state *state
	out   *journal.Writer
	lines int // of the frame; 0 if none is begun
}

// errBusy states that another watch writes to the file.
var errBusy = errors.New("another watch writes to this file")

// minSize is the least bound of a file.
const minSize = 64 << 10

// perFrame is how many lines a frame has: what of it is torn is lost at most.
const perFrame = 600

// Open creates a recording, or goes on with one. The file will not become larger than
// maxBytes: when it would, every other sample of it is dropped.
func Open(path string, maxBytes int64) (*Writer, error) {
	f, err := safefile.Edit(path)
	if err != nil {
		return nil, err
	}
	w := newWriter(f, path, maxBytes)
	if err := w.begin(); err != nil {
		f.Close()
		return nil, err
	}
	return w, nil
}

func newWriter(f *os.File, path string, maxBytes int64) *Writer {
	return &Writer{f: f, path: path, maxBytes: max(maxBytes, minSize), run: time.Now().UnixNano()}
}

func (w *Writer) begin() (err error) {
	if err := lock(w.f); err != nil {
		return err
	}
	w.out, err = journal.NewWriter(w.f, journal.Watch)
	if errors.Is(err, journal.ErrOther) {
		return fmt.Errorf("%s: %w; it is left alone", w.path, ErrOther)
	}
	return err
}

// Add appends a sample. After an error, such as that of a full disk, the recording is
// whole up to the sample before, and the next one can be added.
func (w *Writer) Add(s *sample.Sample) error {
	if w.lines == 0 || w.lines == perFrame {
		w.out.Begin(header{journal.Schema, of, w.run})
		w.state, w.lines = newState(), 0
	}
	w.lines++
	w.out.Line(w.state.changes(s))
	if err := w.out.Flush(); err != nil {
		w.lines = 0
		return err
	}
	if w.out.Size() > w.maxBytes {
		return w.thin()
	}
	return nil
}

// Close ends the recording.
func (w *Writer) Close() error {
	return errors.Join(w.out.End(), w.f.Sync(), w.f.Close())
}

// thin rewrites the file with every other sample, and puts it in place of the old
// one at once: whoever reads the old one reads it to its end.
func (w *Writer) thin() error {
	out, err := safefile.Create(context.Background(), w.path)
	if err != nil {
		return err
	}
	defer out.Close()
	thinner := newWriter(out.File, w.path, 1<<62)
	if err := thinner.begin(); err != nil {
		return err
	}
	if err := w.copyInto(thinner); err != nil {
		return err
	}
	f, err := out.Keep()
	if err != nil {
		return err
	}
	w.f.Close()
	w.f, w.out, w.lines = f, thinner.out, 0
	return nil
}

func (w *Writer) copyInto(to *Writer) error {
	const ample = 16 * budget.Packed // nothing that a watch has written is lost
	n, size := 0, w.out.Size()
	_, err := readAll(io.NewSectionReader(w.f, 0, size), budget.Of(size, ample), func(s *sample.Sample) error {
		if n++; n%2 == 0 && s.Over == nil {
			return nil
		}
		return to.Add(s)
	}, func(error) {})
	if err != nil {
		return err
	}
	return errors.Join(to.out.End(), to.f.Sync())
}
