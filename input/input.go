// Package input is the one door through which files come in. In go the paths that a user
// named, or files whose bytes the caller has, as a browser does. Out come typed inputs:
// snapshots, recordings of a trace or a watch, tables and profiles of other programs, logs,
// and what is nothing of these, with the reason. Snapshots and logs also come out in order
// and grouped by process: by the recorder's manifest first, then by names, then by folders.
//
// A [File] is unpacked and recognized by its first 64 KiB, which are looked at once: recognize.go
// decides its kind. It is read once by [File.Read]. Callers switch on the type of what that
// returns. No other package tries formats, so a file is the same thing to each command, to the
// page, and to the static site.
package input

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"strandline/host/sampling/sample"
	"strandline/host/store/recording"
	"strandline/host/store/series"
	"strandline/internal/sorts"
	"strandline/logs"
	"strandline/logs/ranks"
	"strandline/pausable/history"
	"strandline/profiles"
	"strandline/torch/snapshot"
)

// An Input is what one file holds: a *Snapshot, *Trace, *Watch, *Pauses, *Table, *Log or *Unknown.
type Input interface{ Origin() *File }

type (
	// A Snapshot is one of PyTorch's allocator.
	Snapshot struct {
		from
		*snapshot.Snapshot
	}

	// A Trace is a recording of `strandline trace`.
	Trace struct {
		from
		*recording.Run
	}

	// A Watch is a recording of `strandline watch`. Its samples are read by [Watch.Samples].
	Watch struct{ from }

	// Pauses are the log that a process keeps of its pausable memory.
	Pauses struct {
		from
		*history.Log
	}

	// A Table is what another program than PyTorch wrote: a profile, or levels of memory.
	Table struct {
		from
		*profiles.File
		// Failure is the same file as a log, where it also states that memory ran out.
		Failure *Log
	}

	// A Log is a text in which memory ran out, or that has tables of memory_summary().
	Log struct {
		from
		Text    *logs.Text
		Partial *snapshot.Partial // nil if it was read to its end
		// NotSnapshot is why the file is not a snapshot.
		NotSnapshot error
	}

	// An Unknown is a file that cannot be read.
	Unknown struct {
		from
		Err         error
		NotSnapshot error // why it is not a snapshot; Err says it of a text in another way
	}
)

// from is embedded by each kind of input.
type from struct{ file *File }

// Origin is the file that holds the input.
func (f from) Origin() *File { return f.file }

// A Source is a file, wherever its bytes are.
type Source struct {
	Path    string
	Size    int64     // bytes, 0 if unknown
	Changed time.Time // last; zero if unknown
	// Named marks a file that the user named; others lay in a folder that was named.
	Named bool
	// Open opens it to be read from its beginning, as often as it is called.
	Open func() (io.ReadCloser, error)
}

// A File is a source that is recognized when its kind is first asked for.
type File struct {
	Source
	// Progress, if not nil, is called with the bytes read so far, in place of that of
	// [Options].
	Progress func(read int64)

	all    *Files
	looked bool
	other  bool // it is no recording
	told   bool // see [File.Told]
	dump   bool // see [File.IsDump]
	kind   Kind
	reader *tableReader  // of a table
	others []tableReader // that are tried if it is none of reader's
	head   error         // why the beginning cannot be read
}

// Samples gives the samples of the recording to take, in order. What cannot be read is left
// out, and partial states why. An error of take ends the reading.
func (w *Watch) Samples(ctx context.Context, take func(*sample.Sample) error) (partial, err error) {
	f := w.file
	defer f.release()
	err = f.reading(ctx, func(r io.Reader) (err error) {
		partial, err = series.Read(r, take)
		return err
	})
	return partial, err
}

// Files are the inputs of one question.
type Files struct {
	List []*File
	// Given are the paths that were named, folders too.
	Given []string
	// Passed are the files of folders that were not opened, as their names say that they are
	// source code, pages, weights and the like.
	Passed    []string
	options   Options
	disk      *disk
	manifests manifests
	told      []*ranks.Text // nil until [Files.Ranks] read them
}

// Options are what the caller adds to the reading.
type Options struct {
	Stdin io.Reader // the input that is named -
	// OpenNamed, if not nil, opens a file that was named.
	OpenNamed func(path string) (*os.File, error)
	// Progress, if not nil, is called when the reading of a file begins. Of what it returns
	// the first is called with the bytes read so far, the second at the end.
	Progress func(f *File) (show func(read int64), done func())
	// Skipped, if not nil, is told why a file is skipped where others are read.
	Skipped func(why error)
	// Others, if not nil, is told at the end what else was skipped, as [Skips.Others] puts it.
	Others func(text string)
	// Partly, if not nil, is called with what was read to be judged. It may have been read in part.
	Partly func(Input)
}

// Of are files whose bytes the caller has.
func Of(sources []Source, o Options) *Files {
	fs := &Files{options: o}
	for _, s := range sources {
		fs.Given = append(fs.Given, s.Path)
		if filepath.Base(s.Path) != manifestName {
			fs.List = append(fs.List, &File{Source: s, all: fs})
		}
	}
	fs.manifests = manifests{read: manifestAmong(sources)}
	return fs
}

