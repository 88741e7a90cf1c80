//go:build unix

package record

import (
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// passed are the signals that the command gets as this process does.
var passed = []os.Signal{
	syscall.SIGINT, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGUSR1, syscall.SIGUSR2, syscall.SIGALRM,
}

// ignored are the signals that were ignored when this process began, such as SIGHUP
// under nohup, or SIGINT in the background of a script.
var ignored = slices.DeleteFunc(slices.Clone(passed), func(s os.Signal) bool { return !signal.Ignored(s) })

// sentToAll reports whether a signal comes from the keyboard: the terminal sends it
// to the whole group in the foreground, the command included.
func sentToAll(s os.Signal) bool {
	if s != syscall.SIGINT && s != syscall.SIGQUIT {
		return false
	}
	tty, err := os.Open("/dev/tty")
	if err != nil {
		return false
	}
	defer tty.Close()
	group, err := unix.IoctlGetInt(int(tty.Fd()), unix.TIOCGPGRP)
	return err == nil && group == unix.Getpgrp()
}

// SignalNamed returns the signal of that name, with or without SIG, or nil.
func SignalNamed(name string) os.Signal {
	if s := unix.SignalNum("SIG" + strings.TrimPrefix(strings.ToUpper(name), "SIG")); s != 0 {
		return s
	}
	return nil
}
