package socket

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// DialProcess is [Dial] for a process by its id as it is seen here, also in another
// network namespace, which needs CAP_SYS_ADMIN.
func DialProcess(ctx context.Context, prefix string, pid int) (net.Conn, error) {
	own := pid
	process := strconv.Itoa(pid)
	if theirs := namespace(process, "pid"); theirs == "" || theirs != here().pid {
		own = innermost(pid)
	}
	name := fmt.Sprintf("@%s%d", prefix, own)
	if theirs := namespace(process, "net"); theirs != "" && theirs != here().net {
		return dialIn(fmt.Sprintf("/proc/%d/ns/net", pid), name)
	}
	if conn, err := dialAtOnce(name); err == nil || errors.Is(err, unix.ECONNREFUSED) {
		return conn, err
	}
	return Dial(ctx, prefix, own)
}

// namespace is that of a process, empty where it may not be seen.
func namespace(process, kind string) string {
	link, _ := os.Readlink("/proc/" + process + "/ns/" + kind)
	return link
}

// here are the namespaces of this process. That of pids is empty where /proc shows the
// processes of another one.
var here = sync.OnceValue(func() (own struct{ pid, net string }) {
	own.net = namespace("self", "net")
	if self, _ := os.Readlink("/proc/self"); self == strconv.Itoa(os.Getpid()) {
		own.pid = namespace("self", "pid")
	}
	return own
})

// dialAtOnce connects without waiting. A watch asks hundreds of processes again and again,
// most of which have no socket; package net takes several times as long to say so.
func dialAtOnce(name string) (net.Conn, error) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	if err := unix.Connect(fd, &unix.SockaddrUnix{Name: name}); err != nil {
		unix.Close(fd)
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	socket := os.NewFile(uintptr(fd), "")
	defer socket.Close()
	return net.FileConn(socket)
}

// innermost is the id of a process in its own pid namespace.
func innermost(pid int) int {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range strings.Lines(string(text)) {
		if ids, ok := strings.CutPrefix(line, "NSpid:"); ok {
			all := strings.Fields(ids)
			if n, err := strconv.Atoi(all[len(all)-1]); err == nil {
				return n
			}
		}
	}
	return pid
}

// dialIn connects from within a network namespace.
func dialIn(namespace, name string) (conn net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		var f *os.File
		if f, err = os.Open(namespace); err != nil {
			return
		}
		defer f.Close()
		if err = unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
			err = fmt.Errorf("enter the network namespace of the process: %w", err)
			return
		}
		var fd int
		if fd, err = unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0); err != nil {
			return
		}
		socket := os.NewFile(uintptr(fd), "")
		defer socket.Close()
		if err = unix.Connect(fd, &unix.SockaddrUnix{Name: name}); err != nil {
			err = fmt.Errorf("%w: %w", ErrNone, err)
			return
		}
		conn, err = net.FileConn(socket)
	}()
	<-done
	return conn, err
}

// Running are the ids of the processes of this network namespace that have such a
// socket, each in its own pid namespace.
func Running(prefix string) (pids []int) {
	text, _ := os.ReadFile("/proc/net/unix")
	for line := range strings.Lines(string(text)) {
		_, pid, found := strings.Cut(line, " @"+prefix)
		if n, err := strconv.Atoi(strings.TrimSpace(pid)); found && err == nil && !slices.Contains(pids, n) {
			pids = append(pids, n)
		}
	}
	slices.Sort(pids)
	return pids
}
