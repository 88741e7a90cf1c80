package record

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"

	"strandline/host/proc/procfs"
)

// period is the signal that notifies a process of the end of a period, as the module has
// it. It does nothing to a process whose handler is gone when it arrives: Python removes
// its handlers when it ends, and so does a process that runs another program.
const period = syscall.SIGURG

// EndPeriod tells a process of the session that a period has ended: Python traces its
// allocations from the first one on. It does nothing to a process in which the module does
// not wait for that.
func (s *Session) EndPeriod(pid int) {
	p := procfs.Process(pid)
	if environ, err := p.Environ(); err != nil || !Belongs(environ, s.Options.Session) || !isPython(p) || !handles(pid, period) {
		return
	}
	syscall.Kill(pid, period)
}

// handles reports whether a process has a handler for a signal.
func handles(pid int, signal syscall.Signal) bool {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(data), "\nSigCgt:")
	text, _, _ := strings.Cut(rest, "\n")
	caught, err := strconv.ParseUint(strings.TrimSpace(text), 16, 64)
	return err == nil && caught>>(signal-1)&1 != 0
}
