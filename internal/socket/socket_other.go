//go:build !linux

package socket

import (
	"context"
	"net"
)

// DialProcess is [Dial].
func DialProcess(ctx context.Context, prefix string, pid int) (net.Conn, error) {
	return Dial(ctx, prefix, pid)
}

// Running returns the ids of the processes that have such a socket: what is needed to
// list them exists on Linux only.
func Running(string) []int { return nil }
