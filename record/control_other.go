//go:build !linux

package record

import "context"

// DialProcess is [Dial].
func DialProcess(ctx context.Context, pid int) (*Control, error) { return Dial(ctx, pid) }

// Running returns the ids of the processes that are recorded: the sockets by which that
// is known exist on Linux only.
func Running() []int { return nil }
