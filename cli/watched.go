package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"strandline/face/report"
	"strandline/face/web"
	"strandline/face/web/engine"
	"strandline/host/sampling/sample"
	"strandline/host/store/series"
	"strandline/judge/samples"
)

// isWatch reports whether a file is the recording of a watch.
func (g *globals) isWatch(path string) bool { return g.begins(path, series.Is) }

// watchAmong returns the recording of a watch that the arguments name, empty if none
// does. It is an error if they name something else, too.
func (g *globals) watchAmong(args []string) (path string, err error) {
	for _, path := range args {
		if !g.isWatch(path) {
			continue
		}
		if len(args) > 1 {
			return "", fmt.Errorf("%s is the recording of a watch, which is read on its own", path)
		}
		return path, nil
	}
	return "", nil
}

// diagnoseWatch judges the recording of a watch.
func (g *globals) diagnoseWatch(ctx context.Context, path string) error {
	w, samples := samples.New(), 0
	var last *sample.Sample
	partial, err := g.readWatch(ctx, path, func(s *sample.Sample) error {
		w.Add(s)
		if s.Over == nil {
			last = s
			samples++
		}
		return nil
	})
	if err != nil {
		return err
	}
	if partial != nil {
		g.warn("the recording is only partly readable: %v; the rest is used", partial)
	}
	doc := report.NewWatch(last, samples, w.Findings())
	if err := g.print(doc.Diagnosis(path), func(out io.Writer, s report.Style) { doc.Text(out, s) }); err != nil {
		return err
	}
	switch {
	case problems(doc.Findings):
		return exit(exitProblem)
	case partial != nil:
		return exit(exitPartial)
	}
	return nil
}

// viewWatch serves or saves the page of the recording of a watch. What is served follows
// the recording while it is written.
func (g *globals) viewWatch(ctx context.Context, o viewOptions, path string) error {
	if o.redact != "" {
		return errors.New("--redact is for snapshots: it does not replace paths and names in the recording of a watch")
	}
	info, err := os.Stat(path)
	regular := path != "-" && err == nil && info.Mode().IsRegular()
	w := engine.NewWatch(path, regular && o.html == "")
	whole := func(ctx context.Context) error {
		partial, err := g.readWatch(ctx, path, w.Take)
		if partial != nil {
			w.Unreadable(partial)
		}
		w.Rest()
		return err
	}
	switch {
	case o.html != "":
		if err := whole(ctx); err != nil {
			return err
		}
		err = g.savePage(ctx, o.html, func(out io.Writer) error { return web.SaveWatch(ctx, out, w) })
	case regular:
		err = g.serveWatch(ctx, o.serve, w, func(ctx context.Context) error { return series.Follow(ctx, path, w) })
	default:
		err = g.serveWatch(ctx, o.serve, w, whole)
	}
	if err == nil && w.Partial() != nil {
		g.warn("the recording is only partly readable: %v; the rest is shown", w.Partial())
		return exit(exitPartial)
	}
	return err
}

// readWatch reads the recording of a watch as far as it goes.
func (g *globals) readWatch(ctx context.Context, path string, take func(*sample.Sample) error) (partial, err error) {
	f, err := g.source(path)
	if err != nil {
		return nil, err
	}
	defer g.release(path)
	defer f.Close()
	bar := progress{g: g, path: path, size: sizeOf(path), began: time.Now()}
	defer bar.clear()
	partial, err = series.Read(&watched{ctx: ctx, r: f, bar: &bar}, take)
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return partial, nil
}

// serveWatch serves the page of a watch until the context is done, or the samples cannot
// be read.
func (g *globals) serveWatch(ctx context.Context, o serveOptions, w *engine.Watch, read func(context.Context) error) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	done := make(chan error, 1)
	behind := func() {
		err := read(ctx)
		if err != nil {
			stop()
		}
		done <- err
	}
	if err := g.serve(ctx, o, page{asker: w, index: "watch.html", behind: behind}); err != nil {
		return err
	}
	err := <-done
	if errors.Is(err, context.Canceled) {
		return nil // interrupting it is how a user ends it
	}
	return err
}

// A store keeps samples in a file. A file that cannot be written, as on a full disk, is
// reported once, and tried again with each sample.
type store struct {
	g      *globals
	w      *series.Writer
	failed bool
}

func (s *store) add(now *sample.Sample) {
	err := s.w.Add(now)
	if (err != nil) == s.failed {
		return
	}
	if s.failed = err != nil; s.failed {
		s.g.warn("samples are not recorded now: %v", err)
		return
	}
	s.g.warn("samples are recorded again")
}
