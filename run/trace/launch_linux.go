package trace

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// A launched command waits before its first instruction until begin.
type launched struct {
	pid   int
	begin func()
	drop  func()                  // ends it if it has not begun
	ended <-chan struct{}         // closed when the command has ended
	state func() *os.ProcessState // how it ended, once it has
}

// launch starts a command and stops it before its first instruction, as a debugger does.
// It detaches when begin is called.
func launch(command []string, stdout *os.File) (*launched, error) {
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{Ptrace: true}
	started, begin, ended := make(chan error), make(chan bool, 1), make(chan struct{})
	go func() {
		runtime.LockOSThread() // ptrace belongs to one thread
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		var ws syscall.WaitStatus
		if _, err := syscall.Wait4(cmd.Process.Pid, &ws, 0, nil); err != nil || !ws.Stopped() {
			started <- fmt.Errorf("%s did not start: %v", command[0], err)
			return
		}
		started <- nil
		if !<-begin {
			cmd.Process.Kill()
		}
		syscall.PtraceDetach(cmd.Process.Pid)
		cmd.Wait()
		close(ended)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return &launched{cmd.Process.Pid, func() { begin <- true }, func() { close(begin) }, ended, func() *os.ProcessState { return cmd.ProcessState }}, nil
}

// spent is the processor time that this program has used, with the tools that it ran.
func spent() (sum time.Duration) {
	for _, who := range []int{unix.RUSAGE_SELF, unix.RUSAGE_CHILDREN} {
		var u unix.Rusage
		if unix.Getrusage(who, &u) == nil {
			sum += time.Duration(u.Utime.Nano() + u.Stime.Nano())
		}
	}
	return sum
}
