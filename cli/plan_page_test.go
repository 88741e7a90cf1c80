package cli

import (
	"context"
	"encoding/json"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"strandline/face/api"
	"strandline/internal/test/live"
	"strandline/run/planner"
)

// TestPageAnswersAreThoseOfTheCommand asks as the page does, one thing after
// another, and checks for what the command line prints.
func TestPageAnswersAreThoseOfTheCommand(t *testing.T) {
	live.Sequential(t)
	own := filepath.Join(t.TempDir(), "config.json")
	if err := os.WriteFile(own, []byte(`{"model_type": "llama", "hidden_size": 1024, "intermediate_size": 4096, "num_hidden_layers": 8,
		"num_attention_heads": 16, "num_key_value_heads": 4, "vocab_size": 32000, "max_position_embeddings": 8192, "torch_dtype": "bfloat16"}`), 0o666); err != nil {
		t.Fatal(err)
	}
	p := planner.NewPage(own, loadModel)
	for _, question := range []string{
		"mode=serve&model=DeepSeek-R1&gpu=H200&gpus=16&formats=true",
		"mode=serve&model=Qwen3-32B&gpu=H100&gpus=2&quant=fp8&kv-dtype=fp8&max-model-len=32768&eager=true",
		"mode=serve&model=Qwen3-32B&gpu=H100&gpus=2", // none of the flags before it are left
		"mode=serve&model=Qwen3-32B&gpu=H100&gpus=2&solve=requests",
		"mode=serve&gpu=L4&model=" + url.QueryEscape(own),
		"mode=serve&model=Llama-3.1-8B&capacity=40GiB&engine=sglang&mem-fraction=0.8",
		"mode=serve&model=Llama-3.3-70B&gpu=L4", // does not fit
		"mode=train&model=Llama-3.1-8B&gpu=H100&gpus=8&batch=2&seq=8192&checkpointing=selective-op",
		"mode=train&model=Qwen2.5-7B&gpu=RTX-4090&lora=16&lora-base=nf4",
		"mode=train&model=Llama-3.1-8B&gpu=H100&gpus=8&solve=batch",
		"mode=rl&model=Qwen2.5-32B&gpu=H200&gpus=8&rollout-tp=4&seq=8192",
		"mode=rl&model=Qwen2.5-32B&gpu=H200&gpus=8&rollout=vllm&quant=fp8&reference=true",
		"mode=rl&model=Qwen2.5-32B&gpu=H200&gpus=8&rollout-tp=4&seq=8192",
	} {
		q, err := url.ParseQuery(question)
		if err != nil {
			t.Fatal(err)
		}
		args := []string{"plan"}
		if mode := q.Get("mode"); mode != "serve" {
			args = append(args, mode)
		}
		for name := range q {
			if name != "mode" {
				args = append(args, "--"+name+"="+q.Get(name))
			}
		}
		stdout, stderr, code := run(append(args, "--json")...)
		if code != exitOK && code != exitProblem {
			t.Fatalf("%v: exit %d, %s", args, code, stderr)
		}
		a := p.Ask(context.Background(), "plan", q)
		if a.Status != 200 || string(a.Body) != stdout {
			t.Errorf("%s: status %d, and not what %v prints:\n%s", question, a.Status, args, a.Body)
		}
	}
}

