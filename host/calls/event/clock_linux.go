package event

import "golang.org/x/sys/unix"

// Now reads the clock of the events: the monotonic one, in ns.
func Now() uint64 {
	var ts unix.Timespec
	unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return uint64(ts.Nano())
}
