package record

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"net"
	"path"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"strandline/internal/socket"
)

// ErrNotRecorded is the error for a process whose recorder does not answer.
var ErrNotRecorded = errors.New("is not recorded, or has not initialized a device yet")

// A Control is a connection to the recorder of a process. No answer is believed beyond
// what a recorder can say: it is bounded in time and length, and so are its figures.
type Control struct{ conn *socket.Conn }

// Status is what a recorder has done so far.
type Status struct {
	PID    int    `json:"pid"`
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

// Dial connects to the recorder of a process by its id as it is seen here; one of another
// network namespace needs CAP_SYS_ADMIN. The error is [ErrNotRecorded] where no recorder
// answers, and says so where another process does.
func Dial(ctx context.Context, pid int) (*Control, error) {
	conn, err := socket.Dial(ctx, sockets, pid)
	switch {
	case errors.Is(err, socket.ErrNone):
		return nil, fmt.Errorf("process %d %w", pid, ErrNotRecorded)
	case err != nil:
		return nil, fmt.Errorf("process %d is not asked: %w", pid, err)
	}
	return &Control{conn}, nil
}

// Running are the ids of the processes that are recorded in this network namespace.
func Running() []int { return socket.Running(sockets) }

// NewControl talks to a recorder over a connection until the context ends.
func NewControl(ctx context.Context, conn net.Conn) *Control {
	return &Control{socket.NewConn(ctx, conn)}
}

// Close ends the connection.
func (c *Control) Close() error { return c.conn.Close() }

// The limits of answers: for figures, since a recorder answers nobody while it writes a
// snapshot, and for a snapshot, which is many GB at most.
const (
	figuresTime = 30 * time.Second
	// SnapshotTime is enough for a large one on a slow disk.
	SnapshotTime = 10 * time.Minute
)

// Snapshot has the process write a snapshot within a time, and returns its path: absolute,
// within the folder of the recording, as the process sees it, and of printable characters.
func (c *Control) Snapshot(reason string, within time.Duration) (string, error) {
	c.conn.Within(within)
	var status Status
	if err := c.ask(map[string]any{"do": "status"}, &status); err != nil {
		return "", err
	}
	var reply struct {
		Path string `json:"path"`
	}
	if err := c.ask(map[string]any{"do": "snapshot", "reason": reason}, &reply); err != nil {
		return "", err
	}
	if !isPath(reply.Path) || !isPath(status.Folder) || !strings.HasPrefix(reply.Path, strings.TrimSuffix(status.Folder, "/")+"/") {
		return "", fmt.Errorf("the recorder answered with %.200q, which is no path of a file in its recording", reply.Path)
	}
	return reply.Path, nil
}

// isPath reports whether a text is an absolute path that can be printed as it is.
func isPath(text string) bool {
	return path.IsAbs(text) && path.Clean(text) == text && utf8.ValidString(text) && !strings.ContainsFunc(text, func(r rune) bool { return !unicode.IsPrint(r) })
}

// Status asks what the recorder has done.
func (c *Control) Status() (s Status, err error) {
	c.conn.Within(figuresTime)
	if err := c.ask(map[string]any{"do": "status"}, &s); err != nil {
		return Status{}, err
	}
	return s, s.check()
}

// Stats asks for the allocator's figures, once, or with a time above 0 from then on
// each time that [Control.Next] is called.
func (c *Control) Stats(every time.Duration) (s Stats, err error) {
	c.conn.Within(figuresTime + every)
	if err := c.ask(map[string]any{"do": "stats", "every": every.Seconds()}, &s); err != nil {
		return Stats{}, err
	}
	return s, s.Check()
}

// Next waits for the next figures, which came every so often until now. The error is
// [io.EOF] where the process ended.
func (c *Control) Next(every time.Duration) (s Stats, err error) {
	c.conn.Within(figuresTime + every)
	if err := c.reply(&s); err != nil {
		return Stats{}, err
	}
	return s, s.Check()
}

// The bounds of what a recorder states, above what a process has.
const (
	maxDevices = 128 // as CUDA and PyTorch can count
	maxBytes   = 1 << 50
	maxCount   = 1 << 53 // what is a whole number in every reader of JSON
)

var errNoFigures = errors.New("these are figures that no recorder has")

func (s *Status) check() error {
	if s.Steps < 0 || s.Steps > maxCount || s.Dumps < 0 || s.Dumps > maxCount || s.Rank != nil && (*s.Rank < 0 || *s.Rank > math.MaxInt32) {
		return errNoFigures
	}
	return nil
}

// Check refuses figures that no process has: negative ones, such that sums overflow, and
// devices that are there twice.
func (s *Stats) Check() error {
	bad := s.Steps < 0 || s.Steps > maxCount || !(s.Time >= 0 && s.Time < maxCount) || len(s.Devices) > maxDevices
	seen := map[int]bool{}
	for _, d := range s.Devices {
		bad = bad || d.Device < 0 || d.Device >= maxDevices || seen[d.Device]
		seen[d.Device] = true
		for _, n := range []int64{d.Allocated, d.Active, d.Reserved, d.PeakAllocated, d.PeakReserved} {
			bad = bad || n < 0 || n > maxBytes
		}
		for _, n := range []int64{d.Retries, d.OOMs} {
			bad = bad || n < 0 || n > maxCount
		}
	}
	if bad {
		return errNoFigures
	}
	return nil
}

func (c *Control) ask(request map[string]any, reply any) error {
	line, err := json.Marshal(request)
	if err != nil {
		return err
	}
	if err := c.conn.Send(string(line)); err != nil {
		return err
	}
	err = c.reply(reply)
	if errors.Is(err, io.EOF) {
		err = errors.New("it ended the connection; it may be of another user, or have ended")
	}
	return err
}

func (c *Control) reply(into any) error {
	line, err := c.conn.Line()
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
