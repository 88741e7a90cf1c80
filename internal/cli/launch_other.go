//go:build !linux

package cli

import "errors"

type launched struct {
	pid   int
	begin func()
}

// launch is not to be had here.
func (*globals) launch([]string) (*launched, error) {
	return nil, errors.New("watching a command needs Linux")
}
