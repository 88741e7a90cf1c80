package series

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"strandline/host/sampling/sample"
)

// followed is what a test sees of a recording that is followed: the times of samples, and
// "begin", "rest" and "unreadable".
type followed chan string

func (f followed) Begin() { f <- "begin" }
func (f followed) Take(s *sample.Sample) error {
	f <- fmt.Sprint(s.Seconds)
	return nil
}
func (f followed) Unreadable(error) { f <- "unreadable" }
func (f followed) Rest()            { f <- "rest" }

// expect waits for what comes next.
func (f followed) expect(t *testing.T, want ...string) {
	t.Helper()
	late := time.After(time.Minute)
	for len(want) > 0 {
		select {
		case got := <-f:
			switch {
			case got == want[0]:
				want = want[1:]
			case got != "rest": // which can come in the middle of what is written
				t.Fatalf("%s came, want %s", got, want[0])
			}
		case <-late:
			t.Fatalf("%s did not come", want[0])
		}
	}
}

// follow follows a file until the end of the test.
func follow(t *testing.T, path string) followed {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	f, done := make(followed), make(chan error)
	go func() { done <- Follow(ctx, path, f) }()
	t.Cleanup(func() {
		stop()
		for {
			select {
			case <-f:
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
				return
			}
		}
	})
	return f
}

// TestFollow checks that each sample comes as soon as it is written, from a writer that
// is killed and from the one that goes on.
func TestFollow(t *testing.T) {
	path := file(t)
	w := open(t, path, 1<<30)
	add(t, w, 0, 2)
	f := follow(t, path)
	f.expect(t, "begin", "0", "1", "rest")
	for n := 2; n < 5; n++ {
		add(t, w, n, n+1)
		f.expect(t, fmt.Sprint(n), "rest")
	}
	w.f.Close() // it is killed
	w = open(t, path, 1<<30)
	w.run = time.Now().UnixNano() + 1
	add(t, w, 0, 2)
	f.expect(t, "4", "5") // at the time of the machine before: nothing of it is lost
	w.Close()
}

// TestFollowThinned checks that a recording is read again when it was thinned.
func TestFollowThinned(t *testing.T) {
	path := file(t)
	w := open(t, path, 1<<30)
	add(t, w, 0, 4)
	f := follow(t, path)
	f.expect(t, "begin", "0", "1", "2", "3", "rest")
	if err := w.thin(); err != nil {
		t.Fatal(err)
	}
	f.expect(t, "begin", "0", "2", "rest")
	add(t, w, 4, 5)
	f.expect(t, "4", "rest")
	w.Close()
}

func TestFollowOther(t *testing.T) {
	path := file(t)
	if err := os.WriteFile(path, []byte("this is something else altogether"), 0o600); err != nil {
		t.Fatal(err)
	}
	f := make(followed, 9)
	if err := Follow(t.Context(), path, f); !errors.Is(err, ErrOther) {
		t.Errorf("%v", err)
	}
}
