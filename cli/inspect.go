package cli

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"strandline/face/report"
	"strandline/input"
	"strandline/profiles"
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
		Short: "Print the facts of one snapshot",
		Long: `Print the contents of one snapshot without judging them: versions, totals by
device, peaks, and defects of the file. Events are numbered from 0, as in the
file.`,
		Example: `  strandline inspect oom.pickle
  strandline inspect oom.pickle --at 12000      live memory after event 12000
  strandline inspect oom.pickle --alloc 11998   one allocation, birth to death
  strandline inspect oom.pickle --pools`,
		Args: files(1, false, "one snapshot"),
		RunE: func(c *cobra.Command, args []string) error { return runInspect(c, g, o, args[0]) },
	}
	c.Flags().IntVar(&o.at, "at", unset, "list live memory after `EVENT` of the device's trace; -1 is before the first")
	c.Flags().IntVar(&o.alloc, "alloc", unset, "follow the allocation that `EVENT` makes or frees")
	c.Flags().IntVar(&o.device, "device", 0, "device `N` for --at, --alloc and --pools; -1 is pinned host memory")
	hideDefault(c, "at", "alloc")
	c.Flags().BoolVar(&o.pools, "pools", false, "total the segments by pool and stream")
	return c
}

func runInspect(c *cobra.Command, g *globals, o inspectOptions, path string) error {
	f, err := g.openFile(path, "inspect takes one file, diagnose and compare take directories")
	if err != nil {
		return err
	}
	in, err := f.Read(c.Context())
	if err != nil {
		return err
	}
	switch in := in.(type) {
	case *input.Table:
		return g.inspectProfile(in.File, o)
	case *input.Snapshot:
		return g.inspectSnapshot(in, o, c.Flags().Changed("at"), c.Flags().Changed("alloc"))
	}
	return input.NotSnapshot(in)
}

// inspectProfile prints the facts of a file of another program.
func (g *globals) inspectProfile(f *profiles.File, o inspectOptions) error {
	if o.at != unset || o.alloc != unset || o.pools {
		return fmt.Errorf("%s: --at, --alloc and --pools are for snapshots of PyTorch; this file is of kind %s", f.Name, f.Format)
	}
	doc := report.NewProfile(f)
	if err := g.print(doc, doc.Text); err != nil {
		return err
	}
	if g.profilePartial(f) {
		return exit(exitPartial)
	}
	return nil
}

func (g *globals) inspectSnapshot(in *input.Snapshot, o inspectOptions, at, alloc bool) error {
	s := in.Snapshot
	facts := timeline.FactsOf(s)
	doc := report.NewInspection(s, facts)
	if o.at != unset || o.alloc != unset || o.pools {
		if err := inspectMore(doc, s, facts, o, at, alloc); err != nil {
			return err
		}
	}
	if err := g.print(doc, func(w io.Writer, st report.Style) { doc.Text(w, st) }); err != nil {
		return err
	}
	if g.partial(in) {
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
		return fmt.Errorf("%s has no data on %s", s.Name, snapshot.DeviceName(o.device))
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
			return fmt.Errorf("event %s of %s is %s, which neither makes nor frees an allocation", units.Count(int64(o.alloc)), snapshot.DeviceName(o.device), t.Trace.Action[o.alloc])
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
		return fmt.Errorf("%s has no events of %s", s.Name, snapshot.DeviceName(device))
	}
	return fmt.Errorf("event %s is outside the history of %s, which has events 0 to %s", units.Count(int64(event)), snapshot.DeviceName(device), units.Count(int64(n-1)))
}
