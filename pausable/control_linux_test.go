package pausable_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	"strandline/internal/socket"
	"strandline/internal/test/live"
	"strandline/pausable"
	"strandline/pausable/state"
)

// TestControl has a process pause and resume from outside.
func TestControl(t *testing.T) {
	t.Parallel()
	p, ctx := live.Pausable(t, ".."), t.Context()
	if !slices.Contains(pausable.Running(), p.PID) {
		t.Errorf("process %d is not listed", p.PID)
	}
	ask := func(s *state.Status, err error) *state.Status {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	first := ask(pausable.Ask(ctx, p.PID))
	const tag = 6 << 20
	if len(first.Tags) != 3 || first.Tags[1].Name != "kv cache" || first.Tags[1].Bytes != tag || first.Tags[1].State != state.Active || first.Held(0) != 3*tag {
		t.Fatalf("%+v", first)
	}
	if b := ask(pausable.AskBlocks(ctx, p.PID)).Blocks; len(b) != 6 || b[0].Bytes != tag/2 || b[0].Addr == 0 || b[5].Device != 0 {
		t.Errorf("%+v", b)
	}
	s := ask(pausable.Do(ctx, p.PID, state.Step{Do: state.Pause, Tag: "kv cache"}, pausable.StepTime))
	if s.Tags[1].State != state.Paused || s.Paused(0) != tag || s.Devices[0].Free != first.Devices[0].Free+tag {
		t.Errorf("%+v", s)
	}
	all := state.Step{All: true, Do: state.Pause}
	if s = ask(pausable.Do(ctx, p.PID, all, pausable.StepTime)); !s.Idle() || s.Tags[0].BackupBytes != tag || s.Devices[0].Free != s.Devices[0].Total {
		t.Errorf("%+v", s)
	}
	p.Tell("take " + strconv.FormatInt(s.Devices[0].Total-tag, 10))
	all.Do = state.Resume
	var refused *pausable.Failure
	s, err := pausable.Do(ctx, p.PID, all, pausable.StepTime)
	if !errors.As(err, &refused) || !refused.DeviceMemory() || refused.Needed != 3*tag || refused.Available != tag || refused.Device != 0 || !s.Idle() {
		t.Errorf("%+v: %+v", err, s)
	}
	if s = ask(pausable.Do(ctx, p.PID, state.Step{Do: state.Resume, Tag: "weights"}, pausable.StepTime)); s.Tags[0].State != state.Active {
		t.Errorf("%+v", s)
	}
	p.Tell("give")
	if s = ask(pausable.Do(ctx, p.PID, all, pausable.StepTime)); s.Held(0) != 3*tag {
		t.Errorf("%+v", s)
	}
	p.Tell("check")
	if _, err := pausable.Do(ctx, p.PID, state.Step{Do: state.Pause, Tag: "50% \n"}, pausable.StepTime); !errors.As(err, &refused) || !refused.Unknown() {
		t.Error(err)
	}
	if _, err := pausable.Ask(ctx, os.Getpid()); !errors.Is(err, pausable.ErrNotThere) {
		t.Error(err)
	}
}

// TestControlTogether has several programs ask while others pause and resume.
func TestControlTogether(t *testing.T) {
	t.Parallel()
	p, ctx := live.Pausable(t, ".."), t.Context()
	var wait sync.WaitGroup
	for i, step := range []state.Step{
		{Do: state.Pause, All: true}, {Do: state.Resume, All: true}, {Do: state.Pause, Tag: "weights"}, {Do: state.Resume, Tag: "states"}, {Do: "status"}, {Do: "status"},
	} {
		wait.Go(func() {
			for range 50 {
				s, err := pausable.Do(ctx, p.PID, step, pausable.StepTime)
				if err != nil || len(s.Tags) != 3 {
					t.Errorf("%d: %v %+v", i, err, s)
					return
				}
			}
		})
	}
	wait.Wait()
	if _, err := pausable.Do(ctx, p.PID, state.Step{Do: state.Resume, All: true}, pausable.StepTime); err != nil {
		t.Error(err)
	}
	p.Tell("check")
}

// TestControlBad sends what is no request, and as someone else.
func TestControlBad(t *testing.T) {
	t.Parallel()
	p := live.Pausable(t, "..")
	ask := func(request string, as int) string {
		t.Helper()
		answer := make(chan string)
		go func() {
			runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
			if as != os.Geteuid() {
				if _, _, failed := syscall.RawSyscall(syscall.SYS_SETRESUID, uintptr(as), uintptr(as), uintptr(as)); failed != 0 {
					answer <- failed.Error()
					return
				}
			}
			conn, err := net.Dial("unix", fmt.Sprintf("@strandline-mem/%d", p.PID))
			if err != nil {
				answer <- err.Error()
				return
			}
			defer conn.Close()
			io.WriteString(conn, request) // it may have ended the connection
			conn.(*net.UnixConn).CloseWrite()
			text, _ := io.ReadAll(conn)
			answer <- string(text)
		}()
		return <-answer
	}
	self := os.Geteuid()
	for request, want := range map[string]string{
		"status\n": "tag weights ", "dance\n": "failed 4 0 -1 0 0 there is no request dance\n", "\n": "failed 4 ", "pause a%zz%\n": "there is no tag a%zz%",
		"status": "", "": "", "\x00\x00\n": "", strings.Repeat("x", 100000): "", "resume \xff\x1b\n": "there is no tag ",
	} {
		if out := ask(request, self); !strings.Contains(out, want) || want == "" && out != "" || want != "" && !strings.HasSuffix(out, "end\n") {
			t.Errorf("%q is answered by %q", request, out)
		}
	}
	if self != 0 {
		live.Missing(t, "root", "other users can only be asked as by root")
	}
	const nobody = 65534
	if out := ask("status\n", nobody); out != "" {
		t.Errorf("another user is answered by %q", out)
	}
}

// TestControlEnds shows that nothing is left of the socket when the process ends, also
// where a child that it forked lives on, and that the setting turns it off.
func TestControlEnds(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	p := live.Pausable(t, "..")
	child, err := strconv.Atoi(p.Tell("fork"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := pausable.Ask(ctx, child); !errors.Is(err, pausable.ErrNotThere) {
		t.Errorf("the child answers: %v", err)
	}
	if _, err := pausable.Ask(ctx, p.PID); err != nil {
		t.Error(err)
	}
	files, err := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", child))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		if to, _ := os.Readlink(file); strings.HasPrefix(to, "socket:") {
			t.Errorf("the child has %s, %s", file, to)
		}
	}
	p.Tell("end")
	p.End()
	if slices.Contains(pausable.Running(), p.PID) {
		t.Error("the socket is there after the end")
	}
	off := live.Pausable(t, "..", "STRANDLINE_MEM_SOCKET=0")
	if _, err := pausable.Ask(ctx, off.PID); !errors.Is(err, pausable.ErrNotThere) {
		t.Error(err)
	}
}

// TestTakenName asks a library whose name another socket has.
func TestTakenName(t *testing.T) {
	t.Parallel()
	p := live.Pausable(t, "..", "TAKEN=1")
	begins, end := context.WithTimeout(t.Context(), pausable.StepTime)
	defer end()
	for answers := 0; answers < 20; { // more than are answered at once
		conn, err := socket.Dial(begins, "strandline-mem/", p.PID)
		if err == nil {
			answers++
			conn.Close()
		} else if answers > 0 || begins.Err() != nil { // the library takes another name a moment after the start
			t.Fatal(err)
		}
	}
	if s, err := pausable.Do(t.Context(), p.PID, state.Step{Do: state.Pause, All: true}, pausable.StepTime); err != nil || !s.Idle() {
		t.Errorf("%v: %+v", err, s)
	}
	if !slices.Contains(pausable.Running(), p.PID) {
		t.Errorf("process %d is not listed", p.PID)
	}
}

// TestControlHostile asks a process that answers as no library does.
func TestControlHostile(t *testing.T) {
	for name, c := range map[string]struct{ lines, want string }{
		"tags":     {"tag %d 1 1 active none 0 1\n", "no line of a library"},
		"unknown":  {"word %d\n", "more than 8388608 bytes"},
		"failures": {"failed 1 1 %d 1 1 x\n", "more than 8388608 bytes"},
		"one line": {"x", "more than 65536 bytes"},
		"failure":  {"failed 1 1 0 -5 1 x\n", "is not a failure"},
	} {
		l, err := net.Listen("unix", fmt.Sprintf("@strandline-mem/%d", os.Getpid()))
		if err != nil {
			t.Fatal(err)
		}
		go func() {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			defer conn.Close()
			out := bufio.NewWriter(conn)
			for i := 0; err == nil; i++ {
				_, err = out.WriteString(strings.Replace(c.lines, "%d", strconv.Itoa(i), 1))
			}
		}()
		s, err := pausable.Ask(t.Context(), os.Getpid())
		l.Close()
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q; %+v", name, err, c.want, s)
		}
	}
}
