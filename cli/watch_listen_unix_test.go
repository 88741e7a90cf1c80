//go:build unix

package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"strandline/internal/test/live"
)

// TestWatchListen looks at the metrics of a watch, whose series go with their process.
func TestWatchListen(t *testing.T) {
	live.Waits(t)
	live.Linux(t)
	cat, end := startCat(t)
	fakeSMI(t, 1000, [2]int{os.Getpid(), 600}, [2]int{cat.Process.Pid, 300})
	endpoint, out := startWatch(t, "--interval", "10ms")
	child := fmt.Sprintf(`strandline_process_info{pid="%d",name="cat"`, cat.Process.Pid)
	text := eventually(t, endpoint, func(body string) bool { return strings.Contains(body, child) })
	for _, want := range []string{
		fmt.Sprintf(`strandline_process_device_memory_used_bytes{pid="%d",gpu="0",UUID="GPU-a",device="nvidia0",Hostname=`, os.Getpid()),
		`strandline_device_memory_remainder_bytes{gpu="0",UUID="GPU-a",`, `strandline_findings{severity="problem"} `, "strandline_devices_up 1",
		fmt.Sprintf(`strandline_process_memory_bytes{pid="%d",kind="anonymous"} `, os.Getpid()),
	} {
		if !strings.Contains(text, want) {
			t.Errorf("%s is missing in\n%s", want, text)
		}
	}
	for _, path := range []string{"/-/ready", "/-/healthy"} {
		eventually(t, strings.TrimSuffix(endpoint, "/metrics")+path, func(string) bool { return true })
	}
	end()
	eventually(t, endpoint, func(body string) bool {
		return strings.Contains(body, "strandline_process_info") && !strings.Contains(body, fmt.Sprintf("pid=\"%d\"", cat.Process.Pid))
	})
	if strings.Contains(out.String(), "anonymous") {
		t.Errorf("it prints processes: %s", out)
	}
	if _, stderr, code := run("watch", "--listen", strings.TrimSuffix(strings.TrimPrefix(endpoint, "http://"), "/metrics")); code != exitUsage || !strings.Contains(stderr, "--listen: ") {
		t.Errorf("an address that is in use: exit status %d: %s", code, stderr)
	}
	if _, stderr, code := run("watch", "--listen", "9400"); code != exitUsage || !strings.Contains(stderr, "such as :9400") {
		t.Errorf("no address: exit status %d: %s", code, stderr)
	}
}

// TestWatchScraped has a real Prometheus scrape a watch.
func TestWatchScraped(t *testing.T) {
	live.Waits(t)
	live.Linux(t)
	fakeSMI(t, 1000, [2]int{os.Getpid(), 600})
	endpoint, _ := startWatch(t, "--interval", "50ms")
	target := strings.TrimSuffix(strings.TrimPrefix(endpoint, "http://"), "/metrics")
	base := startPrometheus(t, "global: {scrape_interval: 1s, scrape_timeout: 1s}\nscrape_configs: [{job_name: strandline, static_configs: [{targets: ['"+target+"']}]}]\n", t.TempDir())
	own := fmt.Sprint(os.Getpid())
	got := valuesOf(t, base, `strandline_process_device_memory_used_bytes * on (instance, pid) group_left (name) strandline_process_info`, func(v map[string]string) bool { return v[own+"0"] != "" })
	if got[own+"0"] != fmt.Sprint(600<<20) {
		t.Errorf("the store has %v", got)
	}
	valuesOf(t, base, "up == 1", func(v map[string]string) bool { return len(v) == 1 })
}
