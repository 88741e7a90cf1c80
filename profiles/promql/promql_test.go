package promql

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// end is when all queries end.
var end = time.Unix(1_800_000_000, 0)

// A fake store answers as Prometheus does.
type fake struct {
	metadata, count, levels string // what it answers; empty is 404
	status                  int    // of the levels
	asked                   []string
}

func (f *fake) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.asked = append(f.asked, strings.TrimPrefix(r.URL.Path, "/api/v1/")+" "+strings.TrimSpace(r.FormValue("query")+r.FormValue("metric")))
	text := map[string]string{"/api/v1/metadata": f.metadata, "/api/v1/query": f.count, "/api/v1/query_range": f.levels}[r.URL.Path]
	switch {
	case text == "":
		http.NotFound(w, r)
	case f.status != 0 && r.URL.Path == "/api/v1/query_range":
		w.WriteHeader(f.status)
	}
	io.WriteString(w, text)
}

func typed(name, kind string) string {
	return fmt.Sprintf(`{"status":"success","data":{%q:[{"type":%q,"help":"","unit":""}]}}`, name, kind)
}

func counted(n int) string {
	return fmt.Sprintf(`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1800000000,"%d"]}]}}`, n)
}

func matrix(all ...string) string {
	return `{"status":"success","data":{"resultType":"matrix","result":[` + strings.Join(all, ",") + `]}}`
}

const (
	podA = `{"metric":{"__name__":"m_bytes","job":"k","pod":"a"},"values":[[1799999900,"100"],[1799999950.5,"NaN"],[1800000000,"3e2"]]}`
	podB = `{"metric":{"__name__":"m_bytes","job":"k","pod":"b"},"values":[[1799999900,"-1"],[1799999950,"+Inf"],[1800000000,"7"],[1,2,3],["x","y"]]}`
	none = `{"metric":{"__name__":"m_bytes"},"histograms":[[1799999900,{"count":"7"}]]}`
)

func ask(t *testing.T, f *fake, q Query) (string, error) {
	t.Helper()
	s := httptest.NewServer(f)
	defer s.Close()
	if q.Server == "" {
		q.Server = s.URL
	}
	if q.Since == 0 {
		q.Since = time.Hour
	}
	q.End = end
	file, err := Read(t.Context(), q)
	if err != nil {
		return "", err
	}
	var out []string
	for _, c := range file.Columns {
		out = append(out, fmt.Sprint(c.Name, c.Times, c.Bytes))
	}
	if file.Partial != nil {
		out = append(out, file.Partial.Error())
	}
	return strings.Join(append(out, file.Notes...), "\n"), nil
}

func TestRead(t *testing.T) {
	for _, c := range []struct {
		name string
		fake fake
		q    Query
		want string
	}{
		{"two pods", fake{metadata: typed("m_bytes", "gauge"), count: counted(2), levels: matrix(podA, podB, none)}, Query{Expr: `m_bytes{job="k"}`},
			"m_bytes{pod=\"a\"}[0 50.5 100] [100 NaN 300]\nm_bytes{pod=\"b\"}[0 50 100] [NaN NaN 7]\n2 values of the answer are not a time and a number, and are left out"},
		{"one, without metadata", fake{count: counted(1), levels: matrix(podA)}, Query{Expr: "m_bytes"}, "m_bytes[0 50.5 100] [100 NaN 300]"},
		{"MiB", fake{metadata: `{"status":"success","data":{}}`, count: counted(1), levels: matrix(`{"metric":{"gpu":"0"},"values":[[7,"2"]]}`)}, Query{Expr: "DCGM_FI_DEV_FB_USED"},
			"DCGM_FI_DEV_FB_USED[0] [2.097152e+06]"},
		{"an expression", fake{count: counted(1), levels: matrix(`{"metric":{"pod":"a"},"values":[[7,"2"]]}`)}, Query{Expr: `sum by (pod) (m_bytes)`}, "sum by (pod) (m_bytes)[0] [2]"},
		{"a difference of counters", fake{count: counted(1), levels: matrix(`{"metric":{},"values":[[7,"2"]]}`)}, Query{Expr: `made_bytes_total{a="rate("} - on (pod) freed_bytes_total`}, "made_bytes_total{a=\"rate(\"} - on (pod) freed_bytes_total[0] [2]"},
		{"a share of a size", fake{count: counted(1), levels: matrix(`{"metric":{},"values":[[7,"2"]]}`)}, Query{Expr: "vllm:kv_cache_usage_perc * 64 * 2^30"}, "vllm:kv_cache_usage_perc * 64 * 2^30[0] [2]"},
		{"with warnings", fake{count: counted(1), levels: strings.Replace(matrix(podA), `"data"`, `"warnings":["some stores did not answer"],"isPartial":true,"data"`, 1)}, Query{Expr: "m_bytes"},
			"m_bytes[0 50.5 100] [100 NaN 300]\nthe store warns: some stores did not answer"},
	} {
		got, err := ask(t, &c.fake, c.q)
		if err != nil || got != c.want {
			t.Errorf("%s: %v\n%s\nwant\n%s", c.name, err, got, c.want)
		}
	}
}

