package engine

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"strandline/host/sampling/sample"
)

// two engines of vLLM in one server, as it prints them.
const vllm = `# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="Qwen/Qwen3-0.6B"} 3.0
vllm:num_requests_running{engine="1",model_name="Qwen/Qwen3-0.6B"} 2.0
# HELP vllm:num_requests_waiting Number of requests waiting to be processed.
# TYPE vllm:num_requests_waiting gauge
vllm:num_requests_waiting{engine="0",model_name="Qwen/Qwen3-0.6B"} 1.0
vllm:num_requests_waiting{engine="1",model_name="Qwen/Qwen3-0.6B"} 0.0
# HELP vllm:kv_cache_usage_perc KV-cache usage. 1 means 100 percent usage.
# TYPE vllm:kv_cache_usage_perc gauge
vllm:kv_cache_usage_perc{engine="0",model_name="Qwen/Qwen3-0.6B"} 0.25
vllm:kv_cache_usage_perc{engine="1",model_name="Qwen/Qwen3-0.6B"} 0.5
# HELP vllm:request_success_total Count of successfully processed requests.
# TYPE vllm:request_success_total counter
vllm:request_success_total{engine="0",finished_reason="stop",model_name="Qwen/Qwen3-0.6B"} 100.0
vllm:request_success_total{engine="0",finished_reason="length",model_name="Qwen/Qwen3-0.6B"} 20.0
vllm:request_success_total{engine="1",finished_reason="stop",model_name="Qwen/Qwen3-0.6B"} 3.0
# HELP vllm:request_success_created Count of successfully processed requests.
# TYPE vllm:request_success_created gauge
vllm:request_success_created{engine="0",finished_reason="stop",model_name="Qwen/Qwen3-0.6B"} 1.7e+09
# HELP vllm:prompt_tokens_total Number of prefill tokens processed.
# TYPE vllm:prompt_tokens_total counter
vllm:prompt_tokens_total{engine="0",model_name="Qwen/Qwen3-0.6B"} 8.128902e+06
# HELP vllm:generation_tokens_total Number of generation tokens processed.
# TYPE vllm:generation_tokens_total counter
vllm:generation_tokens_total{engine="0",model_name="Qwen/Qwen3-0.6B"} 7000.0
# HELP vllm:time_to_first_token_seconds Histogram of time to first token in seconds.
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.001",model_name="Qwen/Qwen3-0.6B"} 0.0
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="Qwen/Qwen3-0.6B"} 123.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="Qwen/Qwen3-0.6B"} 123.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="Qwen/Qwen3-0.6B"} 4.5
`

// sglang is a server of two tensor-parallel ranks, each of which reports its requests.
const sglang = `# HELP sglang:num_running_reqs The number of running requests.
# TYPE sglang:num_running_reqs gauge
sglang:num_running_reqs{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"} 7.0
sglang:num_running_reqs{engine_type="unified",model_name="m",pp_rank="0",tp_rank="1"} 7.0
# HELP sglang:num_queue_reqs The number of requests in the waiting queue.
# TYPE sglang:num_queue_reqs gauge
sglang:num_queue_reqs{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"} 0.0
# HELP sglang:token_usage The token usage.
# TYPE sglang:token_usage gauge
sglang:token_usage{engine_type="unified",model_name="m",pp_rank="0",tp_rank="0"} 0.28
# HELP sglang:num_requests_total Number of requests processed.
# TYPE sglang:num_requests_total counter
sglang:num_requests_total{model_name="m"} 12.0
# HELP sglang:prompt_tokens_total Number of prefill tokens processed.
# TYPE sglang:prompt_tokens_total counter
sglang:prompt_tokens_total{model_name="m"} 600.0
# HELP sglang:generation_tokens_total Number of generation tokens processed.
# TYPE sglang:generation_tokens_total counter
sglang:generation_tokens_total{model_name="m"} 900.0
`

