package input

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"strandline/logs"
	enginelog "strandline/logs/engine"
	"strandline/logs/failure"
	"strandline/logs/text"
	"strandline/plan/engine"
	"strandline/torch/snapshot"
	"strandline/units"
)

// log reads a file as a log, which is not a snapshot because of cause. It is an [Unknown] if
// it is not text, or if nothing in it states that memory ran out.
func (f *File) log(ctx context.Context, cause error) Input {
	in := Input(f.unknown(cause))
	_ = f.unpacking(ctx, func(r io.Reader, compression string) error { // cause describes the file
		in = f.logIn(r, compression, cause)
		return nil
	})
	return in
}

func (f *File) logIn(r io.Reader, compression string, cause error) Input {
	counted := &watched{ctx: context.Background(), r: r}
	in := bufio.NewReader(counted)
	head, _ := in.Peek(1024)
	if !text.IsText(head) {
		return f.unknown(cause)
	}
	notSnapshot := cause
	records := text.IsRecords(head)
	if (head[0] == '[' || records) && errors.Is(cause, snapshot.ErrNotSnapshot) {
		cause = snapshot.ErrUnknown // "[0] loading" is not a list
	}
	if f.inFolder() && nameOf(filepath.Base(f.Path)) != output {
		return f.unknown(cause)
	}
	found, err := logs.Scan(in)
	if f.inFolder() && !f.printed(&found.Shape) {
		return f.unknown(cause)
	}
	if found.Empty() {
		return &Unknown{from{f}, f.withoutFailure(&found, f.NamedAsSnapshot() && !records, cause), notSnapshot}
	}
	log := &Log{from: from{f}, Text: &found, NotSnapshot: notSnapshot}
	if err != nil {
		log.Partial = &snapshot.Partial{Offset: counted.n, Err: err, Unpacked: compression != ""}
	}
	return log
}

// inFolder reports whether the file lay in a folder that was named.
func (f *File) inFolder() bool { return !f.Named && f.all.disk != nil }

// printed reports whether a text in a folder has the shape of a program's output. A name like
// job.log suffices, unless the text is a page or source code.
func (f *File) printed(shape *text.Shape) bool {
	txt := strings.Contains(strings.ToLower(filepath.Base(f.Path)), ".txt")
	return !shape.Document() && (!txt || shape.Log > 0)
}

// withoutFailure describes a text that is not a snapshot, for some cause, and in which
// nothing is known to state that memory ran out. A file named as a snapshot, or known to be
// something else, is described as that.
func (f *File) withoutFailure(found *logs.Text, named bool, cause error) error {
	path, lines := f.DisplayName(), units.Plural(found.Lines, "line")
	switch {
	case found.Remark != nil:
		return fmt.Errorf("%s: line %s of this text mentions that memory ran out, but not in the words of a known error: %q; "+
			"give the lines of the error itself, or watch the next run: record snapshots (`strandline help guide record`), or `strandline trace --pid PID` for the memory of the host", path, units.Count(found.Remark.Line), found.Remark.Quote)
	case found.OOM.Cut > 0:
		return fmt.Errorf("%s: PyTorch's out-of-memory message on line %s of this text contains no readable figure", path, units.Count(found.OOM.Cut))
	case named, errors.Is(cause, snapshot.ErrNotSnapshot) && !errors.Is(cause, snapshot.ErrUnknown):
		return cause
	}
	if at := found.Hints[failure.HintPinned]; at > 0 {
		return fmt.Errorf("%s: line %s of this text states that pinned host memory was refused: this is no failure, as ggml goes on with memory that is not pinned, from which copies to the GPU are slower; "+
			"nothing else in its %s states that memory ran out", path, units.Count(at), lines)
	}
	return fmt.Errorf("%s: %w: it is a text of %s in which nothing states that memory ran out, without a table of memory_summary(); "+
		"`strandline plan --check` compares the start-up log of an engine with a plan; `strandline help guide out-of-memory` lists the known messages", path, snapshot.ErrNotSnapshot, lines)
}

// Holds names the contents of the log for a message.
func (l *Log) Holds() string {
	switch {
	case l.Text.OOM.Count > 0:
		return "PyTorch's out-of-memory message"
	case l.Text.Failed():
		return "a statement that memory ran out"
	}
	return "tables of memory_summary()"
}

// EngineLog reads the file as the start-up log of an engine or a trainer.
func (f *File) EngineLog(ctx context.Context) (log *engine.Log, err error) {
	err = f.unpacking(ctx, func(r io.Reader, _ string) error {
		in := bufio.NewReader(r)
		if head, _ := in.Peek(1024); !text.IsText(head) {
			return errors.New("is neither a snapshot nor text")
		}
		log, err = enginelog.Scan(in)
		return err
	})
	return log, err
}
