package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"time"

	"strandline/internal/packed"
	"strandline/internal/shell"
	"strandline/logs"
	"strandline/logs/failure"
	"strandline/logs/text"
	"strandline/torch/digest"
	"strandline/torch/snapshot"
	"strandline/units"
)

// readText looks for statements that memory ran out and tables of
// memory_summary(), in a file that is not a snapshot because of cause. It is nil if the
// file is not text, or contains none; then the error states what it is.
func (g *globals) readText(ctx context.Context, path string, cause error) (*digest.File, error) {
	bar := progress{g: g, path: path, began: time.Now()}
	defer bar.clear()
	r, err := g.source(path)
	switch {
	case errors.Is(err, errOnce):
		return nil, cause
	case err != nil:
		return nil, err
	}
	defer r.Close()
	bar.size = sizeOf(path)
	unpacked, compression, err := packed.Open(bufio.NewReader(&watched{ctx: ctx, r: r, bar: &bar}), bar.size)
	if err != nil {
		return nil, cause
	}
	defer unpacked.Close()
	counted := &watched{ctx: ctx, r: unpacked, bar: &progress{g: g}}
	in := bufio.NewReader(counted)
	head, _ := in.Peek(1024)
	if !text.IsText(head) {
		return nil, cause
	}
	records := text.IsRecords(head)
	if (head[0] == '[' || records) && errors.Is(cause, snapshot.ErrNotSnapshot) {
		cause = snapshot.ErrUnknown // "[0] loading" is not a list
	}
	text, err := logs.Scan(in)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if text.Empty() {
		return nil, noFailureIn(path, &text, likeSnapshot(path) && !records, cause)
	}
	d := &digest.File{Name: path, Text: &text}
	if err != nil {
		d.Partial = &snapshot.Partial{Offset: counted.n, Err: err, Unpacked: compression != ""}
		g.warn("%s is only partly readable: at %s: %v; what comes before that is used", path, d.Partial.Place(), err)
	}
	return d, nil
}

// forDiagnose is the error where a command takes only snapshots and a file
// is not one for some cause: it states so if diagnose takes the text.
func (g *globals) forDiagnose(ctx context.Context, path string, cause error) error {
	var missing *fs.PathError
	if ctx.Err() != nil || errors.As(cause, &missing) {
		return cause
	}
	if f, _ := g.profile(ctx, path); f != nil {
		return g.notSnapshot(f)
	}
	d, err := g.readText(ctx, path, cause)
	if err != nil {
		return cause
	}
	holds := "tables of memory_summary()"
	switch {
	case d.Text.OOM.Count > 0:
		holds = "PyTorch's out-of-memory message"
	case d.Text.Failed():
		holds = "a statement that memory ran out"
	}
	name, typed := path, shell.File(path)
	if path == "-" {
		name, typed = "standard input", "-"
	}
	return fmt.Errorf("%s: %w: it is a text with %s; `strandline diagnose %s` explains it", name, snapshot.ErrNotSnapshot, holds, typed)
}

// noFailureIn describes a text that is not a snapshot, for some cause, and contains
// no message of PyTorch's. A file named as a snapshot, or known to be something
// else, is described as that.
func noFailureIn(path string, text *logs.Text, named bool, cause error) error {
	if path == "-" {
		path = "standard input"
	}
	lines := units.Plural(text.Lines, "line")
	switch {
	case text.Remark != nil:
		return fmt.Errorf("%s: line %s of this text mentions that memory ran out, but not in the words of a known error: %q; "+
			"give the lines of the error itself, or watch the next run: record snapshots as docs/record.md shows, or `strandline trace --pid PID` for the memory of the host", path, units.Count(text.Remark.Line), text.Remark.Quote)
	case text.OOM.Cut > 0:
		return fmt.Errorf("%s: PyTorch's out-of-memory message on line %s of this text contains no readable figure", path, units.Count(text.OOM.Cut))
	case named, errors.Is(cause, snapshot.ErrNotSnapshot) && !errors.Is(cause, snapshot.ErrUnknown):
		return cause
	}
	if at := text.Hints[failure.HintPinned]; at > 0 {
		return fmt.Errorf("%s: line %s of this text states that pinned host memory was refused: this is no failure, as ggml goes on with memory that is not pinned, from which copies to the GPU are slower; "+
			"nothing else in its %s states that memory ran out", path, units.Count(at), lines)
	}
	return fmt.Errorf("%s: %w: it is a text of %s in which nothing states that memory ran out, without a table of memory_summary(); "+
		"`strandline plan --check` compares the start-up log of an engine with a plan; docs/out-of-memory.md lists the known messages", path, snapshot.ErrNotSnapshot, lines)
}

// watched is a reader that shows its progress and ends with its context.
type watched struct {
	ctx context.Context
	r   io.Reader
	bar *progress
	n   int64
}

func (w *watched) Read(p []byte) (int, error) {
	if err := w.ctx.Err(); err != nil {
		return 0, err
	}
	n, err := w.r.Read(p)
	w.n += int64(n)
	w.bar.show(w.n)
	return n, err
}
