package cli

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"strandline/host/recording"
	"strandline/torch/snapshot"
)

// writtenMeanwhile are the snapshots that a process wrote while it was traced;
// whole reports whether all could be read.
func (g *globals) writtenMeanwhile(ctx context.Context, began time.Time, paths []string) (out []*snapshot.Snapshot, whole bool) {
	if ctx.Err() != nil { // also after an interrupt
		ctx = context.WithoutCancel(ctx)
	}
	whole = true
	for _, path := range paths {
		s, err := g.open(ctx, path)
		if err != nil {
			g.warn("%v; the totals do not include it", said(err))
			whole = false
			continue
		}
		if info, err := os.Stat(path); err == nil && info.ModTime().Before(began) {
			g.warn("%s was written before the trace began; it describes that time", path)
		}
		whole = !g.partial(s) && whole
		out = append(out, s)
	}
	return out, whole
}

// readWith are the snapshots that a recording is judged with.
func (g *globals) readWith(ctx context.Context, run *recording.Run, paths []string) (out []*snapshot.Snapshot, err error) {
	if len(paths) > 0 && (run.GPU == nil || run.Document.GPU == nil) {
		return nil, fmt.Errorf("%s: the trace was recorded without --gpu, so a snapshot cannot be combined with it; diagnose the snapshot by itself", filepath.Base(paths[0]))
	}
	for _, path := range paths {
		s, err := g.openOnly(ctx, path)
		if err != nil {
			return nil, err
		}
		out = append(out, s)
	}
	return out, nil
}
