package cli

import (
	"context"
	"errors"
	"io"
	"os"
	"strandline/input"

	"strandline/face/web"
	"strandline/face/web/engine"
	"strandline/host/sampling/sample"
	"strandline/host/store/series"
)

// viewWatch serves or saves the page of the recording of a watch. What is served follows
// the recording while it is written.
func (g *globals) viewWatch(ctx context.Context, o viewOptions, in *input.Watch) error {
	if o.redact != "" {
		return errors.New("--redact is for snapshots: it does not replace paths and names in the recording of a watch")
	}
	path := in.Origin().Path
	info, err := os.Stat(path)
	regular := path != "-" && err == nil && info.Mode().IsRegular()
	w := engine.NewWatch(path, regular && o.html == "")
	whole := func(ctx context.Context) error {
		partial, err := in.Samples(ctx, w.Take)
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