// TestPushes checks that the store reduces steps that are longer than scrapes are apart.
func TestPushes(t *testing.T) {
	for _, c := range []struct {
		since, step time.Duration
		expr, want  string
	}{
		{time.Hour, 0, "m_bytes", "query_range m_bytes"},
		{240 * time.Hour, 0, "m_bytes", "query_range max_over_time(m_bytes[1800000ms])"},
		{time.Hour, 2 * time.Minute, `m_bytes{a="}"}`, `query_range max_over_time(m_bytes{a="}"}[120000ms])`},
		{240 * time.Hour, 0, "sum(m_bytes)", "query_range sum(m_bytes)"},
	} {
		f := fake{count: counted(1), levels: matrix(podA)}
		if _, err := ask(t, &f, Query{Expr: c.expr, Since: c.since, Step: c.step}); err != nil || f.asked[len(f.asked)-1] != c.want {
			t.Errorf("%s: %v, %v", c.expr, f.asked, err)
		}
	}
}

func TestErrors(t *testing.T) {
	fine := fake{count: counted(1), levels: matrix(podA)}
	with := func(change func(f *fake)) fake { f := fine; change(&f); return f }
	for _, c := range []struct {
		name string
		fake fake
		q    Query
		want string
	}{
		{"a counter", with(func(f *fake) { f.metadata = typed("m_bytes", "counter") }), Query{Expr: "m_bytes"}, "m_bytes is a counter, which only ever grows: it is no level"},
		{"its rate", fine, Query{Expr: "rate(process_cpu_seconds_total[5m])"}, "rate() gives how fast"},
		{"a sum of changes", fine, Query{Expr: "sum by (pod) (increase (m_bytes{a=\"x\"}[5m]))"}, "increase() gives how fast"},
		{"less of a counter", with(func(f *fake) { f.metadata = typed("cnt_bytes", "counter") }), Query{Expr: "cnt_bytes - 5"}, "cnt_bytes is a counter"},
		{"a sum of a counter by its name", fine, Query{Expr: "sum by (pod) (m_total)"}, "m_total is a counter"},
		{"no values", with(func(f *fake) { f.levels = matrix(`{"metric":{"__name__":"m_bytes"},"values":[["x","7"],[1,2],[3]]}`) }), Query{Expr: "m_bytes"}, "not a time and a number, 3 of them"},
		{"a counter by its name", fine, Query{Expr: "sent_bytes_total"}, "sent_bytes_total is a counter"},
		{"a histogram", with(func(f *fake) { f.metadata = typed("m", "histogram") }), Query{Expr: "m_bucket"}, "m_bucket is a histogram"},
		{"an info", with(func(f *fake) { f.metadata = typed("m_info", "info") }), Query{Expr: "m_info"}, "only carries labels"},
		{"a share", fine, Query{Expr: "vllm:kv_cache_usage_perc"}, "multiply it"},
		{"no size", fine, Query{Expr: "up_seconds"}, "not a size"},
		{"a million series", with(func(f *fake) { f.count = counted(1_000_000) }), Query{Expr: "m_bytes"}, "the query has 1000000 series, and at most 500"},
		{"nothing", with(func(f *fake) { f.levels = matrix() }), Query{Expr: "m_bytes"}, "no levels in the last 1h:"},
		{"nothing but histograms", with(func(f *fake) { f.levels = matrix(none) }), Query{Expr: "m_bytes"}, "no levels"},
		{"a bad query", with(func(f *fake) {
			f.levels, f.status = `{"status":"error","errorType":"bad_data","error":"1:5: parse error"}`, 400
		}), Query{Expr: "m_bytes"}, "the store cannot read the query: 1:5: parse error"},
		{"too slow for the store", with(func(f *fake) {
			f.levels, f.status = `{"status":"error","errorType":"timeout","error":"query timed out in expression evaluation"}`, 503
		}), Query{Expr: "m_bytes"}, "longer --step"},
		{"an error in an answer", with(func(f *fake) {
			f.levels = `{"status":"error","errorType":"execution","error":"` + strings.Repeat("x", 9000) + `"}`
		}), Query{Expr: "m_bytes"}, "the store reports: xxx"},
		{"a bad gateway", with(func(f *fake) { f.levels, f.status = "<html>", 502 }), Query{Expr: "m_bytes"}, "502 Bad Gateway"},
		{"no password", with(func(f *fake) { f.levels, f.status = "denied", 401 }), Query{Expr: "m_bytes"}, "name and password"},
		{"no API", fake{}, Query{Expr: "m_bytes"}, "no API of Prometheus"},
		{"a page", with(func(f *fake) { f.levels = "<!DOCTYPE html>" }), Query{Expr: "m_bytes"}, "not the API"},
		{"an empty page", with(func(f *fake) { f.levels = " " }), Query{Expr: "m_bytes"}, "not the API"},
		{"other JSON", with(func(f *fake) { f.levels = `{"data":[1,2]}` }), Query{Expr: "m_bytes"}, "not the API"},
		{"a list", with(func(f *fake) { f.levels = `[{"data":{}}]` }), Query{Expr: "m_bytes"}, "not the API"},
		{"no result", with(func(f *fake) { f.levels = `{"status":"success"}` }), Query{Expr: "m_bytes"}, "not the API"},
		{"other series", with(func(f *fake) { f.levels = matrix(`{"metric":7}`) }), Query{Expr: "m_bytes"}, "not the API"},
		{"a scalar", with(func(f *fake) { f.levels = `{"data":{"resultType":"scalar","result":[1,"2"]}}` }), Query{Expr: "m_bytes"}, "the query gives a scalar"},
		{"torn", with(func(f *fake) { f.levels = matrix(podA)[:150] }), Query{Expr: "m_bytes"}, "ends early"},
		{"too many points", fine, Query{Expr: "m_bytes", Step: time.Millisecond}, "more than a store gives"},
		{"no time", fine, Query{Expr: "m_bytes", Since: time.Millisecond}, "want at least a second"},
		{"no address", fine, Query{Expr: "m_bytes", Server: "http://"}, "not the address of a store"},
		{"another scheme", fine, Query{Expr: "m_bytes", Server: "ftp://a"}, "not the address of a store"},
	} {
		got, err := ask(t, &c.fake, c.q)
		const longest = 700
		if err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > longest {
			t.Errorf("%s: %v %s, want %s", c.name, err, got, c.want)
		}
	}
}

