package cli

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"strandline/face/api"
	"strandline/face/report"
	"strandline/input"
	"strandline/internal/shell"
	"strandline/judge/diagnosis"
	"strandline/torch/compare"
	"strandline/units"
)

type compareOptions struct {
	group     string
	runs      bool
	maxGrowth string
}

func newCompare(g *globals) *cobra.Command {
	var o compareOptions
	c := &cobra.Command{
		Use:   "compare FILE|DIR…",
		Short: "Compare snapshots: step by step, rank by rank, run by run",
		Long: `Compare snapshots side by side. Files of one process are ordered and compared by
call site. Several processes (ranks) are compared with each other. --runs
compares two runs of different code at their peaks and ends. Two logs or tables,
before and after, are compared by the highest and the last of each level.

With --max-growth it is a gate: the exit status is 1 if requested memory or a
level grew by more.`,
		Example: `  strandline compare step-2.pickle step-3.pickle step-4.pickle
  strandline compare dumps/                              rank by rank
  strandline compare --runs before.pickle after.pickle   what did my change cost
  strandline compare --runs main.pickle branch.pickle --max-growth 5%
  strandline compare before.csv after.csv                what did a setting save`,
		Args: files(1, true, "snapshots or directories of them"),
		RunE: func(c *cobra.Command, args []string) error { return runCompare(c, g, o, args) },
	}
	c.Flags().StringVar(&o.group, "group", "", "distinguish processes by the match of `REGEX` in paths")
	c.Flags().BoolVar(&o.runs, "runs", false, "compare two files of runs with different code")
	c.Flags().StringVar(&o.maxGrowth, "max-growth", "", "fail if requested memory grew by more than `LIMIT`, such as 5% or 100MiB")
	return c
}

func runCompare(c *cobra.Command, g *globals, o compareOptions, args []string) error {
	limit, err := parseLimit(o.maxGrowth)
	if err != nil {
		return err
	}
	var doc *report.Comparison
	var partial bool
	var grown []growth
	tables, err := g.twoTables(c.Context(), args)
	switch {
	case err != nil:
		return err
	case tables != nil:
		doc, grown, partial = g.compareTables(tables)
	case o.runs:
		doc, grown, partial, err = g.compareRuns(c.Context(), args)
	default:
		doc, grown, partial, err = g.compareFiles(c.Context(), o.group, args)
	}
	if err != nil {
		return err
	}
	if limit != nil {
		doc.Gate = limit.gate(o.maxGrowth, grown)
	}
	if err := g.print(doc, func(w io.Writer, s report.Style) { doc.Text(w, s) }); err != nil {
		return err
	}
	switch {
	case doc.Gate != nil && !doc.Gate.Passed:
		return exit(exitProblem)
	case partial:
		return exit(exitPartial)
	}
	return nil
}

// twoTables reads two files that are logs or tables with levels of memory; nil for others.
func (g *globals) twoTables(ctx context.Context, args []string) (out []*input.Table, err error) {
	if len(args) != 2 || slices.Contains(args, "-") {
		return nil, nil
	}
	for _, path := range args {
		f, err := input.OpenFile(path, g.reading())
		if err != nil || f.Kind() != input.TableOrProfile {
			return nil, nil // of which comparing snapshots tells more
		}
		in, err := f.Read(ctx)
		if err != nil {
			return nil, err
		}
		t, ok := in.(*input.Table)
		if !ok || len(t.Columns) == 0 {
			return nil, nil
		}
		out = append(out, t)
	}
	return out, nil
}

func (g *globals) compareTables(tables []*input.Table) (doc *report.Comparison, grown []growth, partial bool) {
	doc = report.NewLevels(tables[0].File, tables[1].File)
	for _, t := range tables {
		partial = g.partial(t) || partial
		if t.Failure != nil {
			doc.Notes = append(doc.Notes, fmt.Sprintf("memory ran out in %s: strandline diagnose %s", t.Name, shell.File(t.Origin().Path)))
		}
	}
	for i := range doc.Levels.Changes {
		x := &doc.Levels.Changes[i]
		grown = append(grown, growth{what: "the peak of " + x.Level(), from: x.PeakBefore, to: x.PeakAfter}, growth{what: "the end of " + x.Level(), from: x.EndBefore, to: x.EndAfter})
	}
	return doc, grown, partial
}

