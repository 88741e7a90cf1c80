package recording

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"

	"strandline/internal/packed"
)

// line is what a line of the file can hold.
type line struct {
	*Header  `json:",omitempty"`
	Stack    *Stack    `json:"stack,omitempty"`
	Sample   *Sample   `json:"mark,omitempty"`
	Document *Document `json:"document,omitempty"`
	GPU      *GPUState `json:"gpu,omitempty"`
}

// A Writer appends to a recording.
type Writer struct {
	f      *os.File
	disk   *flusher
	begun  bool
	known  map[int]bool
	held   map[int]Held
	owners map[[2]string]GPUOwner
}

// Create creates the file of a recording, which [Writer.Begin] starts. An existing file
// is left alone.
func Create(path string) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &Writer{f: f, disk: newFlusher(f.Sync), known: map[int]bool{}, held: map[int]Held{}, owners: map[[2]string]GPUOwner{}}, nil
}

// Begin writes what is recorded.
func (w *Writer) Begin(h Header) error {
	h.Schema = schema
	w.begun = true
	return w.write(line{Header: &h})
}

// write appends a line in one piece.
func (w *Writer) write(l line) error {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(l); err != nil {
		return err
	}
	_, err := w.f.Write(b.Bytes())
	return err
}

// Sample writes a moment. held is what all stacks hold, m.GPU what all owners of GPU
// driver memory hold; those that hold the same as before are left out, and the frames
// of new stacks are written first.
func (w *Writer) Sample(m Sample, held []Stack) error {
	sums := map[int]Held{}
	for i := range held {
		s := &held[i]
		if s.ID > 0 && !w.known[s.ID] {
			w.known[s.ID] = true
			if err := w.write(line{Stack: &Stack{ID: s.ID, Call: s.Call, Complete: s.Complete, Frames: s.Frames}}); err != nil {
				return err
			}
		}
		sum := sums[s.ID]
		sums[s.ID] = Held{s.ID, sum.Bytes + s.LiveBytes, sum.Count + s.LiveCount}
	}
	m.Stacks = []Held{}
	for i := range held {
		id := held[i].ID
		if h, ok := sums[id]; ok && h != w.held[id] {
			m.Stacks = append(m.Stacks, h)
			w.held[id] = h
		}
		delete(sums, id)
	}
	m.GPU = w.changed(m.GPU)
	if err := w.write(line{Sample: &m}); err != nil {
		return err
	}
	return w.disk.flush()
}

// changed returns the owners that hold something other than before. An owner that is no
// longer in a sample holds nothing.
func (w *Writer) changed(owners []GPUOwner) (out []GPUOwner) {
	gone := maps.Clone(w.owners)
	for _, o := range owners {
		key := [2]string{o.Owner, o.Memory}
		delete(gone, key)
		if w.owners[key] != o {
			w.owners[key] = o
			out = append(out, o)
		}
	}
	for _, key := range slices.SortedFunc(maps.Keys(gone), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		delete(w.owners, key)
		out = append(out, GPUOwner{Owner: key[0], Memory: key[1]})
	}
	return out
}

// Document writes the judgment so far.
func (w *Writer) Document(d *Document) error {
	if err := w.write(line{Document: d}); err != nil {
		return err
	}
	return w.disk.flush()
}

// GPU writes what is known about devices' memory.
func (w *Writer) GPU(s *GPUState) error { return w.write(line{GPU: s}) }

// Close ends the recording. The file of a recording that has not begun is removed.
func (w *Writer) Close() error {
	err := errors.Join(w.disk.close(), w.f.Close())
	if !w.begun {
		err = errors.Join(err, os.Remove(w.f.Name()))
	}
	return err
}

// A Run is a recording that was read.
type Run struct {
	Header
	Samples  []Sample
	Stacks   map[int]Stack // as written, with frames and without sums
	Document *Document     // the last judgment, or what the samples show if there is none
	Judged   bool          // there is a judgment
	GPU      *GPUState     // the last; nil if there is none
	Partial  error         // why reading ended before the end; nil if it did not
}

