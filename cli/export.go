package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"strandline/face/api"
	"strandline/face/export"
	"strandline/face/report"
	"strandline/host/store/recording"
	"strandline/input"
	"strandline/profiles"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
	"strandline/units"
)

type exportOptions struct {
	to, events, output, redact string
	device                     int
}

func newExport(g *globals) *cobra.Command {
	var o exportOptions
	c := &cobra.Command{
		Use:   "export FILE --to FORMAT -o OUT",
		Short: "Write a snapshot, or a part of it, for other tools",
		Long: `Write a snapshot in the format of another tool:

` + formatHelp() + `

Live memory is the requested size of active blocks, as inspect shows it. JAX
profiles can become pprof, folded or csv.

--events A:B keeps the events A to B-1 of one device, with its blocks after
them, as a dump at that moment would. The guide says which figures are exact.

--redact is for files that you share. Pseudonyms such as file-1.py and func-3
replace the files or names of your code, or both. Names of PyTorch and Python
stay, so the file can still be analyzed. Top-level keys that PyTorch does not
write are dropped.`,
		Example: `  strandline export oom.pickle --to pprof -o oom.pb.gz
  strandline export oom.pickle --to sqlite -o oom.db
  strandline export oom.pickle --to folded -o - | flamegraph.pl > oom.svg
  strandline export big.pickle --to pickle --events 12000:15000 -o part.pickle
  strandline export oom.pickle --to pickle --redact both -o for-others.pickle`,
		Args: files(1, false, "one snapshot"),
		RunE: func(c *cobra.Command, args []string) error {
			return runExport(c.Context(), g, o, args[0])
		},
	}
	c.Flags().StringVar(&o.to, "to", "", "the `FORMAT` to write: "+formatNames())
	c.Flags().StringVar(&o.events, "events", "", "only the events `A:B`, from A to B-1; one may be omitted")
	c.Flags().IntVar(&o.device, "device", unset, "only device `N`; needed with --events if several devices have events")
	hideDefault(c, "device")
	c.Flags().StringVar(&o.redact, "redact", "", "replace your `WHAT` by pseudonyms: paths, names or both")
	c.Flags().StringVarP(&o.output, "output", "o", "", "write to `FILE`; - is standard output")
	return c
}

func runExport(ctx context.Context, g *globals, o exportOptions, path string) error {
	if err := o.check(g); err != nil {
		return err
	}
	span, err := parseSpan(o.events)
	if err != nil {
		return err
	}
	f, err := g.openFile(path, "export takes one file")
	if err != nil {
		return err
	}
	in, err := f.Read(ctx)
	if err != nil {
		return err
	}
	switch in := in.(type) {
	case *input.Trace:
		return g.exportTrace(ctx, o, in)
	case *input.Table:
		return g.exportTable(ctx, o, in)
	case *input.Snapshot:
		return g.exportSnapshot(ctx, o, in, span)
	}
	return input.NotSnapshot(in)
}

func (g *globals) exportSnapshot(ctx context.Context, o exportOptions, in *input.Snapshot, span *span) error {
	out, err := g.cut(in.Snapshot, o.device, span)
	if err != nil {
		return err
	}
	if what := redactions[o.redact]; what != 0 {
		out = export.Redact(out, what)
	}
	n, err := formatOf(o.to).write(ctx, g, o.output, out)
	if err != nil {
		return err
	}
	doc := api.Export{Schema: api.ExportSchema, File: o.output, Format: o.to, Events: events(out), Segments: len(out.Segments), Bytes: n}
	if o.output != "-" {
		if err := g.print(doc, func(w io.Writer, _ report.Style) { writeExport(w, doc) }); err != nil {
			return err
		}
	}
	if g.partial(in) {
		return exit(exitPartial)
	}
	return nil
}

// exportTable writes what a file of another program holds by stack.
func (g *globals) exportTable(ctx context.Context, o exportOptions, in *input.Table) error {
	write := map[string]func(io.Writer, *profiles.File) error{"pprof": export.PprofOfProfile, "folded": export.FoldedOfProfile, "csv": export.CSVOfProfile}[o.to]
	if len(in.Uses) == 0 {
		return input.NotSnapshot(in)
	}
	if err := o.onlyWhole("a file of kind "+in.Format, "pprof, folded or csv", write != nil); err != nil {
		return err
	}
	if err := g.exportStacks(ctx, o, len(in.Uses), func(w io.Writer) error { return write(w, in.File) }); err != nil {
		return err
	}
	if g.profilePartial(in.File) {
		return exit(exitPartial)
	}
	return nil
}

// exportTrace writes the stacks of a recording in the formats that are of stacks.
func (g *globals) exportTrace(ctx context.Context, o exportOptions, in *input.Trace) error {
	write := map[string]func(io.Writer, *recording.Run) error{"pprof": export.PprofOfTrace, "folded": export.FoldedOfTrace}[o.to]
	if err := o.onlyWhole("the recording of a trace", "pprof or folded", write != nil); err != nil {
		return err
	}
	if err := g.exportStacks(ctx, o, len(in.Document.Stacks), func(w io.Writer) error { return write(w, in.Run) }); err != nil {
		return err
	}
	if g.partial(in) {
		return exit(exitPartial)
	}
	return nil
}

