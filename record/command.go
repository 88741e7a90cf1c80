package record

import (
	"cmp"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"slices"
	"syscall"
	"time"
)

// A Command is one to run.
type Command struct {
	Args []string
	Env  []string
	// Stdout and Stderr are its outputs; nil for those of this process.
	Stdout, Stderr *os.File
	// Started is called with its process id once it runs; nil for nothing.
	Started func(pid int)
	// Stop has the command ended by SIGTERM once it is closed, and by SIGKILL if it runs
	// on; nil for never.
	Stop <-chan struct{}
	// Look is called again and again while it runs, with its process id; nil for never.
	Look  func(pid int)
	Every time.Duration // between two looks; 0 for a second
	// Interrupted is called at each SIGINT and SIGTERM with the number of them, the
	// process id of the command, and after it was passed on; nil for nothing.
	Interrupted func(n, pid int)
	// Signal is one that has Do called instead of being passed on; nil for none.
	Signal os.Signal
	Do     func()
	// Signaled reports, once it has run, whether a signal ended it.
	Signaled bool
}

// patience is how long a command that is to stop may take for it.
const patience = 10 * time.Second

// Run runs a command, passes signals on to it, and returns its exit status, 128+n
// where signal n ended it.
func (c *Command) Run() (int, error) {
	run := exec.Command(c.Args[0], c.Args[1:]...)
	run.Stdin, run.Stdout, run.Stderr = os.Stdin, cmp.Or(c.Stdout, os.Stdout), cmp.Or(c.Stderr, os.Stderr)
	run.Env = c.Env
	signals := make(chan os.Signal, 16)
	for _, s := range passed {
		if slices.Contains(ignored, s) {
			signal.Ignore(s) // whoever else wants it in this process, the command inherits that it is ignored
		} else {
			signal.Notify(signals, s)
		}
	}
	if c.Signal != nil {
		signal.Notify(signals, c.Signal)
	}
	defer signal.Stop(signals)
	if err := run.Start(); err != nil {
		return 0, err
	}
	if c.Started != nil {
		c.Started(run.Process.Pid)
	}
	done := make(chan error, 1)
	go func() { done <- run.Wait() }()
	stop := c.Stop
	look := time.NewTicker(cmp.Or(c.Every, time.Second))
	defer look.Stop()
	interrupts := 0
	for {
		select {
		case s := <-signals:
			switch {
			case s == c.Signal:
				go c.Do()
			case !sentToAll(s):
				run.Process.Signal(s)
			}
			if c.Interrupted != nil && (s == os.Interrupt || s == syscall.SIGTERM) {
				interrupts++
				c.Interrupted(interrupts, run.Process.Pid)
			}
		case <-stop:
			stop = nil
			run.Process.Signal(syscall.SIGTERM)
			kill := time.AfterFunc(patience, func() { run.Process.Kill() })
			defer kill.Stop()
		case <-look.C:
			if c.Look != nil {
				c.Look(run.Process.Pid)
			}
		case err := <-done:
			var failed *exec.ExitError
			if err != nil && !errors.As(err, &failed) {
				return 0, err
			}
			var status int
			status, c.Signaled = ending(run.ProcessState)
			return status, nil
		}
	}
}

// ending returns the exit status as a shell states it, and whether it stands for a signal.
func ending(p *os.ProcessState) (status int, signaled bool) {
	if w, ok := p.Sys().(syscall.WaitStatus); ok && w.Signaled() {
		return 128 + int(w.Signal()), true
	}
	return p.ExitCode(), false
}
