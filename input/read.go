package input

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"

	"strandline/host/store/recording"
	"strandline/internal/budget"
	"strandline/internal/packed"
	"strandline/logs/text"
	"strandline/pausable/history"
	"strandline/profiles"
	"strandline/torch/snapshot"
)

// Read reads the file. A file that cannot be read is an [Unknown]; the error is that of the
// context.
func (f *File) Read(ctx context.Context) (Input, error) {
	if f.Kind() == WatchRecording {
		return &Watch{from{f}}, nil
	}
	defer f.release()
	in := f.read(ctx)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return in, nil
}

func (f *File) read(ctx context.Context) Input {
	switch {
	case f.head != nil:
		return f.unknown(f.head)
	case f.kind == TraceRecording:
		return f.trace(ctx)
	case f.kind == PauseLog:
		return f.pauses(ctx)
	case f.kind == TableOrProfile:
		for f.reader != nil {
			if in := f.table(ctx); in != nil {
				return in
			}
			f.chooseNext()
		}
	}
	return f.snapshotOrLog(ctx)
}

func (f *File) unknown(err error) *Unknown { return &Unknown{from{f}, err, err} }

// Missing reports whether the file could not be opened.
func (u *Unknown) Missing() bool {
	var missing *fs.PathError
	return errors.As(u.Err, &missing)
}

// reading opens the file, and shows the progress while read reads it.
func (f *File) reading(ctx context.Context, read func(io.Reader) error) error {
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	w := &watched{ctx: ctx, r: embedded(r)}
	switch {
	case f.Progress != nil:
		w.show = f.Progress
	case f.all.options.Progress != nil:
		show, done := f.all.options.Progress(f)
		defer done()
		w.show = show
	}
	err = read(w)
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case err != nil:
		return fmt.Errorf("%s: %w", f.Path, err)
	}
	return nil
}

// unpacking is reading for a file that may be compressed. The compression is "" if there is
// none.
func (f *File) unpacking(ctx context.Context, read func(r io.Reader, compression string) error) error {
	return f.reading(ctx, func(r io.Reader) error {
		unpacked, compression, err := f.unpack(r)
		if err != nil {
			return err
		}
		defer unpacked.Close()
		return read(&watched{ctx: ctx, r: unpacked}, compression)
	})
}

// unpackingQuietly is unpacking without showing the progress, for files that are read at the
// same time.
func (f *File) unpackingQuietly(ctx context.Context, read func(r io.Reader) error) error {
	r, err := f.Open()
	if err != nil {
		return err
	}
	defer r.Close()
	unpacked, _, err := f.unpack(&watched{ctx: ctx, r: r})
	if err != nil {
		return err
	}
	defer unpacked.Close()
	return read(unpacked)
}

// unpack unpacks what may be compressed, up to what the size of the file accounts for.
func (f *File) unpack(r io.Reader) (io.ReadCloser, string, error) {
	r, allowed := budget.Unpacking(r, f.Size)
	unpacked, compression, err := packed.Open(bufio.NewReader(r), f.Size)
	if err != nil || compression == "" {
		return unpacked, compression, err
	}
	return &bounded{unpacked, allowed}, compression, nil
}

// A bounded reader spends a budget.
type bounded struct {
	io.ReadCloser
	allowed *budget.Budget
}

func (b *bounded) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if over := b.allowed.Spend(n, "unpacked bytes"); over != nil {
		return 0, over
	}
	return n, err
}

func (f *File) trace(ctx context.Context) Input {
	return readAs(ctx, f, recording.Read, func(run *recording.Run) Input { return &Trace{from{f}, run} })
}

func (f *File) pauses(ctx context.Context) Input {
	return readAs(ctx, f, history.Read, func(log *history.Log) Input { return &Pauses{from{f}, log} })
}

// readAs reads a file that is of one kind, and makes an input of what it holds.
func readAs[T any](ctx context.Context, f *File, read func(io.Reader) (T, error), of func(T) Input) Input {
	var held T
	err := f.reading(ctx, func(r io.Reader) (err error) {
		held, err = read(r)
		return err
	})
	if err != nil {
		return f.unknown(err)
	}
	return of(held)
}

// table reads a file of another program. It is nil for a file that only began like one.
func (f *File) table(ctx context.Context) Input {
	var table *profiles.File
	var failure *Log
	read := func(r io.Reader) (err error) {
		in := bufio.NewReaderSize(r, lookSize)
		if f.reader.text {
			head, _ := in.Peek(lookSize)
			in = bufio.NewReaderSize(text.Plain(in, head), lookSize)
		}
		table, err = f.reader.read(in)
		return err
	}
	var err error
	switch {
	case f.reader.whole != nil:
		table, err = f.reader.whole(ctx, f)
	case f.reader.text:
		err = f.unpacking(ctx, func(r io.Reader, compression string) (err error) {
			failure, err = f.alsoAsLog(r, compression, read)
			return err
		})
	default:
		err = f.unpacking(ctx, func(r io.Reader, _ string) error { return read(r) })
	}
	switch {
	case err == nil:
		table.Name = f.Path
		if table.Host == nil && len(table.Columns) == 0 {
			failure = nil
		}
		return &Table{from{f}, table, failure}
	case errors.Is(err, profiles.ErrOther):
		return nil
	case failure != nil:
		return failure
	case !f.reader.text && f.reader.whole == nil:
		if log, ok := f.log(ctx, profiles.ErrOther).(*Log); ok {
			return log
		}
	}
	return f.unknown(err)
}

// alsoAsLog reads a text twice at once: by a reader, and as a log, which is nil if it states
// nothing.
func (f *File) alsoAsLog(r io.Reader, compression string, read func(io.Reader) error) (*Log, error) {
	to, copied := io.Pipe()
	scanned := make(chan Input, 1)
	go func() {
		scanned <- f.logIn(to, compression, profiles.ErrOther)
		io.Copy(io.Discard, to)
	}()
	both := io.TeeReader(r, copied)
	err := read(both)
	_, end := io.Copy(io.Discard, both) // what the reader left
	copied.CloseWithError(end)
	log, _ := (<-scanned).(*Log)
	return log, err
}

func (f *File) snapshotOrLog(ctx context.Context) Input {
	in := f.snapshot(ctx)
	if u, ok := in.(*Unknown); ok && !u.Missing() {
		return f.log(ctx, u.Err)
	}
	return in
}

// ReadAs is Read for a file that is of a kind, or else an [Unknown]. One that may be a log is to be
// a [Snapshot].
func (f *File) ReadAs(ctx context.Context, k Kind) (in Input, err error) {
	defer f.release()
	switch k {
	case TraceRecording:
		in = f.trace(ctx)
	case PauseLog:
		in = f.pauses(ctx)
	default:
		in = f.snapshot(ctx)
	}
	return in, ctx.Err()
}

func (f *File) snapshot(ctx context.Context) Input {
	var s *snapshot.Snapshot
	err := f.reading(ctx, func(r io.Reader) (err error) {
		s, err = snapshot.Read(r, snapshot.Options{Size: f.Size})
		return err
	})
	if err != nil {
		return f.unknown(err)
	}
	if !f.Named && s.Format.Encoding == "json" && len(s.Segments) == 0 && len(s.Traces) == 0 {
		return f.unknown(fmt.Errorf("%s: %w: an empty list", f.Path, snapshot.ErrNotSnapshot)) // as other programs write it, too
	}
	s.Name = f.Path
	return &Snapshot{from{f}, s}
}
