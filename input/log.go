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
	"strandline/profiles/levels"
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
	in := bufio.NewReaderSize(counted, lookSize)
	head, _ := in.Peek(lookSize)
	columns := levels.Columns(head)
	head = head[:min(len(head), 1024)]
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
		return &Unknown{from{f}, f.withoutFailure(&found, columns, f.NamedAsSnapshot() && !records, cause), notSnapshot}
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
// nothing is known to state that memory ran out; it is a table if it has columns. A file named as a snapshot, or known to be
// something else, is described as that.
func (f *File) withoutFailure(found *logs.Text, columns int, named bool, cause error) error {
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
	for _, x := range otherFaults {
		if at := found.Hints[x.hint]; at > 0 {
			return refused("%s: not memory: line %s of this text reports %s. %s", path, units.Count(at), x.what, x.instead)
		}
	}
	if columns > 0 {
		return refused("%s: a table of %d columns, in which nothing states that memory ran out, without memory over time: name a column of times and one of memory, as in `time,bytes`", path, columns)
	}
	engines := max(found.Hints[failure.HintVLLM], found.Hints[failure.HintSGLang], found.Hints[failure.HintOllama])
	if at := found.Hints[failure.HintReady]; at > 0 && engines > 0 {
		return refused("%s: a start-up log of an engine without a failure (line %s): `strandline plan --check` compares it with a plan", path, units.Count(at))
	}
	return refused("%s: it is a text of %s in which nothing states that memory ran out, without levels of memory; "+
		"give the lines of the error, lines with memory figures, or a CSV (time,bytes); `strandline help guide out-of-memory` lists the known messages", path, lines)
}

// A refusal is why a text is not judged. It is no snapshot either.
type refusal string

func refused(format string, args ...any) error { return refusal(fmt.Sprintf(format, args...)) }

func (r refusal) Error() string { return string(r) }

// Is reports whether the target is the error of a file that is no snapshot.
func (r refusal) Is(target error) bool { return target == snapshot.ErrNotSnapshot }

// otherFaults are faults that mention memory, or come where it is watched, and are none of it.
var otherFaults = []struct {
	hint          failure.Hint
	what, instead string
}{
	{failure.HintECC, "an ECC error of the GPU's memory", "The GPU is faulty: see `nvidia-smi -q -d ECC,ROW_REMAPPER`, then reset or replace it"},
	{failure.HintXid, "an Xid, a fault that the NVIDIA driver found", "Look its number up in NVIDIA's list: 13, 31 and 43 are bugs of a program, 48, 63, 79 and 94 are faults of hardware"},
	{failure.HintIllegal, "an illegal memory access, a bug in a kernel or its arguments", "CUDA_LAUNCH_BLOCKING=1 or compute-sanitizer finds the kernel"},
	{failure.HintTimeout, "a time-out of NCCL", "Find the rank that stopped first: its log may hold the cause"},
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

// Lines are lines of a text, by their numbers from 1 on. The end of one that is very long is left
// out.
func (f *File) Lines(ctx context.Context, from, to int) (out []string, err error) {
	const maxLine = 1000 // bytes
	defer f.release()
	err = f.unpackingQuietly(ctx, func(r io.Reader) error {
		in := bufio.NewReader(r)
		head, _ := in.Peek(1024)
		if !text.IsText(head) {
			return errors.New("is not text")
		}
		in = bufio.NewReaderSize(text.Plain(in, head), lookSize)
		for n, begins := 1, true; n <= to; {
			piece, more, err := in.ReadLine()
			if err == io.EOF {
				return nil
			}
			if err != nil {
				return err
			}
			if begins && n >= from {
				out = append(out, strings.ToValidUTF8(string(piece[:min(len(piece), maxLine)]), "?"))
			}
			if begins = !more; begins {
				n++
			}
		}
		return nil
	})
	return out, err
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
