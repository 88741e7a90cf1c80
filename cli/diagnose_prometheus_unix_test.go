//go:build unix

package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"strandline/internal/test/live"
)

// storeTest is what the tests look at.
type storeTest struct {
	Verdict  string
	Findings []struct {
		Title, Severity string
		Evidence        struct {
			Column, Verdict string
			Rate            float64     `json:"rate_bytes_per_second"`
			Seconds         *[2]float64 `json:"seconds_to_limit"`
		}
	}
}

// TestDiagnoseStore judges a leak and a constant, and states what is wrong with flags.
func TestDiagnoseStore(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasSuffix(r.URL.Path, "/query_range") {
			io.WriteString(w, `{"status":"success","data":{"resultType":"vector","result":[]}}`)
			return
		}
		var leak, flat []string
		for i := range 100 {
			leak = append(leak, fmt.Sprintf(`[%d,"%d"]`, 60*i, (1000+10*i)<<20))
			flat = append(flat, fmt.Sprintf(`[%d,"%d"]`, 60*i, 500<<20))
		}
		fmt.Fprintf(w, `{"status":"success","data":{"resultType":"matrix","result":[{"metric":{"pod":"a"},"values":[%s]},{"metric":{"pod":"b"},"values":[%s]}]}}`, strings.Join(leak, ","), strings.Join(flat, ","))
	}))
	defer s.Close()
	stdout, stderr, code := run("diagnose", "--prometheus", s.URL, "--query", "sum by (pod) (m_bytes)", "--limit", "4GiB", "--json")
	var doc storeTest
	if err := json.Unmarshal([]byte(stdout), &doc); err != nil || code != exitProblem || stderr != "" {
		t.Fatalf("exit status %d: %s %s %v", code, stdout, stderr, err)
	}
	if f := doc.Findings; len(f) != 2 || doc.Verdict != "leak" || f[0].Evidence.Verdict != "growth" || f[0].Evidence.Seconds == nil ||
		f[0].Evidence.Column != `sum by (pod) (m_bytes) {pod="a"}` || f[1].Evidence.Verdict != "flat" || f[1].Evidence.Column != `sum by (pod) (m_bytes) {pod="b"}` {
		t.Errorf("%+v", doc)
	}
	if stdout, _, _ := run("diagnose", "-v", "--prometheus", s.URL, "--query", "sum by (pod) (m_bytes)"); !strings.Contains(stdout, `{pod="a"}: keeps growing, by 10 MiB a minute`) || !strings.Contains(stdout, "1 problem in 1 query result") {
		t.Errorf("the text is %s", stdout)
	}
	for args, want := range map[string]string{
		"--query m":                                    "add --prometheus",
		"--prometheus a:1":                             "add --query",
		"--prometheus a:1 --query m x.csv":             "on their own",
		"--prometheus a:1 --query m --since":           "--since",
		"--prometheus a:1 --query m --since 5x --json": "want a time such as",
		"--prometheus a:1 --query m --step 0":          "want a time such as",
		"--prometheus a:1 --query m --capacity 8GiB":   "are for files",
		"--prometheus a:1 --query m --limit 8x":        "--limit",
		"--prometheus ftp://a --query m":               "not the address of a store",
	} {
		if stdout, stderr, code := run(append([]string{"diagnose"}, strings.Fields(args)...)...); code != exitUsage || !strings.Contains(stderr+stdout, want) {
			t.Errorf("%s: exit status %d: %s%s", args, code, stderr, stdout)
		}
	}
}

// TestDiagnosePrometheus judges series that a real Prometheus has: a leak and a cache that
// fills, written by promtool, and one of its own counters.
func TestDiagnosePrometheus(t *testing.T) {
	tool := live.Tool(t, "promtool")
	dir := t.TempDir()
	var b strings.Builder
	b.WriteString("# TYPE job_memory_bytes gauge\n")
	const minutes = 12 * 60
	begin := time.Now().Add(-(minutes + 30) * time.Minute).Truncate(time.Minute)
	for name, level := range map[string]func(m int) int{
		"leak":  func(m int) int { return 1000<<20 + m<<20 },
		"fills": func(m int) int { return 1000<<20 + min(m, 120)<<20 },
	} {
		for m := range minutes {
			fmt.Fprintf(&b, "job_memory_bytes{pod=%q} %d %d\n", name, level(m), begin.Add(time.Duration(m)*time.Minute).Unix())
		}
	}
	b.WriteString("# EOF\n")
	text := filepath.Join(dir, "series.txt")
	if err := os.WriteFile(text, []byte(b.String()), 0o666); err != nil {
		t.Fatal(err)
	}
	data := filepath.Join(dir, "data")
	if out, err := exec.Command(tool, "tsdb", "create-blocks-from", "openmetrics", text, data).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	base := startPrometheus(t, "scrape_configs: []\n", data, "--storage.tsdb.retention.time", "30d")
	judge := func(since string) storeTest {
		t.Helper()
		stdout, stderr, code := run("diagnose", "--prometheus", base, "--query", "job_memory_bytes", "--since", since, "--limit", "4GiB", "--json")
		var doc storeTest
		if err := json.Unmarshal([]byte(stdout), &doc); err != nil || code != exitProblem || stderr != "" {
			t.Fatalf("exit status %d: %s %s %v", code, stdout, stderr, err)
		}
		return doc
	}
	for _, since := range []string{"13h", "2d"} {
		got := map[string]string{}
		doc := judge(since)
		for _, f := range doc.Findings {
			got[f.Evidence.Column] = f.Evidence.Verdict
		}
		if len(got) != 2 || got[`job_memory_bytes{pod="leak"}`] != "growth" || got[`job_memory_bytes{pod="fills"}`] == "growth" {
			t.Errorf("the last %s: %+v", since, doc)
		}
		const rate = float64(1<<20) / 60
		if e := doc.Findings[0].Evidence; e.Rate < 0.9*rate || e.Rate > 1.1*rate || e.Seconds == nil {
			t.Errorf("the last %s: %+v", since, e)
		}
	}
	for query, want := range map[string]string{
		"job_memory_bytes[5m]":        "the store",
		"sum(":                        "the store cannot read the query",
		"no_such_bytes":               "no levels in the last 6h:",
		"prometheus_http_total":       "is a counter",
		"job_memory_bytes{pod=\"x\"}": "no levels",
		"7":                           "the store cannot read the query",
	} {
		if _, stderr, code := run("diagnose", "--prometheus", base, "--query", query); code != exitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: exit status %d: %s", query, code, stderr)
		}
	}
}
