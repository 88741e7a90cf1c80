package trace

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"time"

	"strandline/host/calls/bpf"
	"strandline/host/calls/event"
	"strandline/host/calls/polling"
	"strandline/host/calls/ptrace"
	"strandline/host/code/symbolize"
)

// The backends, ordered by how much they see.
const (
	BPF     = "bpf"
	Ptrace  = "ptrace" // for commands that the trace starts
	Polling = "polling"
)

// Become turns this process into a command that is traced by ptrace. It returns only if
// that fails. A program calls it when it is run as [Options.Helper].
func Become(command []string) error {
	const ready = 3
	return ptrace.Filtered(ready, command)
}

// A source is where the events come from, and the command that was started.
type source struct {
	event.Source
	begin, end func()
	// failed states how the command, which has ended, failed; "" if it did not.
	failed func() string
}

// open opens the best source available to this machine and user, up to the requested
// backend. If there is a command, it is started, and waits until begin is called.
func open(o *Options, names *symbolize.Symbolizer) (source, string, error) {
	if len(o.Command) > 0 {
		if _, err := exec.LookPath(o.Command[0]); err != nil {
			return source{}, "", err
		}
	}
	refused := error(nil)
	if o.Backend == "" || o.Backend == BPF {
		t, err := bpf.Start()
		if err == nil {
			connect(t, names, o.Warn)
			s, err := withCommand(o, t)
			return s, BPF, err
		}
		if refused = err; o.Backend == BPF {
			return source{}, "", err
		}
	}
	if len(o.Command) > 0 && o.Backend != Polling {
		s, err := openPtrace(o, names)
		elsewhere := errors.Is(err, errors.ErrUnsupported) // it is for x86-64 only
		if refused != nil && !elsewhere {
			o.Warn("BPF is not available: %v; the command is traced by ptrace, and slower", refused)
		}
		if !elsewhere || o.Backend == Ptrace {
			return s, Ptrace, err
		}
	}
	if refused != nil {
		o.Warn("only polling, which sees growth but not its cause: %v; `strandline doctor` has the remedy", refused)
	}
	s, err := withCommand(o, polling.Source{})
	return s, Polling, err
}

// connect makes a source copy stacks as they are needed.
func connect(s event.Source, names *symbolize.Symbolizer, warn func(string, ...any)) {
	names.Cut = func(pid int) { s.LargeStacks(pid) }
	names.Python = func(pid int, layout event.PythonLayout) { s.Python(pid, layout) }
	warned := map[string]bool{} // its children run the same program
	names.Unread = func(pid int, why error) {
		gone := errors.Is(why, io.EOF) // it has ended, and its memory is gone
		if !gone && !warned[why.Error()] {
			warned[why.Error()] = true
			warn("Python functions in process %d are not named: %v", pid, why)
		}
	}
}

// withCommand starts the command, if there is one, for a source that does not start it.
func withCommand(o *Options, s event.Source) (source, error) {
	out := source{s, func() {}, s.Close, func() string { return "" }}
	if len(o.Command) == 0 {
		return out, nil
	}
	c, err := launch(o.Command, o.Stdout)
	if err != nil {
		s.Close()
		return source{}, err
	}
	o.PID, out.begin = c.pid, c.begin
	out.end = func() {
		c.drop()
		s.Close()
	}
	out.failed = func() string {
		select {
		case <-c.ended: // its threads may end a little before it does
		case <-time.After(time.Second):
			return ""
		}
		if state := c.state(); state != nil && !state.Success() {
			return state.String()
		}
		return ""
	}
	return out, nil
}

// openPtrace starts the command and traces it.
func openPtrace(o *Options, names *symbolize.Symbolizer) (source, error) {
	args := append(append([]string{}, o.Helper[1:]...), o.Command...)
	t, begin, err := ptrace.Start(o.Helper[0], args, os.Stdin, o.Stdout, os.Stderr)
	if err != nil {
		return source{}, err
	}
	connect(t, names, o.Warn)
	o.PID = t.PID
	return source{t, begin, func() {
		t.Close()
		if who := t.Nested(); who != "" {
			o.Warn("%s wanted to trace a process itself and could not. With --backend ptrace strandline is its tracer. Use --backend bpf, or trace the debugged process by its number", who)
		}
	}, t.Failed}, nil
}
