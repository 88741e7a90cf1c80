package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"strandline/face/api"
	"strandline/face/export"
	"strandline/face/report"
	"strandline/face/web"
	"strandline/face/web/engine"
	"strandline/finding"
	"strandline/host/store/recording"
	"strandline/judge/processes"
	"strandline/units"
)

// recording reads the recording of a trace, if that is among what the arguments
// name, and returns its path and the others of them.
func (g *globals) recording(ctx context.Context, args []string) (run *recording.Run, path string, others []string, err error) {
	for i, path := range args {
		if g.isRecording(path) {
			run, err = g.readRecording(ctx, path)
			return run, path, slices.Delete(slices.Clone(args), i, i+1), err
		}
	}
	return nil, "", nil, nil
}

// recordingIn replaces a folder by the recording in it, of a trace or a watch, if it
// holds one, and no snapshots, and nothing else is named.
func (g *globals) recordingIn(args []string) []string {
	if len(args) != 1 || !isFolder(args[0]) {
		return args
	}
	paths, _, err := g.expand(args)
	if err != nil || slices.ContainsFunc(paths, likeSnapshot) {
		return args
	}
	found := slices.DeleteFunc(paths, func(path string) bool { return !g.isAnyRecording(path) })
	if len(found) != 1 {
		return args
	}
	return found
}

// isAnyRecording reports whether a file is the recording of a trace or of a watch.
func (g *globals) isAnyRecording(path string) bool { return g.isRecording(path) || g.isWatch(path) }

// isRecording reports whether a file is the recording of a trace.
func (g *globals) isRecording(path string) bool { return g.begins(path, recording.Is) }

// begins reports whether a file begins as a format does. Of one that cannot be opened
// reading it as something else gives the error.
func (g *globals) begins(path string, as func(io.Reader) bool) bool {
	f, err := g.source(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return as(f)
}

// readRecording reads a recording, with progress on a terminal if it takes long.
func (g *globals) readRecording(ctx context.Context, path string) (*recording.Run, error) {
	f, err := g.source(path)
	if err != nil {
		return nil, err
	}
	defer g.release(path)
	defer f.Close()
	bar := progress{g: g, path: path, size: sizeOf(path), began: time.Now()}
	defer bar.clear()
	run, err := recording.Read(&watched{ctx: ctx, r: f, bar: &bar})
	switch {
	case ctx.Err() != nil:
		return nil, ctx.Err()
	case err != nil:
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return run, nil
}

// recordingPartial reports on stderr where reading of a recording ended, and what is
// missing.
func (g *globals) recordingPartial(run *recording.Run) bool {
	empty := len(run.Samples) == 0 && !run.Judged
	switch {
	case run.Partial != nil:
		g.warn("the recording is only partly readable: %v; what comes before that is used", run.Partial)
	case empty:
		g.warn("the recording ends before its first figures: nothing can be reported")
	}
	if n := len(run.Samples); n > 0 && run.Judged && run.Samples[n-1].Seconds > 1.1*run.Document.Duration {
		g.warn("the recording lasts until %s and ends without a judgment; the last one covers the first %s", seconds(run.Samples[n-1].Seconds), seconds(run.Document.Duration))
	}
	return run.Partial != nil || empty
}

func seconds(n float64) string { return units.Duration(time.Duration(n * float64(time.Second))) }

// diagnoseRecording reports what a recording shows, with the snapshots that are
// named beside it.
func (g *globals) diagnoseRecording(c *cobra.Command, run *recording.Run, path string, others []string) error {
	partial := g.recordingPartial(run)
	with, err := g.readWith(c, run, others)
	if err != nil {
		return err
	}
	partial = with.partial || partial
	if len(with.snapshots) > 0 {
		account := processes.RecordedDevices(run, with.snapshots, with.pidOf)
		report.SetDevices(run.Document, account.Devices, account.Reserved)
		run.Document.Findings = account.Findings
		g.warnOfStrangers(run, with)
	}
	run.Document.Findings = append(run.Document.Findings, with.findings...)
	slices.SortStableFunc(run.Document.Findings, bySeverity)
	trace := report.Trace{Document: *run.Document}
	doc := report.NewRecorded(append([]string{path}, others...), run)
	if err := g.print(doc, func(w io.Writer, s report.Style) { trace.Text(w, s) }); err != nil {
		return err
	}
	switch {
	case problems(run.Document.Findings):
		return exit(exitProblem)
	case partial:
		return exit(exitPartial)
	}
	return nil
}

// warnOfStrangers warns of snapshots of processes that were not traced.
func (g *globals) warnOfStrangers(run *recording.Run, with *beside) {
	for _, s := range with.snapshots {
		if pid := with.pidOf(s.Name); pid != 0 && !slices.Contains(run.GPU.PIDs, pid) {
			g.warn("%s is of pid %d, which is not one of the traced processes that use the device (%v)", s.Name, pid, run.GPU.PIDs)
		}
	}
}

// bySeverity orders problems before warnings before information.
func bySeverity(a, b finding.Finding) int {
	return cmp.Compare(b.Severity.Rank(), a.Severity.Rank())
}

// viewRecording serves or saves the page of a recording.
func (g *globals) viewRecording(ctx context.Context, o viewOptions, path string, run *recording.Run) error {
	if o.redact != "" {
		return errors.New("--redact is for snapshots: it does not replace paths and names in the recording of a trace")
	}
	partial := g.recordingPartial(run)
	asker := engine.NewRecording(path, run)
	var err error
	if o.html != "" {
		err = g.savePage(ctx, o.html, func(w io.Writer) error { return web.SaveRecording(ctx, w, asker) })
	} else {
		err = g.serve(ctx, o.serve, page{asker: asker, index: "recording.html"})
	}
	if err == nil && partial {
		return exit(exitPartial)
	}
	return err
}

func writeStackExport(w io.Writer, d api.StackExport) {
	fmt.Fprintf(w, "wrote %s: %s, %s\n", report.Line(d.File), units.Plural(int64(d.Stacks), "stack"), units.Bytes(d.Bytes))
}

// exportRecording writes the stacks of a recording in the formats that are of
// stacks.
func (g *globals) exportRecording(ctx context.Context, o exportOptions, run *recording.Run) error {
	write := map[string]func(io.Writer, *recording.Run) error{"pprof": export.PprofOfTrace, "folded": export.FoldedOfTrace}[o.to]
	if err := o.onlyWhole("the recording of a trace", "pprof or folded", write != nil); err != nil {
		return err
	}
	if err := g.exportStacks(ctx, o, len(run.Document.Stacks), func(w io.Writer) error { return write(w, run) }); err != nil {
		return err
	}
	if g.recordingPartial(run) {
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
	return g.print(doc, func(w io.Writer, _ report.Style) { writeStackExport(w, doc) })
}
