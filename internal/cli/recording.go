package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"strandline/face/export"
	"strandline/face/report"
	"strandline/face/web"
	"strandline/face/web/engine"
	"strandline/host/recording"
	judgehost "strandline/judge/host"
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

// isRecording reports whether a file begins as a recording does. Of one that cannot
// be opened reading it as something else says what is wrong.
func (g *globals) isRecording(path string) bool {
	f, err := g.source(path)
	if err != nil {
		return false
	}
	defer f.Close()
	return recording.Is(f)
}

// readRecording reads a recording, with progress on a terminal if it takes long.
func (g *globals) readRecording(ctx context.Context, path string) (*recording.Run, error) {
	f, err := g.source(path)
	if err != nil {
		return nil, err
	}
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

// recordingPartial says on stderr where reading of a recording ended, and what it
// lacks.
func (g *globals) recordingPartial(run *recording.Run) bool {
	empty := len(run.Samples) == 0 && !run.Judged
	switch {
	case run.Partial != nil:
		g.warn("the recording is only partly readable: %v; what comes before that is used", run.Partial)
	case empty:
		g.warn("the recording ends before its first figures: nothing can be reported")
	}
	if n := len(run.Samples); n > 0 && run.Judged && run.Samples[n-1].Seconds > 1.1*run.Document.Duration {
		g.warn("the recording lasts until %s and ends without a judgement; the last one covers the first %s", seconds(run.Samples[n-1].Seconds), seconds(run.Document.Duration))
	}
	return run.Partial != nil || empty
}

func seconds(n float64) string { return units.Duration(time.Duration(n * float64(time.Second))) }

// diagnoseRecording tells what a recording does, with the snapshots that are
// named beside it.
func (g *globals) diagnoseRecording(ctx context.Context, run *recording.Run, path string, beside []string) error {
	partial := g.recordingPartial(run)
	snapshots, err := g.readWith(ctx, run, beside)
	if err != nil {
		return err
	}
	for _, s := range snapshots {
		partial = g.partial(s) || partial
	}
	if len(snapshots) > 0 {
		judgehost.Account(run.Document, run.GPU, snapshots)
	}
	trace := report.Trace{Document: *run.Document}
	doc := report.NewRecorded(append([]string{path}, beside...), run)
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

// stacksReport is the document of `strandline export` of a recording.
type stacksReport struct {
	Schema string `json:"schema"`
	File   string `json:"file"`
	Format string `json:"format"`
	Stacks int    `json:"stacks"`
	Bytes  int64  `json:"bytes"`
}

func (d stacksReport) text(w io.Writer, _ report.Style) {
	stacks := "1 stack"
	if d.Stacks != 1 {
		stacks = units.Count(int64(d.Stacks)) + " stacks"
	}
	fmt.Fprintf(w, "wrote %s: %s, %s\n", report.Line(d.File), stacks, units.Bytes(d.Bytes))
}

// exportRecording writes the stacks of a recording in the formats that are of
// stacks.
func (g *globals) exportRecording(ctx context.Context, o exportOptions, run *recording.Run) error {
	write := map[string]func(io.Writer, *recording.Run) error{"pprof": export.PprofOfTrace, "folded": export.FoldedOfTrace}[o.to]
	if write == nil || o.events != "" || o.redact != "" {
		return fmt.Errorf("the recording of a trace can only be written whole, as pprof or folded; --to %s is for snapshots", o.to)
	}
	n, err := g.create(ctx, o.output, func(w io.Writer) error {
		if o.output == "-" && g.env.StdoutTerminal {
			w = report.PrintableWriter(w)
		}
		return write(w, run)
	})
	if err != nil {
		return err
	}
	if o.output != "-" {
		doc := stacksReport{"strandline.export/1", o.output, o.to, len(run.Document.Stacks), n}
		if err := g.print(doc, doc.text); err != nil {
			return err
		}
	}
	if g.recordingPartial(run) {
		return exit(exitPartial)
	}
	return nil
}
