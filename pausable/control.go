package pausable

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"strandline/internal/socket"
	"strandline/pausable/state"
)

// ErrNotThere is the error for a process that has no pausable memory, or answers nobody.
var ErrNotThere = errors.New("has no pausable memory")

// sockets is the beginning of the names of the library's sockets. (c/control.c)
const sockets = "strandline-mem/"

// Running are the ids of the processes of this network namespace that have pausable
// memory.
func Running() []int { return socket.Running(sockets) }

// A Failure is a pause or resume that was refused; nothing has changed then.
type Failure struct {
	Kind   int // of c/pausable.h
	Code   int // of the driver or the C library
	Device int // as CUDA counts in the process; -1 for none
	// Needed and Available are bytes where the device has too little free memory.
	Needed, Available int64
	Text              string
}

// The kinds of failures that are distinguished.
const (
	deviceMemory = 1
	argument     = 4
)

func (f *Failure) Error() string { return f.Text }

// DeviceMemory reports whether the device has too little free memory.
func (f *Failure) DeviceMemory() bool { return f.Kind == deviceMemory }

// Unknown reports whether there is no such tag.
func (f *Failure) Unknown() bool { return f.Kind == argument }

// The limits of an answer: one that is not there by then is none.
const (
	figuresTime  = 10 * time.Second
	figuresBytes = 8 << 20
	blocksBytes  = 64 << 20
	// StepTime is enough to copy the memory of a node to a disk and back.
	StepTime = time.Hour
)

// Ask asks a process, by its id as it is seen here, what its pausable memory is. The
// error is [ErrNotThere] where none answers.
func Ask(ctx context.Context, pid int) (*state.Status, error) {
	return ask(ctx, pid, "status", figuresTime, figuresBytes)
}

// AskBlocks is [Ask] with the addresses of all blocks. A [Failure] is that the library in the
// process is older and does not tell them.
func AskBlocks(ctx context.Context, pid int) (*state.Status, error) {
	return ask(ctx, pid, "blocks", figuresTime, blocksBytes)
}

// Do has a process pause or resume the memory of a tag, or of all, and waits for the end of
// that so long. The error is a [Failure] where it was refused; the status is that
// afterwards in either case.
func Do(ctx context.Context, pid int, step state.Step, within time.Duration) (*state.Status, error) {
	request := step.Do
	if !step.All {
		request += " " + state.Encode(step.Tag)
	}
	return ask(ctx, pid, request, within, figuresBytes)
}

func ask(ctx context.Context, pid int, request string, within time.Duration, longest int64) (*state.Status, error) {
	conn, err := socket.Dial(ctx, sockets, pid)
	switch {
	case errors.Is(err, socket.ErrNone):
		return nil, fmt.Errorf("process %d %w", pid, ErrNotThere)
	case err != nil:
		return nil, fmt.Errorf("process %d is not asked: %w", pid, err)
	}
	defer conn.Close()
	conn.Within(within)
	if err := conn.Send(request); err != nil {
		return nil, err
	}
	s, err := read(conn, longest)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var refused *Failure
	if err != nil && !errors.As(err, &refused) {
		err = fmt.Errorf("process %d does not answer: %w", pid, err)
	}
	return s, err
}

// read reads an answer: see c/control.c.
func read(from interface{ Line() ([]byte, error) }, longest int64) (*state.Status, error) {
	lines := state.Lines{}
	var refused *Failure
	for n := int64(0); ; {
		line, err := from.Line()
		switch {
		case errors.Is(err, io.EOF):
			return nil, errors.New("it ended the connection; it may have too many requests, or be of another user")
		case err != nil:
			return nil, err
		}
		if n += int64(len(line)) + 1; n > longest {
			return nil, fmt.Errorf("its answer has more than %d bytes", longest)
		}
		text := string(line)
		if text == "end" {
			break
		}
		if rest, ok := strings.CutPrefix(text, "failed "); ok && refused == nil {
			if refused, err = failure(rest); err != nil {
				return nil, err
			}
			continue
		}
		if err := lines.Add(text); err != nil {
			return nil, err
		}
	}
	if refused != nil {
		return lines.Status(), refused
	}
	return lines.Status(), nil
}

// failure reads the line of one.
func failure(line string) (*Failure, error) {
	const numbers = 5
	words := strings.SplitN(line, " ", numbers+1)
	if len(words) != numbers+1 {
		return nil, fmt.Errorf("%.80q is not a failure", line)
	}
	var n [numbers]int64
	for i := range n {
		var err error
		if n[i], err = strconv.ParseInt(words[i], 10, 64); err != nil {
			return nil, fmt.Errorf("%.80q is not a failure", line)
		}
	}
	const maxText, maxBytes = 512, 1 << 60
	if n[2] < -1 || n[3] < 0 || n[4] < 0 || n[3] > maxBytes || n[4] > maxBytes || len(words[numbers]) > maxText {
		return nil, fmt.Errorf("%.80q is not a failure", line)
	}
	return &Failure{Kind: int(n[0]), Code: int(n[1]), Device: int(n[2]), Needed: n[3], Available: n[4], Text: words[numbers]}, nil
}
