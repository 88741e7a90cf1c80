package input

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"strandline/internal/shell"
	"strandline/torch/snapshot"
	"strandline/units"
)

// Skips are the files that were skipped, and why.
type Skips struct {
	files   *Files
	several bool     // there is a reason to name a file even if it is the only one
	others  []string // files that nothing about looks like a snapshot
	last    error
}

// Skips begins to skip files. Where several is false the only file is not named: its error is
// that of the command.
func (fs *Files) Skips(several bool) *Skips {
	return &Skips{files: fs, several: several || len(fs.List) > 1}
}

// Skip skips a file for a reason.
func (s *Skips) Skip(f *File, why error) {
	s.last = why
	switch tell := s.files.options.Skipped; {
	case !f.Named && !f.IsRecording() && !f.NamedAsPickle() && !errors.As(why, new(*fs.PathError)):
		s.others = append(s.others, f.Path)
	case s.several && tell != nil:
		tell(why)
	}
}

// Others states in a line which files were skipped because nothing about them looks like a
// snapshot; "" if there are none.
func (s *Skips) Others() string {
	const maxNames = 3
	paths := slices.Compact(slices.Sorted(slices.Values(slices.Concat(s.others, s.files.Passed)))) // a folder may be named twice
	switch n := len(paths) - maxNames; {
	case len(paths) == 0:
		return ""
	case len(paths) == 1:
		return "1 file that is not a snapshot: " + paths[0]
	case n > 0:
		paths = append(paths[:maxNames], "")
		return fmt.Sprintf("%s that are not snapshots: %s and %s more", units.Plural(int64(n+maxNames), "file"), strings.Join(paths[:maxNames], ", "), units.Count(int64(n)))
	}
	return units.Plural(int64(len(paths)), "file") + " that are not snapshots: " + strings.Join(paths, ", ")
}

// end names the others, and returns the error where so many files were read.
func (s *Skips) end(read int) error {
	if others := s.Others(); others != "" && s.files.options.Others != nil {
		s.files.options.Others(others)
	}
	if read > 0 {
		return nil
	}
	if list := s.files.List; len(list) == 1 && (list[0].Named || !errors.Is(s.last, snapshot.ErrNotSnapshot)) {
		return s.last
	}
	return s.files.NoSnapshot()
}

// A Skip is the error for a file that is skipped, and the reason; nil if nobody is to know.
type Skip struct{ error }

// Unwrap is the reason.
func (s Skip) Unwrap() error { return s.error }

// LeftOut is why the file is not read with others: a recording in a folder is judged alone.
func (f *File) LeftOut() error {
	if f.Named || !f.IsRecording() {
		return nil
	}
	return refused("%s: a recording is judged if it is named, alone or with snapshots", f.Path)
}

// Skipped is the error for a file that is skipped for a reason.
func Skipped(why error) error { return Skip{why} }

// Skipped is the error for a file that cannot be read for a reason: it is skipped, unless it
// was named and is missing.
func (u *Unknown) Skipped(why error) error {
	if u.file.Named && u.Missing() {
		return why
	}
	return Skip{why}
}

// Each reads a list of files one after another. A file whose error is a [Skip] is skipped, as
// long as one can be read; another error ends it.
func (fs *Files) Each(list []*File, read func(*File) error) error {
	s := fs.Skips(false)
	n := 0
	for _, f := range list {
		err := read(f)
		why := Skip{}
		switch {
		case errors.As(err, &why) && why.error != nil:
			s.Skip(f, why.error)
		case err == nil:
			n++
		case !errors.As(err, &why):
			return err
		}
	}
	return s.end(n)
}

// EachSnapshot is Each where only snapshots are taken. What was not named is not read as
// anything else. It reports whether one was read in part.
func (fs *Files) EachSnapshot(ctx context.Context, take func(*Snapshot)) (partial bool, err error) {
	err = fs.Each(fs.List, func(f *File) error {
		var in Input
		var err error
		if f.Named {
			in, err = f.Read(ctx)
		} else {
			in, err = f.ReadAs(ctx, SnapshotOrLog)
		}
		if err != nil {
			return err
		}
		switch in := in.(type) {
		case *Snapshot:
			fs.Judged(in)
			partial = partial || in.Partial != nil
			take(in)
			return nil
		case *Unknown:
			return in.Skipped(in.NotSnapshot)
		}
		return Skip{NotSnapshot(in)}
	})
	return partial, err
}

// Judged tells the caller that an input is to be judged.
func (fs *Files) Judged(in Input) {
	if fs.options.Partly != nil {
		fs.options.Partly(in)
	}
}

// NotSnapshot is the error of a command that takes only snapshots, for another file: it
// states which commands read it.
func NotSnapshot(in Input) error {
	f := in.Origin()
	name, typed := f.DisplayName(), "-"
	if f.Path != "-" {
		typed = shell.File(f.Path)
	}
	switch in := in.(type) {
	case *Table:
		more := ""
		switch {
		case in.Format == "jax":
			more = "; `strandline view` draws it, and `strandline export --to csv` writes a table"
		case len(in.Uses) == 0:
			more = "; it holds levels of memory, not allocations with stacks"
		}
		return fmt.Errorf("%s: %w: it is a file of kind %s; `strandline diagnose %s` judges it, several of them as a series, and `strandline inspect --json` gives its figures%s",
			in.Name, snapshot.ErrNotSnapshot, in.Format, typed, more)
	case *Log:
		return fmt.Errorf("%s: %w: it is a text with %s; `strandline diagnose %s` explains it", name, snapshot.ErrNotSnapshot, in.Holds(), typed)
	case *Trace:
		return fmt.Errorf("%s: %w: it is the recording of a trace; `strandline diagnose %s` judges it, and `strandline view` draws it", name, snapshot.ErrNotSnapshot, typed)
	case *Watch:
		return fmt.Errorf("%s: %w: it is the recording of a watch; `strandline diagnose %s` judges it, and `strandline view` draws it", name, snapshot.ErrNotSnapshot, typed)
	case *Pauses:
		return fmt.Errorf("%s: %w: it is a log of pauses; `strandline diagnose %s` judges it", name, snapshot.ErrNotSnapshot, typed)
	case *Unknown:
		return in.NotSnapshot
	}
	return nil
}

// NoSnapshot is the error if none of the files is a snapshot.
func (fs *Files) NoSnapshot() error {
	for _, path := range fs.Given {
		if m := fs.manifests.in(path); m != nil && len(m.Processes) == 0 && len(m.Notes) == 0 {
			return fmt.Errorf("no snapshot in %s: %s", path, m.Unrecorded())
		}
	}
	const maxNames = 12
	return fmt.Errorf("no snapshot in %s (%s looked at); torch.cuda.memory._dump_snapshot(path) writes one",
		strings.Join(fs.Given[:min(len(fs.Given), maxNames)], ", "), units.Plural(int64(len(fs.List)+len(fs.Passed)), "file"))
}