func (g *globals) compareFiles(ctx context.Context, group string, args []string) (*report.Comparison, []growth, bool, error) {
	re, err := groupFlag(group)
	if err != nil {
		return nil, nil, false, err
	}
	s, partial, err := g.snapshots(ctx, args, re)
	if err != nil {
		return nil, nil, false, err
	}
	doc := report.NewComparison(s.Book, s.SnapshotProcesses())
	var grown []growth
	for i := range doc.Groups {
		r := doc.Groups[i].Requested
		what := "requested memory"
		if p := doc.Groups[i].Process; p != nil {
			what += " of " + *p
		}
		grown = append(grown, growth{what: what, from: r[0], to: r[len(r)-1]})
	}
	return doc, grown, partial, nil
}

// snapshots reads the snapshots that arguments lead to.
func (g *globals) snapshots(ctx context.Context, args []string, group *regexp.Regexp) (*diagnosis.Session, bool, error) {
	files, err := g.open(args)
	if err != nil {
		return nil, false, err
	}
	defer files.Close()
	s := diagnosis.New(files, diagnosis.Options{Group: group})
	partial, err := files.EachSnapshot(ctx, func(in *input.Snapshot) { s.AddSnapshot(in.Name, in.Snapshot) })
	return s, partial, err
}

func (g *globals) compareRuns(ctx context.Context, args []string) (*report.Comparison, []growth, bool, error) {
	if len(args) != 2 {
		return nil, nil, false, fmt.Errorf("--runs compares two files, before and after; got %d", len(args))
	}
	var runs []*compare.Run
	var partial bool
	for _, path := range args {
		files, err := g.open([]string{path})
		if err != nil {
			return nil, nil, false, err
		}
		part, err := files.EachSnapshot(ctx, func(in *input.Snapshot) { runs = append(runs, compare.NewRun(in.Snapshot)) })
		files.Close()
		if err != nil {
			return nil, nil, false, err
		}
		partial = partial || part
	}
	if len(runs) != 2 {
		return nil, nil, false, fmt.Errorf("--runs compares two files, before and after; got %d snapshots", len(runs))
	}
	a, b := runs[0], runs[1]
	grown := []growth{{"the peak", a.Peak, b.Peak, withoutHistory(a, b)}, {what: "the end", from: a.End, to: b.End}}
	return report.NewRuns(a, b), grown, partial, nil
}

// withoutHistory returns which of two runs have no history, "" if both have one.
func withoutHistory(runs ...*compare.Run) string {
	var names []string
	for _, r := range runs {
		if r.NoHistory {
			name := r.Name
			if name == "-" {
				name = "standard input"
			}
			names = append(names, name)
		}
	}
	switch len(names) {
	case 0:
		return ""
	case 1:
		return names[0] + " has no history"
	}
	return strings.Join(names, " and ") + " have no history"
}

// growth is a change from one size to another, in bytes, unless unknown states
// why it is not known.
type growth struct {
	what     string
	from, to int64
	unknown  string
}

// limit is the growth allowed: a share of the old size, or bytes.
type limit struct {
	share float64
	bytes int64
}

func parseLimit(text string) (*limit, error) {
	if text == "" {
		return nil, nil
	}
	if number, ok := strings.CutSuffix(text, "%"); ok {
		p, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || p < 0 {
			return nil, fmt.Errorf("--max-growth %s: want a share such as 5%% or a size such as 100MiB", text)
		}
		return &limit{share: p / 100}, nil
	}
	n, err := units.ParseBytes(text)
	if err != nil {
		return nil, fmt.Errorf("--max-growth: %w", err)
	}
	return &limit{bytes: n}, nil
}

func (l *limit) gate(text string, grown []growth) *api.Gate {
	out := &api.Gate{Limit: text, Passed: true, Over: []string{}}
	for _, g := range grown {
		if g.unknown != "" {
			out.Unjudged = append(out.Unjudged, g.what+", as "+g.unknown)
			continue
		}
		allowed := l.bytes + int64(l.share*float64(g.from))
		if g.to-g.from > allowed {
			out.Passed = false
			out.Over = append(out.Over, fmt.Sprintf("%s grew from %s to %s, %s more than the %s allowed",
				g.what, units.Bytes(g.from), units.Bytes(g.to), units.Bytes(g.to-g.from-allowed), text))
		}
	}
	return out
}
