package cli

import (
	"context"
	"os"
	"time"

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
		s, err := g.snapshot(ctx, path)
		if err != nil {
			g.warn("%v; the totals do not include it", describe(err))
			whole = false
			continue
		}
		if info, err := os.Stat(path); err == nil && info.ModTime().Before(began) {
			g.warn("%s was written before the trace began; it describes that time", path)
		}
		whole = !g.partial(s) && whole
		out = append(out, s.Snapshot)
	}
	return out, whole
}
