package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// An interrupt ends a command that waits for standard input.
func TestInterruptWhileReading(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for _, args := range [][]string{{"inspect", "-"}, {"diagnose", "-"}, {"compare", "-"}} {
			in, feed := io.Pipe()
			ctx, cancel := context.WithCancel(t.Context())
			var out, messages bytes.Buffer
			env := &Env{args: args, stdin: in, stdout: &out, stderr: &messages, context: ctx, getenv: func(string) string { return "" }}
			code := make(chan int, 1)
			go func() { code <- Main(env) }()
			if _, err := feed.Write([]byte("\x80\x04}")); err != nil {
				t.Fatal(err)
			}
			cancel()
			select {
			case got := <-code:
				if got != exitInterrupted || out.Len() > 0 || messages.String() != "strandline: interrupted\n" {
					t.Errorf("%v: exit status %d, %q, %q", args, got, out.String(), messages.String())
				}
			case <-time.After(10 * grace):
				t.Fatalf("%v: it goes on", args)
			}
			feed.Close() // what was abandoned ends
		}
	})
}

// An interrupt while a file is being read ends view, and the file is not reported as cut off.
func TestInterruptWhileLoading(t *testing.T) {
	data, err := os.ReadFile("../examples/image-leak/step-4.pickle")
	if err != nil {
		t.Fatal(err)
	}
	in, feed := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	var out, messages bytes.Buffer
	env := &Env{args: []string{"view", "-", "--no-open"}, stdin: in, stdout: &out, stderr: &messages, context: ctx, getenv: func(string) string { return "" }}
	code := make(chan int, 1)
	go func() { code <- Main(env) }()
	if _, err := feed.Write(data[:len(data)/2]); err != nil {
		t.Fatal(err)
	}
	cancel()
	go func() {
		feed.Write(data[len(data)/2:])
		feed.Close()
	}()
	defer in.Close() // where it has ended before
	if got := <-code; got != exitInterrupted || messages.String() != "strandline: interrupted\n" {
		t.Errorf("exit status %d, %q", got, messages.String())
	}
}

// What is abandoned leaves no unfinished file, and writes no more.
func TestGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		g := &globals{env: &Env{stdout: &out, stderr: io.Discard}}
		file := filepath.Join(t.TempDir(), "out")
		ctx, cancel := context.WithCancel(t.Context())
		release, ended := make(chan bool), make(chan error)
		err := g.run(ctx, func(context.Context) error {
			_, err := g.create(context.Background(), file, func(io.Writer) error {
				cancel()
				<-release
				_, err := g.env.stdout.Write([]byte("late"))
				return err
			})
			ended <- err
			return err
		})
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if left, _ := filepath.Glob(file + "*"); left != nil {
			t.Errorf("left behind: %v", left)
		}
		close(release)
		if err := <-ended; !errors.Is(err, context.Canceled) || out.Len() > 0 {
			t.Errorf("it wrote %q: %v", out.String(), err)
		}
		if _, err := os.Stat(file); err == nil {
			t.Error("it made the file")
		}
	})
}

// A command that still reports what it knows is waited for.
func TestConcludes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		g := &globals{env: &Env{stdout: &out, stderr: io.Discard}}
		ctx, cancel := context.WithCancel(t.Context())
		err := g.run(ctx, func(context.Context) error {
			g.concludes.Store(true)
			cancel()
			time.Sleep(grace + grace/4)
			_, err := g.env.stdout.Write([]byte("late"))
			return err
		})
		if err != nil || out.String() != "late" {
			t.Errorf("it wrote %q: %v", out.String(), err)
		}
	})
}

// A command whose output could not be written has failed, whatever it found.
func TestOutputIsLost(t *testing.T) {
	for _, args := range [][]string{{"diagnose", oneDevice}, {"inspect", oneDevice}, {"simulate", oneDevice}, {"diagnose", "--json", oneDevice}} {
		var messages bytes.Buffer
		env := &Env{args: args, stdout: fullDisk{}, stderr: &messages, getenv: func(string) string { return "" }}
		if code := Main(env); code != exitUsage || !strings.Contains(messages.String(), "no space left on device") {
			t.Errorf("%v: exit status %d: %s", args, code, &messages)
		}
	}
}

type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }
