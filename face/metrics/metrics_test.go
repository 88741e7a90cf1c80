package metrics

import (
	"bytes"
	"crypto/tls"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"strandline/finding"
	"strandline/host/sampling/sample"
	"strandline/internal/test/live"
	"strandline/judge/samples"
)

var update = flag.Bool("update", false, "rewrite the golden file")

func size(n int64) *int64 { n <<= 20; return &n }

// madeState is a leak in one process with memory that it can pause, a cache that fills in another, a zombie, a device
// without figures and a process that has ended.
func madeState() *State {
	rank, threads, files, container, late := 3, 12, 40, "0123456789ab", 900.0
	d := sample.Device{Index: 0, UUID: "GPU-a", Name: "NVIDIA H100 80GB HBM3", Used: size(30000), Free: size(51559), Total: size(81559), Processes: []sample.Holding{{PID: 4242, Used: size(29000), Owner: sample.Live}, {PID: 7, Used: size(300), Owner: sample.Gone}}}
	d.Account()
	s := &sample.Sample{
		Time: time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC), Seconds: 600, Devices: []sample.Device{d, {Index: 1, UUID: "GPU-b", Unified: true, Note: "not reported"}},
		Groups:  []sample.Group{{Name: "/jobs", Used: size(3000), Limit: size(64000)}, {Name: "/free"}},
		Machine: &sample.Machine{Total: 64 << 30, Available: 12 << 30},
		Processes: []sample.Process{
			{
				PID: 4242, Started: 1, Name: "python", Command: "python train.py --token secret", Group: "/jobs", Container: &container, Pod: "train-0", Rank: &rank, Threads: &threads, Descriptors: &files,
				Host:     &sample.Host{Anonymous: 2 << 30, File: 300 << 20, Shared: 64 << 20},
				Devices:  []sample.DeviceShare{{Device: 0, UUID: "GPU-a", Used: size(29000), Allocated: size(27000), Cached: size(1000), Other: size(1000)}},
				Pausable: []sample.Tag{{Tag: "weights", Bytes: 8 << 30, Held: 2 << 30, State: "partial", BackupBytes: 6 << 30, Backup: "pinned"}},
			},
			{PID: 4300, Started: 1, Name: "we\"ird\n\x1b[31m\xff" + strings.Repeat("ß", 100), Host: &sample.Host{Anonymous: 1 << 30}, Devices: []sample.DeviceShare{{Device: 1, UUID: "GPU-b"}}},
			{PID: 4301, Started: 1, Name: "helper", State: sample.Zombie},
			{PID: 4300, Started: 9, Name: "twice"},
		},
	}
	gone := sample.Process{PID: 99, Started: 5}
	fast, slow := 12345.5, 7.0
	leak := finding.LevelsEvidence{Column: "device 0 allocated", Verdict: "growth", RatePerSecond: &fast, SecondsToLimit: &[2]*float64{&late, nil}}
	return &State{Sample: s, Samples: 600, Hostname: "node-1", Version: "1.2.3", Verdicts: []Verdict{
		{samples.About{Process: &s.Processes[0], Device: &s.Devices[0], Figure: "allocated"}, finding.Finding{Kind: finding.Leak, Severity: finding.Problem, Evidence: &leak}},
		{samples.About{Process: &s.Processes[1], Figure: "anonymous"}, finding.Finding{Kind: finding.Usage, Severity: finding.Info, Evidence: &finding.LevelsEvidence{Verdict: "plateau", LevelBytes: finding.Int(1 << 30)}}},
		{samples.About{Device: &s.Devices[0]}, finding.Finding{Kind: finding.Usage, Severity: finding.Warning}},
		{samples.About{Group: "/jobs", Figure: "used"}, finding.Finding{Kind: finding.Leak, Severity: finding.Problem, Evidence: &finding.LevelsEvidence{Verdict: "sawtooth-growth", RatePerSecond: &slow}}},
		{samples.About{Process: &gone, Figure: "anonymous"}, finding.Finding{Kind: finding.Leak, Severity: finding.Problem, Evidence: &leak}},
		{samples.About{Ended: true}, finding.Finding{Kind: finding.Leak, Severity: finding.Problem, Evidence: &leak}},
	}}
}

