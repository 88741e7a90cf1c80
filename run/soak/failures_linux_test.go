package soak

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"strandline/face/api"
	"strandline/finding"
	"strandline/host/proc/procfs"
	"strandline/internal/test/soakserver"
	"strandline/judge/gate"
)

// TestAddress tells servers on the same port of different addresses apart.
func TestAddress(t *testing.T) {
	url, first := soakserver.Start(t, soakserver.Options{})
	other := strings.Replace(url, "127.0.0.1", "127.0.0.2", 1)
	_, second := soakserver.Start(t, soakserver.Options{Address: strings.TrimSuffix(strings.TrimPrefix(other, "http://"), "/v1")})
	for url, want := range map[string]int{url: first, other: second, strings.Replace(url, "127.0.0.1", "localhost", 1): first} {
		if p, note, err := listener(t.Context(), url); int(p) != want || note != "" || err != nil {
			t.Errorf("%s: pid %d, want %d (%q, %v)", url, p, want, note, err)
		}
	}
}

// TestChildren soaks a server whose children come and go: it has not ended.
func TestChildren(t *testing.T) {
	d := run(t, soakserver.Options{Mood: soakserver.Clean, Helper: 70}, func(o *Options) { o.Requests, o.Further = 200, 0 })
	if d.Verdict == finding.Leaking || d.Failed != "" || d.Restarts != 0 || slices.ContainsFunc(d.Waves, func(w api.SoakWave) bool { return w.Ended }) {
		t.Errorf("%s, %q, %d restarts: %v%s", d.Verdict, d.Failed, d.Restarts, d.Missing, levelsOf(d))
	}
	if d.Growth == nil || d.Growth.Process != "all processes" {
		t.Errorf("%+v, want all processes", d.Growth)
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
			server := soakserver.Options{Mood: soakserver.Clean, Fault: soakserver.Refusing, After: c.after}
			d := run(t, server, func(o *Options) { o.Waves, o.Further, o.Requests, o.Repeat = 7, 0, 50, false })
			if d.Verdict != finding.Unknown || !strings.HasPrefix(d.Failed, c.failed) || len(d.Waves) != 1+c.waves || len(d.Missing) > 0 {
				t.Errorf("%s after %d waves, %q: %q", d.Verdict, len(d.Waves), d.Failed, d.Missing)
			}
		})
	}
}

