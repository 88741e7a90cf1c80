// Package history reads the log that the library of pausable memory keeps of pauses and
// resumes: see pausable/c/log.c.
package history

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"strandline/internal/lazyregexp"
	"strandline/pausable/state"
)

// Suffix is that of a log's file.
const Suffix = ".pausable"

// A Log is what a process did to its pausable memory, in order.
type Log struct {
	PID   int
	Rank  *int // nil if it has none
	Steps []Step
	// Full is whether the log ended at its bound, Cut whether its last record is not
	// whole, as of a process that was killed.
	Full, Cut bool
}

// A Step is a pause or resume that has ended.
type Step struct {
	state.Step
	Began, Ended time.Time
	Kind         int // of its failure, 0 for none
	// Before and After are what the library held, and the driver's count.
	Before, After *state.Status
	// Prior and Outside are what PyTorch had of devices besides pausable memory, before and
	// after; nil if that was not noted, as where another program asked for the step.
	Prior, Outside []Outside
}

// Outside is what PyTorch's allocator has of a device in no region. Sizes are bytes.
type Outside struct {
	Device  int
	Tensors int64
	Cache   int64 // that no tensor uses
	Pools   int64 // of CUDA graphs, and others of the program's own
	Split   int64 // the part of Cache that is in segments of tensors, or 0 if that was not noted
}

// The bounds of what is read. The library ends a log at 64 MiB.
const (
	longest = 65 << 20
	maxLine = 1 << 16
)

// Is reports whether a file that begins with head is a log.
func Is(head []byte) bool { return bytes.HasPrefix(head, []byte("log 1 ")) && pidLine.Match(head) }

var pidLine = lazyregexp.New(`^log 1 [0-9]{1,10}\r?\n`)

// Read reads a log.
func Read(from io.Reader) (*Log, error) {
	lines := bufio.NewScanner(io.LimitReader(from, longest))
	lines.Buffer(nil, maxLine)
	r := &reader{log: &Log{}}
	if !lines.Scan() {
		return nil, errors.Join(errors.New("the log is empty"), lines.Err())
	}
	pid, ok := strings.CutPrefix(lines.Text(), "log 1 ")
	n, err := strconv.ParseInt(pid, 10, 32)
	if !ok || err != nil || n <= 0 {
		return nil, fmt.Errorf("%.80q is not the beginning of a log of pausable memory", lines.Text())
	}
	r.log.PID = int(n)
	var bad error // of the line before: the last may be cut
	for number := 2; lines.Scan(); number++ {
		if bad != nil {
			return nil, bad
		}
		if err := r.line(lines.Text()); err != nil {
			bad = fmt.Errorf("line %d: %w", number, err)
		}
	}
	if err := lines.Err(); err != nil {
		return nil, err
	}
	r.log.Cut = bad != nil || r.end() != nil || r.before != nil
	return r.log, nil
}

// reader reads the lines of a log.
type reader struct {
	log    *Log
	head   string // of the record that is read, "" for none
	lines  []byte
	before *Step // that has not ended
	prior  []Outside
}

func (r *reader) line(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	switch word {
	case "at":
		if err := r.end(); err != nil {
			return err
		}
		r.head = rest
	case "note":
		if err := r.end(); err != nil {
			return err
		}
		return r.note(rest)
	case "full":
		r.log.Full = true
		return r.end()
	default:
		r.lines = append(append(r.lines, line...), '\n')
	}
	return nil
}

// end ends a record.
func (r *reader) end() error {
	head := r.head
	if head == "" {
		return nil
	}
	s, err := state.Parse(r.lines)
	r.head, r.lines = "", r.lines[:0]
	if err != nil {
		return err
	}
	words := strings.Split(head, " ")
	const at, when, do, tag, kind, all = 0, 1, 2, 3, 4, 5
	if len(words) != all {
		return fmt.Errorf("%.80q is not the head of a record", head)
	}
	moment, err := nanoseconds(words[at])
	if err != nil {
		return err
	}
	step, err := state.ParseStep(words[do] + " " + words[tag])
	if err != nil {
		return err
	}
	failure, err := strconv.ParseInt(words[kind], 10, 32)
	if err != nil {
		return fmt.Errorf("%.40q is not a kind of failure", words[kind])
	}
	switch {
	case words[when] == "before":
		r.before, r.prior = &Step{Step: step, Began: moment, Before: s, Prior: r.prior}, nil
	case words[when] == "after" && r.before != nil && r.before.Step == step:
		r.before.Ended, r.before.Kind, r.before.After = moment, int(failure), s
		r.log.Steps = append(r.log.Steps, *r.before)
		r.before = nil
	default:
		return fmt.Errorf("%.80q is not the head of a record that follows the one before", head)
	}
	return nil
}

func nanoseconds(text string) (time.Time, error) {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return time.Time{}, fmt.Errorf("%.40q is not a time", text)
	}
	return time.Unix(0, n), nil
}

// note reads the rank, and what PyTorch has, which stands after a step and before the next; other
// notes are passed over.
func (r *reader) note(text string) error {
	words := strings.Split(text, " ")
	if len(words) == 3 && words[1] == "rank" && r.log.Rank == nil {
		if n, err := strconv.ParseUint(words[2], 10, 31); err == nil {
			r.log.Rank = new(int(n))
		}
		return nil
	}
	const fields = 7
	if len(words) != fields && len(words) != fields-1 || words[1] != "torch" || r.before != nil {
		return nil
	}
	var n [fields]int64
	for i := 2; i < len(words); i++ {
		var err error
		if n[i], err = strconv.ParseInt(words[i], 10, 64); err != nil || n[i] < 0 || n[i] > 1<<60 {
			return fmt.Errorf("%.80q is not a note of PyTorch's memory", text)
		}
	}
	o, to := Outside{int(n[2]), n[3], n[4], n[5], n[6]}, &r.prior
	same := func(other Outside) bool { return other.Device == o.Device }
	if i := len(r.log.Steps) - 1; i >= 0 && !slices.ContainsFunc(r.log.Steps[i].Outside, same) {
		to = &r.log.Steps[i].Outside // the first after it
	}
	const maxOutside = 64
	if len(*to) < maxOutside && !slices.ContainsFunc(*to, same) {
		*to = append(*to, o)
	}
	return nil
}