// Same reports whether others are the same files, of which only logs were written to since.
func (fs *Files) Same(others *Files) bool {
	return slices.EqualFunc(fs.List, others.List, func(a, b *File) bool {
		return a.Path == b.Path && (a.Changed.Equal(b.Changed) || nameOf(filepath.Base(a.Path)) == output)
	})
}

// With are the files with others whose bytes the caller has.
func (fs *Files) With(sources []Source) *Files {
	more := Of(sources, fs.options)
	return &Files{List: slices.Concat(fs.List, more.List), Given: slices.Concat(fs.Given, more.Given), Passed: fs.Passed, options: fs.options, disk: fs.disk, manifests: fs.manifests}
}

// Beside gives sources without a folder, as of files that were dropped, that of the files, if they
// have one in common: their names show which are of one process.
func (fs *Files) Beside(sources []Source) {
	if len(fs.List) == 0 {
		return
	}
	dir := filepath.Dir(fs.List[0].Path)
	has := func(path string) bool {
		return slices.ContainsFunc(fs.List, func(f *File) bool { return f.Path == path })
	}
	if slices.ContainsFunc(fs.List, func(f *File) bool { return filepath.Dir(f.Path) != dir }) {
		return
	}
	for i := range sources {
		s := &sources[i]
		if path := filepath.Join(dir, s.Path); s.Named && filepath.Base(s.Path) == s.Path && !has(path) {
			s.Path = path
		}
	}
}

// Named returns the first file of a kind among those that the user named, or nil.
func (fs *Files) Named(k Kind) *File {
	for _, f := range fs.List {
		if f.Named && f.Kind() == k {
			return f
		}
	}
	return nil
}

// Alone is the recording of a trace or a watch that the files are to be read as, on its own;
// nil if they are something else. It is the recording that was named, or the only one of a
// folder without snapshots. It is an error if other files are named beside a watch, or beside
// a trace where with is false.
func (fs *Files) Alone(with bool) (*File, error) {
	if len(fs.Given) == 1 && fs.List != nil && !fs.List[0].Named {
		recordings := slices.DeleteFunc(slices.Clone(fs.List), func(f *File) bool { return !f.IsRecording() })
		if len(recordings) == 1 && !slices.ContainsFunc(fs.List, (*File).NamedAsSnapshot) {
			fs.List, fs.Given = recordings, []string{recordings[0].Path}
			return recordings[0], nil
		}
		return nil, nil
	}
	if w := fs.Named(WatchRecording); w != nil {
		if len(fs.Given) > 1 {
			return nil, fmt.Errorf("%s is the recording of a watch, which is read on its own", w.Path)
		}
		return w, nil
	}
	t := fs.Named(TraceRecording)
	if t != nil && !with && len(fs.Given) > 1 {
		return nil, fmt.Errorf("%s is the recording of a trace, which is viewed on its own", t.Path)
	}
	return t, nil
}

// Leave takes a file out of those that are read, as it was read.
func (fs *Files) Leave(f *File) {
	fs.List = slices.DeleteFunc(slices.Clone(fs.List), func(x *File) bool { return x == f })
	fs.Given = append([]string{f.Path}, slices.DeleteFunc(slices.Clone(fs.Given), func(path string) bool { return path == f.Path })...)
}

// Tables reports whether the files are tables, which are judged as series, rather than
// snapshots: at least one is a table, and what has the name of a snapshot is one, too.
func (fs *Files) Tables() bool {
	found := false
	for _, f := range fs.List {
		table := f.Kind() == TableOrProfile
		if !table && f.NamedAsSnapshot() {
			return false
		}
		found = found || table
	}
	return found
}

// Ordered are the files in the order in which they are read: tables first where they are what
// is judged.
func (fs *Files) Ordered() []*File {
	out := slices.Clone(fs.List)
	if fs.Tables() {
		sorts.StableBy(out, func(a, b *File) int { return cmp.Compare(a.turn(), b.turn()) })
	}
	return out
}

// turn is 0 for what is read first.
func (f *File) turn() int {
	if f.Kind() == TableOrProfile {
		return 0
	}
	return 1
}

// AllNamed reports whether the user named each of the files.
func (fs *Files) AllNamed() bool {
	return !slices.ContainsFunc(fs.List, func(f *File) bool { return !f.Named })
}

// NamedAsPickle reports whether the name has the extension of a pickle.
func (f *File) NamedAsPickle() bool {
	return f.NamedAsSnapshot() && !strings.Contains(strings.ToLower(filepath.Base(f.Path)), ".json")
}

// NamedAsSnapshot reports whether the name has the extension of a snapshot.
func (f *File) NamedAsSnapshot() bool {
	return slices.Contains([]string{".pickle", ".pkl", ".json"}, extOf(f.Path))
}

// DisplayName is what a message calls the file.
func (f *File) DisplayName() string {
	if f.Path == "-" {
		return "standard input"
	}
	return f.Path
}
