//go:build !linux

package event

import "time"

var began = time.Now()

// Now reads the clock of the events, in ns. Outside Linux, where nothing is traced, it
// starts with this process.
func Now() uint64 { return uint64(time.Since(began)) }
