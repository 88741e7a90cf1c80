package cli

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"strandline/allocator"
	"strandline/replay"
	"strandline/report"
	"strandline/timeline"
	"strandline/units"
)

type simulateOptions struct {
	set        []string
	capacity   string
	fraction   float64
	emptyCache string
	without    []string
	search     bool
}

func newSimulate(g *globals) *cobra.Command {
	var o simulateOptions
	c := &cobra.Command{
		Use:   "simulate FILE",
		Short: "Replay the allocator exactly, and tell what other settings would do",
		Long: `Run the recorded requests through PyTorch's caching allocator, re-implemented:
first under the settings of the file, to see that every call of the driver and
every block is reproduced, then under others.

The requests stay the same, and so do the recorded calls of empty_cache.
--capacity is what PyTorch can have: the device's memory less what others hold.
Without it a run never runs out of memory.`,
		Example: `  strandline simulate oom.pickle
  strandline simulate oom.pickle --set expandable_segments:True --capacity 79GiB
  strandline simulate oom.pickle --search --capacity 79GiB     which settings fit?
  strandline simulate step.pickle --empty-cache every=10steps
  strandline simulate step.pickle --without train.py:131       what if this were freed?`,
		Args: files(1, false, "one snapshot"),
		RunE: func(c *cobra.Command, args []string) error { return runSimulate(c, g, o, args[0]) },
	}
	c.Flags().StringArrayVar(&o.set, "set", nil, "run under `CONF`, as PYTORCH_CUDA_ALLOC_CONF takes it; \"\" is the defaults; can be repeated")
	c.Flags().StringVar(&o.capacity, "capacity", "", "the `SIZE` that PyTorch can have, such as 79GiB")
	c.Flags().Float64Var(&o.fraction, "fraction", 0, "limit PyTorch to the share `F` of the capacity")
	c.Flags().StringVar(&o.emptyCache, "empty-cache", "", "call empty_cache by a `POLICY`: every=10steps, every=30s, every=5000events, after=NAME")
	c.Flags().StringArrayVar(&o.without, "without", nil, "leave out what is allocated at `PLACE`: FILE:LINE, FILE or a function; can be repeated")
	c.Flags().BoolVar(&o.search, "search", false, "try the sensible settings and recommend some")
	return c
}

