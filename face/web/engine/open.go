package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"

	"strandline/face/export"
	"strandline/host/sampling/sample"
	"strandline/host/store/series"
	"strandline/input"
	"strandline/internal/sorts"
	"strandline/judge/diagnosis"
	"strandline/judge/tables"
	"strandline/torch/snapshot"
	"strandline/units"
)

// A Page shows files: all faces open theirs by [Open].
type Page struct {
	Asker
	// Index is the document that the page begins with.
	Index string
	// Load reads the files, during which questions are answered.
	Load func(ctx context.Context) error
	// Readable is closed when Load has read a file. It is nil where a file was read before.
	Readable <-chan struct{}
}

// An Asker answers the questions of a page.
type Asker interface {
	Ask(ctx context.Context, name string, params url.Values) Answer
}

// Options are the wishes of a face for a [Page].
type Options struct {
	// Noticed, if not nil, is called with each file that was read, and with the reason why one
	// is not shown, if there is one.
	Noticed func(f *input.File, in input.Input, err error)
	// Warn, if not nil, is called with a remark on several files.
	Warn func(text string)
	// Redact, if not nil, replaces the names in a snapshot. Only snapshots are shown then, by
	// the names that Name gives them.
	Redact func(*snapshot.Snapshot) *snapshot.Snapshot
	Name   func(path string) string
	// Code, if not nil, reads the source code that a recording names, where that is safe.
	Code func(path string) ([]byte, error)
	// Follow states that the recording of a watch lies on a disk, where it may grow.
	Follow bool
}

// errRedacted is the error for a recording whose names are to be replaced.
var errRedacted = errors.New("--redact is for snapshots: it does not replace paths and names in a recording")

// Open recognizes files, and finds their page. The recording of a trace or a watch has one of
// its own.
func Open(ctx context.Context, files *input.Files, o Options) (*Page, error) {
	alone, err := files.Alone(false)
	switch {
	case err != nil:
		return nil, err
	case alone != nil && o.Redact != nil:
		return nil, errRedacted
	case alone != nil:
		return openRecording(ctx, files, alone, o)
	}
	sources, err := o.sources(ctx, files)
	if err != nil {
		return nil, err
	}
	if o.Redact != nil {
		files = input.Of(nil, input.Options{}) // without the recorder's manifest, which has names and paths
	}
	p := newPage(files, sources)
	p.Asker.(*Engine).code = o.Code
	return p, nil
}

// With is the page of the engine's files and those of another page, the first of which has the
// number that is returned. All of them are files.
func (e *Engine) With(files *input.Files, more *Page) (p *Page, first int) {
	var sources []Source
	for _, f := range slices.Concat(e.files, more.Asker.(*Engine).files) {
		sources = append(sources, f.Source)
	}
	p = newPage(files, sources)
	p.Asker.(*Engine).code = e.code
	return p, len(e.files)
}

// Keep takes what another page has read of its first n files, those that this page has too, so
// that they are not read again. It comes before Load.
func (p *Page) Keep(of *Page, n int) {
	to, here := p.Asker.(*Engine)
	from, there := of.Asker.(*Engine)
	if !here || !there {
		return
	}
	from.mu.Lock()
	defer from.mu.Unlock()
	read := map[string]*file{}
	for _, f := range from.files[:n] {
		if f.whole {
			read[f.Path] = f
		}
	}
	for _, f := range to.files {
		if was := read[f.Path]; was != nil && was.Size == f.Size && was.Changed.Equal(f.Changed) {
			f.content, f.whole, f.read = was.content, true, was.read
		}
	}
}

// Files is how many files the page has, 0 where it is of a recording.
func (p *Page) Files() int {
	if e, ok := p.Asker.(*Engine); ok {
		return len(e.files)
	}
	return 0
}

func newPage(files *input.Files, sources []Source) *Page {
	e := New(files, sources)
	return &Page{Asker: e, Index: "index.html", Load: e.Load, Readable: e.readable}
}