// TestNoServer asks where nothing listens: the address is stated once.
func TestNoServer(t *testing.T) {
	s := httptest.NewServer(http.NotFoundHandler())
	address := strings.TrimPrefix(s.URL, "http://")
	s.Close()
	_, err := ask(t, &fake{}, Query{Expr: "m_bytes", Server: address})
	if err == nil || strings.Count(err.Error(), address) != 1 || strings.Contains(err.Error(), "dial") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("%v", err)
	}
}

// TestMany reads a store that sends far more series than it counted, and does not read
// them all.
func TestMany(t *testing.T) {
	sent := make(chan int, 1)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/query_range" {
			io.WriteString(w, counted(3))
			return
		}
		io.WriteString(w, `{"status":"success","data":{"resultType":"matrix","result":[`)
		n := 0
		for ; n < 1_000_000; n++ {
			if _, err := fmt.Fprintf(w, `{"metric":{"pod":"%d"},"values":[[1,"2"]]},`, n); err != nil {
				break
			}
		}
		sent <- n
	}))
	defer s.Close()
	f, err := Read(t.Context(), Query{Server: s.URL, Expr: "m_bytes", Since: time.Hour, End: end})
	if err != nil || f.Partial == nil || len(f.Columns) != maxSeries {
		t.Fatalf("%v, %v", f, err)
	}
	if n := <-sent; n == 1_000_000 {
		t.Error("all of them were read")
	}
}

