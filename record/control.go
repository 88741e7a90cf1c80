package record

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"time"

	"strandline/internal/socket"
)

// ErrNotRecorded is the error for a process whose recorder does not answer.
var ErrNotRecorded = errors.New("is not recorded, or has not initialized a device yet")

// A Control is a connection to the recorder of a process.
type Control struct {
	conn  net.Conn
	lines *bufio.Reader
}

// Status is what a recorder has done so far.
type Status struct {
	PID    int    `json:"pid"` // as the process sees it
	Role   string `json:"role"`
	Rank   *int   `json:"rank"`
	Steps  int    `json:"steps"`
	Dumps  int    `json:"dumps"`
	Folder string `json:"folder"` // of the recording
	Ended  bool   `json:"ended"`
}

// Stats are the allocator's figures of a process.
type Stats struct {
	Time    float64       `json:"time"` // Unix seconds
	PID     int           `json:"pid"`
	Steps   int           `json:"steps"`
	Devices []DeviceStats `json:"devices"` // on which memory was reserved
}

// DeviceStats are the allocator's figures of a device: bytes now and at most, and how
// often it had to retry and failed.
type DeviceStats struct {
	Device        int   `json:"device"`
	Allocated     int64 `json:"allocated_bytes"`
	Active        int64 `json:"active_bytes"`
	Reserved      int64 `json:"reserved_bytes"`
	PeakAllocated int64 `json:"peak_allocated_bytes"`
	PeakReserved  int64 `json:"peak_reserved_bytes"`
	Retries       int64 `json:"retries"`
	OOMs          int64 `json:"ooms"`
}

// sockets is the beginning of the names of the sockets of recorders.
const sockets = "strandline/"

// Dial connects to the recorder of a process, given its id in its own pid namespace;
// both must be in the same network namespace. The error is [ErrNotRecorded] where no
// recorder answers.
func Dial(ctx context.Context, pid int) (*Control, error) { return dial(ctx, pid, socket.Dial) }

// DialProcess is [Dial] for a process by its id as it is seen here, also in another
// network namespace, which needs CAP_SYS_ADMIN.
func DialProcess(ctx context.Context, pid int) (*Control, error) {
	return dial(ctx, pid, socket.DialProcess)
}

func dial(ctx context.Context, pid int, by func(ctx context.Context, prefix string, pid int) (net.Conn, error)) (*Control, error) {
	conn, err := by(ctx, sockets, pid)
	switch {
	case errors.Is(err, socket.ErrNone):
		return nil, fmt.Errorf("process %d %w", pid, ErrNotRecorded)
	case err != nil:
		return nil, err
	}
	return NewControl(ctx, conn), nil
}

// Running are the ids of the processes that are recorded in this network namespace,
// each in its own pid namespace.
func Running() []int { return socket.Running(sockets) }

// NewControl talks to a recorder over a connection until the context ends.
func NewControl(ctx context.Context, conn net.Conn) *Control {
	context.AfterFunc(ctx, func() { conn.SetDeadline(time.Unix(1, 0)) })
	return &Control{conn, bufio.NewReader(conn)}
}

// Close ends the connection.
func (c *Control) Close() error { return c.conn.Close() }

// Snapshot has the process write a snapshot and returns its path.
func (c *Control) Snapshot(reason string) (string, error) {
	var reply struct {
		Path string `json:"path"`
	}
	err := c.ask(map[string]any{"do": "snapshot", "reason": reason}, &reply)
	return reply.Path, err
}

// Status asks what the recorder has done.
func (c *Control) Status() (s Status, err error) {
	err = c.ask(map[string]any{"do": "status"}, &s)
	return s, err
}

// Stats asks for the allocator's figures, once, or with a time above 0 from then on
// each time that [Control.Next] is called.
func (c *Control) Stats(every time.Duration) (s Stats, err error) {
	err = c.ask(map[string]any{"do": "stats", "every": every.Seconds()}, &s)
	return s, err
}

// Next waits for the next figures. The error is [io.EOF] where the process ended.
func (c *Control) Next() (s Stats, err error) {
	err = c.reply(&s)
	return s, err
}

func (c *Control) ask(request map[string]any, reply any) error {
	line, err := json.Marshal(request)
	if err != nil {
		return err
	}
	if _, err := c.conn.Write(append(line, '\n')); err != nil {
		return err
	}
	return c.reply(reply)
}

func (c *Control) reply(into any) error {
	line, err := c.lines.ReadBytes('\n')
	if err != nil {
		return err
	}
	var failed struct {
		Error string `json:"error"`
	}
	if json.Unmarshal(line, &failed); failed.Error != "" {
		return errors.New(failed.Error)
	}
	return json.Unmarshal(line, into)
}
