//go:build unix

package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"strandline/internal/test/live"
)

// lines is what a program has written to standard error, as it comes.
type lines struct {
	mu   sync.Mutex
	text strings.Builder
	more chan struct{} // has a value after each write
}

func newLines() *lines { return &lines{more: make(chan struct{}, 1)} }

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	l.text.Write(b)
	l.mu.Unlock()
	select {
	case l.more <- struct{}{}:
	default:
	}
	return len(b), nil
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// find waits for what a pattern matches, and returns its first group.
func (l *lines) find(t *testing.T, pattern string) string {
	t.Helper()
	re := regexp.MustCompile(pattern)
	deadline := time.After(3 * time.Minute)
	for {
		if m := re.FindStringSubmatch(l.String()); m != nil {
			return m[1]
		}
		select {
		case <-l.more:
		case <-deadline:
			t.Fatalf("there is no %s in\n%s", pattern, l)
		}
	}
}

// startWatch runs `strandline watch --listen` until the test ends, and returns where its
// metrics are.
func startWatch(t *testing.T, args ...string) (endpoint string, out *lines) {
	t.Helper()
	live.Waits(t)
	ctx, stop := context.WithCancel(t.Context())
	out = newLines()
	messages := newLines()
	ended := make(chan int)
	go func() {
		ended <- Main(&Env{
			args: append([]string{"watch", "--listen", "localhost:0"}, args...), stdin: strings.NewReader(""),
			stdout: out, stderr: messages, context: ctx, getenv: func(string) string { return "" },
		})
	}()
	t.Cleanup(func() {
		stop()
		if code := <-ended; code != exitInterrupted {
			t.Errorf("the watch ends with %d: %s", code, messages)
		}
	})
	return messages.find(t, `metrics are at (\S+)`), out
}

// eventually gets a page, again and again until it satisfies a condition.
func eventually(t *testing.T, address string, enough func(body string) bool) string {
	t.Helper()
	var last string
	for deadline := time.Now().Add(3 * time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		answer, err := http.Get(address)
		if err != nil {
			last = err.Error()
			continue
		}
		body, err := io.ReadAll(answer.Body)
		answer.Body.Close()
		if last = answer.Status + "\n" + string(body); err == nil && answer.StatusCode == http.StatusOK && enough(string(body)) {
			return string(body)
		}
	}
	t.Fatalf("%s: %.2000s", address, last)
	return ""
}

// startPrometheus runs a real Prometheus on a folder of data until the test ends, and
// returns its address. The test is skipped where none is installed.
func startPrometheus(t *testing.T, config, data string, args ...string) string {
	t.Helper()
	live.Waits(t)
	program := live.Tool(t, "prometheus")
	file := filepath.Join(t.TempDir(), "prometheus.yml")
	if err := os.WriteFile(file, []byte(config), 0o666); err != nil {
		t.Fatal(err)
	}
	c := exec.Command(program, append([]string{"--config.file", file, "--storage.tsdb.path", data, "--web.listen-address", "127.0.0.1:0", "--log.level", "info"}, args...)...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	pipe, err := c.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	log := newLines()
	read := make(chan struct{})
	go func() {
		defer close(read)
		in := bufio.NewScanner(pipe)
		for in.Scan() {
			fmt.Fprintln(log, in.Text())
		}
	}()
	t.Cleanup(func() {
		c.Process.Kill()
		<-read
		if err := c.Wait(); t.Failed() {
			t.Logf("prometheus ended with %v, and wrote\n%s", err, log)
		}
	})
	base := "http://" + log.find(t, `(?i)listening on"? address=(127\.0\.0\.1:\d+)`)
	eventually(t, base+"/-/ready", func(string) bool { return true })
	return base
}

// valuesOf are the values that a query has now.
func valuesOf(t *testing.T, base, query string, enough func(values map[string]string) bool) map[string]string {
	t.Helper()
	var out map[string]string
	eventually(t, base+"/api/v1/query?query="+url.QueryEscape(query), func(body string) bool {
		var doc struct {
			Data struct {
				Result []struct {
					Metric map[string]string
					Value  [2]any
				}
			}
		}
		if json.Unmarshal([]byte(body), &doc) != nil {
			return false
		}
		out = map[string]string{}
		for _, r := range doc.Data.Result {
			out[r.Metric["pid"]+r.Metric["gpu"]] = fmt.Sprint(r.Value[1])
		}
		return enough(out)
	})
	return out
}
