package cli

import (
	"fmt"
	"io"
	"regexp"

	"github.com/spf13/cobra"

	"strandline/compare"
	"strandline/detect"
	"strandline/report"
	"strandline/snapshot"
	"strandline/units"
)

type diagnoseOptions struct {
	group    string
	capacity string
}

func newDiagnose(g *globals) *cobra.Command {
	var o diagnoseOptions
	c := &cobra.Command{
		Use:   "diagnose FILE|DIR…",
		Short: "Judge snapshots: what leaks, where, how sure, what to change",
		Long: `Judge memory snapshots of one process over time, or of several processes.

Give three snapshots or more of one process, taken at the same place of
different steps; fewer are judged by the history inside the newest. Files may
come in any order: they are put in the order of their histories, else of the
numbers in their names. Several processes are told apart by rank<N> and pid<N>
in the file name, else by folder. A directory stands for all snapshots below it.`,
		Example: `  strandline diagnose step-2.pickle step-3.pickle step-4.pickle
  strandline diagnose dumps/ --json
  strandline diagnose dumps/ --group 'worker-(\d+)'
  zstd -dc big.pickle.zst | strandline diagnose -`,
		Args: files(1, true, "snapshots or directories of them"),
		RunE: func(c *cobra.Command, args []string) error { return runDiagnose(c, g, o, args) },
	}
	c.Flags().StringVar(&o.group, "group", "", "tell processes apart by what `REGEX` matches in the path")
	c.Flags().StringVar(&o.capacity, "capacity", "", "the `SIZE` of the device's memory, such as 80GiB")
	return c
}

func runDiagnose(c *cobra.Command, g *globals, o diagnoseOptions, args []string) error {
	if o.capacity != "" {
		if _, err := units.ParseBytes(o.capacity); err != nil {
			return fmt.Errorf("--capacity: %w", err)
		}
	}
	book, processes, partial, err := g.processes(c, o.group, args)
	if err != nil {
		return err
	}
	answer := detect.Files(book, processes)
	doc := report.NewDiagnosis(answer, processes)
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

// processes reads files and sorts them by the process they are of.
func (g *globals) processes(c *cobra.Command, group string, args []string) (*compare.Book, []*compare.Process, bool, error) {
	var re *regexp.Regexp
	if group != "" {
		var err error
		if re, err = regexp.Compile(group); err != nil {
			return nil, nil, false, fmt.Errorf("--group: %w", err)
		}
	}
	book := compare.NewBook()
	digests := map[string]*compare.Digest{}
	var paths []string
	partial, err := g.each(c.Context(), args, func(path string, s *snapshot.Snapshot) error {
		digests[path] = book.Digest(s)
		paths = append(paths, path)
		return nil
	})
	if err != nil {
		return nil, nil, partial, err
	}
	names, files := compare.Group(paths, re)
	var out []*compare.Process
	for _, name := range names {
		var list []*compare.Digest
		for _, p := range files[name] {
			list = append(list, digests[p])
		}
		out = append(out, compare.NewProcess(name, list))
	}
	return book, out, partial, nil
}
