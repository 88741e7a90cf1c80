package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"strandline/face/api"
	"strandline/face/report"
	"strandline/torch/allocator"
	"strandline/torch/replay"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
	"strandline/units"
)

type simulateOptions struct {
	set        []string
	capacity   string
	fraction   float64
	emptyCache string
	without    []string
	search     bool
	keepUnder  string
}

func newSimulate(g *globals) *cobra.Command {
	var o simulateOptions
	c := &cobra.Command{
		Use:   "simulate FILE",
		Short: "Replay the allocator, and predict the effect of other settings",
		Long: `Replay the recorded requests through PyTorch's caching allocator: first under the
file's own settings, to check the replay call by call, then under others.

Requests stay the same, and so do recorded calls of empty_cache. --capacity is
the device's memory minus the part that others hold. Without it, no run is out
of memory; a search takes the capacity from an OOM error in the file.
The guide has the accuracy.`,
		Example: `  strandline simulate oom.pickle
  strandline simulate oom.pickle --set expandable_segments:True
  strandline simulate oom.pickle --search --capacity 79GiB   which settings fit?
  strandline simulate step.pickle --empty-cache every=10steps
  strandline simulate step.pickle --keep-under 40GiB
  strandline simulate step.pickle --without train.py:131   if it were freed`,
		Args: files(1, false, "one snapshot"),
		RunE: func(c *cobra.Command, args []string) error {
			bounds, err := o.bounds(c.Flags())
			if err != nil {
				return err
			}
			switch {
			case c.Flags().Changed("empty-cache") && o.emptyCache == "":
				return errors.New("--empty-cache: the policy is empty; write, for example, every=10steps")
			case slices.Contains(o.without, ""):
				return errors.New("--without: the place is empty; write FILE:LINE, FILE or a function")
			}
			return runSimulate(c.Context(), g, o, bounds, args[0])
		},
	}
	c.Flags().StringArrayVar(&o.set, "set", nil, "run under `CONF`, a value of PYTORCH_CUDA_ALLOC_CONF; \"\" means the defaults (repeatable)")
	c.Flags().StringVar(&o.capacity, "capacity", "", "the `SIZE` that PyTorch can use, such as 79GiB")
	c.Flags().Float64Var(&o.fraction, "fraction", 0, "limit PyTorch to the share `F` of the capacity")
	c.Flags().StringVar(&o.emptyCache, "empty-cache", "", "call empty_cache by a `POLICY`: every=10steps, every=30s, every=5000events, after=NAME")
	c.Flags().StringVar(&o.keepUnder, "keep-under", "", "find the fewest calls of empty_cache that keep reserved memory under `SIZE`")
	c.Flags().StringArrayVar(&o.without, "without", nil, "leave out allocations at `PLACE`: FILE:LINE, FILE or a function (repeatable)")
	c.Flags().BoolVar(&o.search, "search", false, "try sensible settings and recommend one")
	for _, other := range []string{"set", "capacity", "fraction", "empty-cache", "without", "search"} {
		c.MarkFlagsMutuallyExclusive("keep-under", other)
	}
	c.RegisterFlagCompletionFunc("set", completeSetting)
	return c
}