func TestParse(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"vLLM", vllm, `{"engine":"vllm","running_requests":5,"waiting_requests":1,"kv_cache_used_ratio":0.5,"finished_requests":123,"prompt_tokens":8128902,"output_tokens":7000}`},
		{"SGLang", sglang, `{"engine":"sglang","running_requests":7,"waiting_requests":0,"kv_cache_used_ratio":0.28,"finished_requests":12,"prompt_tokens":600,"output_tokens":900}`},
		{"by Ray, an older vLLM", "ray_vllm_num_requests_running 2\nray_vllm_gpu_cache_usage_perc 0.125\n", `{"engine":"vllm","running_requests":2,"waiting_requests":null,"kv_cache_used_ratio":0.125,"finished_requests":null,"prompt_tokens":null,"output_tokens":null}`},
		{"absent is not zero", "vllm:num_requests_running NaN\nvllm:num_requests_waiting 0\nvllm:kv_cache_usage_perc -1\nvllm:prompt_tokens_total +Inf\nvllm:generation_tokens_total -4\n",
			`{"engine":"vllm","running_requests":null,"waiting_requests":0,"kv_cache_used_ratio":null,"finished_requests":null,"prompt_tokens":null,"output_tokens":null}`},
	} {
		load, err := parse(strings.NewReader(c.text))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		if got, _ := json.Marshal(load); string(got) != c.want {
			t.Errorf("%s:\n%s\nwant\n%s", c.name, got, c.want)
		}
	}
	for text, want := range map[string]string{
		"": errOther.Error(),
		"vllm:num_requests_running{" + labelList(200_000) + "} 1\n": "more than 100 labels",
		"go_goroutines 7\n":     errOther.Error(),
		"<html>\n":              "cannot be read",
		`{"error":"not found"}`: "cannot be read",
		strings.Repeat("# a comment that says nothing\n", maxAnswer/30+1): "larger than 16 MiB",
	} {
		if load, err := parse(strings.NewReader(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40q: %+v, %v", text, load, err)
		}
	}
}

// labelList are so many labels.
func labelList(n int) string {
	var out strings.Builder
	for i := range n {
		fmt.Fprintf(&out, `a%d="",`, i)
	}
	return out.String()
}

func TestEndpoint(t *testing.T) {
	for text, want := range map[string]string{
		"localhost:8000":            "http://localhost:8000/metrics",
		"http://localhost:8000/":    "http://localhost:8000/metrics",
		"https://engine/vllm/stats": "https://engine/vllm/stats",
	} {
		if got, err := Endpoint(text); err != nil || got != want {
			t.Errorf("%s: %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "ftp://a/b", "http://", "unix:///run/engine", "http://a b", "http://u:secret@/x"} {
		if got, err := Endpoint(text); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %s, %v", text, got, err)
		}
	}
}

func TestRead(t *testing.T) {
	hang := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/metrics":
			if !strings.HasPrefix(r.Header.Get("Accept"), "text/plain") {
				t.Errorf("it accepts %s", r.Header.Get("Accept"))
			}
			io.WriteString(w, vllm)
		case "/broken":
			w.WriteHeader(http.StatusInternalServerError)
		case "/hangs":
			<-hang
		default:
			http.NotFound(w, r)
		}
	}))
	defer s.Close()
	defer close(hang)
	load, err := Read(t.Context(), s.URL+"/metrics")
	if err != nil || load.Engine != "vllm" || *load.InProgress() != 6 || *load.Tokens() != 8135902 {
		t.Errorf("%+v, %v", load, err)
	}
	for path, want := range map[string]string{"/other": "--enable-metrics", "/broken": "500 Internal Server Error"} {
		if _, err := Read(t.Context(), s.URL+path); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", path, err)
		}
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	if _, err := Read(ctx, s.URL+"/hangs"); !errors.Is(err, context.Canceled) {
		t.Errorf("one that hangs: %v", err)
	}
	gone := httptest.NewServer(nil)
	gone.Close()
	if _, err := Read(t.Context(), strings.Replace(gone.URL, "http://", "http://user:secret@", 1)); err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("one that is not there: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(vllm)
	f.Add(sglang)
	f.Add("vllm:num_requests_running{a=\"")
	f.Fuzz(func(t *testing.T, text string) {
		load, err := parse(strings.NewReader(text))
		if (load == nil) == (err == nil) {
			t.Errorf("%+v, %v", load, err)
		}
	})
}

// TestPoll asks an engine that starts, and ends.
func TestPoll(t *testing.T) {
	up := make(chan bool, 1)
	up <- false
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		now := <-up
		up <- now
		if !now {
			http.Error(w, "", http.StatusServiceUnavailable)
			return
		}
		io.WriteString(w, vllm)
	}))
	defer s.Close()
	p := Poll(s.URL+"/metrics", time.Millisecond)
	defer p.Close()
	wait := func(enough func(l *sample.Load) bool) {
		t.Helper()
		for deadline := time.Now().Add(3 * time.Minute); ; time.Sleep(time.Millisecond) {
			l := p.Now()
			if enough(l) {
				return
			}
			if time.Now().After(deadline) {
				t.Fatalf("%+v", l)
			}
		}
	}
	wait(func(l *sample.Load) bool { return l.Engine == "" && strings.Contains(l.Note, "503") })
	<-up
	up <- true
	wait(func(l *sample.Load) bool { return l.Note == "" && l.Engine == "vllm" && *l.Running == 5 })
	p.mu.Lock()
	p.old = -1
	p.mu.Unlock()
	if l := p.Now(); l.Engine != "" || !strings.Contains(l.Note, "has not answered for") {
		t.Errorf("an old answer: %+v", l)
	}
}
