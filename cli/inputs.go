package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"time"

	"strandline/face/report"
	"strandline/host/store/recording"
	"strandline/input"
	"strandline/internal/safefile"
	"strandline/profiles"
	"strandline/torch/snapshot"
	"strandline/units"
)

// open finds the files that arguments lead to.
func (g *globals) open(args []string) (*input.Files, error) {
	return input.OpenPaths(args, g.reading())
}

func (g *globals) reading() input.Options {
	return input.Options{
		Stdin: g.env.stdin, OpenNamed: g.openInput, Progress: g.progress,
		Skipped: func(why error) { g.warnOfFile("skipped %s", describe(why)) },
		Others:  func(text string) { g.later = append(g.later, "skipped "+text) },
		Partly:  func(in input.Input) { g.partial(in) },
	}
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
	return nil, input.NotSnapshot(in)
}

// progress shows the reading of a file as one line on stderr, from the first second on, if
// that is a terminal.
func (g *globals) progress(f *input.File) (show func(read int64), done func()) {
	g.spare(f.Size)
	p := progress{g: g, path: f.Path, size: f.Size, began: time.Now()}
	return p.show, p.clear
}

// ballast is the array of spare: one in a process, however many commands it runs.
var ballast []byte

// spare keeps the garbage of reading a large file small: columns have no
// pointers, so collecting often costs nothing. With small files the collector waits
// for some garbage: an array that nothing touches takes no memory, and counts.
func (g *globals) spare(size int64) {
	const large = 32 << 20
	switch {
	case g.env.getenv("GOGC") != "":
	case size > large:
		debug.SetGCPercent(10)
		ballast = nil
	case ballast == nil:
		ballast = make([]byte, large)
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
