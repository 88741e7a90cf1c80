package printed

import (
	"fmt"
	"math"
)

// mprof is the file of memory_profiler's command: lines "MEM MiB SECONDS", "CHLD PID MiB SECONDS"
// for children.
type mprof struct{ *levels }

func newMprof(l *levels) reader { return &mprof{l} }

func (m *mprof) line(line []byte) {
	var level, at float64
	var pid int64
	process := ""
	if n, _ := fmt.Sscanf(string(line), "MEM %g %g", &level, &at); n < 2 {
		if n, _ := fmt.Sscanf(string(line), "CHLD %d %g %g", &pid, &level, &at); n < 3 {
			return
		}
		process = fmt.Sprintf("pid %d", pid)
	}
	if math.IsNaN(level) || level <= 0 /* it has ended */ || level > 1<<30 || !(at > 0 && at < 1<<40) {
		return
	}
	m.begin(at)
	m.add(process, "memory", level*(1<<20), 0)
}

func (m *mprof) end() error { return nil }
