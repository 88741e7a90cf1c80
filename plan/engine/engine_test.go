package engine

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestParseRelease reads names and versions as tables and logs have them.
func TestParseRelease(t *testing.T) {
	for _, c := range []struct{ name, version, want string }{
		{"vllm", "", "vllm"}, {"vLLM 0.8.4", "", "vllm 0.8"}, {"vllm", "0.8.x V0 (2025-04)", "vllm 0.8 V0"}, {"sglang+ktransformers", "0.4.6", "sglang 0.4"},
		{"llama-server", "b5000", "llama.cpp"}, {"ollama", "v0.12.3", "ollama 0.12"}, {"vllm", "0.6.3", "vllm 0.6"},
	} {
		r, ok := ParseRelease(c.name, c.version)
		if !ok || r.String() != c.want {
			t.Errorf("%s %s is %s, want %s", c.name, c.version, r, c.want)
		}
	}
	if r, ok := ParseRelease("tgi", ""); ok {
		t.Errorf("tgi can be planned as %v", r)
	}
}

// TestShares checks the default of each release, and how texts state it.
func TestShares(t *testing.T) {
	for _, c := range []struct {
		version string
		want    float64
	}{{"0.6.3", 0.9}, {"0.20", 0.9}, {"0.21", 0.92}, {"1.0", 0.92}, {"", 0.92}} {
		r, _ := ParseRelease(VLLM, c.version)
		if got := r.Share(); got != c.want {
			t.Errorf("%s takes %g, want %g", r, got, c.want)
		}
	}
	s := Named(VLLM).Share
	if got := s.Words(); got != "the default is 0.92 (0.9 before 0.21)" || s.Lowest() != 0.9 {
		t.Errorf("%s; the lowest is %g", got, s.Lowest())
	}
}

// TestTraits checks what releases do, and that an unknown one does what the newest does.
func TestTraits(t *testing.T) {
	for _, c := range []struct {
		name, version string
		trait         Trait
		want          bool
	}{
		{VLLM, "0.20", CountsGraphs, false}, {VLLM, "0.21", CountsGraphs, true}, {VLLM, "", CountsGraphs, true},
		{SGLang, "", CountsGraphs, false}, {SGLang, "0.3", RoomForImages, false}, {SGLang, "0.5", RoomForImages, true},
	} {
		if r, _ := ParseRelease(c.name, c.version); r.Has(c.trait) != c.want {
			t.Errorf("%s %s: %v", r, c.trait, !c.want)
		}
	}
}

// TestCommands reads commands, and writes the flags that it reads.
func TestCommands(t *testing.T) {
	for command, want := range map[string]string{
		"vllm serve a/b --tp 2": VLLM + " a/b", "python -m vllm.entrypoints.openai.api_server --model a": VLLM + " --model", "/usr/bin/python -m sglang.launch_server --tp 2": SGLang + " --tp",
		"ollama run qwen3": Ollama + " qwen3", "OLLAMA_X=1 ollama serve m": Ollama + " m", "./llama-server -m a": LlamaCPP + " -m", "vllm bench": "", "python train.py": "",
	} {
		e, rest := OfCommand(strings.Fields(command))
		got := ""
		if e != nil {
			got = e.Name + " " + rest[0]
		}
		if got != want {
			t.Errorf("%s is of %q, want %q", command, got, want)
		}
	}
	for i := range engines {
		e := &engines[i]
		for _, f := range e.Flags {
			for _, name := range strings.Fields(f.Names) {
				bare := strings.TrimLeft(name, "-")
				if got := e.SettingOf(bare); !f.Unread && got != f.Setting {
					t.Errorf("%s of %s sets %q and %q", name, e.Name, f.Setting, got)
				}
				if slices.Contains(e.NoMemory, bare) {
					t.Errorf("%s of %s is both planned and left out", name, e.Name)
				}
			}
		}
	}
	got := Named(SGLang).Command(map[Setting]string{Eager: "", TP: "8", DP: "2", Offload: "3"})
	if want := "--tp-size 8,--dp-size 2 --enable-dp-attention,--disable-cuda-graph"; strings.Join(got, ",") != want {
		t.Errorf("%q, want %s", got, want)
	}
	if got := PrintedAs(Length); !slices.Equal(got, []string{"max_model_len", "max_seq_len", "context_length", "context_len"}) {
		t.Errorf("the length is printed as %v", got)
	}
}

// defaultElsewhere matches a line that states a number for an engine's share.
var defaultElsewhere = regexp.MustCompile(`(?i)(gpu.memory.utilization|mem.fraction.static|max.entry.count|free.gpu.memory.fraction)[^|]{0,60}\b0\.\d`)

// TestKnowledgeStandsOnce checks that no other file states the share of an engine.
func TestKnowledgeStandsOnce(t *testing.T) {
	root := filepath.Join("..", "..")
	files := 0
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name := d.Name()
		if d.IsDir() && (name == "testdata" || name == "engine" && strings.HasSuffix(filepath.Dir(path), "plan") || name == "node_modules" || name == ".git") {
			return filepath.SkipDir
		}
		if !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		files++
		for i, line := range strings.Split(string(data), "\n") {
			if defaultElsewhere.MatchString(line) {
				t.Errorf("%s:%d states a share that plan/engine has: %s", path, i+1, strings.TrimSpace(line))
			}
		}
		return nil
	})
	if err != nil || files < 100 {
		t.Fatalf("%d files, %v", files, err)
	}
}

// TestTaskEvents reads of how many tasks Ray's gcs_server keeps events.
func TestTaskEvents(t *testing.T) {
	for _, c := range []struct {
		command, value string
		want           int64 // 0 for none
	}{
		{"/site-packages/ray/core/src/ray/gcs/gcs_server --log_dir=/tmp", "", 100_000},
		{"gcs_server", "5000", 5000},
		{"gcs_server", "many", 100_000},
		{"gcs_server", "-1", -1},
		{"gcs_server", "0", -1},
		{"raylet", "5000", 0},
	} {
		got := int64(0)
		if n := CachesOf(strings.Fields(c.command), func(name string) string {
			return map[string]string{"RAY_task_events_max_num_task_in_gcs": c.value}[name]
		}).Tasks; n != nil {
			got = *n
		}
		if got != c.want {
			t.Errorf("%s, %q: %d, want %d", c.command, c.value, got, c.want)
		}
	}
}

// TestPromptCache reads the bound of llama.cpp's cache of prompts from commands and variables.
func TestPromptCache(t *testing.T) {
	const none = -2
	for _, c := range []struct {
		command, variable string
		mib               int64
	}{
		{"/usr/bin/llama-server -m a", "", 8192},
		{`C:\llama\llama-server.exe -m a`, "", 8192},
		{"llama-server -m a", "64", 64},
		{"llama-server -m a -cram 32", "64", 32},
		{"llama-server --cache-ram=1 --cache-ram 2", "", 2},
		{"llama-server -cram -1", "", -1},
		{"llama-server", "-1", -1},
		{"llama-server -cram 0", "", 0},
		{"llama-server -cram", "", none},
		{"llama-cli -m a", "64", none},
		{"llama-cli -m a -cram 16", "", 16},
		{"vllm serve --cache-ram 3", "", none},
		{"", "", none},
	} {
		got := int64(none)
		if n := CachesOf(strings.Fields(c.command), func(string) string { return c.variable }).Prompts; n != nil {
			if got = *n; got > 0 {
				got >>= 20
			}
		}
		if got != c.mib {
			t.Errorf("%s, %q: %d MiB, want %d", c.command, c.variable, got, c.mib)
		}
	}
}
