package record

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"
)

// TestSchedule takes snapshots by the clock.
func TestSchedule(t *testing.T) {
	t.Parallel()
	r := program{code: `
import time, torch
torch.cuda.allocate(1)
import strandline._recorder as recorder
while recorder.current().dumps < 2: time.sleep(0.01)
`, options: Options{EverySeconds: 0.02}}.run(t)
	r.silent(t, 0, "")
	if got := reasons(r.one(t)); len(got) < 3 || got[0] != "schedule" || slices.Index(got, "exit") != len(got)-1 {
		t.Errorf("snapshots for %v", got)
	}
}

// TestReclaim returns memory by each policy.
func TestReclaim(t *testing.T) {
	const loop = `
import time, torch
import strandline._recorder as recorder
optimizer = torch.optim.SGD()
for i in range(6):
    torch.cuda.allocate(1 << 21)
    with torch.autograd.profiler.record_function("generate#%d" % i):
        pass
    optimizer.step()
r = recorder.current()
while r.options.reclaim_seconds and r.reclaims < 2: time.sleep(0.001)
`
	for _, c := range []struct {
		name    string
		options Options
		reason  string
		count   int // 0 for 2 or more
	}{
		{"steps", Options{ReclaimSteps: 2}, "step", 3},
		{"annotation", Options{ReclaimAfter: "generate"}, "after", 6},
		{"line", Options{ReclaimAbove: 10 << 20}, "above", 0},
		{"time", Options{ReclaimSeconds: 0.01}, "time", 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r := program{code: loop, options: c.options}.run(t)
			r.silent(t, 0, "")
			p := r.one(t)
			if n := len(p.Reclaims); n < 2 || c.count > 0 && n != c.count || slices.ContainsFunc(p.Reclaims, func(r reclaim) bool { return r.Reason != c.reason }) {
				t.Errorf("%d times; notes %v: %+v", n, r.Notes, p.Reclaims)
			}
		})
	}
}

// TestControl talks to a process while it runs.
func TestControl(t *testing.T) {
	t.Parallel()
	ctx, ended := context.WithCancel(context.Background())
	defer ended()
	var stats, next Stats
	var path string
	var reclaimed reclaim
	asked := make(chan error, 1)
	file := filepath.Join(t.TempDir(), "pid")
	go func() {
		c, err := dialWritten(ctx, file)
		if err != nil {
			asked <- err
			return
		}
		defer c.Close()
		var errs [6]error
		var s Status
		s, errs[0] = c.Status()
		if s.Role != "talkative" {
			errs[0] = fmt.Errorf("status is %+v", s)
		}
		path, errs[1] = c.Snapshot("signal", SnapshotTime)
		errs[2] = c.ask(map[string]any{"do": "reclaim"}, &reclaimed)
		stats, errs[3] = c.Stats(50 * time.Millisecond)
		next, errs[4] = c.Next(50 * time.Millisecond)
		_, errs[5] = c.Snapshot("done", SnapshotTime) // the program waits for it
		asked <- errors.Join(errs[:]...)
	}()
	r := program{code: `
import multiprocessing, os, time, torch
multiprocessing.current_process().name = "talkative"
torch.cuda.allocate(1 << 20)
import strandline._recorder as recorder
with open(os.environ["PID"] + ".tmp", "w") as f:
    f.write(str(os.getpid()))
os.rename(os.environ["PID"] + ".tmp", os.environ["PID"])
end = time.time() + 300
while recorder.current().dumps < 2 and time.time() < end:
    time.sleep(0.01)
`, env: []string{"PID=" + file}}.run(t)
	ended()
	if err := <-asked; err != nil {
		t.Fatal(err)
	}
	r.silent(t, 0, "")
	if p := r.one(t); !slices.Equal(reasons(p), []string{"signal", "done", "exit"}) || len(p.Reclaims) != 1 {
		t.Errorf("snapshots for %v, reclaimed %v", reasons(p), p.Reclaims)
	}
	if filepath.Dir(filepath.Dir(path)) != r.dir {
		t.Errorf("path %s, want one below %s", path, r.dir)
	}
	if len(stats.Devices) != 1 || stats.Devices[0].Reserved != 1<<20 || next.Time <= stats.Time || reclaimed.Reserved != 1<<20 {
		t.Errorf("stats %+v, then %+v; reclaimed %+v", stats, next, reclaimed)
	}
}

// dialWritten connects to the process whose id a file will have, until the context ends.
func dialWritten(ctx context.Context, file string) (*Control, error) {
	for ctx.Err() == nil {
		if pid, err := strconv.Atoi(read(file)); err == nil {
			return Dial(context.Background(), pid)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return nil, errors.New("the program ended before it wrote its process id")
}

// TestCall records by calls of the module, without a command around it.

// TestNoDescriptors lets a client wait while the process has no descriptor left: that must
// not cost it a processor.
func TestNoDescriptors(t *testing.T) {
	t.Parallel()
	r := program{code: `
import resource, socket, time, torch
torch.cuda.allocate(1)
from strandline import _control
calls = []
accept = _control.Control.accept
def counted(self):
    calls.append(1)
    accept(self)
_control.Control.accept = counted
client = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
limits = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (client.fileno() + 1, limits[1]))
import os
pipes = []
try:
    while True: pipes.append(os.dup(client.fileno()))
except OSError: pass
client.connect(_control.address(os.getpid()))
time.sleep(0.5)
for p in pipes: os.close(p)
resource.setrlimit(resource.RLIMIT_NOFILE, limits)
client.sendall(b'{"do": "status"}\n')
assert b"pid" in client.recv(4096)
print(0 < len(calls) <= 20 or calls)
`}.run(t)
	r.silent(t, 0, "True\n")
}