func runSimulate(c *cobra.Command, g *globals, o simulateOptions, path string) error {
	capacity, limit, err := o.bounds()
	if err != nil {
		return err
	}
	s, err := g.open(c.Context(), path)
	if c.Context().Err() != nil {
		return c.Context().Err()
	}
	if err != nil {
		return err
	}
	version := replay.VersionOf(s)
	var runs []plannedRun
	for _, conf := range o.set {
		set, err := allocator.ParseSettings(conf, version)
		if err != nil {
			return fmt.Errorf("--set: %w", err)
		}
		runs = append(runs, plannedRun{conf, set})
	}
	partial := g.partial(s)
	doc := report.NewSimulation(path, s.TorchVersion(), partial, o.words())
	var on []*replay.Exact
	for _, d := range s.Devices() {
		if err := c.Context().Err(); err != nil {
			return err
		}
		x := replay.NewRecording(timeline.New(s, d)).Exact()
		doc.AddReplay(x)
		on = append(on, x)
	}
	if len(runs) == 0 && (o.changes() || o.search) {
		runs = append(runs, plannedRun{on[0].Settings.Changed(), on[0].Settings})
	}
	if o.search {
		runs = append(runs, searched(runs, version, limit > 0)...)
	}
	if len(runs) > 0 {
		if err := g.simulate(doc, on, runs, o, capacity, limit); err != nil {
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

// bounds are what PyTorch can have and may reserve; 0 is no bound.
func (o *simulateOptions) bounds() (capacity, limit int64, err error) {
	if o.capacity != "" {
		if capacity, err = units.ParseBytes(o.capacity); err != nil {
			return 0, 0, fmt.Errorf("--capacity: %w", err)
		}
		if capacity <= 0 {
			return 0, 0, errors.New("--capacity: a device has more than 0 bytes")
		}
	}
	switch {
	case o.fraction == 0:
	case o.fraction < 0 || o.fraction > 1:
		return 0, 0, fmt.Errorf("--fraction: %v is no share between 0 and 1", o.fraction)
	case capacity == 0:
		return 0, 0, errors.New("--fraction is a share of the capacity: give --capacity, too")
	default:
		limit = int64(o.fraction * float64(capacity))
	}
	return capacity, limit, nil
}

// changes tells whether something but the settings is different.
func (o *simulateOptions) changes() bool {
	return o.capacity != "" || o.emptyCache != "" || len(o.without) > 0
}

// words say what is different in all runs.
func (o *simulateOptions) words() string {
	var parts []string
	if o.capacity != "" {
		parts = append(parts, "capacity "+o.capacity)
	}
	if o.fraction != 0 {
		parts = append(parts, fmt.Sprintf("fraction %v", o.fraction))
	}
	if o.emptyCache != "" {
		parts = append(parts, "empty_cache "+o.emptyCache)
	}
	if len(o.without) > 0 {
		parts = append(parts, "without "+strings.Join(o.without, ", "))
	}
	return strings.Join(parts, "; ")
}

type plannedRun struct {
	conf string
	set  allocator.Settings
}

// searched are the settings to try beside some that are there.
func searched(have []plannedRun, v allocator.Version, limited bool) (out []plannedRun) {
	seen := map[string]bool{}
	for _, r := range have {
		seen[r.set.Changed()] = true
	}
	for _, conf := range replay.Candidates(limited) {
		set, err := allocator.ParseSettings(conf, v)
		if err == nil && !seen[set.Changed()] {
			seen[set.Changed()] = true
			out = append(out, plannedRun{conf, set})
		}
	}
	return out
}

// samples are as many as a line of a terminal can show.
const samples = 64

// simulate makes the runs and adds them to the document.
func (g *globals) simulate(doc *report.Simulation, on []*replay.Exact, runs []plannedRun, o simulateOptions, capacity, limit int64) error {
	bar := counter{g: g, what: "running", all: len(runs) * len(on), began: time.Now()}
	defer bar.clear()
	scenarios := make([][]replay.Scenario, len(on))
	outcomes := make([][]replay.Outcome, len(on))
	for i, x := range on {
		if x.Lost {
			return fmt.Errorf("device %d cannot be simulated: %v", x.Device, x.Difference)
		}
		base := replay.Scenario{Capacity: capacity, Limit: limit, Samples: samples}
		if err := o.change(x, &base); err != nil {
			return err
		}
		for _, r := range runs {
			base.Settings = r.set
			scenarios[i] = append(scenarios[i], base)
		}
		outcomes[i] = x.All(scenarios[i], bar.next)
	}
	// The least capacity takes many runs: a search tells that of the best few.
	const few = 3
	order, told := make([]int, len(runs)), len(runs)
	for j := range order {
		order[j] = j
	}
	if o.search {
		order = replay.Rank(outcomes)
		told = min(few, told)
	}
	bar.restart("looking for the least capacity", told*len(on))
	least := make([][]*int64, len(runs))
	for i, x := range on {
		var some []replay.Scenario
		for _, j := range order[:told] {
			some = append(some, scenarios[i][j])
		}
		sizes := x.AllSmallest(some, bar.next)
		for n, j := range order {
			if n < told {
				least[j] = append(least[j], &sizes[n])
			} else {
				least[j] = append(least[j], nil)
			}
		}
	}
	for _, j := range order {
		of := make([]replay.Outcome, len(on))
		for i := range on {
			of[i] = outcomes[i][j]
		}
		doc.AddRun(runs[j].conf, on, of, least[j])
	}
	if o.search {
		doc.Recommend(runs[0].conf)
	}
	return nil
}

// change adds what is asked for beside settings.
func (o *simulateOptions) change(x *replay.Exact, sc *replay.Scenario) error {
	if o.emptyCache != "" {
		events, _, err := x.EmptyAt(o.emptyCache)
		if err != nil {
			return fmt.Errorf("--empty-cache: %w", err)
		}
		sc.Empty = events
	}
	for _, place := range o.without {
		at, n := x.StacksAt(place)
		if n == 0 {
			return fmt.Errorf("--without: nothing on device %d is allocated at %s; `strandline inspect FILE --at EVENT` lists places", x.Device, place)
		}
		if sc.Without == nil {
			sc.Without = at
			continue
		}
		for id, there := range at {
			sc.Without[id] = sc.Without[id] || there
		}
	}
	return nil
}

// counter is one line on stderr, from the first second on, if a person looks.
type counter struct {
	g       *globals
	what    string
	n, all  int
	began   time.Time
	written bool
}

func (c *counter) next() {
	c.n++
	if !c.g.env.StderrTerminal || time.Since(c.began) < time.Second {
		return
	}
	c.written = true
	fmt.Fprintf(c.g.env.Stderr, "\r\x1b[K%s: %d of %d", c.what, c.n, c.all)
}

func (c *counter) restart(what string, all int) { c.what, c.n, c.all = what, 0, all }

func (c *counter) clear() {
	if c.written {
		fmt.Fprint(c.g.env.Stderr, "\r\x1b[K")
	}
}
