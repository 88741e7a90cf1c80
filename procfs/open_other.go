//go:build !js

package procfs

import "syscall"

// nonblock keeps an open from waiting, as that of a pipe would.
const nonblock = syscall.O_NONBLOCK
