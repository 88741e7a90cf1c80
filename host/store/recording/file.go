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

	"strandline/host/store/journal"
	"strandline/internal/budget"
	"strandline/internal/packed"
	"strandline/internal/safefile"
	"strandline/internal/secret"
	"strandline/internal/sorts"
)

// line is what a line of the file can hold.
type line struct {
	*Header  `json:",omitempty"`
	Stack    *Stack    `json:"stack,omitempty"`
	Sample   *Sample   `json:"mark,omitempty"`
	Document *Document `json:"document,omitempty"`
	GPU      *GPUState `json:"gpu,omitempty"`
	HandOver *HandOver `json:"hand_over,omitempty"`
}

// A Writer appends to a recording.
type Writer struct {
	path   string // of the file, which its descriptor need not name
	f      *os.File
	out    *journal.Writer
	disk   *flusher
	rarer  rarer
	begun  bool
	known  map[int]bool
	held   map[int]StackBytes
	owners map[[2]string]GPUOwner
}

// A rarer keeps a file that is never rewritten below its bound, however long it is written
// to: with half of the room filled that was left, a fourth of the moments are written.
type rarer struct {
	maxBytes, full int64 // bytes; at full, moments become rarer
	stride, waits  int64
}

// due reports whether the next moment is written, by the size of the file.
func (r *rarer) due(size int64) bool {
	for size >= r.full && r.full < r.maxBytes {
		r.full += (r.maxBytes - r.full + 1) / 2
		r.stride *= 4 // so that each half lasts twice as long as the one before
	}
	if r.waits++; r.waits < r.stride || size >= r.maxBytes {
		return false
	}
	r.waits = 0
	return true
}

// Create creates the file of a recording, which [Writer.Begin] starts. An existing file
// is left alone. As it comes closer to maxBytes, moments become rarer in it; judgments,
// of which there are few, are always written.
func Create(path string, maxBytes int64) (*Writer, error) {
	f, err := safefile.New(path)
	if err != nil {
		return nil, err
	}
	out, err := journal.NewWriter(f, journal.Trace)
	if err != nil {
		f.Close()
		return nil, err
	}
	return &Writer{path: path, f: f, out: out, disk: newFlusher(f.Sync), rarer: rarer{maxBytes: maxBytes, full: maxBytes / 2, stride: 1}, known: map[int]bool{}, held: map[int]StackBytes{}, owners: map[[2]string]GPUOwner{}}, nil
}

// Begin writes what is recorded.
func (w *Writer) Begin(h Header) error {
	h.Schema, h.Of = journal.Schema, of
	w.begun = true
	w.out.Begin(line{Header: &h})
	return w.out.Flush()
}

// Sample writes a moment. held is what all stacks hold, m.GPU what all owners of GPU
// driver memory hold; those that hold the same as before are left out, and the frames
// of new stacks are written first.
func (w *Writer) Sample(m Sample, held []Stack) error {
	if !w.rarer.due(w.out.Size()) {
		return nil // the next one states what changed since the last that was written
	}
	sums := map[int]StackBytes{}
	for i := range held {
		s := &held[i]
		if s.ID > 0 && !w.known[s.ID] {
			w.known[s.ID] = true
			w.out.Line(line{Stack: &Stack{ID: s.ID, Call: s.Call, Complete: s.Complete, Frames: s.Frames}})
		}
		sum := sums[s.ID]
		sums[s.ID] = StackBytes{s.ID, sum.Bytes + s.LiveBytes, sum.Count + s.LiveCount}
	}
	m.Stacks = []StackBytes{}
	for i := range held {
		id := held[i].ID
		if h, ok := sums[id]; ok && h != w.held[id] {
			m.Stacks = append(m.Stacks, h)
			w.held[id] = h
		}
		delete(sums, id)
	}
	m.GPU = w.changed(m.GPU)
	return w.write(line{Sample: &m})
}

