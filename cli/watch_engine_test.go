package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strandline/host/sampling/sample"
	"strandline/internal/test/live"
)

// TestWatchEngine reads the load of an engine beside the memory of its process.
func TestWatchEngine(t *testing.T) {
	live.Waits(t)
	live.Linux(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "vllm:num_requests_running 5\nvllm:num_requests_waiting 0\nvllm:kv_cache_usage_perc 0.5\nvllm:request_success_total 1200\n")
	}))
	defer s.Close()
	own := fmt.Sprint(os.Getpid())
	path := filepath.Join(t.TempDir(), "run.strandline")
	for d := 50; ; d *= 2 { // until the engine has answered
		duration := fmt.Sprintf("%dms", d)
		stdout, stderr, code := run("watch", "--pid", own, "--metrics", s.URL, "--json", "--interval", "10ms", "--duration", duration, "--out", path)
		lines := strings.Split(strings.TrimSpace(stdout), "\n")
		var doc struct{ Load *sample.Load }
		if err := json.Unmarshal([]byte(lines[len(lines)-1]), &doc); err != nil || code > exitProblem || stderr != "" || doc.Load == nil {
			t.Fatalf("exit status %d: %s %s %v", code, stderr, stdout, err)
		}
		if doc.Load.Note != "" {
			continue
		}
		if doc.Load.Engine != "vllm" || *doc.Load.Running != 5 || *doc.Load.Requests != 1200 || doc.Load.PromptTokens != nil {
			t.Errorf("%+v", doc.Load)
		}
		break
	}
	const want = "vllm: requests 5 running, 0 waiting, 1,200 finished, KV cache 50% full"
	if stdout, stderr, _ := run("diagnose", path); !strings.Contains(stdout, want) {
		t.Errorf("the recording has %s%s", stdout, stderr)
	}
	for args, want := range map[string]string{
		"--metrics localhost:8000":                 "add --pid",
		"--pid " + own + " --metrics ftp://a/b":    "is not an address such as",
		"--pid " + own + " --metrics http://[::1/": "not an address such as",
	} {
		if _, stderr, code := run(append([]string{"watch"}, strings.Fields(args)...)...); code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit status %d: %s", args, code, stderr)
		}
	}
	s.Close()
	if stdout, _, code := run("watch", "--pid", own, "--metrics", s.URL, "--duration", "30ms"); code > exitProblem || !strings.Contains(stdout, "engine: ") {
		t.Errorf("an engine that is not there: exit status %d: %s", code, stdout)
	}
}