func openRecording(ctx context.Context, files *input.Files, f *input.File, o Options) (*Page, error) {
	in, err := f.Read(ctx)
	if err != nil {
		return nil, err
	}
	switch in := in.(type) {
	case *input.Trace:
		o.noticed(f, in, nil)
		r := NewRecording(files, in)
		r.code = o.Code
		return &Page{Asker: r, Index: "recording.html", Load: func(context.Context) error { return nil }}, nil
	case *input.Watch:
		if err := begins(ctx, in); err != nil && !(o.Follow && errors.Is(err, series.ErrOther)) { // its first sample may be to come
			return nil, err
		}
		o.noticed(f, in, nil)
		w := NewWatch(f.Path, o.Follow)
		load := func(ctx context.Context) error { return series.Follow(ctx, f.Path, w) }
		if !o.Follow {
			load = func(ctx context.Context) error { return w.read(ctx, in) }
		}
		return &Page{Asker: w, Index: "watch.html", Load: load}, nil
	case *input.Unknown:
		return nil, in.Err
	}
	return nil, fmt.Errorf("%s: %w", f.DisplayName(), snapshot.ErrNotSnapshot)
}

// begins reports why a recording has no first sample.
func begins(ctx context.Context, in *input.Watch) error {
	enough := errors.New("one is enough")
	_, err := in.Samples(ctx, func(*sample.Sample) error { return enough })
	if errors.Is(err, enough) {
		return nil
	}
	return err
}

// read takes all samples of a recording.
func (w *Watch) read(ctx context.Context, in *input.Watch) error {
	partial, err := in.Samples(ctx, w.Take)
	if partial != nil {
		w.Unreadable(partial)
	}
	w.Rest()
	return err
}

func (o *Options) noticed(f *input.File, in input.Input, err error) {
	if o.Noticed != nil {
		o.Noticed(f, in, err)
	}
}

func (o *Options) name(path string) string {
	if o.Name == nil {
		return path
	}
	return o.Name(path)
}

// sources are the files in the order in which they are read: what is probably not a snapshot
// comes last. Profiles of JAX are drawn, each series as one history.
func (o *Options) sources(ctx context.Context, files *input.Files) (out []Source, err error) {
	list := files.Ordered()
	switch {
	case !files.Tables():
		sorts.StableBy(list, func(a, b *input.File) int { return cmp.Compare(turn(a), turn(b)) })
	case o.Redact != nil || diagnosis.NewJob(ctx, files) == nil:
		return o.tables(ctx, files)
	}
	for _, f := range list {
		out = append(out, o.source(f))
	}
	return out, nil
}

// turn is when to read a file.
func turn(f *input.File) int {
	if f.Named || f.NamedAsSnapshot() {
		return 0
	}
	return 1
}

// Sources are the files of a question as they are.
func Sources(files *input.Files) (out []Source) {
	out, _ = (&Options{}).sources(context.Background(), files) // the error would be that of the context
	return out
}

func (o *Options) source(f *input.File) Source {
	lines := f.Lines
	if o.Redact != nil {
		lines = nil
	}
	return Source{Path: o.name(f.Path), Size: f.Size, Changed: f.Changed, Named: f.Named && o.Redact == nil, Lines: lines, Read: func(ctx context.Context, of *diagnosis.Session, progress func(int64)) (*snapshot.Snapshot, []input.Input, error) {
		f.Progress = progress
		s, inputs, err := o.read(ctx, of, f)
		if o.Redact == nil || ctx.Err() != nil {
			return s, inputs, err
		}
		if s == nil { // an error names the file
			return nil, nil, snapshot.ErrNotSnapshot
		}
		return o.Redact(s), nil, nil
	}}
}

