package cli

import (
	"bufio"
	"io"
	"net"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"strandline/internal/test/live"
)

// TestWatchExhausted opens many requests that never end, to a watch that may open few
// files. It goes on as long as the process does, and then answers again.
func TestWatchExhausted(t *testing.T) {
	live.Waits(t)
	cat, end := startCat(t)
	watch := exec.Command("sh", "-c", "ulimit -n 48; exec strandline watch --interval 20ms --listen 127.0.0.1:0 --pid "+strconv.Itoa(cat.Process.Pid))
	stderr, err := watch.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := watch.Start(); err != nil {
		t.Fatal(err)
	}
	defer watch.Process.Kill()
	lines := bufio.NewReader(stderr)
	first, err := lines.ReadString('\n')
	_, address, found := strings.Cut(strings.TrimSpace(first), "http://")
	if err != nil || !found {
		t.Fatalf("%q, %v", first, err)
	}
	go io.Copy(io.Discard, lines)
	ended := make(chan error, 1)
	go func() { ended <- watch.Wait() }()
	address = strings.TrimSuffix(address, "/metrics")
	var open []net.Conn
	for range 450 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		open = append(open, c)
		io.WriteString(c, "GET /metrics HTTP/1.1\r\nHost: x\r\nX-Slow: ") // half of a request
	}
	select {
	case err := <-ended:
		t.Fatalf("the watch ended while the process runs: %v", err)
	case <-time.After(2 * time.Second):
	}
	if err := cat.Process.Signal(syscall.Signal(0)); err != nil {
		t.Fatal(err)
	}
	for _, c := range open {
		c.Close()
	}
	eventually(t, "http://"+address+"/metrics", func(body string) bool { return strings.Contains(body, "strandline_process_info") })
	end()
	if err := <-ended; err != nil {
		t.Errorf("the watch of a process that ended: %v", err)
	}
}
