package procfs

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Listeners returns the processes that have a TCP socket which listens on a port of this
// machine, lowest id first, as far as their descriptors may be read. Only sockets of the
// caller's network namespace are found.
func Listeners(port int) (out []Process) {
	sockets := map[string]bool{}
	for _, name := range []string{"/proc/self/net/tcp", "/proc/self/net/tcp6"} {
		if text, err := os.ReadFile(name); err == nil {
			for _, inode := range listening(text, port) {
				sockets["socket:["+inode+"]"] = true
			}
		}
	}
	if len(sockets) == 0 {
		return nil
	}
	names, _ := filepath.Glob("/proc/[0-9]*") // the pattern is valid
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(name))
		if err == nil && holds(pid, sockets) {
			out = append(out, Process(pid))
		}
	}
	return out
}

// listening returns the inodes of the sockets of a table of the kernel that listen on a
// port (Linux Documentation/networking/proc_net_tcp.rst).
func listening(table []byte, port int) (inodes []string) {
	const listen = "0A"
	want := fmt.Sprintf(":%04X", port)
	for line := range bytes.Lines(table) {
		if f := strings.Fields(string(line)); len(f) > 9 && f[3] == listen && strings.HasSuffix(f[1], want) {
			inodes = append(inodes, f[9])
		}
	}
	return inodes
}

// holds reports whether a process has one of some sockets open.
func holds(pid int, sockets map[string]bool) bool {
	folder := fmt.Sprintf("/proc/%d/fd", pid)
	entries, err := os.ReadDir(folder)
	if err != nil {
		return false
	}
	for _, e := range entries {
		if to, err := os.Readlink(filepath.Join(folder, e.Name())); err == nil && sockets[to] {
			return true
		}
	}
	return false
}
