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
	"strandline/record"
	"strandline/torch/snapshot"
	"strandline/units"
)

// open reads one snapshot, with progress on a terminal if it takes long.
func (g *globals) open(ctx context.Context, path string) (*snapshot.Snapshot, error) {
	bar := progress{g: g, path: path, size: sizeOf(path), began: time.Now()}
	defer bar.clear()
	return g.read(path, bar.size, func(n int64) error {
		bar.show(n)
		return ctx.Err()
	})
}

// openOnly is open for a command that takes only a snapshot.
func (g *globals) openOnly(ctx context.Context, path string) (*snapshot.Snapshot, error) {
	s, err := g.open(ctx, path)
	if err != nil {
		err = g.forDiagnose(ctx, path, err)
	}
	return s, err
}

// sizeOf returns the length of a file, 0 if it is not a regular file.
func sizeOf(path string) int64 {
	if info, err := os.Stat(path); err == nil && info.Mode().IsRegular() {
		return info.Size()
	}
	return 0
}

// read reads one snapshot; progress is called with the bytes read, and can stop it.
func (g *globals) read(path string, size int64, progress func(read int64) error) (*snapshot.Snapshot, error) {
	g.spare(size)
	o := snapshot.Options{Name: path, Size: size, Progress: progress}
	r, err := g.source(path)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return snapshot.Read(r, o)
}

// spare keeps the garbage of reading a large file small: columns have no
// pointers, so collecting often costs nothing.
func (g *globals) spare(size int64) {
	const large = 32 << 20
	if size > large && g.env.getenv("GOGC") == "" {
		debug.SetGCPercent(10)
	}
}

// partial reports on stderr where reading of a file ended.
func (g *globals) partial(s *snapshot.Snapshot) bool {
	if s.Partial == nil {
		return false
	}
	name := s.Name
	if name == "-" {
		name = "standard input"
	}
	g.warn("%s is only partly readable: at %s: %v; what comes before that is used", name, s.Partial.Place(), s.Partial.Err)
	return true
}

// progress is one line on stderr, from the first second on, if it is a terminal.
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

// expand replaces directories by the files below them, which are then opened as found.
// named reports which paths were named by the user.
func (g *globals) expand(args []string) (paths []string, named map[string]bool, err error) {
	named = map[string]bool{}
	seen := map[string]bool{}
	add := func(p string) {
		if !seen[p] {
			seen[p] = true
			paths = append(paths, p)
		}
	}
	for _, a := range args {
		if a == "-" {
			named[a] = true
			add(a)
			continue
		}
		info, err := os.Stat(a)
		if err != nil {
			return nil, nil, err
		}
		if !info.IsDir() {
			named[a] = true
			add(a)
			continue
		}
		err = filepath.WalkDir(a, func(p string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			if d.IsDir() && p != a && len(d.Name()) > 1 && d.Name()[0] == '.' {
				return filepath.SkipDir
			}
			if info, err := os.Stat(p); err == nil && info.Mode().IsRegular() && d.Name() != record.ManifestName {
				add(p)
				g.inputs.find(p)
			}
			return nil
		})
		if err != nil {
			return nil, nil, err
		}
	}
	return paths, named, nil
}

// A textReader reads a file that is not a snapshot, given the reason, or
// returns why it cannot.
type textReader func(path string, cause error) (taken bool, why error)

// each opens the snapshots among the paths, one after another, and calls f with
// them. Files below a directory that are not snapshots are named and skipped, and
// so are named ones as long as another file can be read. It reports whether a file
// was read only in part. If text is not nil it is tried on files that are not snapshots.
func (g *globals) each(ctx context.Context, args []string, text textReader, f func(path string, s *snapshot.Snapshot) error) (partial bool, err error) {
	paths, named, err := g.expand(args)
	if err != nil {
		return false, err
	}
	read := 0
	var last error
	var others []string // files of other kinds
	for _, p := range paths {
		s, err := g.take(ctx, p, named[p], text)
		if ctx.Err() != nil {
			return partial, ctx.Err()
		}
		if err != nil {
			var missing *fs.PathError
			if errors.As(err, &missing) && named[p] {
				return partial, err
			}
			last = err
			switch {
			case !named[p] && text != nil && g.isAnyRecording(p):
				g.warn("skipped %s: a recording is judged if it is named, alone or with snapshots", p)
			case !named[p] && errors.Is(err, snapshot.ErrNotSnapshot) && !likeSnapshot(p):
				others = append(others, p)
			case len(paths) > 1:
				g.warn("skipped %s", describe(err))
			}
			continue
		}
		read++
		if s == nil {
			continue
		}
		partial = g.partial(s) || partial
		if err := f(p, s); err != nil {
			return partial, err
		}
	}
	if len(others) > 0 {
		g.warn("skipped %s", otherFiles(others))
	}
	if read == 0 {
		if len(paths) == 1 && named[paths[0]] {
			return partial, last
		}
		return partial, noSnapshot(args, len(paths))
	}
	return partial, nil
}

// take opens a snapshot; it returns nil where text read the file.
func (g *globals) take(ctx context.Context, path string, named bool, text textReader) (*snapshot.Snapshot, error) {
	s, err := g.open(ctx, path)
	if err == nil || ctx.Err() != nil {
		return s, err
	}
	var missing *fs.PathError
	switch {
	case text == nil && named:
		return nil, g.forDiagnose(ctx, path, err)
	case text == nil || errors.As(err, &missing):
		return nil, err
	}
	taken, why := text(path, err)
	if taken {
		return nil, nil
	}
	return nil, why
}

// noSnapshot is the error if none of the files is a snapshot.
func noSnapshot(args []string, files int) error {
	return fmt.Errorf("no snapshot in %s (%s looked at); torch.cuda.memory._dump_snapshot(path) writes one",
		strings.Join(args[:min(len(args), mostNames)], ", "), units.Plural(int64(files), "file"))
}

// mostNames is how many files a message names.
const mostNames = 12

// otherFiles states in a line which files were skipped because nothing about them
// looks like a snapshot.
func otherFiles(paths []string) string {
	rest := ""
	if n := len(paths) - mostNames; n > 0 {
		rest = fmt.Sprintf(" and %s more", units.Count(int64(n)))
	}
	what := units.Plural(int64(len(paths)), "file") + " that are not snapshots: "
	if len(paths) == 1 {
		what = "1 file that is not a snapshot: "
	}
	return what + strings.Join(paths[:min(len(paths), mostNames)], ", ") + rest
}

// likeSnapshot reports whether a name has the extension of a snapshot.
func likeSnapshot(path string) bool {
	name := strings.ToLower(path)
	for _, packed := range []string{".gz", ".zst"} {
		name = strings.TrimSuffix(name, packed)
	}
	return slices.Contains([]string{".pickle", ".pkl", ".json"}, filepath.Ext(name))
}
