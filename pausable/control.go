package pausable

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
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
// memory, each in its own pid namespace.
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

// Ask asks a process, by its id as it is seen here, what its pausable memory is. The
// error is [ErrNotThere] where none answers.
func Ask(ctx context.Context, pid int) (*state.Status, error) {
	return ask(ctx, pid, "status")
}

// AskBlocks is [Ask] with the addresses of all blocks. A [Failure] is that the library in the
// process is older and does not tell them.
func AskBlocks(ctx context.Context, pid int) (*state.Status, error) {
	return ask(ctx, pid, "blocks")
}

// Do has a process pause or resume the memory of a tag, or of all. The error is a
// [Failure] where it was refused; the status is that afterwards in either case.
func Do(ctx context.Context, pid int, step state.Step) (*state.Status, error) {
	request := step.Do
	if !step.All {
		request += " " + state.Encode(step.Tag)
	}
	return ask(ctx, pid, request)
}

func ask(ctx context.Context, pid int, request string) (*state.Status, error) {
	conn, err := socket.DialProcess(ctx, sockets, pid)
	if err != nil {
		if errors.Is(err, socket.ErrNone) {
			return nil, fmt.Errorf("process %d %w", pid, ErrNotThere)
		}
		return nil, err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })()
	s, err := exchange(conn, request)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	var refused *Failure
	if err != nil && !errors.As(err, &refused) {
		err = fmt.Errorf("process %d does not answer: %w", pid, err)
	}
	return s, err
}

// longest is how large an answer may be.
const longest = 64 << 20

// exchange sends a request and reads the answer.
func exchange(conn net.Conn, request string) (*state.Status, error) {
	if _, err := conn.Write([]byte(request + "\n")); err != nil {
		return nil, err
	}
	return read(conn)
}

// read reads an answer: see c/control.c.
func read(from io.Reader) (*state.Status, error) {
	lines := bufio.NewReader(io.LimitReader(from, longest))
	var text []byte
	var refused *Failure
	for {
		line, err := lines.ReadString('\n')
		switch {
		case errors.Is(err, io.EOF):
			return nil, errors.New("it ended the connection; it may have too many requests, or be of another user")
		case err != nil:
			return nil, err
		}
		if line == "end\n" {
			break
		}
		if rest, ok := strings.CutPrefix(line, "failed "); ok && refused == nil {
			if refused, err = failure(strings.TrimSuffix(rest, "\n")); err != nil {
				return nil, err
			}
			continue
		}
		text = append(text, line...)
	}
	s, err := state.Parse(text)
	if err == nil && refused != nil {
		err = refused
	}
	return s, err
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
	return &Failure{Kind: int(n[0]), Code: int(n[1]), Device: int(n[2]), Needed: n[3], Available: n[4], Text: words[numbers]}, nil
}
