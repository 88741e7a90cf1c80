package socket

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"strandline/internal/test/live"
)

// listen binds the name of a process's socket, and answers each connection.
func listen(t *testing.T, prefix string, pid int, answer func(net.Conn)) net.Listener {
	t.Helper()
	return live.Answer(t, fmt.Sprintf("%s%d", prefix, pid), answer)
}

// other is a process that has no socket.
func other(t *testing.T) int {
	t.Helper()
	cmd := exec.Command(live.Tool(t, "sleep"), "1000")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cmd.Process.Kill()
		cmd.Wait()
	})
	return cmd.Process.Pid
}

// TestOwner asks a process itself, and nobody who has taken a name.
func TestOwner(t *testing.T) {
	const prefix = "strandline-test-owner/"
	self, sleep := os.Getpid(), other(t)
	hello := func(c net.Conn) { io.WriteString(c, "hello\n") }
	listen(t, prefix, self, hello)
	listen(t, prefix, sleep, hello)
	listen(t, prefix+"x", 1, hello) // no number
	c, err := Dial(t.Context(), prefix, self)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.Within(time.Minute)
	if line, err := c.Line(); err != nil || string(line) != "hello" {
		t.Errorf("%q, %v", line, err)
	}
	var stranger *Stranger
	if _, err := Dial(t.Context(), prefix, sleep); !errors.As(err, &stranger) || stranger.PID != self || stranger.User != os.Geteuid() {
		t.Errorf("in the name of another process: %v", err)
	}
	if _, err := Dial(t.Context(), prefix, os.Getppid()); !errors.Is(err, ErrNone) {
		t.Errorf("a process without a socket: %v", err)
	}
	if got := Running(prefix); !slices.Equal(got, []int{self}) {
		t.Errorf("running are %v, want %d", got, self)
	}
}

// TestTaken finds a process whose name another one had taken, and not who listens beside it.
func TestTaken(t *testing.T) {
	const prefix = "strandline-test-taken/"
	self, sleep := os.Getpid(), other(t)
	name := fmt.Sprintf("%s%d/", prefix, self)
	l := listen(t, name, 12, func(c net.Conn) { io.WriteString(c, "hello\n") })
	listen(t, fmt.Sprintf("%s%d/", prefix, sleep), 34, func(c net.Conn) { io.WriteString(c, "hello\n") })
	recent.at = time.Time{} // names of a moment ago are old
	c, err := Dial(t.Context(), prefix, self)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if line, err := c.Line(); err != nil || string(line) != "hello" {
		t.Errorf("%q, %v", line, err)
	}
	if c, err := Dial(t.Context(), prefix, sleep); err == nil {
		c.Close()
		t.Error("another process is believed")
	}
	if got := Running(prefix); !slices.Equal(got, []int{self}) {
		t.Errorf("running are %v, want %d", got, self)
	}
	l.Close()
	if c, err := Dial(t.Context(), prefix, self); err == nil {
		c.Close()
		t.Error("a socket that is closed is dialed")
	}
}

// TestUser refuses who had the id of a process before, as another user: the kernel keeps
// the id and the user of the call of listen.
func TestUser(t *testing.T) {
	if os.Geteuid() != 0 {
		live.Missing(t, "root", "a socket of another user needs it")
	}
	const prefix, nobody = "strandline-test-user/", 65534
	listening := make(chan error)
	end := make(chan bool)
	defer close(end)
	var become func()
	become = func() {
		runtime.LockOSThread()               // and never unlocked: the thread ends with the goroutine
		if syscall.Gettid() == os.Getpid() { // whose user /proc shows as that of the process
			go become()
			<-end
			return
		}
		if _, _, failed := syscall.RawSyscall(syscall.SYS_SETRESUID, nobody, nobody, nobody); failed != 0 {
			listening <- failed
			return
		}
		l, err := net.Listen("unix", fmt.Sprintf("@%s%d", prefix, os.Getpid()))
		listening <- err
		if err == nil {
			<-end
			l.Close()
		}
	}
	go become()
	if err := <-listening; err != nil {
		t.Fatal(err)
	}
	var stranger *Stranger
	if _, err := Dial(t.Context(), prefix, os.Getpid()); !errors.As(err, &stranger) || stranger.User != nobody {
		t.Errorf("it is believed: %v", err)
	}
	if got := Running(prefix); len(got) != 0 {
		t.Errorf("running are %v", got)
	}
}

// TestBounds reads from those that send too much, too slowly, or nothing.
func TestBounds(t *testing.T) {
	const prefix = "strandline-test-bounds/"
	for name, c := range map[string]struct {
		answer func(net.Conn)
		want   string
	}{
		"flood":   {func(c net.Conn) { io.Copy(c, endless{}) }, "more than 65536 bytes"},
		"silence": {func(c net.Conn) { io.Copy(io.Discard, c) }, "not answered in time"},
		"trickle": {func(c net.Conn) {
			for {
				if _, err := io.WriteString(c, "x"); err != nil {
					return
				}
				time.Sleep(time.Millisecond)
			}
		}, "not answered in time"},
		"end": {func(net.Conn) {}, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			l := listen(t, prefix, os.Getpid(), c.answer)
			defer l.Close()
			conn, err := Dial(t.Context(), prefix, os.Getpid())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			conn.Within(200 * time.Millisecond)
			if line, err := conn.Line(); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%d bytes, %v", len(line), err)
			}
		})
	}
}

// TestInterrupted ends a wait with its context, also one that began afterwards.
func TestInterrupted(t *testing.T) {
	near, far := net.Pipe()
	defer far.Close()
	ctx, stop := context.WithCancel(t.Context())
	c := NewConn(ctx, near)
	c.Within(time.Hour)
	stop()
	if _, err := c.Line(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	c.Within(time.Hour)
	if _, err := c.Line(); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestFull ends a wait for a process that accepts nobody.
func TestFull(t *testing.T) {
	const prefix = "strandline-test-full/"
	fd, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(fd)
	if err := errors.Join(syscall.Bind(fd, &syscall.SockaddrUnix{Name: fmt.Sprintf("@%s%d", prefix, os.Getpid())}), syscall.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for range 8 {
		c, err := Dial(ctx, prefix, os.Getpid())
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
			return
		}
		defer c.Close()
		time.AfterFunc(50*time.Millisecond, stop)
	}
	t.Error("8 connections are made of which none is accepted")
}

type endless struct{}

func (endless) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = 'a'
	}
	return len(b), nil
}