// write writes a line, with those before it that are not written yet.
func (w *Writer) write(l line) error {
	w.out.Line(l)
	if err := w.out.Flush(); err != nil {
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
	for _, key := range sorts.Collect(maps.Keys(gone), func(a, b [2]string) int { return slices.Compare(a[:], b[:]) }) {
		delete(w.owners, key)
		out = append(out, GPUOwner{Owner: key[0], Memory: key[1]})
	}
	return out
}

// Document writes the judgment so far.
func (w *Writer) Document(d *Document) error { return w.write(line{Document: d}) }

// GPU writes what is known about devices' memory.
func (w *Writer) GPU(s *GPUState) error { return w.write(line{GPU: s}) }

// HandOver writes a hand-over, unless the file is full.
func (w *Writer) HandOver(h *HandOver) error {
	if w.out.Size() >= w.rarer.maxBytes {
		return nil
	}
	return w.write(line{HandOver: h})
}

// Close ends the recording. The file of a recording that has not begun is removed.
func (w *Writer) Close() error {
	err := errors.Join(w.out.End(), w.disk.flush(), w.disk.close(), w.f.Close())
	if !w.begun {
		err = errors.Join(err, os.Remove(w.path))
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
	// HandOvers are in the order of their ends.
	HandOvers []HandOver
	Partial   error // why reading ended before the end; nil if it did not
}

// longest is longer than any line.
const longest = 256 << 20

// Is reports whether a file begins as a recording does.
func Is(r io.Reader) bool {
	in := bufio.NewReader(r)
	return isFormer(in) || journal.Is(in, journal.Trace)
}

// isFormer reports whether a file is one of lines without frames.
func isFormer(in *bufio.Reader) bool {
	const begins = `{"schema":"strandline.recording/`
	head, _ := in.Peek(len(begins))
	return string(head) == begins
}

// Read reads a recording. A recording that was cut off, as by a crash, is read up to
// that point.
func Read(r io.Reader) (*Run, error) {
	in := bufio.NewReaderSize(r, 64<<10)
	reading := &reader{run: &Run{Stacks: map[int]Stack{}}}
	run := reading.run
	var err error
	if isFormer(in) {
		r, reading.budget = budget.Reader(in, budget.Plain)
		err = reading.former(r)
	} else { // some need up to 150 bytes for each, where stacks are deep
		r, reading.budget = budget.Reader(in, budget.Packed)
		err = journal.Read(r, journal.Trace, reading.budget, reading)
	}
	if run.Schema == "" {
		return nil, errNone
	}
	if err != nil && !errors.Is(err, errEnough) {
		run.Partial = cmp.Or(run.Partial, err)
	}
	if run.Document == nil {
		run.Document = run.documentFromSamples()
	}
	run.nameProcess()
	return run, nil
}

// nameProcess names the traced process in findings of earlier versions, which named one
// only where several were watched.
func (run *Run) nameProcess() {
	d := run.Document
	if len(d.Processes) > 1 || run.PID <= 0 {
		return
	}
	name := fmt.Sprintf("pid %d", run.PID)
	if run.Name != "" {
		name += " (" + run.Name + ")"
	}
	for i := range d.Findings {
		d.Findings[i].Process = cmp.Or(d.Findings[i].Process, name)
	}
}

var (
	errNone   = errors.New("this is not a recording of strandline trace, or one of a version that is not known")
	errCut    = errors.New("the last line is cut off")
	errEnough = errors.New("what follows is not read") // why is in Partial
)

// reader takes the lines of a recording.
type reader struct {
	run      *Run
	budget   *budget.Budget
	document int // the cost of the last judgment, which the next one replaces
	lines    int
}

// Header reads the first line. Those of later frames are the same.
func (r *reader) Header(text []byte) (bad error) {
	r.lines++
	var l line
	if json.Unmarshal(text, &l) != nil || l.Header == nil {
		return errNone
	}
	if l.Schema != formerSchema && (l.Schema != journal.Schema || l.Of != of) {
		return errNone
	}
	journal.Clip(&l.Header.Name)
	r.run.Header = *l.Header
	return nil
}

// Line reads a line. Each is based on those before it, so a bad one is the last.
func (r *reader) Line(text []byte) (bad, err error) {
	if r.run.Partial != nil {
		return nil, errEnough
	}
	r.lines++
	if bytes.HasPrefix(text, []byte(`{"document":`)) {
		r.budget.Return(r.document)
		r.document = budget.JSON(text)
	}
	var l line
	if err := json.Unmarshal(text, &l); err != nil {
		r.run.Partial = fmt.Errorf("line %d: %w", r.lines, err)
		return nil, errEnough
	}
	r.run.take(&l)
	return nil, nil
}

// Unreadable notes why a part is left out. What follows it is, too.
func (r *reader) Unreadable(why error) { r.run.Partial = cmp.Or(r.run.Partial, why) }

// former reads lines without frames.
func (r *reader) former(in io.Reader) error {
	lines := bufio.NewScanner(in)
	lines.Buffer(make([]byte, 0, 64<<10), longest)
	lines.Split(packed.WholeLines)
	if !lines.Scan() || r.Header(lines.Bytes()) != nil {
		return errNone
	}
	for lines.Scan() {
		if err := r.budget.Spend(budget.JSON(lines.Bytes()), "lines"); err != nil {
			return fmt.Errorf("line %d: %w", r.lines+1, err)
		}
		if _, err := r.Line(lines.Bytes()); err != nil {
			return err
		}
	}
	if errors.Is(lines.Err(), io.ErrUnexpectedEOF) {
		return errCut
	}
	return lines.Err()
}

func (run *Run) take(l *line) {
	switch {
	case l.Stack != nil:
		run.Stacks[l.Stack.ID] = *l.Stack
	case l.Sample != nil:
		run.Samples = append(run.Samples, *l.Sample)
	case l.Document != nil:
		run.Document, run.Judged = l.Document, true
		l.Document.clip()
		for i := range l.Document.Processes { // versions before this one kept secrets
			p := &l.Document.Processes[i]
			p.Command = secret.Line(p.Command)
		}
	case l.GPU != nil:
		run.GPU = l.GPU
	case l.HandOver != nil:
		run.HandOvers = append(run.HandOvers, *l.HandOver)
	}
}

// documentFromSamples returns what the samples show if no judgment was written.
func (run *Run) documentFromSamples() *Document {
	d := &Document{Schema: DocumentSchema, PID: run.PID, Backend: run.Backend, Stacks: []Stack{}}
	if len(run.Samples) == 0 {
		return d
	}
	last := run.Samples[len(run.Samples)-1]
	d.Duration, d.RSS, d.RSSGrowth, d.Drops = last.Seconds, last.RSS, last.RSS-run.Samples[0].RSS, last.Drops
	d.Growth = Growth{Anonymous: last.Anonymous, File: last.File, Shared: last.Shared}
	held := map[int]StackBytes{}
	for _, m := range run.Samples {
		for _, h := range m.Stacks {
			held[h.ID] = h
		}
	}
	for id, s := range run.Stacks {
		s.LiveBytes, s.LiveCount = held[id].Bytes, held[id].Count
		d.Stacks = append(d.Stacks, s)
	}
	sorts.By(d.Stacks, func(a, b Stack) int { return cmp.Compare(b.LiveBytes, a.LiveBytes) })
	return d
}
