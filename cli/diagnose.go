package cli

import (
	"fmt"
	"io"
	"regexp"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"strandline/face/report"
	"strandline/judge/snapshots"
	"strandline/torch/allocator"
	"strandline/torch/compare"
	"strandline/torch/digest"
	"strandline/torch/snapshot"
	"strandline/units"
)

type diagnoseOptions struct {
	group    string
	capacity string
	limit    string
	store    storeOptions
}

func newDiagnose(g *globals) *cobra.Command {
	var o diagnoseOptions
	c := &cobra.Command{
		Use:   "diagnose FILE|DIR… | --prometheus URL --query PROMQL",
		Short: "Find what leaks or fills memory in snapshots and logs, and how to fix it",
		Long: `Judge memory snapshots of one process over time, or of several processes.

Give three or more snapshots of one process, taken at the same point of
different steps; fewer are judged by the history inside the newest. Files may
be in any order: they are sorted by their histories, otherwise by the numbers in
their names. Processes are distinguished by rank<N> and pid<N> in the file
name, otherwise by folder. A directory stands for all snapshots below it.

A log or pasted text that contains PyTorch's out-of-memory error is a FILE too: the
failure is judged by the figures of the message, and together with a snapshot
of the same failure. A text with tables of torch.cuda.memory_summary() is accepted too: one
table, one before and one after in one or two files, or many in a log.

A table of memory over time (CSV with a column of times) is judged column by
column: a leak, a cache that levels off, or a sawtooth; with --limit also when it
runs out.

A recording of ` + "`strandline trace --out`" + ` is judged alone or with snapshots of
the same processes: files, one of each, or a folder. The snapshots are judged
too; if the recording was made with --gpu, they split what PyTorch took from the
driver. They belong to the process of that pid (pid<N> in the file name, or the
recording of strandline record), otherwise to the one that took their segments. A
recording of ` + "`strandline watch --out`" + ` is judged alone, too.

With --prometheus, the levels come from Prometheus or a store with its API, and are
judged as those of a table. A counter is refused: only a level can run out.

Exit status: 0 nothing wrong found, or too little recorded to judge (unknown);
1 a problem was found; 2 usage, or input that cannot be read; 3 input only partly
readable (results are printed, marked partial; 1 wins over it); 130 interrupted.`,
		Example: `  strandline diagnose step-2.pickle step-3.pickle step-4.pickle
  strandline diagnose dumps/ --json
  strandline diagnose dumps/ --group 'worker-(\d+)'
  strandline diagnose oom.pickle --capacity 80GiB
  strandline diagnose job.log
  strandline diagnose before.txt after.txt
  strandline diagnose memory.csv --limit 16GiB
  strandline diagnose --prometheus http://localhost:9090 --query DCGM_FI_DEV_FB_USED --since 12h --limit 80GiB
  zstd -dc big.pickle.zst | strandline diagnose -`,
		Args: o.store.args(files(1, true, "snapshots, logs, or directories of them")),
		RunE: func(c *cobra.Command, args []string) error { return runDiagnose(c, g, o, args) },
	}
	c.Flags().StringVar(&o.group, "group", "", "distinguish processes by what `REGEX` matches in the path")
	c.Flags().StringVar(&o.capacity, "capacity", "", "the `SIZE` of the device's memory, such as 80GiB")
	c.Flags().StringVar(&o.limit, "limit", "", "the `SIZE` that the levels of a table must not reach, such as 16GiB")
	o.store.flags(c)
	return c
}

