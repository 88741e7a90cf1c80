package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"strandline/face/report"
	"strandline/host/store/recording"
	"strandline/input"
	"strandline/internal/safefile"
	"strandline/internal/shell"
	"strandline/judge/diagnosis"
	"strandline/profiles"
	"strandline/torch/snapshot"
	"strandline/units"
)

// open finds the files that arguments lead to.
func (g *globals) open(args []string) (*input.Files, error) {
	return input.Open(args, g.reading())
}

func (g *globals) reading() input.Options {
	return input.Options{Stdin: g.env.stdin, OpenNamed: g.openInput, Progress: g.progress}
}

// openInput opens a file that was named, for which an interrupt ends the wait if it is a pipe.
func (g *globals) openInput(path string) (*os.File, error) {
	ctx := g.interrupted
	if ctx == nil || g.concludes.Load() && ctx.Err() != nil {
		ctx = context.Background() // what is read after an interrupt is still reported
	}
	return safefile.OpenNamed(ctx, path)
}

// openFile finds the file of a command that takes one; instead names what takes folders.
func (g *globals) openFile(path, instead string) (*input.File, error) {
	f, err := input.OpenFile(path, g.reading())
	if errors.Is(err, input.ErrFolder) && instead != "" {
		err = fmt.Errorf("%w; %s", err, instead)
	}
	return f, err
}

// snapshot reads a file for a command that takes only snapshots.
func (g *globals) snapshot(ctx context.Context, path string) (*input.Snapshot, error) {
	f, err := g.openFile(path, "")
	if err != nil {
		return nil, err
	}
	in, err := f.Read(ctx)
	if err != nil {
		return nil, err
	}
	if s, ok := in.(*input.Snapshot); ok {
		return s, nil
	}
	return nil, notSnapshot(in)
}

// progress shows the reading of a file as one line on stderr, from the first second on, if
// that is a terminal.
func (g *globals) progress(f *input.File) (show func(read int64), done func()) {
	g.spare(f.Size)
	p := progress{g: g, path: f.Path, size: f.Size, began: time.Now()}
	return p.show, p.clear
}

// spare keeps the garbage of reading a large file small: columns have no
// pointers, so collecting often costs nothing.
func (g *globals) spare(size int64) {
	const large = 32 << 20
	if size > large && g.env.getenv("GOGC") == "" {
		debug.SetGCPercent(10)
	}
}

type progress struct {
	g     *globals
	path  string
	size  int64
	began time.Time
	shown time.Time
}

func (p *progress) show(n int64) {
	if !p.g.progressTerminal() || p.size == 0 {
		return
	}
	now := time.Now()
	elapsed := now.Sub(p.began)
	if elapsed < time.Second || now.Sub(p.shown) < 100*time.Millisecond {
		return
	}
	p.shown = now
	rate := float64(n) / elapsed.Seconds()
	left := time.Duration(float64(p.size-n) / rate * float64(time.Second))
	fmt.Fprintf(p.g.env.stderr, "\r\x1b[Kreading %s: %s of %s, %s left", report.Line(filepath.Base(p.path)), units.Bytes(n), units.Bytes(p.size), units.Duration(left))
}

func (p *progress) clear() {
	if !p.shown.IsZero() {
		fmt.Fprint(p.g.env.stderr, "\r\x1b[K")
	}
}

// A skipper reports which files are skipped, and why.
type skipper struct {
	g       *globals
	files   *input.Files
	several bool     // there is a reason to name a file even if it is the only one
	others  []string // files that nothing about looks like a snapshot
	last    error
}

// skip skips a file that a command does not read for a reason.
func (s *skipper) skip(f *input.File, err error) {
	s.last = err
	switch {
	case !f.Named && !f.IsRecording() && !f.NamedAsPickle() && !errors.As(err, new(*fs.PathError)):
		s.others = append(s.others, f.Path)
	case len(s.files.List) > 1 || s.several:
		s.g.warnOfFile("skipped %s", describe(err))
	}
}

// end names the other files, and returns the error where so many files were read.
func (s *skipper) end(read int) error {
	if others := slices.Concat(s.others, s.files.Passed); len(others) > 0 {
		s.g.later = append(s.g.later, "skipped "+otherFiles(others))
	}
	if read > 0 {
		return nil
	}
	if list := s.files.List; len(list) == 1 && (list[0].Named || !errors.Is(s.last, snapshot.ErrNotSnapshot)) {
		return s.last
	}
	return noSnapshot(s.files)
}

// each reads a list of files one after another. A file whose error is a [skipped] is skipped, as
// long as one can be read; another error ends it.
func (g *globals) each(files *input.Files, list []*input.File, read func(*input.File) error) error {
	s := &skipper{g: g, files: files}
	n := 0
	for _, f := range list {
		err := read(f)
		why := skipped{}
		switch {
		case errors.As(err, &why) && why.error != nil:
			s.skip(f, why.error)
		case err == nil:
			n++
		case !errors.As(err, &why):
			return err
		}
	}
	return s.end(n)
}

// A skipped is the reason for which a file is skipped; nil if that was reported.
type skipped struct{ error }

// unread is the error for a file that cannot be read: it is skipped, unless it was named and
// is missing.
func unread(u *input.Unknown, why error) error {
	if u.Origin().Named && u.Missing() {
		return why
	}
	return skipped{why}
}

