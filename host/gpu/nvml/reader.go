package nvml

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"sync/atomic"
	"time"

	"strandline/internal/secret"
)

// A reader is a running program that answers from the library.
type reader struct {
	command   *exec.Cmd
	questions *os.File
	answers   *os.File
	lines     chan string // closed at the end
	began     time.Time
	ready     bool // the library is
}

// errEnded states that the reader is gone.
var errEnded = errors.New("the library of NVIDIA's driver has crashed")

// run starts a program as a reader. stuck counts it from when it is ended until it is
// gone.
func run(program string, env []string, stuck *atomic.Int32) (*reader, error) {
	theirs, questions, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	answers, ours, err := os.Pipe()
	if err != nil {
		theirs.Close()
		questions.Close()
		return nil, err
	}
	if env == nil {
		env = os.Environ()
	}
	env = secret.Environ(env) // the driver's library needs no keys
	c := &exec.Cmd{Path: program, Args: []string{"strandline-nvml"}, Env: env, Stdin: theirs, Stdout: ours, SysProcAttr: ownProcessGroup()}
	err = c.Start()
	theirs.Close()
	ours.Close()
	if err != nil {
		questions.Close()
		answers.Close()
		return nil, err
	}
	r := &reader{command: c, questions: questions, answers: answers, lines: make(chan string, 64), began: time.Now()}
	stuck.Add(1)
	go func() { // may take as long as the driver does
		c.Wait()
		stuck.Add(-1)
	}()
	go func() {
		defer close(r.lines)
		for text := bufio.NewScanner(answers); text.Scan(); {
			r.lines <- text.Text()
		}
	}()
	return r, nil
}

// line is the next line of the reader.
func (r *reader) line(ctx context.Context, patience time.Duration) (string, error) {
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case line, ok := <-r.lines:
		if !ok {
			return "", errEnded
		}
		return line, nil
	case <-timeout.C:
		return "", fmt.Errorf("NVIDIA's driver has not answered within %s", patience)
	case <-ctx.Done():
		return "", errors.New("NVIDIA's driver did not answer in time")
	}
}

// end ends the reader without waiting for it: a process that hangs in the driver does
// not end before the call returns.
func (r *reader) end() {
	r.command.Process.Kill()
	r.questions.Close()
	r.answers.Close()
	go func() {
		for range r.lines { // what was still printed
		}
	}()
}
