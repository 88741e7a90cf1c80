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
	begun  bool
	known  map[int]bool
	held   map[int]Held
	owners map[[2]string]GPUOwner
}

// Create makes the file of a recording, which [Writer.Begin] begins. A file that
// is there already is left alone.
func Create(path string) (*Writer, error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	return &Writer{f: f, known: map[int]bool{}, held: map[int]Held{}, owners: map[[2]string]GPUOwner{}}, nil
}

// Begin notes what is recorded.
func (w *Writer) Begin(h Header) error {
	h.Schema = Schema
	w.begun = true
	return w.write(line{Header: &h})
}

// write puts a line at the end in one piece.
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

// Sample notes a moment. Held is what all stacks hold, m.GPU what all owners of
// memory of the GPU's driver do; those that hold the same as before are left out,
// and the frames of stacks that are new are noted first.
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
	return w.f.Sync()
}

// changed are the owners that hold something else than before. One that is not
// in a mark any more holds nothing.
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

// Document notes the judgement so far.
func (w *Writer) Document(d *Document) error {
	if err := w.write(line{Document: d}); err != nil {
		return err
	}
	return w.f.Sync()
}

// GPU notes what is known of devices' memory.
func (w *Writer) GPU(s *GPUState) error { return w.write(line{GPU: s}) }

// Close ends the recording. The file of one that has not begun is removed.
func (w *Writer) Close() error {
	err := w.f.Close()
	if !w.begun {
		err = errors.Join(err, os.Remove(w.f.Name()))
	}
	return err
}

// A Run is a recording that was read.
type Run struct {
	Header
	Samples  []Sample
	Stacks   map[int]Stack // as they were noted, with frames and without sums
	Document *Document     // the last judgement, or what the samples show if there is none
	Judged   bool          // there is one
	GPU      *GPUState     // the last; nil if there is none
	Partial  error         // why reading ended before the end; nil if it did not
}

// longest is more than any line has.
const longest = 256 << 20

// What is kept of a recording may come to a fixed sum, in bytes, and a multiple of
// the bytes of the file. Those that `strandline trace` writes need a few for each.
const (
	freeBytes = 32 << 20
	perByte   = 24
)

// cost is at most the memory that a line takes: a brace begins a struct, of which
// the largest has some hundred bytes, and a comma an element of a list.
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

// Read reads a recording. One that was cut off, as by a crash, is read up to
// there.
func Read(r io.Reader) (*Run, error) {
	run := &Run{Stacks: map[int]Stack{}}
	in := bufio.NewScanner(r)
	in.Buffer(make([]byte, 0, 64<<10), longest)
	in.Split(wholeLines)
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
			if l.Header == nil || l.Schema != Schema {
				return nil, errNone
			}
			run.Header = *l.Header
			continue
		}
		run.take(&l)
	}
	if err := in.Err(); err != nil && run.Partial == nil {
		run.Partial = err
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

// wholeLines splits at line ends; a rest without one is what a crash left.
func wholeLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i], nil
	}
	if atEOF && len(data) > 0 {
		return 0, nil, errCut
	}
	return 0, nil, nil
}

// fromSamples is what the samples show where no judgement was noted.
func (run *Run) fromSamples() *Document {
	d := &Document{Schema: "strandline.trace/1", PID: run.PID, Rung: run.Rung, Stacks: []Stack{}}
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
