package sampler

import (
	"errors"
	"testing"
	"time"

	"strandline/host/sampling/sample"
	"strandline/internal/test/live"
)

// TestShortOfFiles watches while no file can be opened: nothing that runs is taken for
// ended. It lowers its own limit, so that another process does it.
func TestShortOfFiles(t *testing.T) {
	if !live.Alone(t) {
		return
	}
	tr := newTree(t)
	tr.process(10, 1, 100, "server", 1000)
	tr.process(11, 10, 101, "worker", 2000)
	s, late := tr.start(10, nil, nil), tr.start(10, nil, nil)
	said := 0
	s.o.Short = func(error) { said++ }
	first, err := s.Sample(t.Context())
	if err != nil || len(first.Processes) != 2 || s.Short() != nil {
		t.Fatalf("%v, %v, %v", first, err, s.Short())
	}
	tr.process(12, 10, 102, "worker", 3000)
	release := live.Exhaust(t)
	for range rareInterval + 2 { // over the sample in which all are looked at again
		now, err := s.Sample(t.Context())
		if err != nil || len(now.Processes) != 2 || s.Short() == nil {
			t.Fatalf("without files: %v, %v, %v", now.Processes, err, s.Short())
		}
	}
	err = late.Run(t.Context(), 20*time.Millisecond, func(*sample.Sample) error { return nil })
	if ended := (*Ended)(nil); errors.As(err, &ended) {
		t.Error("a process that could not be read once is taken for ended")
	}
	release()
	for range rareInterval + 1 {
		if first, err = s.Sample(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if len(first.Processes) != 3 || s.Short() != nil {
		t.Errorf("with files again: %v, %v", first.Processes, s.Short())
	}
	if said != 1 {
		t.Errorf("it is said %d times", said)
	}
	for _, p := range first.Processes {
		if p.Host == nil || p.Note != "" {
			t.Errorf("%+v", p)
		}
	}
	tr.end(10)
	tr.end(11)
	tr.end(12)
	err = s.Run(t.Context(), time.Minute, func(*sample.Sample) error { return nil })
	if ended := (*Ended)(nil); !errors.As(err, &ended) {
		t.Errorf("the end: %v", err)
	}
}
