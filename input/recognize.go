package input

import (
	"bufio"
	"bytes"
	"context"
	"io"

	"strandline/host/store/recording"
	"strandline/host/store/series"
	"strandline/internal/packed"
	"strandline/logs/text"
	"strandline/pausable/history"
	"strandline/profiles"
	"strandline/profiles/figures"
	"strandline/profiles/jax"
	"strandline/profiles/kineto"
	"strandline/profiles/levels"
	"strandline/profiles/printed"
	"strandline/profiles/proc"
	"strandline/profiles/sites"
	"strandline/torch/snapshot"
)

// A Kind is the kind of a file, as its beginning shows it. Only reading the file tells
// whether it is a snapshot or a log.
type Kind int

const (
	SnapshotOrLog Kind = iota
	TraceRecording
	WatchRecording
	TableOrProfile
	PauseLog
)

// A tableReader reads the files of one program.
type tableReader struct {
	// is reports whether an unpacked file that begins with head can be one.
	is   func(head []byte) bool
	read func(r io.Reader) (*profiles.File, error)
	// text states that the form is of text, in which a failure may be stated, too.
	text bool
	// whole reads a file that is not read from its beginning to its end.
	whole func(ctx context.Context, f *File) (*profiles.File, error)
}

var tableReaders = []tableReader{
	{is: jax.Is, read: jax.Read},
	{is: kineto.Is, read: kineto.Read},
	{is: proc.Is, read: proc.Read, text: true},
	{is: sites.Is, read: sites.Read, text: true},
	{is: printed.Is, read: printed.Read, text: true},
	{is: levels.Is, read: levels.Read, text: true},
	{is: figures.Is, read: figures.Read, text: true},
	database,
}

// lookSize is how much of a file shows its kind. A frame of zstd has blocks of 128 KiB, of
// which none is unpacked before all of it is there.
const lookSize, packedLookSize = 64 << 10, 192 << 10

// Kind is the kind of the file. It is looked at once.
func (f *File) Kind() Kind {
	if !f.looked {
		f.looked = true
		f.recognize(tableReaders)
	}
	return f.kind
}

// IsRecording reports whether the file is the recording of a trace or of a watch. Of other files
// it does not look for the kind.
func (f *File) IsRecording() bool {
	if !f.looked && !f.other {
		f.recognize(nil)
		f.looked = f.kind != SnapshotOrLog || f.head != nil
		f.other = !f.looked
	}
	return f.kind == TraceRecording || f.kind == WatchRecording
}

// recognize looks for recordings, then for what the readers of tables read.
func (f *File) recognize(tables []tableReader) {
	r, err := f.Open()
	if err != nil {
		f.head = err
		return
	}
	defer r.Close()
	head, err := beginning(embedded(r), lookSize)
	if err != nil {
		f.head = err
		return
	}
	switch {
	case len(head) == 0:
		_, f.head = snapshot.Read(bytes.NewReader(nil), snapshot.Options{Name: f.Path})
	case series.Is(bytes.NewReader(head)):
		f.kind = WatchRecording
	case recording.Is(bytes.NewReader(head)):
		f.kind = TraceRecording
	case history.Is(head):
		f.kind = PauseLog
	case tables != nil:
		f.choose(r, head, tables)
	}
}

// choose finds the first of some readers for a file that begins with head, of which r is the rest.
func (f *File) choose(r io.Reader, head []byte, from []tableReader) {
	f.reader, f.others = nil, nil
	if packed.IsZstd(head) {
		more, _ := beginning(r, packedLookSize-len(head))
		head = append(head, more...)
	}
	unpacked, _, err := packed.Open(bufio.NewReader(bytes.NewReader(head)), f.Size)
	if err != nil {
		return
	}
	defer unpacked.Close()
	head, _ = beginning(unpacked, lookSize)
	if !jax.Is(head) {
		head, _ = beginning(text.Plain(bufio.NewReader(bytes.NewReader(head)), head), lookSize)
	}
	for i := range from {
		if t := &from[i]; t.is(head) {
			f.kind, f.reader, f.others = TableOrProfile, t, from[i+1:]
			return
		}
	}
}

// chooseNext finds the next reader, where the file only began like one for the last. A long text is
// the log of a program rather than figures that somebody pasted.
func (f *File) chooseNext() {
	const maxPasted = 1 << 20 // bytes
	r, err := f.Open()
	if err != nil || f.Size > maxPasted {
		f.reader = nil
		if err == nil {
			r.Close()
		}
		return
	}
	defer r.Close()
	head, _ := beginning(r, lookSize)
	f.choose(r, head, f.others)
}

// beginning reads up to size bytes. The end of a file that ends before is no error.
func beginning(r io.Reader, size int) ([]byte, error) {
	head, err := io.ReadAll(io.LimitReader(r, int64(size)))
	if err == io.ErrUnexpectedEOF { // of what is compressed
		err = nil
	}
	return head, err
}
