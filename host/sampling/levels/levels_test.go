package levels

import (
	"io"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"strandline/internal/test/live"
)

// TestSampler samples this process and a child of it, whose own environment bounds a cache.
func TestSampler(t *testing.T) {
	live.Waits(t)
	live.Linux(t)
	child := exec.Command(os.Args[0])
	child.Args = []string{"/opt/gcs_server", "-test.run", "^$", "-test.timeout", "1h"}
	in, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := child.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	child.Env = append(os.Environ(), "STRANDLINE_TEST_WAITS=1", "RAY_task_events_max_num_task_in_gcs=7")
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.ReadFull(out, make([]byte, 1)); err != nil { // it runs
		t.Fatal(err)
	}
	own := make([]byte, 4<<20)
	for i := range own {
		own[i] = 1
	}
	s := Start(os.Getpid())
	s.Step(7)
	s.Close()
	runtime.KeepAlive(own)
	in.Close()
	child.Wait()
	all := s.Samples()
	var step *Sample
	for i := range all.Samples {
		if all.Samples[i].Step == 7 {
			step = &all.Samples[i]
		}
	}
	if step == nil || len(step.Bytes) != 2 || step.Sum() < int64(len(own)) || all.Peak < int64(len(own)) {
		t.Fatalf("%+v", all)
	}
	for i, p := range all.Processes {
		if p.PID != os.Getpid() && p.PID != child.Process.Pid || p.Command == "" || step.Bytes[i] == 0 && !strings.Contains(p.Command, "test") {
			t.Errorf("%+v has %d bytes", p, step.Bytes[i])
		}
		if n := p.Caches.Tasks; (n != nil && *n == 7) != (p.PID == child.Process.Pid) {
			t.Errorf("%s keeps events of tasks: %v", p.Command, n)
		}
	}
}

// TestMain is also the child, which waits for its parent.
func TestMain(m *testing.M) {
	if os.Getenv("STRANDLINE_TEST_WAITS") != "" {
		os.Stdout.Write([]byte{1})
		os.Stdin.Read(make([]byte, 1))
		return
	}
	goleak.VerifyTestMain(m)
}

// TestThinning halves the samples when there are too many.
func TestThinning(t *testing.T) {
	live.Linux(t)
	s := Start(os.Getpid())
	s.Close()
	before := s.every
	for len(s.all.Samples) < maxSamples-1 {
		s.all.Samples = append(s.all.Samples, Sample{Bytes: map[int]int64{0: 1}})
	}
	s.take(0)
	if n := len(s.Samples().Samples); n != maxSamples/2 || s.every != 2*before {
		t.Errorf("%d samples, %s apart", n, s.every)
	}
}