func TestPageRefuses(t *testing.T) {
	live.Sequential(t)
	p := planner.NewPage("", nil)
	for _, c := range []struct{ name, question, want string }{
		{"session", "", "no request"},
		{"plan", "", "no mode"},
		{"plan", "mode=gpus", "no mode"},
		{"plan", "mode=serve&gpu=H200", "no --model given"},
		{"plan", "mode=serve&model=No-Such&gpu=H200", "No-Such"},
		{"plan", "mode=serve&model=Llama-3.1-8B&gpu=H9", "H9"},
		{"plan", "mode=serve&model=Llama-3.1-8B&gpu=H100&gpus=x", "--gpus"},
		{"plan", "mode=serve&model=Llama-3.1-8B&gpu=H100&gpus=1&gpus=2", "no field"},
		{"plan", "mode=serve&model=Llama-3.1-8B&gpu=H100&tp=-1", "--tp -1"},
		{"plan", "mode=serve&model=Llama-3.1-8B&gpu=H100&max-model-len=99999999999", "99999999999 tokens is beyond any engine"},
		// Nothing that a page asks makes the program read or write a file.
		{"plan", "mode=serve&model=/etc/passwd&gpu=H200", "/etc/passwd"},
		{"plan", "mode=serve&model=plan_page.go&gpu=H200", "plan_page.go"},
		{"plan", "mode=serve&check=/etc/passwd", `no field "check"`},
		{"plan", "mode=serve&against=/etc/passwd", `no field "against"`},
		{"plan", "mode=serve&cpuprofile=x", `no field "cpuprofile"`},
		{"plan", "mode=train&check=x", `no field "check"`},
		{"plan", "mode=rl&phases=x", `no field "phases"`},
		{"plan", "mode=rl&page=true", `no field "page"`},
	} {
		q, err := url.ParseQuery(c.question)
		if err != nil {
			t.Fatal(err)
		}
		a := p.Ask(context.Background(), c.name, q)
		var reply api.Error
		if err := json.Unmarshal(a.Body, &reply); err != nil || reply.Schema != "strandline.error/1" || !strings.Contains(reply.Error, c.want) {
			t.Errorf("%s?%s: status %d, %s", c.name, c.question, a.Status, a.Body)
		}
	}
}

// TestPageForm checks for a field for each flag, with its choices.
func TestPageForm(t *testing.T) {
	live.Sequential(t)
	a := planner.NewPage("model.gguf", nil).Ask(context.Background(), "form", nil)
	var f api.PlanForm
	if err := json.Unmarshal(a.Body, &f); err != nil || f.Given != "model.gguf" {
		t.Fatalf("%v: %s", err, a.Body)
	}
	for _, m := range planner.Modes {
		if len(f.Modes[m.Name]) != len(m.Fields) {
			t.Errorf("%s: %d fields, want %d", m.Name, len(f.Modes[m.Name]), len(m.Fields))
		}
	}
	choices := map[string]int{}
	for _, one := range f.Modes["serve"] {
		choices[one.Name] = len(one.Choices)
	}
	for name, least := range map[string]int{"model": 50, "gpu": 20, "engine": 2, "quant": 5, "kv-dtype": 3, "solve": 3} {
		if choices[name] < least {
			t.Errorf("%s: %d choices", name, choices[name])
		}
	}
}

// TestPageFieldsAreFlags checks that the page's form has a field for each flag that the page may
// set, but for those that other parts of the page set.
func TestPageFieldsAreFlags(t *testing.T) {
	live.Sequential(t)
	source, err := os.ReadFile("../ui/src/plan/form.ts")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(source), "export const groups")
	table, _, ok := strings.Cut(table, "\n};\n")
	if !ok {
		t.Fatal("form.ts has no table of groups")
	}
	for _, shared := range regexp.MustCompile(`(?m)^const (\w+): Group = (.*);$`).FindAllStringSubmatch(string(source), -1) {
		table = regexp.MustCompile(`(?m)^    `+shared[1]+`,$`).ReplaceAllString(table, shared[2])
	}
	elsewhere := []string{"formats", "solve"} // views of the page
	for _, mode := range planner.Modes {
		_, form, ok := strings.Cut(table, "\n  "+mode.Name+": [")
		form, _, _ = strings.Cut(form, "\n  ],")
		if !ok {
			t.Errorf("form.ts has no form for %s", mode.Name)
		}
		var got []string
		for _, field := range regexp.MustCompile(`\["([a-z-]+)", "[^"]+"\]`).FindAllStringSubmatch(form, -1) {
			got = append(got, field[1])
		}
		want := slices.DeleteFunc(slices.Clone(mode.Fields), func(f string) bool { return slices.Contains(elsewhere, f) })
		slices.Sort(got)
		slices.Sort(want)
		if !slices.Equal(got, want) {
			t.Errorf("%s: the form has fields for\n%q\nand the page may set\n%q", mode.Name, got, want)
		}
	}
}
