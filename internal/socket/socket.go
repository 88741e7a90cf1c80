// Package socket finds the sockets by which processes can be asked: each is in Linux's
// abstract namespace, which has no files, under a name that ends in the process's id, or in
// that and a number of its own where another process had taken the name.
//
// Any user can bind any such name. So a connection counts only if the kernel says that the
// process itself listens, as a user who owns it, or as root.
package socket

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// ErrNone is the error for a process that has no such socket.
var ErrNone = errors.New("no socket answers")

// A Stranger is the error for a socket that has the name of a process and is not its own.
type Stranger struct {
	PID  int // that has the name; 0 if it cannot be seen from here
	User int
}

func (s *Stranger) Error() string {
	if s.PID == 0 {
		return fmt.Sprintf("another process, of user %d, has taken the name of its socket", s.User)
	}
	return fmt.Sprintf("process %d, of user %d, has taken the name of its socket", s.PID, s.User)
}

// A Conn is a connection whose answers are bounded in time and length.
type Conn struct {
	net.Conn
	ctx     context.Context
	release func() bool // of what the context keeps of it
	lines   *bufio.Reader
}

// maxLine is how long a line of an answer may be, in bytes.
const maxLine = 64 << 10

// NewConn bounds what comes over a connection, until the context ends.
func NewConn(ctx context.Context, conn net.Conn) *Conn {
	c := &Conn{Conn: conn, ctx: ctx, lines: bufio.NewReaderSize(conn, maxLine)}
	c.release = context.AfterFunc(ctx, c.expire)
	return c
}

// Close closes the connection.
func (c *Conn) Close() error {
	c.release()
	return c.Conn.Close()
}

func (c *Conn) expire() { c.SetDeadline(time.Unix(1, 0)) }

// Within gives all that is sent and received from now on so much time together.
func (c *Conn) Within(limit time.Duration) {
	c.SetDeadline(time.Now().Add(limit))
	if c.ctx.Err() != nil { // which may have ended the connection before
		c.expire()
	}
}

// Send sends a line.
func (c *Conn) Send(line string) error {
	_, err := c.Write([]byte(line + "\n"))
	return c.explain(err)
}

// Line receives a line, without its end, which holds until the next is received. The
// error is [io.EOF] where the other end has closed the connection.
func (c *Conn) Line() ([]byte, error) {
	line, err := c.lines.ReadSlice('\n')
	if errors.Is(err, bufio.ErrBufferFull) {
		return nil, fmt.Errorf("a line of its answer has more than %d bytes", maxLine)
	}
	if err != nil {
		return nil, c.explain(err)
	}
	return line[:len(line)-1], nil
}

// explain is an error of a connection.
func (c *Conn) explain(err error) error {
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return cmp.Or(c.ctx.Err(), errors.New("it has not answered in time"))
	}
	return err
}
