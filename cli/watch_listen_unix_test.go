//go:build unix

package cli

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

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

// TestWatchAccess scrapes a watch with a certificate and a token, and tries files that are
// neither.
func TestWatchAccess(t *testing.T) {
	live.Waits(t)
	live.Linux(t)
	made := httptest.NewUnstartedServer(nil)
	made.StartTLS() // for its certificate, and a client that trusts it
	defer made.Close()
	dir := t.TempDir()
	key, err := x509.MarshalPKCS8PrivateKey(made.TLS.Certificates[0].PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string][]byte{
		"cert":  pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: made.Certificate().Raw}),
		"key":   pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key}),
		"token": []byte("right\n"), "empty": nil,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(dir)
	fakeSMI(t, 1000, [2]int{os.Getpid(), 600})
	endpoint, _ := startWatch(t, "--listen", "127.0.0.1:0", "--tls-cert", "cert", "--tls-key", "key", "--token-file", "token")
	if !strings.HasPrefix(endpoint, "https://127.0.0.1:") {
		t.Errorf("it is at %s", endpoint)
	}
	for token, want := range map[string]int{"right": http.StatusOK, "wrong": http.StatusUnauthorized} {
		for {
			r, err := http.NewRequest("GET", endpoint, nil)
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Authorization", "Bearer "+token)
			answer, err := made.Client().Do(r)
			if err != nil {
				t.Fatal(err)
			}
			answer.Body.Close()
			if answer.StatusCode == http.StatusServiceUnavailable { // before the first sample
				time.Sleep(10 * time.Millisecond)
				continue
			}
			if answer.StatusCode != want {
				t.Errorf("the token %s: %s", token, answer.Status)
			}
			break
		}
	}
	made.Client().CloseIdleConnections()
	for want, args := range map[string][]string{
		"--token-file: empty is empty": {"--listen", "localhost:0", "--token-file", "empty"},
		"--token-file: ":               {"--listen", "localhost:0", "--token-file", "missing"},
		"--tls-cert: ":                 {"--listen", "localhost:0", "--tls-cert", "key", "--tls-key", "key"},
		"[tls-key]":                    {"--listen", "localhost:0", "--tls-cert", "cert"},
		"are for --listen":             {"--token-file", "token"},
	} {
		if _, stderr, code := run(append([]string{"watch"}, args...)...); code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%v: exit status %d: %s", args, code, stderr)
		}
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
