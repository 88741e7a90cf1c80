//go:build unix

package cli

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"strandline/host/gpu/nvsmi"
	"strandline/host/sampling/engine"
	"strandline/internal/test/live"
	"strandline/run/soak/load"
	"strandline/torch/pickle"
)

// mutantAnswers are the kinds of what other programs answer, and of folders of jobs. A server
// gives the files of dir by their names, as do the sockets of this process.
func mutantAnswers(t *testing.T, dir string) []mutantKind {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, _, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
		if name == "stream" {
			w.Header().Set("Content-Type", "text/event-stream")
		}
		http.ServeFile(w, r, filepath.Join(dir, path.Base(name)))
	}))
	t.Cleanup(server.Close)
	answerWith(t, "strandline/", filepath.Join(dir, "recorder"))
	answerWith(t, "strandline-mem/", filepath.Join(dir, "library"))
	tool := t.TempDir()
	if err := os.WriteFile(filepath.Join(tool, "nvidia-smi"), []byte("#!/bin/sh\nexec cat '"+filepath.Join(dir, "smi")+"'\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", tool+":"+os.Getenv("PATH"))
	for _, of := range []string{"job", "flight"} {
		if err := os.Mkdir(filepath.Join(dir, of), 0o700); err != nil {
			t.Fatal(err)
		}
		const other = "[rank1]: RuntimeError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 80.00 GiB\n"
		if err := os.WriteFile(filepath.Join(dir, of, "rank1.log"), []byte(other), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	self := fmt.Sprint(os.Getpid())
	url := server.URL
	folder := []string{"diagnose DIR/job", "diagnose --json DIR/job", "diagnose -v DIR/job", "diagnose FILE"}
	pickled := seedsOf(t, "examples/ranks/rank0-step-2.pickle")[0]
	page := []byte("<!DOCTYPE html>\n<script>\nconst local_files = [{\"name\": \"s.pickle\", \"base64\": \"" + base64.StdEncoding.EncodeToString(pickled[:min(len(pickled), mutantSize/2)]) + "\"}]\n</script>\n")
	return []mutantKind{
		{file: "job/rank0.log", seeds: seedsOf(t, "logs/testdata/*.txt", "examples/*/*.log", "cli/testdata/logs/*"), forge: jobText, pack: true, commands: folder},
		{file: "flight/nccl_trace_rank_0", seeds: [][]byte{flightText(rand.New(rand.NewPCG(1, 1))), flightPickle(rand.New(rand.NewPCG(1, 1)))},
			forge: func(r *rand.Rand) []byte { return pick(r, flightText, flightPickle)(r) }, pack: true, commands: []string{"diagnose DIR/flight", "diagnose --json DIR/flight", "diagnose FILE"}},
		{file: "trace.html", seeds: [][]byte{page}, forge: pageText, commands: []string{"diagnose FILE", "inspect FILE", "view --html DIR/page.html FILE"}},
		{file: "b.json", seeds: [][]byte{baselineText(rand.New(rand.NewPCG(1, 1)))}, forge: baselineText, commands: []string{"check --baseline FILE -- true", "diagnose FILE"}},
		{file: "p.pausable", seeds: seedsOf(t, "examples/pausable/*.pausable"), forge: pausesText, commands: []string{"plan rl --phases ../examples/pausable/phases.yaml --check FILE", "plan rl --phases ../examples/pausable/phases.yaml --json --check FILE", "diagnose FILE"}},
		{file: "prom", seeds: [][]byte{storeText(rand.New(rand.NewPCG(1, 1)))}, forge: storeText, commands: []string{"diagnose --since 1h --query up --prometheus " + url + "/prom", "diagnose --json --query up --query x --prometheus " + url + "/prom"}},
		{file: "metrics", seeds: [][]byte{metricsText(rand.New(rand.NewPCG(1, 1)))}, forge: metricsText, ask: func(ctx context.Context) { _, _ = engine.Read(ctx, url+"/metrics") },
			commands: []string{"watch --duration 100ms --interval 50ms --metrics " + url + "/metrics --pid " + self}},
		{file: "stream", seeds: [][]byte{streamText(rand.New(rand.NewPCG(1, 1)))}, forge: streamText, ask: func(ctx context.Context) { chat(ctx, url+"/stream", true) }},
		{file: "chat", seeds: [][]byte{[]byte(`{"data":[{"id":"m"}],"choices":[{"message":{"content":"a"},"finish_reason":"stop"}],"usage":{"completion_tokens":1}}`)}, ask: func(ctx context.Context) { chat(ctx, url+"/chat", false) }},
		{file: "smi", seeds: [][]byte{[]byte("0, GPU-1, 10 MiB, 81920 MiB\n"), []byte("GPU-1, 77, 10 MiB\n")}, forge: smiText, ask: func(ctx context.Context) { _, _ = nvsmi.Read(ctx) }},
		{file: "recorder", seeds: [][]byte{[]byte(`{"pid":` + self + `,"role":"main","folder":"/data/run","path":"/data/run/a.pickle","time":1,"steps":1,"devices":[{"device":0,"allocated_bytes":1,"reserved_bytes":2}]}` + "\n")},
			commands: []string{"record --status", "snapshot --pid " + self, "record --status --json", "snapshot --json --pid " + self, "record --status", "snapshot --pid " + self, "watch --duration 100ms --interval 50ms --pid " + self}},
		{file: "library", seeds: [][]byte{[]byte("tag w%20 100 1 active pinned 0 100\npart w%20 0 100 100 100 0\ndevice 0 900 1000\nend\n"), []byte("failed 1 2 0 100 50 no memory\nend\n")}, forge: libraryText,
			commands: []string{"mem status --pid " + self, "mem status --json --pid " + self, "mem plan --pid " + self, "mem pause --pid " + self, "mem resume --tag w --pid " + self}},
	}
}

// answerWith sends a file to each that connects to a socket of this process, after its request.
func answerWith(t *testing.T, prefix, file string) {
	live.Answer(t, fmt.Sprintf("%s%d", prefix, os.Getpid()), func(c net.Conn) {
		c.SetDeadline(time.Now().Add(time.Minute))
		if _, err := c.Read(make([]byte, 1<<16)); err != nil {
			return
		}
		if text, err := os.ReadFile(file); err == nil {
			c.Write(text)
		}
	})
}

// chat asks a server of models, as `strandline soak` does.
func chat(ctx context.Context, url string, stream bool) {
	some := load.Length{Low: 2, High: 2}
	c, err := load.New(load.Options{URL: url, Stream: stream, Concurrency: 2, Input: some, Output: some, Timeout: 5 * time.Second})
	if err != nil {
		return
	}
	defer c.Close()
	if c.Probe(ctx) == nil {
		c.Send(ctx, load.Wave{Requests: 4}, nil)
	}
}

// lengthen writes lines until they are long enough.
func lengthen(r *rand.Rand, line func(i int) string) []byte {
	var b strings.Builder
	for i, most := 0, pick(r, 1, 10, 1000, mutantSize); i < most && b.Len() < mutantSize; i++ {
		b.WriteString(line(i))
	}
	return []byte(b.String())
}

// jobText is the log of a job of many processes.
func jobText(r *rand.Rand) []byte {
	ranks := pick(r, 1, 8, 1000, 1_000_000)
	who := pick(r, "[rank%d]: ", "(RayWorker pid=%d, ip=10.0.0.1) ", "%d: ", "[1,%d]<stderr>:", "[default%d]:", "2026-03-01T10:00:00 node%d trainer: ", "[Rank %d] ")
	return lengthen(r, func(i int) string {
		what := pick(r, "Traceback (most recent call last):", `  File "a.py", line 1, in f`, "RuntimeError: NCCL error", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate "+number(r)+" GiB. GPU 1 has a total capacity of "+number(r)+" GiB",
			"step:"+number(r)+" loss 1.0 memory allocated (GB): "+number(r), "Watchdog caught collective operation timeout: WorkNCCL(SeqNum="+number(r)+", OpType=ALLREDUCE, NumelIn="+number(r)+")",
			"srun: error: n"+number(r)+": tasks 0-"+number(r)+": Out Of Memory", "failed (exitcode: "+number(r)+") local_rank: "+number(r)+" (pid: 77) of binary: python", "exits with return code = "+number(r),
			"Mar  1 10:00:00 n7 kernel: Memory cgroup out of memory: Killed process 4711 (python) anon-rss:"+number(r)+"kB", "9999-12-31T23:59:59 got SIGTERM", "Root Cause (first observed failure):\n[0]:\n  time : 9999-03-01_10:00:00\n  rank      : "+number(r)+" (local_rank: 3)\n  exitcode  : -9 (pid: 77)")
		return fmt.Sprintf(who, r.IntN(ranks)) + what + "\n"
	})
}

// flightText is a dump of a flight recorder.
func flightText(r *rand.Rand) []byte {
	groups := pick(r, 1, 3, 300)
	return fmt.Appendf(nil, `{"version":"2.10","pg_config":{%s},"pg_status":{"0":{"last_enqueued_collective":"%s"}},"entries":%s}`,
		strings.Trim(some(r, groups, func() string {
			return fmt.Sprintf(`"%d":{"name":"%d","desc":"d","ranks":"[0, %s]"}`, r.IntN(groups), r.IntN(groups), number(r))
		}), "[]"), number(r), some(r, 40, func() string {
			return fmt.Sprintf(`{"process_group":["%d","d"],"collective_seq_id":%s,"state":"%s","time_created_ns":%s,"is_p2p":false,"retired":%s}`, r.IntN(groups), pick(r, "7", number(r)), pick(r, "started", "completed", "scheduled"), number(r), pick(r, "true", "false"))
		}))
}

// flightPickle is one in pickle, whose entries are one object.
func flightPickle(r *rand.Rand) []byte {
	var out strings.Builder
	e := pickle.NewEncoder(&out)
	groups, entries := r.IntN(pick(r, 3, 200)), r.IntN(pick(r, 3, 100))
	e.Dict(2)
	e.String("pg_config")
	e.Dict(groups)
	for i := range groups {
		e.String(fmt.Sprint(i))
		e.Dict(1)
		e.String("ranks")
		e.String("[" + strings.Repeat("0, ", r.IntN(50)) + "1]")
	}
	e.String("entries")
	e.List(entries)
	for i := range entries {
		e.Dict(3)
		e.String("process_group")
		e.Tuple(2)
		e.String(fmt.Sprint(i % (groups + 1)))
		e.String("d")
		e.String("collective_seq_id")
		e.Int64(pick(r, int64(i), -1, 1<<62))
		e.String("state")
		e.String("started")
	}
	e.Close()
	return []byte(out.String())
}

// pageText is a page that holds a snapshot.
func pageText(r *rand.Rand) []byte {
	inner := forgedSnapshot(r)
	if r.IntN(3) == 0 {
		inner = fmt.Appendf(nil, "<script>local_files = [{\"base64\": \"%s\"", base64.StdEncoding.EncodeToString(inner))
	}
	return fmt.Appendf(nil, "%s<html><script>const local_files = [{\"name\": \"%s\", \"base64\": \"%s\"%s", strings.Repeat("\n", r.IntN(20)), strings.Repeat("n", r.IntN(3000)),
		base64.StdEncoding.EncodeToString(inner[:min(len(inner), 10_000)]), pick(r, "", "}]</script>", "\"base64\": \"AAAA"))
}

// baselineText is a baseline of checks.
func baselineText(r *rand.Rand) []byte {
	return fmt.Appendf(nil, `{"schema":"strandline.baseline/1","machine":{"python":"3"},"runs":{%s}}`, strings.Trim(some(r, 20, func() string {
		return fmt.Sprintf(`"%d":{"peak":{"bytes":%s,"runs":%s}}`, r.IntN(50), number(r), some(r, 20, func() string { return number(r) }))
	}), "[]"))
}

// pausesText is a log of pauses.
func pausesText(r *rand.Rand) []byte {
	at := 0
	return append([]byte("log 1 42\n"), lengthen(r, func(i int) string {
		at += r.IntN(1 << 30)
		tag := pick(r, "w", "kv", "%00", fmt.Sprint("t", i))
		return pick(r, fmt.Sprintf("at %d %s %s %s %d\n", at, pick(r, "before", "after"), pick(r, "pause", "resume"), pick(r, tag, "-"), r.IntN(2)),
			fmt.Sprintf("tag %s %s 1 %s pinned %s %s\n", tag, number(r), pick(r, "active", "paused"), number(r), number(r)), fmt.Sprintf("part %s %s %s 0 0 %s\n", tag, number(r), number(r), number(r)),
			fmt.Sprintf("device %s %s %s\n", pick(r, "0", number(r)), number(r), number(r)), fmt.Sprintf("did pause %s %s %s 0 1\n", tag, number(r), number(r)), fmt.Sprintf("note %d torch %s %s %s %s\n", at, pick(r, "0", number(r)), number(r), number(r), number(r)))
	})...)
}

// libraryText is an answer of the library of pausable memory.
func libraryText(r *rand.Rand) []byte {
	text := pausesText(r)[len("log 1 42\n"):]
	return append(slices.DeleteFunc(text, func(b byte) bool { return r.IntN(10_000) == 0 }), "end\n"...)
}

// storeText is an answer of a store of metrics.
func storeText(r *rand.Rand) []byte {
	begin := time.Now().Add(-time.Hour).Unix()
	return fmt.Appendf(nil, `{"status":"success","warnings":%s,"data":{"resultType":"%s","result":%s}}`, some(r, 2, func() string { return `"` + strings.Repeat("w", r.IntN(2000)) + `"` }), pick(r, "matrix", "matrix", "vector"),
		some(r, pick(r, 3, 200), func() string {
			return fmt.Sprintf(`{"metric":{"pod":"p%d","x":"%s"},"values":%s}`, r.IntN(300), strings.Repeat(`\u001b`, r.IntN(3)), some(r, pick(r, 3, 100), func() string {
				begin++
				return fmt.Sprintf(`[%s,"%s"]`, pick(r, fmt.Sprint(begin), number(r)), pick(r, fmt.Sprint(begin), number(r), "NaN", "+Inf"))
			}))
		}))
}

// metricsText is an answer of an engine.
func metricsText(r *rand.Rand) []byte {
	return append([]byte("vllm:num_requests_running{engine=\"0\"} 3\n"), lengthen(r, func(i int) string {
		return fmt.Sprintf("%s{%s} %s\n", pick(r, "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc", "sglang:num_running_reqs", fmt.Sprint("x", i), "# TYPE x counter"),
			strings.Repeat(fmt.Sprintf(`l%d="%s",`, i, pick(r, "v", `\n\"`)), r.IntN(pick(r, 2, 100))), pick(r, number(r), "NaN", "+Inf", "3 17"))
	})...)
}

// streamText is a stream of a server of models.
func streamText(r *rand.Rand) []byte {
	return append([]byte(`data: {"data":[{"id":"m"}]}`+"\n\n"), lengthen(r, func(int) string {
		return pick(r, `data: {"choices":[{"index":`+number(r)+`,"delta":{"content":"x"}}]}`+"\n\n", `data: {"choices":`+some(r, 50, func() string { return "{}" })+"}\n\n", `data: {"usage":{"completion_tokens":`+number(r)+"}}\n\n", "data: [DONE]\n\n", ": ping\n", "event: x\n", `data: {"error":{"message":"x"}}`+"\n")
	})...)
}

// smiText is what nvidia-smi prints to one question or the other.
func smiText(r *rand.Rand) []byte {
	cells := pick(r, 3, 4)
	return lengthen(r, func(i int) string {
		return strings.Join([]string{fmt.Sprint(i), "GPU-" + fmt.Sprint(r.IntN(9)), number(r) + " MiB", pick(r, "[N/A]", number(r)+" MiB")}[:cells], ", ") + "\n"
	})
}

// mutateTree changes one value of a text in JSON.
func mutateTree(r *rand.Rand, data []byte) []byte {
	var top any
	d := json.NewDecoder(strings.NewReader(string(data)))
	d.UseNumber()
	if d.Decode(&top) != nil {
		return data
	}
	if _, err := d.Token(); err != io.EOF {
		return data
	}
	var places []func(any)
	var values []any
	var walk func(v any, set func(any))
	walk = func(v any, set func(any)) {
		places, values = append(places, set), append(values, v)
		switch v := v.(type) {
		case []any:
			for i := range v {
				walk(v[i], func(n any) { v[i] = n })
			}
		case map[string]any:
			keys := make([]string, 0, len(v))
			for k := range v {
				keys = append(keys, k)
			}
			slices.Sort(keys) // a mutant is made of its number alone
			for _, k := range keys {
				walk(v[k], func(n any) { v[k] = n })
			}
		}
	}
	walk(top, func(n any) { top = n })
	at := r.IntN(len(places))
	v := values[at]
	list, _ := v.([]any)
	switch set := places[at]; r.IntN(8) {
	case 0:
		set(json.Number(numbers[r.IntN(len(numbers)-2)]))
	case 1:
		set(pick[any](r, nil, true, "", []any{}, map[string]any{}))
	case 2:
		set(values[r.IntN(len(values))])
	case 3:
		set(strings.Repeat(pick(r, "a", "\x1b[31m", "\u202e", "/", "\x00", "<script>"), 1+r.IntN(4000)))
	case 4:
		set([]any{v})
	case 5, 6: // many
		for i := 0; len(list) > 0 && i < pick(r, 1, 10, 1000); i++ {
			list = append(list, list[r.IntN(len(list))])
		}
		if list != nil {
			set(list)
		}
	case 7:
		set(fmt.Sprint(v)[:min(20, len(fmt.Sprint(v)))])
	}
	out, err := json.Marshal(top)
	if err != nil || len(out) > 4<<20 {
		return data
	}
	return out
}