// longest is longer than any line.
const longest = 256 << 20

// What is kept of a recording is limited to a fixed sum, in bytes, plus a multiple of
// the size of the file. The recordings that `strandline trace` writes need a few bytes
// for each byte of the file.
const (
	freeBytes = 32 << 20
	perByte   = 24
)

// cost is an upper bound on the memory that a line takes: a brace begins a struct, the
// largest of which has a few hundred bytes, and a comma an element of a list.
func cost(line []byte) int64 {
	const object, element = 512, 48
	return int64(len(line)) + object*int64(bytes.Count(line, []byte("{"))) + element*int64(bytes.Count(line, []byte(",")))
}

// Is reports whether a file begins as a recording does.
func Is(r io.Reader) bool {
	head := make([]byte, 64)
	n, _ := io.ReadFull(r, head)
	return bytes.HasPrefix(head[:n], []byte(`{"schema":"strandline.recording/`))
}

// Read reads a recording. A recording that was cut off, as by a crash, is read up to
// that point.
func Read(r io.Reader) (*Run, error) {
	run := &Run{Stacks: map[int]Stack{}}
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 64<<10), longest)
	in.Split(packed.WholeLines)
	left := int64(freeBytes)
	for n := 1; in.Scan(); n++ {
		var l line
		if left += perByte*int64(len(in.Bytes())) - cost(in.Bytes()); left < 0 {
			run.Partial = fmt.Errorf("line %d: the file asks for more memory than its size accounts for", n)
			break
		}
		if err := json.Unmarshal(in.Bytes(), &l); err != nil {
			if n == 1 {
				return nil, errNone
			}
			run.Partial = fmt.Errorf("line %d: %w", n, err)
			break
		}
		if n == 1 {
			if l.Header == nil || l.Schema != schema {
				return nil, errNone
			}
			run.Header = *l.Header
			continue
		}
		run.take(&l)
	}
	if err := in.Err(); err != nil && run.Partial == nil {
		run.Partial = err
		if errors.Is(err, io.ErrUnexpectedEOF) {
			run.Partial = errCut
		}
	}
	if run.Schema == "" {
		return nil, errNone
	}
	if run.Document == nil {
		run.Document = run.fromSamples()
	}
	return run, nil
}

var errNone = errors.New("this is not a recording of strandline trace, or one of a version that is not known")

func (run *Run) take(l *line) {
	switch {
	case l.Stack != nil:
		run.Stacks[l.Stack.ID] = *l.Stack
	case l.Sample != nil:
		run.Samples = append(run.Samples, *l.Sample)
	case l.Document != nil:
		run.Document, run.Judged = l.Document, true
	case l.GPU != nil:
		run.GPU = l.GPU
	}
}

var errCut = errors.New("the last line is cut off")

// fromSamples returns what the samples show if no judgment was written.
func (run *Run) fromSamples() *Document {
	d := &Document{Schema: DocumentSchema, PID: run.PID, Backend: run.Backend, Stacks: []Stack{}}
	if len(run.Samples) == 0 {
		return d
	}
	last := run.Samples[len(run.Samples)-1]
	d.Duration, d.RSS, d.RSSGrowth, d.Drops = last.Seconds, last.RSS, last.RSS-run.Samples[0].RSS, last.Drops
	d.Growth = Growth{Anonymous: last.Anonymous, File: last.File, Shared: last.Shared}
	held := map[int]Held{}
	for _, m := range run.Samples {
		for _, h := range m.Stacks {
			held[h.ID] = h
		}
	}
	for id, s := range run.Stacks {
		s.LiveBytes, s.LiveCount = held[id].Bytes, held[id].Count
		d.Stacks = append(d.Stacks, s)
	}
	slices.SortFunc(d.Stacks, func(a, b Stack) int { return cmp.Compare(b.LiveBytes, a.LiveBytes) })
	return d
}