// eachSnapshot is each for a command that takes only snapshots. What was not named is not
// read as anything else.
func (g *globals) eachSnapshot(ctx context.Context, files *input.Files, take func(*input.Snapshot)) (partial bool, err error) {
	err = g.each(files, files.List, func(f *input.File) error {
		read := f.ReadSnapshot
		if f.Named {
			read = f.Read
		}
		in, err := read(ctx)
		if err != nil {
			return err
		}
		switch in := in.(type) {
		case *input.Snapshot:
			partial = g.partial(in) || partial
			take(in)
			return nil
		case *input.Unknown:
			return unread(in, in.NotSnapshot)
		}
		return skipped{notSnapshot(in)}
	})
	return partial, err
}

// session reads the files to be judged, but for what the texts of a job tell.
func (g *globals) session(ctx context.Context, files *input.Files, of *diagnosis.Job, o diagnosis.Options) (*diagnosis.Session, error) {
	left := of.Rest(files)
	s := diagnosis.New(left, o)
	err := g.each(files, left.Ordered(), func(f *input.File) error {
		if !f.Named && f.IsRecording() {
			g.warnOfFile("skipped %s: a recording is judged if it is named, alone or with snapshots", f.Path)
			return skipped{}
		}
		if !s.Wants(f) {
			return skipped{}
		}
		in, err := f.Read(ctx)
		if err != nil {
			return err
		}
		if u, ok := in.(*input.Unknown); ok {
			if of.Holds(f) {
				return skipped{}
			}
			return unread(u, u.Err)
		}
		g.partial(in)
		return s.Add(ctx, in)
	})
	return s, err
}

// partial reports on stderr where reading of a file ended.
func (g *globals) partial(in input.Input) bool {
	name := in.Origin().DisplayName()
	switch in := in.(type) {
	case *input.Snapshot:
		return g.partly(name, in.Partial)
	case *input.Log:
		return g.partly(in.Origin().Path, in.Partial)
	case *input.Trace:
		return g.recordingPartial(in.Run)
	case *input.Table:
		if in.Failure != nil {
			return g.partial(in.Failure)
		}
		return g.profilePartial(in.File)
	}
	return false
}

func (g *globals) partly(name string, at *snapshot.Partial) bool {
	if at != nil {
		g.warnOfFile("%s is only partly readable: at %s: %v; the part before it is used", name, at.Place(), at.Err)
	}
	return at != nil
}

func (g *globals) profilePartial(f *profiles.File) bool {
	if f.Partial != nil {
		g.warnOfFile("%s is only partly readable: %v; the part before it is used", f.Name, f.Partial)
	}
	return f.Partial != nil
}

// recordingPartial also reports what is missing in a recording.
func (g *globals) recordingPartial(run *recording.Run) bool {
	empty := len(run.Samples) == 0 && !run.Judged
	switch {
	case run.Partial != nil:
		g.warn("the recording is only partly readable: %v; the part before it is used", run.Partial)
	case empty:
		g.warn("the recording ends before its first figures: nothing can be reported")
	}
	if n := len(run.Samples); n > 0 && run.Judged && run.Samples[n-1].Seconds > 1.1*run.Document.Duration {
		g.warn("the recording lasts until %s and ends without a judgment; the last one covers the first %s", units.Seconds(run.Samples[n-1].Seconds), units.Seconds(run.Document.Duration))
	}
	return run.Partial != nil || empty
}

// notSnapshot is the error of a command that takes only snapshots, for another file: it
// states which commands read it.
func notSnapshot(in input.Input) error {
	f := in.Origin()
	name, typed := f.DisplayName(), "-"
	if f.Path != "-" {
		typed = shell.File(f.Path)
	}
	switch in := in.(type) {
	case *input.Table:
		more := ""
		switch {
		case in.Format == "jax":
			more = "; `strandline view` draws it, and `strandline export --to csv` writes a table"
		case len(in.Uses) == 0:
			more = "; it holds levels of memory, not allocations with stacks"
		}
		return fmt.Errorf("%s: %w: it is a file of kind %s; `strandline diagnose %s` judges it, several of them as a series, and `strandline inspect --json` gives its figures%s",
			in.Name, snapshot.ErrNotSnapshot, in.Format, typed, more)
	case *input.Log:
		return fmt.Errorf("%s: %w: it is a text with %s; `strandline diagnose %s` explains it", name, snapshot.ErrNotSnapshot, in.Holds(), typed)
	case *input.Trace:
		return fmt.Errorf("%s: %w: it is the recording of a trace; `strandline diagnose %s` judges it, and `strandline view` draws it", name, snapshot.ErrNotSnapshot, typed)
	case *input.Watch:
		return fmt.Errorf("%s: %w: it is the recording of a watch; `strandline diagnose %s` judges it, and `strandline view` draws it", name, snapshot.ErrNotSnapshot, typed)
	case *input.Unknown:
		return in.NotSnapshot
	}
	return nil
}

// noSnapshot is the error if none of the files is a snapshot.
func noSnapshot(files *input.Files) error {
	return fmt.Errorf("no snapshot in %s (%s looked at); torch.cuda.memory._dump_snapshot(path) writes one",
		strings.Join(files.Given[:min(len(files.Given), maxNames)], ", "), units.Plural(int64(len(files.List)+len(files.Passed)), "file"))
}

// maxNames is how many files a message names.
const maxNames = 12

// otherFiles states in a line which files were skipped because nothing about them
// looks like a snapshot.
func otherFiles(paths []string) string {
	const maxNames = 3
	rest := ""
	slices.Sort(paths)
	if n := len(paths) - maxNames; n > 0 {
		rest = fmt.Sprintf(" and %s more", units.Count(int64(n)))
	}
	kind := units.Plural(int64(len(paths)), "file") + " that are not snapshots: "
	if len(paths) == 1 {
		kind = "1 file that is not a snapshot: "
	}
	return kind + strings.Join(paths[:min(len(paths), maxNames)], ", ") + rest
}
