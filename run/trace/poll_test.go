package trace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"strandline/face/report"
	"strandline/host/store/recording"
	"strandline/internal/test/live"
)

// A heard session keeps what it warned of.
type heard []string

// options are those of a trace by polling, which every user may do.
func (h *heard) options(o Options) Options {
	o.Backend, o.Duration, o.Stdout = Polling, time.Hour, os.Stderr
	o.Warn = func(format string, args ...any) { *h = append(*h, fmt.Sprintf(format, args...)) }
	if o.Progress == nil {
		o.Progress = func(func() *report.Trace) {}
	}
	return o
}

// TestCommand traces a command to its end, and keeps that.
func TestCommand(t *testing.T) {
	live.Linux(t)
	live.Waits(t)
	file := filepath.Join(t.TempDir(), "run.trace")
	out, err := recording.Create(file, 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	var h heard
	s, err := Start(t.Context(), h.options(Options{Command: []string{"sh", "-c", "sleep 0.2; exit 3"}, Out: out}))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	doc := s.Document(nil)
	if got := s.CommandFailed(); got != "exit status 3" || !doc.Ended || doc.Backend != Polling || len(h) > 0 {
		t.Errorf("failed: %q, ended: %t, by %s, warnings %q", got, doc.Ended, doc.Backend, h)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	run, err := recording.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	if run.PID != doc.PID || run.Backend != Polling || !run.Judged || !run.Document.Ended || run.Partial != nil {
		t.Errorf("the recording is of process %d by %s, judged: %t, %+v; want process %d", run.PID, run.Backend, run.Judged, run.Document, doc.PID)
	}
}

// TestGrowth traces this process, which grows meanwhile, until it is interrupted. The
// recording is lost on the way, and the trace goes on.
func TestGrowth(t *testing.T) {
	live.Linux(t)
	live.Waits(t)
	out, err := recording.Create(filepath.Join(t.TempDir(), "run.trace"), 1<<20)
	if err != nil {
		t.Fatal(err)
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	const grows = 32 << 20
	var kept [][]byte
	var h heard
	s, err := Start(ctx, h.options(Options{PID: os.Getpid(), Out: out, Progress: func(now func() *report.Trace) {
		if kept == nil {
			out.Close()
			kept = append(kept, make([]byte, grows))
			for i := range kept[0] {
				kept[0][i] = 1
			}
		} else if now().RSSGrowth >= grows/2 {
			interrupt()
		}
	}}))
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Run(ctx); err != nil {
		t.Fatal(err)
	}
	doc := s.Document(nil)
	if doc.Ended || doc.PID != os.Getpid() || doc.RSSGrowth < grows/2 || s.CommandFailed() != "" {
		t.Errorf("%+v", doc.Document)
	}
	if s.Lost() == nil || len(h) != 1 || !strings.Contains(h[0], "the recording ends here") {
		t.Errorf("lost: %v, warnings: %q", s.Lost(), h)
	}
	clear(kept)
}

// TestNoProcess says which process is not there.
func TestNoProcess(t *testing.T) {
	live.Linux(t)
	var h heard
	_, err := Start(t.Context(), h.options(Options{PID: 99999999}))
	var none *ProcessError
	if !errors.As(err, &none) || none.PID != 99999999 || !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// TestCommandThatIsNotTraced ends a command that has not begun, if it cannot be traced as
// asked for.
func TestCommandThatIsNotTraced(t *testing.T) {
	live.Linux(t)
	live.Waits(t)
	for _, backend := range []string{Polling, Ptrace} {
		mark := filepath.Join(t.TempDir(), "mark")
		var h heard
		o := h.options(Options{Command: []string{"sh", "-c", `echo x >"$0"`, mark}, GPU: true, Helper: []string{os.Args[0], helper}})
		o.Backend = backend
		s, err := Start(t.Context(), o)
		if err == nil {
			s.Close()
		}
		if !strings.Contains(fmt.Sprint(err), "--gpu needs BPF, and this is "+backend) {
			if backend == Ptrace {
				live.Need(t, "ptrace", err)
			}
			t.Errorf("%s: %v", backend, err)
		}
		if _, err := os.Stat(mark); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%s: the command ran: %v", backend, err)
		}
	}
}

// TestNoCommand starts nothing.
func TestNoCommand(t *testing.T) {
	live.Linux(t)
	var h heard
	if _, err := Start(t.Context(), h.options(Options{Command: []string{"/nowhere/at/all"}})); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}