// onlyWhole returns an error for options that are for snapshots alone. formats are those
// of the file.
func (o *exportOptions) onlyWhole(file, formats string, knows bool) error {
	switch {
	case o.redact != "":
		return fmt.Errorf("--redact is for snapshots: it does not replace paths and names in %s", file)
	case o.events != "":
		return fmt.Errorf("--events is for snapshots: %s is written whole", file)
	case !knows:
		return fmt.Errorf("--to %s is for snapshots: %s is written as %s", o.to, file, formats)
	}
	return nil
}

// exportStacks writes stacks that are not of a snapshot, and reports what was written.
func (g *globals) exportStacks(ctx context.Context, o exportOptions, stacks int, write func(io.Writer) error) error {
	n, err := g.create(ctx, o.output, func(w io.Writer) error {
		if o.output == "-" && g.env.stdoutTerminal {
			w = report.PrintableWriter(w)
		}
		return write(w)
	})
	if err != nil || o.output == "-" {
		return err
	}
	doc := api.StackExport{Schema: api.ExportSchema, File: o.output, Format: o.to, Stacks: stacks, Bytes: n}
	return g.print(doc, func(w io.Writer, _ report.Style) {
		fmt.Fprintf(w, "wrote %s: %s, %s\n", report.Line(doc.File), units.Plural(int64(doc.Stacks), "stack"), units.Bytes(doc.Bytes))
	})
}

// check reports what is wrong with the options before the file is read.
func (o *exportOptions) check(g *globals) error {
	format := formatOf(o.to)
	_, redacts := redactions[o.redact]
	switch {
	case o.to == "":
		return errors.New("--to FORMAT is missing; formats: " + formatNames())
	case format == nil:
		return fmt.Errorf("--to %s: unknown format; formats: %s", o.to, formatNames())
	case !redacts:
		return fmt.Errorf("--redact %s: want paths, names or both", o.redact)
	case o.output == "":
		return errors.New("-o FILE is missing; - is standard output")
	case o.output == "-" && format.stream == nil:
		return fmt.Errorf("--to %s needs a file; it cannot be written to standard output", o.to)
	case o.output == "-" && g.json:
		return errors.New("--json and -o - both write to standard output; choose one")
	case o.output == "-" && g.env.stdoutTerminal && !format.text:
		return fmt.Errorf("%s is binary and standard output is a terminal; name a file (-o FILE), or redirect it", o.to)
	case o.device < snapshot.Host && o.device != unset:
		return fmt.Errorf("--device %d: devices are numbered from 0; -1 is pinned host memory", o.device)
	}
	return nil
}

// A span is the events from, …, to-1; to is timeline.Never for all to the end.
type span struct{ from, to int }

// parseSpan reads A:B. An empty text is not a span.
func parseSpan(text string) (*span, error) {
	if text == "" {
		return nil, nil
	}
	out := &span{0, timeline.Never}
	a, b, ok := strings.Cut(text, ":")
	for _, n := range []struct {
		text string
		to   *int
	}{{a, &out.from}, {b, &out.to}} {
		if n.text == "" {
			continue
		}
		v, err := strconv.ParseUint(n.text, 10, 31)
		ok = ok && err == nil
		*n.to = int(v)
	}
	switch {
	case !ok:
		return nil, fmt.Errorf("--events %s: want A:B, the numbers of the first event and of the one after the last", text)
	case out.to != timeline.Never && out.to < out.from:
		return nil, fmt.Errorf("--events %s: the last event is before the first", text)
	}
	return out, nil
}

// cut returns the part of s that the options select.
func (g *globals) cut(s *snapshot.Snapshot, device int, events *span) (*snapshot.Snapshot, error) {
	if events == nil && device == unset {
		return s, nil
	}
	if device == unset {
		var err error
		if device, err = onlyDevice(s); err != nil {
			return nil, err
		}
	}
	n := 0
	for _, d := range s.Devices() {
		if d.Index == device {
			n = d.Trace.Len()
		}
	}
	if events == nil {
		events = &span{0, n}
	}
	to := events.to
	if to == timeline.Never {
		to = max(n, events.from)
	}
	if last := max(events.from, to) - 1; last >= n {
		return nil, noEvent(s, device, last, n)
	}
	out, err := timeline.Cut(s, device, events.from, to)
	if err != nil {
		return nil, err
	}
	for _, fault := range out.Faults {
		g.warn("%s", fault)
	}
	return out, nil
}

// onlyDevice is the device that has events.
func onlyDevice(s *snapshot.Snapshot) (int, error) {
	var with []string
	device := 0
	for _, d := range s.Devices() {
		if d.Trace.Len() > 0 {
			device = d.Index
			with = append(with, strconv.Itoa(d.Index))
		}
	}
	switch len(with) {
	case 0:
		return 0, fmt.Errorf("%s has no events", s.Name)
	case 1:
		return device, nil
	}
	return 0, fmt.Errorf("%s has events of the devices %s; choose one with --device", s.Name, strings.Join(with, ", "))
}

func events(s *snapshot.Snapshot) (n int) {
	for i := range s.Traces {
		n += s.Traces[i].Len()
	}
	return n
}

func writeExport(w io.Writer, d api.Export) {
	count := func(n int, one string) string { return units.Plural(int64(n), one) }
	fmt.Fprintf(w, "wrote %s: %s, %s, %s\n", report.Line(d.File), count(d.Events, "event"), count(d.Segments, "segment"), units.Bytes(d.Bytes))
}
