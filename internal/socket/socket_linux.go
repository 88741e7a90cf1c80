package socket

import (
	"bufio"
	"cmp"
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
	"time"

	"golang.org/x/sys/unix"
)

// Dial connects to the socket of a process, given the beginning of its name, such as
// "strandline/", and the process's id as it is seen here. A process of another network
// namespace needs CAP_SYS_ADMIN. The error is [ErrNone] where nobody answers, and a
// [Stranger] where another process does.
func Dial(ctx context.Context, prefix string, pid int) (*Conn, error) {
	process, err := look(strconv.Itoa(pid))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	fd, err := dial(ctx, pid, fmt.Sprintf("@%s%d", prefix, process.innermost()), process)
	if err != nil {
		return nil, err
	}
	file := os.NewFile(uintptr(fd), "")
	defer file.Close()
	conn, err := net.FileConn(file)
	if err != nil {
		return nil, err
	}
	return NewConn(ctx, conn), nil
}

// dial connects to a name of a process in its network namespace.
func dial(ctx context.Context, pid int, name string, process identity) (fd int, err error) {
	theirs, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid)) // empty where it may not be seen
	if theirs == "" || theirs == ownNetwork() {
		return process.dial(ctx, name, ownNames)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // and never unlocked: the thread ends with the goroutine
		var f *os.File
		if f, err = os.Open(fmt.Sprintf("/proc/%d/ns/net", pid)); err != nil {
			return
		}
		defer f.Close()
		if err = unix.Setns(int(f.Fd()), unix.CLONE_NEWNET); err != nil {
			err = fmt.Errorf("enter the network namespace of the process: %w", err)
			return
		}
		fd, err = process.dial(ctx, name, func() []string { return names(fmt.Sprintf("/proc/%d/net/unix", pid)) })
	}()
	<-done
	return fd, err
}

// dial connects to the name of a process, or to another one that it took.
func (i *identity) dial(ctx context.Context, name string, all func() []string) (int, error) {
	fd, err := i.connect(ctx, name)
	if stranger := (*Stranger)(nil); !errors.Is(err, ErrNone) && !errors.As(err, &stranger) {
		return fd, err
	}
	for _, other := range all() {
		if strings.HasPrefix(other, name+"/") {
			if fd, err := i.connect(ctx, other); err == nil {
				return fd, nil
			}
		}
	}
	return -1, err
}

// connect connects to a name, if the process listens there.
func (i *identity) connect(ctx context.Context, name string) (int, error) {
	fd, err := connect(ctx, name)
	if err != nil {
		return -1, err
	}
	if err := i.owns(fd); err != nil {
		unix.Close(fd)
		return -1, err
	}
	return fd, nil
}

var ownNetwork = sync.OnceValue(func() string {
	link, _ := os.Readlink("/proc/self/ns/net")
	return link
})

// connect connects to a name. A watch asks hundreds of processes again and again, most of
// which have no socket; package net takes several times as long to say so.
func connect(ctx context.Context, name string) (int, error) {
	const patience, pause = 5 * time.Second, 10 * time.Millisecond
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return -1, err
	}
	for began := time.Now(); ; time.Sleep(pause) {
		err = unix.Connect(fd, &unix.SockaddrUnix{Name: name})
		switch {
		case err == nil:
			return fd, nil
		case errors.Is(err, unix.EINTR):
		case !errors.Is(err, unix.EAGAIN): // which says that too many others wait to be answered
			unix.Close(fd)
			return -1, fmt.Errorf("%w: %w", ErrNone, err)
		case ctx.Err() != nil || time.Since(began) > patience:
			unix.Close(fd)
			return -1, cmp.Or(ctx.Err(), errors.New("too many others wait for its answer"))
		}
	}
}

// identity is who a process is.
type identity struct {
	ids   []int // in each pid namespace, from that of /proc to its own
	users []int // real, effective, saved and of file systems
}

// look reads who a process is, "self" for this one.
func look(pid string) (who identity, err error) {
	text, err := os.ReadFile("/proc/" + pid + "/status")
	if err != nil {
		return who, err
	}
	for line := range strings.Lines(string(text)) {
		key, values, _ := strings.Cut(line, ":")
		switch key {
		case "NSpid":
			who.ids = numbers(values)
		case "Uid":
			who.users = numbers(values)
		}
	}
	if len(who.ids) == 0 { // the kernel has no pid namespaces
		n, _ := strconv.Atoi(pid)
		who.ids = []int{n}
	}
	return who, nil
}

func numbers(text string) (out []int) {
	for _, word := range strings.Fields(text) {
		n, _ := strconv.Atoi(word)
		out = append(out, n)
	}
	return out
}

// innermost is the id of a process in its own pid namespace.
func (i *identity) innermost() int { return i.ids[len(i.ids)-1] }

// depth is how far this process's pid namespace is below that of /proc.
var depth = sync.OnceValue(func() int {
	self, err := look("self")
	if err != nil {
		return 0
	}
	return len(self.ids) - 1
})

// owns reports by the error whether a process listens at the other end of a connection.
// The kernel keeps who called listen: a forked child that has the listener too is not the
// process, and neither is who had its id before. The user tells the latter.
func (i *identity) owns(fd int) error {
	who, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return err
	}
	level := depth()
	if level < len(i.ids) && int(who.Pid) == i.ids[level] && (who.Uid == 0 || slices.Contains(i.users, int(who.Uid))) {
		return nil
	}
	return &Stranger{PID: int(who.Pid), User: int(who.Uid)}
}

// Running are the ids, as they are seen here, of the processes of this network namespace
// that have such a socket. A name alone makes no process one of them.
func Running(prefix string) (pids []int) {
	if depth() > 0 {
		return nil // /proc shows the processes of another pid namespace
	}
	for _, name := range names("/proc/net/unix") {
		own, found := strings.CutPrefix(name, "@"+prefix)
		own, _, _ = strings.Cut(own, "/")
		if !found {
			continue
		}
		if listens, ok := listener(name); ok && strconv.Itoa(listens.innermost()) == own {
			pids = append(pids, listens.ids[0])
		}
	}
	slices.Sort(pids)
	return slices.Compact(pids)
}

// names are those that sockets of a network namespace have, which a file lists.
func names(file string) (out []string) {
	const maxNames = 1 << 14
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	seen := map[string]bool{}
	for lines := bufio.NewScanner(f); lines.Scan() && len(out) < maxNames; {
		_, name, found := strings.Cut(lines.Text(), " @strandline")
		if name = "@strandline" + name; found && !seen[name] {
			seen[name] = true
			out = append(out, name)
		}
	}
	return out
}

// recent are the names of this network namespace, which a watch of hundreds of processes
// asks for.
var recent struct {
	sync.Mutex
	at    time.Time
	names []string
}

// ownNames are the names of this network namespace, at most a moment ago.
func ownNames() []string {
	const moment = 500 * time.Millisecond
	recent.Lock()
	defer recent.Unlock()
	if time.Since(recent.at) > moment {
		recent.names, recent.at = names("/proc/net/unix"), time.Now()
	}
	return recent.names
}

// listener is who listens under a name, if the process is there and of that user.
func listener(name string) (who identity, ok bool) {
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return who, false
	}
	defer unix.Close(fd)
	if unix.Connect(fd, &unix.SockaddrUnix{Name: name}) != nil {
		return who, false
	}
	peer, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err != nil {
		return who, false
	}
	if who, err = look(strconv.Itoa(int(peer.Pid))); err != nil {
		return who, false
	}
	return who, who.owns(fd) == nil
}