// completeSetting offers the options that are not yet in the text.
func completeSetting(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
	before := typed[:strings.LastIndex(typed, ",")+1]
	var out []string
	for _, name := range allocator.Options() {
		if !strings.Contains(before, name+":") {
			out = append(out, before+name+":")
		}
	}
	return out, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

// bounds are the bytes that PyTorch can have and may reserve; 0 is unbounded.
type bounds struct{ capacity, limit int64 }

func (o *simulateOptions) bounds(flags *pflag.FlagSet) (b bounds, err error) {
	if b.capacity, err = parseCapacity(flags, o.capacity); err != nil {
		return b, err
	}
	switch {
	case !flags.Changed("fraction"):
	case !(o.fraction > 0 && o.fraction <= 1):
		return b, fmt.Errorf("--fraction: %v is not a share above 0 and up to 1", o.fraction)
	case b.capacity == 0:
		return b, errors.New("--fraction is a share of the capacity: also give --capacity")
	default:
		b.limit = int64(o.fraction * float64(b.capacity))
	}
	return b, nil
}

func runSimulate(ctx context.Context, g *globals, o simulateOptions, within bounds, path string) error {
	in, err := g.snapshot(ctx, path)
	if err != nil {
		return err
	}
	s := in.Snapshot
	asked, err := o.settings(replay.VersionOf(s))
	if err != nil {
		return err
	}
	line := int64(0)
	if o.keepUnder != "" {
		if line, err = sizeFlag("keep-under", o.keepUnder); err != nil {
			return err
		}
	}
	partial := g.partial(in)
	doc := report.NewSimulation(path, s.TorchVersion(), partial)
	on, err := g.replay(ctx, s, doc)
	if err != nil {
		return err
	}
	if other := len(asked) > 0 || o.changes() || o.search; other || line > 0 {
		if len(on) == 0 {
			return fmt.Errorf("%s holds no history, only the state at its end: there is nothing to run under other settings; `strandline help guide record` explains how to record one", path)
		}
		for _, x := range on {
			if x.Lost {
				return fmt.Errorf("%s cannot be run under other settings: %v", snapshot.DeviceName(x.Device), x.Difference)
			}
		}
		if line > 0 {
			err = keepUnder(ctx, g, doc, on, line)
		} else {
			w := whatIf{g: g, doc: doc, on: on, options: o, bounds: within, runs: asked}
			err = w.run(ctx)
		}
		if err != nil {
			return err
		}
	}
	if err := g.print(doc, func(w io.Writer, st report.Style) { doc.Text(w, st) }); err != nil {
		return err
	}
	if partial {
		return exit(exitPartial)
	}
	return nil
}

// settings are those that are asked for by --set.
func (o *simulateOptions) settings(v allocator.Version) (runs []replay.Choice, err error) {
	for _, conf := range o.set {
		set, err := replay.ParseSettings(conf, v)
		if err != nil {
			return nil, fmt.Errorf("--set: %w", err)
		}
		runs = append(runs, replay.Choice{Conf: conf, Settings: set})
	}
	return runs, nil
}

// replay replays every device under the settings of the file. Those that have a
// history can be run under others.
func (g *globals) replay(ctx context.Context, s *snapshot.Snapshot, doc *report.Simulation) (on []*replay.Result, err error) {
	bar := newCounter(g)
	defer bar.clear()
	for _, d := range s.Devices() {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if d.Index == snapshot.Host {
			doc.AddHost(replay.ReplayHost(timeline.New(s, d)))
			continue
		}
		bar.begin("replaying "+snapshot.DeviceName(d.Index), 0)
		x := replay.NewRecording(timeline.New(s, d)).Replay()
		doc.AddReplay(x)
		if x.Trace.Len() > 0 {
			on = append(on, x)
		}
	}
	return on, nil
}

// changes reports whether something but the settings is different.
func (o *simulateOptions) changes() bool {
	return o.capacity != "" || o.emptyCache != "" || len(o.without) > 0
}

// words returns what is different in all runs.
func (o *simulateOptions) words(b bounds) (words []string) {
	if b.capacity > 0 {
		words = append(words, "in "+units.Bytes(b.capacity))
	}
	if b.limit > 0 {
		words = append(words, "limited to "+units.Percent(o.fraction)+" of it")
	}
	if o.emptyCache != "" {
		words = append(words, "with empty_cache "+o.emptyCache)
	}
	if len(o.without) > 0 {
		words = append(words, "without "+strings.Join(o.without, " and "))
	}
	return words
}

// keepUnder adds the policy to the document that keeps reserved memory under a line.
func keepUnder(ctx context.Context, g *globals, doc *report.Simulation, on []*replay.Result, line int64) error {
	bar := newCounter(g)
	defer bar.clear()
	found, err := replay.KeepUnder(ctx, on, line, func(n int) { bar.begin("trying policies", n) }, bar.next)
	if err != nil {
		return fmt.Errorf("--keep-under: %w", err)
	}
	doc.Reclaim = api.NewReclaim(found, on)
	return nil
}

// A whatIf is the runs under other settings, side by side.
type whatIf struct {
	g       *globals
	doc     *report.Simulation
	on      []*replay.Result
	options simulateOptions
	bounds
	runs  []replay.Choice
	notes []string // on all of them

	scenarios [][]replay.Scenario // by device and run
	outcomes  [][]replay.Outcome
}

func (w *whatIf) run(ctx context.Context) error {
	own := w.on[0].Own()
	switch {
	case w.options.search:
		w.runs = w.on[0].Choices(w.runs, w.limited())
	case len(w.runs) == 0:
		w.runs = []replay.Choice{own}
	}
	if err := w.plan(); err != nil {
		return err
	}
	w.doc.Change(own.Conf, w.options.words(w.bounds), w.capacity > 0)
	bar := newCounter(w.g)
	defer bar.clear()
	bar.begin("running", (len(w.runs)+1)*len(w.on))
	if err := w.simulate(ctx, bar.next); err != nil {
		return err
	}
	order, shown := w.order()
	bar.begin("looking for the least capacity", shown*len(w.on))
	least, err := w.least(ctx, order[:shown], bar.next)
	if err != nil {
		return err
	}
	if w.options.search && !w.fits(0) && w.fits(order[0]) { // the file's own settings do not
		replay.ByNeed(order[:shown], func(run int) int64 { return largest(least[run]) }, w.outcomes)
	}
	for _, j := range order {
		of := make([]report.Run, len(w.on))
		for i, x := range w.on {
			of[i] = report.Run{On: x, Scenario: &w.scenarios[i][j], Outcome: &w.outcomes[i][j], Smallest: least[j][i]}
		}
		w.doc.AddRun(w.runs[j], of, w.notes)
	}
	if w.options.search {
		w.doc.Recommend()
	}
	return nil
}

// simulate does all runs, and the recorded one for its course.
func (w *whatIf) simulate(ctx context.Context, done func()) error {
	for i, x := range w.on {
		recorded := x.Recorded()
		recorded.Samples = replay.Samples
		some, err := x.All(ctx, append(w.scenarios[i], recorded), done)
		if err != nil {
			return err
		}
		w.outcomes = append(w.outcomes, some[:len(w.runs)])
		w.doc.AddCourse(x, &some[len(w.runs)])
	}
	return nil
}

// order are the runs as they are listed, of a search the best first, and for how many
// the least capacity is stated. That takes many runs: of a search, only the best few
// if they fit.
func (w *whatIf) order() (runs []int, shown int) {
	const maxShown = 3
	shown = len(w.runs)
	if !w.options.search {
		for j := range w.runs {
			runs = append(runs, j)
		}
		return runs, shown
	}
	runs = replay.Rank(w.outcomes)
	if w.fits(runs[0]) {
		shown = min(maxShown, shown)
	}
	return runs, shown
}

// largest is the largest of some sizes, of which none, nil or 0, is more than any.
func largest(sizes []*int64) (bytes int64) {
	for _, n := range sizes {
		if n == nil || *n == 0 {
			return math.MaxInt64
		}
		bytes = max(bytes, *n)
	}
	return bytes
}

// fits reports whether a run does not run out of memory on any device.
func (w *whatIf) fits(run int) bool {
	for i := range w.on {
		if w.outcomes[i][run].OOM != nil {
			return false
		}
	}
	return true
}

// limited reports whether a device of a search may not reserve all of its memory.
func (w *whatIf) limited() bool {
	return slices.ContainsFunc(w.on, func(x *replay.Result) bool {
		return x.Bounded(replay.Scenario{Capacity: w.capacity, Limit: w.limit}).Limit > 0
	})
}

// plan makes the scenario of every run on every device.
func (w *whatIf) plan() error {
	changes, err := w.change()
	if err != nil {
		return err
	}
	for i, x := range w.on {
		if err := x.Fits(w.capacity); err != nil {
			return fmt.Errorf("--capacity: %w", err)
		}
		sc := changes[i]
		sc.Samples = replay.Samples
		sc.Capacity, sc.Limit = w.capacity, w.limit
		if w.options.search {
			sc = x.Bounded(sc)
		}
		var of []replay.Scenario
		for _, r := range w.runs {
			of = append(of, x.Under(sc, r.Settings))
		}
		w.scenarios = append(w.scenarios, of)
	}
	return nil
}

// least are the smallest capacities of some runs, by run and device, 0 where the
// limit alone is too low; nil of others.
func (w *whatIf) least(ctx context.Context, some []int, done func()) ([][]*int64, error) {
	out := make([][]*int64, len(w.runs))
	for j := range out {
		out[j] = make([]*int64, len(w.on))
	}
	for i, x := range w.on {
		var of []replay.Scenario
		var ran []*replay.Outcome
		for _, j := range some {
			of, ran = append(of, w.scenarios[i][j]), append(ran, &w.outcomes[i][j])
		}
		sizes, err := x.AllSmallest(ctx, of, ran, done)
		if err != nil {
			return nil, err
		}
		for n, j := range some {
			out[j][i] = &sizes[n]
		}
	}
	return out, nil
}

// change returns what is asked for beside settings, for each device. It must be
// there on one of them.
func (w *whatIf) change() ([]replay.Scenario, error) {
	out := make([]replay.Scenario, len(w.on))
	if policy := w.options.emptyCache; policy != "" {
		var failed error
		var found string
		calls := 0
		for i, x := range w.on {
			events, what, err := x.EmptyAt(policy)
			if err != nil {
				failed = err
				continue
			}
			out[i].Empty, found = events, what
			calls += len(events)
		}
		switch {
		case calls == 0 && failed != nil:
			return nil, fmt.Errorf("--empty-cache: %w", failed)
		case calls == 0:
			return nil, fmt.Errorf("--empty-cache: %s is never reached: the history is shorter", policy)
		case found != "":
			found = "; steps are found by: " + found
		}
		w.notes = append(w.notes, "calls of empty_cache added: "+units.Count(int64(calls))+found)
	}
	found := make([]int, len(w.options.without))
	for i, x := range w.on {
		var counts []int
		out[i].Without, counts = x.StacksAt(w.options.without...)
		for j, n := range counts {
			found[j] += n
		}
	}
	for j, place := range w.options.without {
		if found[j] == 0 {
			return nil, fmt.Errorf("--without: nothing is allocated at %s; `strandline inspect FILE --at EVENT` lists places", place)
		}
		w.notes = append(w.notes, replay.LeftOut(place, found[j]))
	}
	return out, nil
}