// read reads a file for a session.
func (o *Options) read(ctx context.Context, of *diagnosis.Session, f *input.File) (s *snapshot.Snapshot, beside []input.Input, err error) {
	in, err := of.Read(ctx, f)
	skip := input.Skip{}
	switch {
	case errors.As(err, &skip):
		if err = skip.Unwrap(); err == nil {
			return nil, nil, nil
		}
	case err == nil:
		if s, beside = shown(in); s == nil && o.Redact != nil {
			err = fmt.Errorf("%s: %w, and names in another file are not replaced", f.DisplayName(), snapshot.ErrNotSnapshot)
		}
	}
	if ctx.Err() == nil {
		o.noticed(f, in, err)
	}
	return s, beside, err
}

// shown is the snapshot of an input that is drawn, nil for what is judged without a picture.
func shown(in input.Input) (drawn *snapshot.Snapshot, beside []input.Input) {
	if s, ok := in.(*input.Snapshot); ok {
		return s.Snapshot, nil
	}
	return nil, []input.Input{in}
}

// tables reads tables, of which those beside other files are judged alone.
func (o *Options) tables(ctx context.Context, files *input.Files) (out []Source, err error) {
	s := diagnosis.New(files, diagnosis.Options{})
	byPath := map[string]input.Input{}
	for _, f := range files.Ordered() {
		in, err := s.Read(ctx, f)
		if skip := (input.Skip{}); errors.As(err, &skip) {
			why := skip.Unwrap()
			if why == nil {
				o.noticed(f, nil, ErrOtherKind)
				continue
			}
			o.noticed(f, nil, why)
			out = append(out, Source{Path: o.name(f.Path), Size: f.Size, Named: f.Named, Read: func(context.Context, *diagnosis.Session, func(int64)) (*snapshot.Snapshot, []input.Input, error) {
				return nil, nil, why
			}})
			continue
		}
		if err != nil {
			return nil, err
		}
		o.noticed(f, in, nil)
		byPath[f.Path] = in
		if err := s.Add(ctx, in); err != nil {
			return nil, err
		}
	}
	for _, series := range s.Series() {
		if series.Files[0].Format == "jax" {
			out = append(out, o.history(series, byPath))
			for _, f := range series.Files {
				delete(byPath, f.Name)
			}
		}
	}
	for path, in := range byPath {
		out = append(out, Source{Path: o.name(path), Size: in.Origin().Size, Named: true, Lines: in.Origin().Lines, Read: func(context.Context, *diagnosis.Session, func(int64)) (*snapshot.Snapshot, []input.Input, error) {
			if o.Redact != nil {
				return nil, nil, snapshot.ErrNotSnapshot
			}
			return nil, []input.Input{in}, nil
		}})
	}
	sorts.By(out, func(a, b Source) int { return cmp.Compare(a.Path, b.Path) })
	return out, nil
}

// ErrOtherKind is why a file is not read.
var ErrOtherKind = errors.New("a different kind than the files beside it")

// history is a series of JAX's profiles, drawn as one history.
func (o *Options) history(of tables.Series, byPath map[string]input.Input) Source {
	list := of.Files
	name := o.name(list[len(list)-1].Name)
	if len(list) > 1 {
		name = fmt.Sprintf("%s and %s before it", name, units.Plural(int64(len(list)-1), "file"))
		if o.Warn != nil {
			o.Warn(fmt.Sprintf("%s is drawn as one history, file by file, by %s; `strandline diagnose` gives the advice for JAX", name, of.By))
		}
	}
	var judged []input.Input
	for _, f := range list {
		judged = append(judged, byPath[f.Name])
	}
	return Source{Path: name, Named: true, Read: func(context.Context, *diagnosis.Session, func(int64)) (*snapshot.Snapshot, []input.Input, error) {
		drawn, err := export.Series(list)
		switch {
		case err != nil:
			return nil, nil, err
		case o.Redact != nil:
			return o.Redact(drawn), nil, nil
		}
		return drawn, judged, nil
	}}
}