func runDiagnose(c *cobra.Command, g *globals, o diagnoseOptions, args []string) error {
	var limit *int64
	if c.Flags().Changed("limit") {
		n, err := units.ParseBytes(o.limit)
		if err != nil {
			return fmt.Errorf("--limit: %w", err)
		}
		limit = &n
	}
	if o.store.server != "" {
		return g.diagnoseStore(c.Context(), &o.store, limit)
	}
	known := snapshots.Options{Limit: limit}
	switch n, err := parseCapacity(c.Flags(), o.capacity); {
	case err != nil:
		return err
	case n > 0:
		known.Capacity = &n
	}
	args = g.recordingIn(args)
	switch path, err := g.watchAmong(args); {
	case err != nil:
		return err
	case path != "":
		return g.diagnoseWatch(c.Context(), path)
	}
	run, path, others, err := g.recording(c.Context(), args)
	switch {
	case err != nil:
		return err
	case run != nil:
		return g.diagnoseRecording(c, run, path, others)
	}
	if done, err := g.diagnoseProfiles(c.Context(), o.group, limit, args); done || err != nil {
		return err
	}
	notes := recordedNotes(args)
	book, processes, partial, err := g.processes(c, o.group, args, true)
	if err != nil {
		for _, n := range notes {
			g.warn("not recorded: %s", n)
		}
		return err
	}
	answer := snapshots.Files(book, processes, known)
	doc := report.NewDiagnosis(answer)
	doc.Notes = notes
	if err := g.print(doc, func(w io.Writer, s report.Style) { doc.Text(w, s) }); err != nil {
		return err
	}
	switch {
	case answer.Problems() > 0:
		return exit(exitProblem)
	case partial:
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
func sizeFrom(name, text string, least int64, what, example string) (int64, error) {
	n, err := units.ParseBytes(text)
	if err != nil {
		return 0, fmt.Errorf("--%s: %w", name, err)
	}
	if n < least {
		return 0, fmt.Errorf("--%s: %q is %s, less than %s; write the size with its unit, such as %s", name, text, units.Bytes(n), what, example)
	}
	return n, nil
}

// processes reads files and sorts them by process. With texts,
// files that hold PyTorch's error message or tables are read too.
func (g *globals) processes(c *cobra.Command, group string, args []string, texts bool) (*digest.Book, []*compare.Process, bool, error) {
	var re *regexp.Regexp
	if group != "" {
		var err error
		if re, err = regexp.Compile(group); err != nil {
			return nil, nil, false, fmt.Errorf("--group: %w", err)
		}
	}
	book := digest.NewBook()
	digests := map[string]*digest.File{}
	var paths []string
	var reported []*digest.File
	var text textReader
	if texts {
		text = func(path string, cause error) (bool, error) {
			d, err := g.readText(c.Context(), path, cause)
			if d != nil {
				reported = append(reported, d)
			}
			return d != nil, err
		}
	}
	partial, err := g.each(c.Context(), args, text, func(path string, s *snapshot.Snapshot) error {
		digests[path] = book.Digest(s)
		paths = append(paths, path)
		return nil
	})
	if err != nil {
		return nil, nil, partial, err
	}
	for _, d := range reported {
		partial = partial || d.Partial != nil
	}
	out, rest := recordedProcesses(paths, digests, re)
	names, files := compare.Group(rest, re)
	for _, name := range names {
		if name == "" && len(out) > 0 {
			name = compare.ProcessOf(files[""][0], re)
			files[name] = files[""]
		}
		var list []*digest.File
		for _, p := range files[name] {
			list = append(list, digests[p])
		}
		out = append(out, compare.NewProcess(name, list))
	}
	return book, append(out, textProcesses(reported, re, len(paths) == 0)...), partial, nil
}

// textProcesses sorts texts by process: those with tables as snapshots are, since
// a before and an after belong to one; each other text separately.
func textProcesses(texts []*digest.File, group *regexp.Regexp, alone bool) (out []*compare.Process) {
	digests := map[string]*digest.File{}
	var paths []string
	for _, d := range texts {
		if len(d.Text.Series) == 0 {
			out = append(out, compare.NewProcess(d.Name, []*digest.File{d}))
			continue
		}
		digests[d.Name] = d
		paths = append(paths, d.Name)
	}
	names, files := compare.Group(paths, group)
	for _, name := range names {
		var list []*digest.File
		for _, p := range files[name] {
			list = append(list, digests[p])
		}
		switch {
		case len(list) == 1:
			name = list[0].Name
		case name == "":
			name = compare.ProcessOf(list[0].Name, group)
		}
		out = append(out, compare.NewProcess(name, list))
	}
	if alone && len(out) == 1 {
		out[0].Name = ""
	}
	return out
}
