//go:build !linux

package sampler

import "time"

// processorTime is the time that a function takes.
func processorTime(f func()) time.Duration {
	began := time.Now()
	f()
	return time.Since(began)
}
