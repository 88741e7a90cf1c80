package cli

import (
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"strandline/face/report"
	"strandline/torch/replay"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
	"strandline/units"
)

type inspectOptions struct {
	at, alloc, device int
	pools             bool
}

const unset = -1 << 31

// hideDefault keeps the help from printing unset as a default.
func hideDefault(c *cobra.Command, flags ...string) {
	for _, name := range flags {
		c.Flags().Lookup(name).DefValue = "0" // which is not printed
	}
}

func newInspect(g *globals) *cobra.Command {
	var o inspectOptions
	c := &cobra.Command{
		Use:   "inspect FILE",
		Short: "Print the facts of one snapshot, without judging them",
		Long: `Print what one snapshot contains: versions, totals by device, peaks, and what is
wrong with the file or missing from it. Events are numbered from 0 as in the file.`,
		Example: `  strandline inspect oom.pickle
  strandline inspect oom.pickle --at 12000         what was live after event 12000
  strandline inspect oom.pickle --alloc 11998      one allocation, from birth to death
  strandline inspect oom.pickle --pools`,
		Args: files(1, false, "one snapshot"),
		RunE: func(c *cobra.Command, args []string) error { return runInspect(c, g, o, args[0]) },
	}
	c.Flags().IntVar(&o.at, "at", unset, "list what is live after `EVENT` of the device's trace; -1 is before the first")
	c.Flags().IntVar(&o.alloc, "alloc", unset, "follow the allocation that `EVENT` makes or frees")
	c.Flags().IntVar(&o.device, "device", 0, "the device `N` of --at, --alloc and --pools")
	hideDefault(c, "at", "alloc")
	c.Flags().BoolVar(&o.pools, "pools", false, "total the segments by pool and stream")
	return c
}

func runInspect(c *cobra.Command, g *globals, o inspectOptions, path string) error {
	if info, err := os.Stat(path); err == nil && info.IsDir() {
		return fmt.Errorf("%s: is a directory; inspect takes one file, diagnose and compare take directories", path)
	}
	if f, err := g.profile(c.Context(), path); f != nil || err != nil {
		return g.inspectProfile(f, o, err)
	}
	s, err := g.openOnly(c.Context(), path)
	if c.Context().Err() != nil {
		return c.Context().Err()
	}
	if err != nil {
		return err
	}
	facts := timeline.FactsOf(s)
	doc := report.NewInspection(s, facts)
	if o.at != unset || o.alloc != unset || o.pools {
		if err := inspectMore(doc, s, facts, o, c.Flags().Changed("at"), c.Flags().Changed("alloc")); err != nil {
			return err
		}
	}
	if err := g.print(doc, func(w io.Writer, st report.Style) { doc.Text(w, st) }); err != nil {
		return err
	}
	if g.partial(s) {
		return exit(exitPartial)
	}
	return nil
}

func inspectMore(doc *report.Inspection, s *snapshot.Snapshot, facts *timeline.Facts, o inspectOptions, at, alloc bool) error {
	var t *timeline.Timeline
	for _, l := range facts.Lines {
		if l.Device == o.device {
			t = l
		}
	}
	if t == nil {
		return fmt.Errorf("%s has no data on device %d", s.Name, o.device)
	}
	n := t.Trace.Len()
	if at {
		if o.at < timeline.Never || o.at >= n {
			return noEvent(s, o.device, o.at, n)
		}
		doc.AddAt(t, o.at, replay.NewRecording(t).Replay())
	}
	if alloc {
		if o.alloc < 0 || o.alloc >= n {
			return noEvent(s, o.device, o.alloc, n)
		}
		i, ok := t.AllocOf(o.alloc)
		if !ok {
			return fmt.Errorf("event %s of device %d is %s, which neither makes nor frees an allocation", units.Count(int64(o.alloc)), o.device, t.Trace.Action[o.alloc])
		}
		doc.AddAlloc(t, i)
	}
	if o.pools {
		for _, d := range s.Devices() {
			if d.Index == o.device {
				doc.AddPools(s, d)
			}
		}
	}
	return nil
}

func noEvent(s *snapshot.Snapshot, device, event, n int) error {
	if n == 0 {
		return fmt.Errorf("%s has no events of device %d", s.Name, device)
	}
	return fmt.Errorf("event %s is outside the history of device %d, which has events 0 to %s", units.Count(int64(event)), device, units.Count(int64(n-1)))
}