func text(t *testing.T, s *State, open bool) []byte {
	t.Helper()
	var b bytes.Buffer
	if err := s.write(&b, open); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestMetrics compares what is written with testdata/metrics.txt.
func TestMetrics(t *testing.T) {
	const golden = "testdata/metrics.txt"
	got := text(t, madeState(), false)
	if *update {
		if err := os.WriteFile(golden, got, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("go test ./face/metrics -update writes\n%s", got)
	}
	for _, not := range []string{"secret", `pid="99"`, "NaN"} {
		if bytes.Contains(got, []byte(not)) {
			t.Errorf("it contains %s", not)
		}
	}
	open := text(t, madeState(), true)
	if !bytes.HasSuffix(open, []byte("\n# EOF\n")) || !bytes.Contains(open, []byte("# TYPE strandline_samples counter\nstrandline_samples_total 600")) {
		t.Errorf("OpenMetrics:\n%s", open)
	}
}

// TestPromtool has Prometheus's own tool read them.
func TestPromtool(t *testing.T) {
	tool := live.Tool(t, "promtool")
	c := exec.Command(tool, "check", "metrics")
	c.Stdin = bytes.NewReader(text(t, madeState(), false))
	out, err := c.CombinedOutput()
	for line := range strings.Lines(string(out)) {
		if !strings.Contains(line, "camelCase") { // modelName, as dcgm-exporter calls it
			t.Errorf("promtool says %s", line)
		}
	}
	if err != nil && len(out) == 0 {
		t.Error(err)
	}
}

// TestBounds exports the largest of many processes, and many findings.
func TestBounds(t *testing.T) {
	s := madeState()
	for i := range 5000 {
		p := sample.Process{PID: 10000 + i, Started: 1, Host: &sample.Host{Anonymous: int64(i) << 20}}
		for d := range 100 {
			p.Devices = append(p.Devices, sample.DeviceShare{Device: d, Used: size(1)})
			p.Pausable = append(p.Pausable, sample.Tag{Tag: fmt.Sprint(d), Bytes: 2, Held: 1})
		}
		s.Sample.Processes = append(s.Sample.Processes, p)
		s.Verdicts = append(s.Verdicts, Verdict{samples.About{Process: &s.Sample.Processes[len(s.Sample.Processes)-1], Figure: "anonymous"}, finding.Finding{Kind: finding.Leak, Severity: finding.Problem}})
	}
	got := map[string]int{}
	for _, f := range s.sorted() {
		got[f.name] = len(f.metrics)
		for _, m := range f.metrics {
			for _, l := range m.labels {
				if len(l.value) > longestLabel || l.value == "" {
					t.Errorf("%s has the label %s=%q", f.name, l.name, l.value)
				}
			}
		}
	}
	if n := got["strandline_process_device_memory_used_bytes"] + got["strandline_process_pausable_backup_bytes"]; n > maxParts {
		t.Errorf("%d devices and tags", n)
	}
	if got["strandline_process_info"] != maxProcesses || got["strandline_finding"] > maxFindings {
		t.Errorf("%v", got)
	}
	if f := s.family(t, "strandline_processes_omitted"); f.metrics[0].value != float64(len(s.Sample.Processes)-maxProcesses) {
		t.Errorf("%v are omitted", f)
	}
	if f := s.family(t, "strandline_process_info"); !strings.Contains(fmt.Sprint(*f), "{pid 14999}") || strings.Contains(fmt.Sprint(*f), "{pid 10000}") {
		t.Error("not the largest are exported")
	}
}

func (s *State) family(t *testing.T, name string) *family {
	t.Helper()
	for _, f := range s.sorted() {
		if f.name == name {
			return f
		}
	}
	t.Fatalf("there is no %s", name)
	return nil
}

func get(t *testing.T, url string, header ...string) (status int, kind, body string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	b, err := io.ReadAll(answer.Body)
	if err != nil {
		t.Fatal(err)
	}
	return answer.StatusCode, answer.Header.Get("Content-Type"), string(b)
}

func TestServer(t *testing.T) {
	s, err := Listen("localhost:0", time.Hour, Access{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	base := strings.TrimSuffix(s.URL(), "/metrics")
	for path, want := range map[string]int{"/metrics": 503, "/-/ready": 503, "/-/healthy": 200, "/": 200, "/other": 404} {
		if status, _, body := get(t, base+path); status != want {
			t.Errorf("before the first sample, %s: %d %s", path, status, body)
		}
	}
	s.Set(madeState())
	for path, want := range map[string]int{"/metrics": 200, "/-/ready": 200, "/-/healthy": 200} {
		if status, _, body := get(t, base+path); status != want {
			t.Errorf("%s: %d %s", path, status, body)
		}
	}
	_, kind, body := get(t, s.URL()) // the client asks for gzip and unpacks it
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(body))
	if err != nil || families["strandline_growth_bytes_per_second"] == nil || !strings.HasPrefix(kind, "text/plain; version=0.0.4") {
		t.Errorf("%s, %v: %s", kind, err, body)
	}
	if _, kind, body = get(t, s.URL(), "Accept", "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"); !strings.HasPrefix(kind, "application/openmetrics-text; version=1.0.0") || !strings.HasSuffix(body, "# EOF\n") {
		t.Errorf("%s: %s", kind, body)
	}
	if status, _, _ := get(t, s.URL()+"?x", "Accept-Encoding", "identity"); status != 200 {
		t.Errorf("status %d", status)
	}
	late, err := Listen("localhost:0", 0, Access{})
	if err != nil {
		t.Fatal(err)
	}
	defer late.Close()
	if status, _, body := get(t, strings.Replace(late.URL(), "metrics", "-/healthy", 1)); status != 503 || !strings.Contains(body, "no sample") {
		t.Errorf("without samples: %d %s", status, body)
	}
	if _, err := Listen(s.listener.Addr().String(), time.Hour, Access{}); err == nil {
		t.Error("two listen at one address")
	}
	for _, address := range []string{"9400", "", "localhost"} {
		if _, err := Listen(address, time.Hour, Access{}); err == nil || !strings.Contains(err.Error(), ":9400") {
			t.Errorf("%q: %v", address, err)
		}
	}
}

// TestAccess scrapes a server that wants a token over an encrypted connection.
func TestAccess(t *testing.T) {
	made := httptest.NewUnstartedServer(nil)
	made.StartTLS() // for its certificate, and a client that trusts it
	defer made.Close()
	certificate := made.TLS.Certificates[0]
	s, err := Listen("127.0.0.1:0", time.Hour, Access{Certificate: func() (*tls.Certificate, error) { return &certificate, nil }, Token: "right"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	s.Set(madeState())
	if !strings.HasPrefix(s.URL(), "https://127.0.0.1:") {
		t.Errorf("it is at %s", s.URL())
	}
	for _, c := range []struct {
		path, authorization string
		want                int
	}{
		{"/metrics", "", 401},
		{"/metrics", "Bearer wrong", 401},
		{"/metrics", "Bearer ", 401},
		{"/metrics", "Bearer right ", 200}, // a header's value ends before spaces
		{"/metrics", "Basic right", 401},
		{"/metrics", "Bearer right", 200},
		{"/metrics", "bearer right", 200},
		{"/-/ready", "", 200},
		{"/-/healthy", "", 200},
	} {
		r, err := http.NewRequest("GET", strings.TrimSuffix(s.URL(), "/metrics")+c.path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.authorization != "" {
			r.Header.Set("Authorization", c.authorization)
		}
		answer, err := made.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(answer.Body)
		answer.Body.Close()
		if answer.StatusCode != c.want || answer.ProtoMajor != 1 || (c.want == 401) != (answer.Header.Get("WWW-Authenticate") != "") || strings.Contains(string(body), "right") {
			t.Errorf("%s with %q: %s: %s", c.path, c.authorization, answer.Status, body)
		}
	}
	if answer, err := http.Get("http" + strings.TrimPrefix(s.URL(), "https")); err == nil { // in the clear
		answer.Body.Close()
		if answer.StatusCode != http.StatusBadRequest {
			t.Errorf("in the clear: %s", answer.Status)
		}
	}
	made.Client().CloseIdleConnections()
	http.DefaultClient.CloseIdleConnections()
}
