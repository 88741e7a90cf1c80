package soak

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"strandline/face/api"
	"strandline/finding"
	"strandline/host/procfs"
	"strandline/internal/soak/testserver"
)

// TestAddress tells servers on the same port of different addresses apart.
func TestAddress(t *testing.T) {
	url, first := testserver.Start(t, testserver.Options{})
	other := strings.Replace(url, "127.0.0.1", "127.0.0.2", 1)
	_, second := testserver.Start(t, testserver.Options{Address: strings.TrimSuffix(strings.TrimPrefix(other, "http://"), "/v1")})
	for url, want := range map[string]int{url: first, other: second, strings.Replace(url, "127.0.0.1", "localhost", 1): first} {
		if p, note, err := listener(t.Context(), url); int(p) != want || note != "" || err != nil {
			t.Errorf("%s: pid %d, want %d (%q, %v)", url, p, want, note, err)
		}
	}
}

// TestChildren soaks a server whose children come and go: it has not ended.
func TestChildren(t *testing.T) {
	d := run(t, testserver.Options{Mood: testserver.Clean, Helper: 70}, func(o *Options) { o.Requests, o.Further = 200, 0 })
	if d.Verdict == finding.Leaking || d.Failed != "" || d.Restarts != 0 || slices.ContainsFunc(d.Waves, func(w api.SoakWave) bool { return w.Ended }) {
		t.Errorf("%s, %q, %d restarts: %v%s", d.Verdict, d.Failed, d.Restarts, d.Missing, levelsOf(d))
	}
}

// TestFailing soaks servers that fail from some request on, in waves of fewer requests
// than end an experiment, and in the last one.
func TestFailing(t *testing.T) {
	for _, c := range []struct {
		name, failed string
		after, waves int // requests that are answered, and waves that are sent
	}{
		{"from the beginning", "wave 2: too many requests in succession failed: server error: 503", 1, 2}, // the first request is the probe
		{"in the last wave", "wave 7: 41 of 50 requests failed: server error: 503", 1 + 6*50 + 9, 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			server := testserver.Options{Mood: testserver.Clean, Fault: testserver.Refusing, After: c.after}
			d := run(t, server, func(o *Options) { o.Waves, o.Further, o.Requests, o.Repeat = 7, 0, 50, false })
			if d.Verdict != finding.Unknown || !strings.HasPrefix(d.Failed, c.failed) || len(d.Waves) != 1+c.waves || len(d.Missing) > 0 {
				t.Errorf("%s after %d waves, %q: %q", d.Verdict, len(d.Waves), d.Failed, d.Missing)
			}
		})
	}
}

// TestReclaimFails keeps what was measured until the command fails.
func TestReclaimFails(t *testing.T) {
	url, _ := testserver.Start(t, testserver.Options{})
	o := options(url)
	count := filepath.Join(t.TempDir(), "count")
	o.Waves, o.Further, o.Requests = 5, 0, 50
	o.Reclaim = "echo >>" + count + "; [ $(wc -l <" + count + ") -lt 4 ]"
	d, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if last := d.Waves[len(d.Waves)-1]; len(d.Waves) != 4 || d.Failed != "the command of --reclaim-cmd failed after wave 3: exit status 1" || last.HostBytes != nil || last.BeforeReclaim == nil || !last.Unjudged {
		t.Errorf("%d waves, %q: %+v", len(d.Waves), d.Failed, last)
	}
}

// TestReclaimInterrupted ends a command with all that it started.
func TestReclaimInterrupted(t *testing.T) {
	url, _ := testserver.Start(t, testserver.Options{})
	o := options(url)
	ctx, stop := context.WithCancel(t.Context())
	name := filepath.Join(t.TempDir(), "child")
	o.Requests = 20
	o.Reclaim = "sleep 1000 & echo $! >" + name + "; mv " + name + " " + name + ".pid; wait"
	go func() {
		for ctx.Err() == nil {
			if _, err := os.Stat(name + ".pid"); err == nil {
				stop()
			}
			time.Sleep(10 * time.Millisecond)
		}
	}()
	d, err := Run(ctx, o)
	stop()
	text, _ := os.ReadFile(name + ".pid") // the next line finds out
	pid, parsed := strconv.Atoi(strings.TrimSpace(string(text)))
	if parsed != nil {
		t.Fatal(parsed)
	}
	for alive := true; alive; time.Sleep(10 * time.Millisecond) { // a test that waits for ever has failed
		st, err := procfs.Process(pid).Status()
		alive = err == nil && !strings.HasPrefix(st.State, "Z")
	}
	if err != nil || !d.Interrupted || d.Failed != "" {
		t.Errorf("%v, %+v", err, d)
	}
}