// TestSlow gives up on a store that does not answer.
func TestSlow(t *testing.T) {
	hang := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-hang:
		case <-r.Context().Done():
		}
	}))
	defer s.Close()
	defer close(hang)
	ctx, stop := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer stop()
	if _, err := Read(ctx, Query{Server: s.URL, Expr: "sum(m)", Since: time.Hour, End: end}); err == nil || !strings.Contains(err.Error(), "has not answered within") {
		t.Errorf("a deadline: %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Read(ctx, Query{Server: s.URL, Expr: "sum(m)", Since: time.Hour, End: end}); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	if _, err := Read(t.Context(), Query{Server: strings.Replace(gone.URL, "http://", "http://user:secret@", 1), Expr: "sum(m)", Since: time.Hour, End: end}); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("a store that is not there: %v", err)
	}
}

func TestSelector(t *testing.T) {
	for text, want := range map[string]string{
		"m": "m", ` a:b_1 {x="{}", y=~'"'} `: "a:b_1", `m{x="\""}`: "m", "m{}": "m",
		"": "", "7": "", "sum(m)": "", "m[5m]": "", "m + n": "", `m{x="y"`: "", "m offset 5m": "", "m\n": "m", `{__name__="m", x="y"}`: "m",
	} {
		if got := selected(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// TestUnits checks how many bytes one of an expression's values is, and which
// expressions are refused.
func TestUnits(t *testing.T) {
	const used = "DCGM_FI_DEV_FB_USED"
	s := httptest.NewServer(&fake{metadata: typed("made_bytes", "counter")})
	defer s.Close()
	base, err := address(s.URL)
	if err != nil {
		t.Fatal(err)
	}
	c := &client{base: base}
	const mib = 1 << 20
	for expr, want := range map[string]float64{
		used: mib, `sum(` + used + `{pod="a"}) by (ns, pod)`: mib, "avg by (gpu) (" + used + ")": mib, "max without (gpu) (" + used + ")": mib,
		"topk(3, " + used + ")": mib, "quantile(0.9, " + used + ")": mib, "max_over_time(" + used + "[5m])": mib, "quantile_over_time(0.9, " + used + "[5m])": mib,
		"sum(max_over_time(" + used + "[10m:1m]))": mib, `label_replace(` + used + `, "a", "$1", "b", "(.*)")`: mib, used + " offset 1h": mib,
		used + " + DCGM_FI_DEV_FB_RESERVED": mib, "sum(DCGM_FI_DEV_FB_TOTAL) - sum(DCGM_FI_DEV_FB_FREE)": mib, used + " - 512": mib, "8 * " + used: mib, used + " / 8": mib,
		used + " * 1024 * 1024": 1, used + " * 2^20": 1, "1048576 * " + used: 1, used + " * 1024": 1 << 10, used + " / 1024": 1 << 30,
		"m_bytes / 1e9": 1e9, "sum(m_bytes) / 1024^3": 1 << 30, "m_bytes": 1, "m": 1, "m * 1024": 1, `sum(a_mb) or sum(b_mb)`: mib,
		used + " > 100": mib, "clamp_min(" + used + ", 0)": mib, "made_bytes - freed_bytes_total": 1, "m_ratio * on (pod) m_bytes": 1, "m_ratio * " + used: mib,
		"m_ratio / 100 * 64 * 2^30": 1, "m_bytes / m_ratio": 1, "(" + used + " / DCGM_FI_DEV_FB_TOTAL) * m_bytes": 1, "!": 1, "sum(m_bytes, " + used + ")": 1,
		"m_bytes unless " + used: 1, "scalar(" + used + ")": mib, `{"m.used"}`: 1, `{__name__=~"DCGM.*"}`: 1,
	} {
		if got, err := c.bytesOf(t.Context(), expr); err != nil || math.Abs(got/want-1) > 1e-12 {
			t.Errorf("%s: %v bytes and %v, want %v", expr, got, err, want)
		}
	}
	for expr, want := range map[string]string{
		"sum(rate(" + used + "[5m]))": "rate() gives how fast", "max_over_time(deriv(" + used + "[5m])[1h:])": "deriv() gives how fast",
		"sum by (a) (rate(x[1m])) * 2^20": "rate() gives how fast", "count(" + used + ")": "count() gives a number of series", "sum(made_bytes)": "made_bytes is a counter",
		used + " / DCGM_FI_DEV_FB_TOTAL": "is a share", "100 * m_ratio": "m_ratio is a share", "avg(DCGM_FI_DEV_GPU_UTIL)": "is a share",
		"m_bytes + " + used: "different units", used + " > bool 5": "0 or 1", "sum(up_seconds)": "not a size of memory", "timestamp(" + used + ")": "no size of memory",
	} {
		if _, err := c.bytesOf(t.Context(), expr); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", expr, err, want)
		}
	}
}

// chunks gives a text in small packets.
type chunks struct{ r io.Reader }

func (c chunks) Read(p []byte) (int, error) { return c.r.Read(p[:min(len(p), 100)]) }

// TestBlanks checks that blanks outside of texts cost a decoder nothing.
func TestBlanks(t *testing.T) {
	text := `{"status":"success",%s"data":{"resultType":"matrix",%s"result":[%s{"metric":{"a \\\"  b":"c  \\\\"},%s"values":[[1,"2"]]}]}}`
	blanks := strings.Repeat(" \t\r\n", 1<<18)
	long := fmt.Sprintf(strings.ReplaceAll(text, "\\", "\\"), blanks, blanks, blanks, blanks)
	got, err := io.ReadAll(&squeezer{r: chunks{strings.NewReader(long)}})
	if want := strings.ReplaceAll(long, blanks, " "); err != nil || string(got) != want {
		t.Errorf("%.200s, %v\nwant %s", got, err, want)
	}
	var all []series
	a := answer{each: func(s *series) error { all = append(all, *s); return nil }}
	if err := a.read(chunks{strings.NewReader(long)}); err != nil || len(all) != 1 || len(all[0].Values) != 1 {
		t.Errorf("%+v, %v", all, err)
	}
}

// TestManyPoints refuses a series of more points than a store gives.
func TestManyPoints(t *testing.T) {
	text := `{"data":{"result":[{"values":[` + strings.Repeat("[],", 1_000_000) + `[]]}]}}`
	a := answer{each: func(s *series) error { t.Errorf("%d points", len(s.Values)); return nil }}
	if err := a.read(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), "a series of 1000001 points") {
		t.Error(err)
	}
}

func FuzzAnswer(f *testing.F) {
	f.Add(matrix(podA, podB, none))
	f.Add(counted(7))
	f.Add(`{"status":"error","errorType":"timeout","error":"x"}`)
	f.Fuzz(func(t *testing.T, text string) {
		var all []series
		a := answer{each: func(s *series) error { all = append(all, *s); return nil }}
		if a.read(strings.NewReader(text)) != nil {
			return
		}
		found, _ := columns("m", all, 1)
		for _, c := range found {
			if len(c.Times) != len(c.Bytes) || len(c.Times) == 0 || c.Name == "" {
				t.Errorf("%+v", c)
			}
			for _, x := range c.Bytes {
				if x < 0 || math.IsInf(x, 0) {
					t.Errorf("a level of %v", x)
				}
			}
		}
	})
}
