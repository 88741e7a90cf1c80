package cli

import (
	"context"
	"slices"
	"time"

	"strandline/face/web"
	"strandline/face/web/engine"
	"strandline/input"
	"strandline/record"
)

// followEvery is how often a folder is listed that is written to.
const followEvery = time.Second

// written reports whether `strandline record` still writes to one of some folders.
func written(paths []string) bool {
	return slices.ContainsFunc(paths, func(path string) bool {
		m, err := record.ReadManifest(path)
		return err == nil && m.Ended == nil
	})
}

// follow shows what is written into folders from now on: as soon as more is there and was read,
// a page of all takes the place of the one before. It ends with the recording.
func (v *viewed) follow(ctx context.Context, first engine.Asker, replace func(web.Opened)) {
	before, n := first, len(v.files.List)
	for more := true; more; {
		more = written(v.files.Given)
		select {
		case <-ctx.Done():
			return
		case <-time.After(followEvery):
		}
		files, err := input.OpenPaths(v.files.Given, input.Options{})
		if err != nil {
			continue
		}
		if len(files.List) == n {
			files.Close()
			continue
		}
		p, err := engine.Open(ctx, files, engine.Options{Code: codeHere})
		if err == nil {
			err = p.Load(ctx)
		}
		files.Close() // all was read
		if err != nil {
			continue
		}
		n = len(files.List)
		markLive(p.Asker, more)
		replace(web.Opened{Asker: p.Asker, Index: p.Index})
		if e, ok := before.(*engine.Engine); ok {
			e.Replaced()
		}
		before = p.Asker
	}
	markLive(before, false)
}

// markLive tells a page whether more is to come.
func markLive(a engine.Asker, more bool) {
	if e, ok := a.(*engine.Engine); ok {
		e.Live(more)
	}
}
