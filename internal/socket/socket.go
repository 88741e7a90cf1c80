// Package socket finds the sockets by which processes can be asked: each is in Linux's
// abstract namespace, which has no files, under a name that ends in the process's id.
package socket

import (
	"context"
	"errors"
	"fmt"
	"net"
)

// ErrNone is the error for a process that has no such socket.
var ErrNone = errors.New("no socket answers")

// Dial connects to the socket of a process, given the beginning of its name, such as
// "strandline/", and the process's id in its own pid namespace; both must be in the same
// network namespace.
func Dial(ctx context.Context, prefix string, pid int) (net.Conn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "unix", fmt.Sprintf("@%s%d", prefix, pid))
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNone, err)
	}
	return conn, nil
}
