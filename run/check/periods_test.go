package check

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"strandline/finding"
	"strandline/host/sampling/levels"
	"strandline/internal/test/live"
	"strandline/judge/gate"
	"strandline/record"
)

// TestPeriods has a process that counts no steps trace its allocations. The line that
// leaks is named, and the levels of that time are left out.
func TestPeriods(t *testing.T) {
	live.Waits(t)
	live.Linux(t)
	python := live.Tool(t, "python3")
	const code = `
kept = []
print("ready", flush=True)
while True:
    kept.append(bytearray(5000))
    sum(range(20000))
`
	work := t.TempDir()
	file := filepath.Join(work, "leaks.py")
	if err := os.WriteFile(file, []byte(code), 0o644); err != nil {
		t.Fatal(err)
	}
	session, err := record.Begin(record.Options{Dir: filepath.Join(work, "recording"), Levels: "time", NoSnapshots: true}, record.Manifest{})
	if err != nil {
		t.Fatal(err)
	}
	defer session.End(0)
	c := exec.Command(python, file)
	if c.Env, err = session.Environ(append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1")); err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() {
		c.Process.Kill()
		c.Wait()
	}()
	if _, err := out.Read(make([]byte, 6)); err != nil {
		t.Fatal(err)
	}
	pid := c.Process.Pid
	w := &watch{session: session, run: &Run{}}
	w.run.Samples = levels.Samples{Processes: []levels.Process{{PID: pid}}}
	began := time.Now()
	for len(w.run.traces) == 0 { // a busy process may begin after it was waited for
		w.periods = periods{}
		if w.periods.begin(0); session.AskForLines() != nil {
			t.Fatal("it cannot be asked")
		}
		for w.periods.running() {
			w.endPeriod()
			time.Sleep(10 * time.Millisecond)
		}
	}
	if w.run.quiet(w.run.traces[0].begin) || !w.run.quiet(began) || !w.run.quiet(time.Now()) {
		t.Errorf("traced %v, since %s", w.run.traces, began)
	}
	f := leaking()
	f.BytesPerStep, f.Evidence = nil, &finding.StepGrowthEvidence{Metric: gate.Host, Unit: gate.Second, HighBytes: session.Growing()[0].Grew * 100}
	if !byObjects(f, pid, session.Growing(), nil) || f.Site.File != file || f.Site.Line != 5 {
		t.Errorf("%+v %q", session.Growing(), f.Detail)
	}
}
