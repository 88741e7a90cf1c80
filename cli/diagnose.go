package cli

import (
	"context"
	"fmt"
	"io"
	"regexp"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"strandline/face/report"
	"strandline/finding"
	"strandline/input"
	"strandline/judge/diagnosis"
	"strandline/judge/jobs"
	"strandline/judge/tables"
	"strandline/torch/allocator"
	"strandline/units"
)

type diagnoseOptions struct {
	group    string
	capacity string
	limit    string
	failOn   string
	store    storeOptions
}

func newDiagnose(g *globals) *cobra.Command {
	var o diagnoseOptions
	c := &cobra.Command{
		Use:   "diagnose FILE|DIR… | --prometheus URL --query PROMQL",
		Short: "Find leaks and why memory ran out, with the line and the fix",
		Long: `Find leaks, fragmentation and the cause of an out-of-memory error.

FILE is any of these; a directory stands for all of them below it:
  snapshots   3 or more of one process, from the same point of different steps;
              the history in the newest is judged if there are fewer
  logs, text  with an OOM message or tables of torch.cuda.memory_summary()
  tables      memory over time (CSV); --limit says when it runs out
  recordings  of record, trace (also with its processes' snapshots) and watch
  profiles    of JAX, Nsight Systems, torch.profiler and /proc

The order of files does not matter. rank<N> and pid<N> in their names tell
processes apart, then folders.

Exit status: 0 no problem found, or too little to judge (unknown); 1 problem
found, a job that failed, or what --fail-on names; 2 wrong usage or unreadable
input; 3 input partly readable (results printed; 1 wins); 130 interrupted.`,
		Example: `  strandline diagnose job.log
  strandline diagnose dumps/ --group 'worker-(\d+)'
  strandline diagnose memory.csv --limit 16GiB
  zstd -dc big.pickle.zst | strandline diagnose`,
		Args: o.store.args(files(1, true, "snapshots, logs, or directories of them")),
		RunE: func(c *cobra.Command, args []string) error { return runDiagnose(c, g, o, args) },
	}
	c.Flags().StringVar(&o.group, "group", "", "distinguish processes by the match of `REGEX` in paths")
	c.Flags().StringVar(&o.capacity, "capacity", "", "device memory `SIZE`, such as 80GiB")
	o.failOn = onProblem
	c.Flags().Var(newChoice(&o.failOn, onProblem, "warning", "unknown"), "fail-on", "exit 1 also on a `WHAT`: warning, unknown")
	c.Flags().Lookup("fail-on").DefValue = "" // the help states it
	completeChoices(c, c.Flags())
	c.Flags().StringVar(&o.limit, "limit", "", "the `SIZE` that a table's levels must stay below")
	o.store.flags(c)
	return c
}

func runDiagnose(c *cobra.Command, g *globals, o diagnoseOptions, args []string) error {
	known, err := o.known(c.Flags())
	switch {
	case err != nil:
		return err
	case o.store.server != "":
		return g.diagnoseStore(c.Context(), &o.store, known.Limit, o.failOn)
	}
	return g.diagnose(c.Context(), known, args, o.failOn)
}

// known is what the user knows beyond the files.
func (o *diagnoseOptions) known(flags *pflag.FlagSet) (out diagnosis.Options, err error) {
	if flags.Changed("limit") {
		n, err := units.ParseBytes(o.limit)
		if err != nil {
			return out, fmt.Errorf("--limit: %w", err)
		}
		out.Limit = &n
	}
	if o.store.server != "" {
		return out, nil
	}
	n, err := parseCapacity(flags, o.capacity)
	if err != nil {
		return out, err
	}
	if n > 0 {
		out.Capacity = &n
	}
	out.Group, err = groupFlag(o.group)
	return out, err
}

// groupFlag reads the expression of --group, nil if it was not given.
func groupFlag(text string) (*regexp.Regexp, error) {
	if text == "" {
		return nil, nil
	}
	re, err := regexp.Compile(text)
	if err != nil {
		return nil, fmt.Errorf("--group: %w", err)
	}
	return re, nil
}