// TestReclaimFails keeps what was measured until the command fails.
func TestReclaimFails(t *testing.T) {
	url, _ := soakserver.Start(t, soakserver.Options{})
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

// TestEndsInGap soaks a server that ends after a wave was answered.
func TestEndsInGap(t *testing.T) {
	url, pid := soakserver.Start(t, soakserver.Options{})
	o := options(url)
	began := filepath.Join(t.TempDir(), "began")
	o.Requests, o.Return = 20, 0
	kill := fmt.Sprintf("kill -9 %d; until grep -q '^State:.Z' /proc/%d/status; do sleep 0.01; done", pid, pid)
	o.Reclaim = fmt.Sprintf("if [ -e %s ]; then %s; fi; touch %s", began, kill, began)
	d, err := Run(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if last := d.Waves[len(d.Waves)-1]; len(d.Waves) != 2 || !strings.Contains(d.Failed, "ended in wave 1") || last.HostBytes != nil || !last.Ended || last.Restarted || last.Load.Completed != 20 || d.Restarts != 0 {
		t.Errorf("%d waves, %q: %+v", len(d.Waves), d.Failed, last)
	}
}

// TestReclaimInterrupted ends a command with all that it started.
func TestReclaimInterrupted(t *testing.T) {
	url, _ := soakserver.Start(t, soakserver.Options{})
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

// noted reports whether a note contains a text.
func noted(d *api.Soak, text string) bool {
	return slices.ContainsFunc(d.Notes, func(n string) bool { return strings.Contains(n, text) })
}

// TestForward soaks a proxy, whose own memory says nothing of the server behind it.
func TestForward(t *testing.T) {
	behind, pid := soakserver.Start(t, soakserver.Options{Mood: soakserver.Leaking, Bytes: 64 << 10})
	few := func(o *Options) { o.Waves, o.Further, o.Requests = 2, 0, 100 }
	d := run(t, soakserver.Options{Forward: behind}, few)
	if want := fmt.Sprintf("(--pid %d), whose memory is not judged", pid); !noted(d, want) {
		t.Errorf("%q, want one with %q", d.Notes, want)
	}
	if d := run(t, soakserver.Options{Helper: 50}, few); noted(d, "not judged") {
		t.Errorf("a server that answers by itself: %q", d.Notes)
	}
}

// TestOthers divides growth by all requests that the engine finished.
func TestOthers(t *testing.T) {
	few := func(o *Options) { o.Waves, o.Further, o.Requests = 5, 0, 200 }
	leak := soakserver.Options{Mood: soakserver.Leaking, Bytes: 90 << 10, Count: 3}
	d := run(t, leak, few)
	if d.Growth == nil || d.Growth.BytesPerRequest < 25<<10 || d.Growth.BytesPerRequest > 35<<10 {
		t.Errorf("%+v, want 30 KiB", d.Growth)
	}
	if d.Growth != nil && d.Growth.BytesPerToken != nil {
		t.Errorf("the engine counts no tokens: %+v", d.Growth)
	}
	if !noted(d, "something else sends requests, too: the engine finished 4,200 requests while 1,400 requests were sent") {
		t.Errorf("%q", d.Notes)
	}
	leak.Count = 1
	if d := run(t, leak, few); noted(d, "something else") || d.Growth == nil || d.Growth.BytesPerRequest < 75<<10 || d.Growth.BytesPerRequest > 105<<10 {
		t.Errorf("no other traffic: %q, %+v, want 90 KiB", d.Notes, d.Growth)
	}
}

// TestRateLimits states that the server asked to wait.
func TestRateLimits(t *testing.T) {
	d := run(t, soakserver.Options{Fault: soakserver.Limiting, Share: 0.3, Seed: 5}, func(o *Options) { o.Waves, o.Further, o.Requests = 2, 0, 100 })
	if d.Load.Failed > 0 || !noted(d, "to wait (status 429, rate limited)") {
		t.Errorf("%d failed, %q", d.Load.Failed, d.Notes)
	}
}

// TestMute asks /metrics once that never answers, and no longer than a gap.
func TestMute(t *testing.T) {
	d := run(t, soakserver.Options{Mute: true}, func(o *Options) { o.Waves, o.Further, o.Requests, o.Gap = 2, 0, 50, 100*time.Millisecond })
	if !noted(d, "/metrics does not answer") || len(d.Waves) != 3 || d.Waves[2].HostBytes == nil {
		t.Errorf("%q, %+v", d.Notes, d.Waves)
	}
}

// TestWithoutDevice sends no waves where nothing of what is judged is measured.
func TestWithoutDevice(t *testing.T) {
	d := run(t, soakserver.Options{}, func(o *Options) { o.Limits = map[string]gate.Limits{gate.Device: {}} })
	if d.Verdict != finding.Unknown || len(d.Waves) != 1 || len(d.Missing) != 1 || !strings.Contains(d.Missing[0], "--metric host") {
		t.Errorf("%s after %d waves: %q", d.Verdict, len(d.Waves), d.Missing)
	}
}

// TestStage states what is waited for before the first wave.
func TestStage(t *testing.T) {
	url, pid := soakserver.Start(t, soakserver.Options{})
	o := options(url)
	ctx, stop := context.WithCancel(t.Context())
	stage := ""
	o.Progress = func(p Progress) {
		if stage += p.Stage; stage != "" {
			stop()
		}
	}
	Run(ctx, o) // what it returns matters elsewhere
	if want := fmt.Sprintf("asking pid %d for one answer, for at most 1m0s", pid); stage != want {
		t.Errorf("%q, want %q", stage, want)
	}
}
