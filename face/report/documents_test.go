package report_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strandline/face/api"
	"strandline/face/report"
	"strandline/host/store/recording"
	"strandline/plan/model"
	"strandline/run/planner"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// a document is rendered as text, and some as Markdown too.
type document interface {
	Text(io.Writer, report.Style)
}

// read fills a document from testdata.
func read(t *testing.T, name string, doc any) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name+".json"))
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, doc); err != nil {
		t.Fatal(err)
	}
}

// same compares what a document prints, short and long, with its golden file.
func same(t *testing.T, name string, doc document) {
	t.Helper()
	var out bytes.Buffer
	doc.Text(&out, report.Style{Width: 100})
	out.WriteString("\n-- with -v\n")
	doc.Text(&out, report.Style{Width: 100, Verbose: true})
	if m, ok := doc.(interface{ Markdown(io.Writer) }); ok {
		out.WriteString("\n-- Markdown\n")
		m.Markdown(&out)
	}
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, out.Bytes(), 0o666); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if got := out.String(); got != string(want) {
		t.Errorf("%s differs; if that is meant, run go test ./face/report -update. Got:\n%s\nwant:\n%s", file, got, want)
	}
}

// TestRuns renders what was found in programs that ran: check.json, soak.json and
// handovers.json are documents of real ones.
func TestRuns(t *testing.T) {
	var check report.LeakCheck
	read(t, "check", &check)
	same(t, "check", &check)

	var soak report.Soak
	read(t, "soak", &soak)
	same(t, "soak", &soak)

	var watch report.Watch
	read(t, "watch", &watch)
	same(t, "watch", &watch)

	var handOvers report.HandOvers
	read(t, "handovers", &handOvers)
	same(t, "handovers", &handOvers)
}

// TestTrace renders a recording.
func TestTrace(t *testing.T) {
	f, err := os.Open("../../examples/munmap-leak/server.trace")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	run, err := recording.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "trace", &report.Trace{Document: *run.Document})
}

// TestPlans renders each document of `strandline plan`.
func TestPlans(t *testing.T) {
	for name, c := range map[string]struct {
		kind  planner.Kind
		flags string
	}{
		"plan-serve":    {&planner.Serving{}, "--model Meta-Llama-3.1-8B --gpu H100 --requests 64 --prompt-tokens 2000 --output-tokens 500"},
		"plan-formats":  {&planner.Serving{}, "--model Qwen2.5-72B --gpu H100 --gpus 2 --formats"},
		"plan-local":    {&planner.Serving{}, "--model Meta-Llama-3.1-70B --capacity 24GiB --engine llama.cpp --max-model-len 8192"},
		"plan-textbook": {&planner.Serving{}, "--model Qwen2.5-72B --gpu H200 --gpus 4 --method textbook"},
		"plan-solve":    {&planner.Serving{}, "--model Meta-Llama-3.1-70B --gpu H100 --solve gpus"},
		"plan-train":    {&planner.Training{}, "--model Meta-Llama-3.1-8B --gpu H100 --gpus 8 --seq 8192"},
		"plan-over":     {&planner.Training{}, "--model Meta-Llama-3.1-70B --gpu A100-80GB --gpus 4"},
		"plan-rl":       {&planner.RL{}, "--model Qwen2.5-7B --gpu H100 --gpus 8 --rollout-tp 2 --reference --prompts 128 --group 8"},
	} {
		t.Run(name, func(t *testing.T) {
			if err := c.kind.Flags().Parse(strings.Fields(c.flags)); err != nil {
				t.Fatal(err)
			}
			doc, _, err := c.kind.Plan(model.Find)
			if err != nil {
				t.Fatal(err)
			}
			same(t, name, doc)
		})
	}
}

// TestTables renders the lists of what can be planned.
func TestTables(t *testing.T) {
	models, err := api.NewModelTable()
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		doc  document
		want string // a name that is not the first
	}{{report.GPUTable{GPUTable: api.NewGPUTable()}, "H200"}, {report.ModelTable{ModelTable: models}, "DeepSeek-R1"}} {
		var out bytes.Buffer
		c.doc.Text(&out, report.Style{Verbose: true})
		header, rest, _ := strings.Cut(out.String(), "\n")
		width := len([]rune(header))
		if width == 0 || !strings.Contains(rest, c.want) {
			t.Errorf("%T: header %q, and no %s in\n%s", c.doc, header, c.want, rest)
		}
	}
}