// diagnose judges files and prints what it finds.
func (g *globals) diagnose(ctx context.Context, o diagnosis.Options, args []string, failOn string) error {
	files, err := g.open(args)
	if err != nil {
		return err
	}
	defer files.Close()
	answer, err := diagnosis.Diagnose(ctx, files, o)
	if err != nil {
		for _, n := range files.Notes() {
			g.warn("not recorded: %s", n)
		}
		return err
	}
	if answer.Job == nil { // a job is judged by all files that it left
		for _, path := range answer.Skipped {
			g.warnOfFile("skipped %s: a different kind than the files beside it", path)
		}
	}
	for _, why := range answer.Untraced {
		g.warn("%s", why)
	}
	if w := answer.Watch; w != nil && w.Partial != nil {
		g.warn("the recording is only partly readable: %v; the rest is used", w.Partial)
	}
	doc, text := diagnosed(files, answer)
	return g.conclude(doc, text, answer, failOn)
}

// diagnosed is the document of an answer, and how it is printed.
func diagnosed(files *input.Files, a *diagnosis.Answer) (doc *report.Diagnosis, text func(io.Writer, report.Style)) {
	switch {
	case a.Watch != nil:
		watch := report.NewWatch(a.Watch.Last, a.Watch.Samples, a.Findings)
		return watch.Diagnosis(files.Given[0]), watch.Text
	case a.Trace != nil:
		trace := report.Trace{Document: *a.Trace.Document}
		return report.NewRecorded(files.Given, a.Trace), trace.Text
	case a.Series != nil:
		doc = report.NewProfiles(tables.Answer{Verdict: a.Verdict, Findings: a.Findings}, a.Series)
	default:
		doc = report.NewDiagnosis(a)
		doc.Notes = files.Notes()
	}
	doc.SetJob(a.Job)
	return doc, doc.Text
}

// onProblem is the value of --fail-on that a problem alone fails.
const onProblem = "problem"

// failsOn reports whether an answer without a problem fails by --fail-on.
func failsOn(failOn string, a *diagnosis.Answer) bool {
	if failOn == onProblem {
		return false
	}
	warned := slices.ContainsFunc(a.Findings, func(f finding.Finding) bool { return f.Severity == finding.Warning })
	unknown := a.Verdict == finding.Unknown
	if a.Job != nil { // it is the verdict on all of its files
		unknown = a.Job.Cause == jobs.Unknown
	}
	return warned || failOn == "unknown" && unknown
}

// conclude prints a document, and ends with the status of an answer.
func (g *globals) conclude(doc *report.Diagnosis, text func(io.Writer, report.Style), a *diagnosis.Answer, failOn string) error {
	if err := g.print(doc, text); err != nil {
		return err
	}
	switch {
	case problems(a.Findings), a.Job != nil && a.Job.Failed, failsOn(failOn, a):
		return exit(exitProblem)
	case a.Partial:
		return exit(exitPartial)
	}
	return nil
}

// parseCapacity reads the size that --capacity gives; it is 0 if the flag was not
// given.
func parseCapacity(flags *pflag.FlagSet, text string) (int64, error) {
	if !flags.Changed("capacity") {
		return 0, nil
	}
	return sizeFlag("capacity", text)
}

// sizeFlag reads a size of a device's memory; it is 0 if the flag was not given.
func sizeFlag(name, text string) (int64, error) {
	return sizeFrom(name, text, allocator.SmallBuffer, "PyTorch takes from a device at once", "80GiB") // of a segment
}

// fileSizeFlag reads the size that bounds the file of a recording.
func fileSizeFlag(name, text string) (int64, error) {
	return sizeFrom(name, text, 2<<20, "a recording needs", "256MiB")
}

// sizeFrom reads a size of a number of bytes or more, which is what it is less than
// otherwise. A number without a unit is in bytes: a small one is taken for a forgotten unit.
func sizeFrom(name, text string, minBytes int64, what, example string) (int64, error) {
	n, err := units.ParseBytes(text)
	if err != nil {
		return 0, fmt.Errorf("--%s: %w", name, err)
	}
	if n < minBytes {
		return 0, fmt.Errorf("--%s: %q is %s, less than %s; write the size with its unit, such as %s", name, text, units.Bytes(n), what, example)
	}
	return n, nil
}
