//go:build !linux

package socket

import "context"

// Dial returns [ErrNone]: only Linux has an abstract namespace.
func Dial(context.Context, string, int) (*Conn, error) { return nil, ErrNone }

// Running returns nil, for the same reason.
func Running(string) []int { return nil }
