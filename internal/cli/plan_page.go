package cli

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"strandline/face/api"
	"strandline/face/web/engine"
	"strandline/plan/model"
	"strandline/plan/serving"
)

// pageOptions are the flags that open a plan as a page.
type pageOptions struct {
	on    bool
	serve serveOptions
}

func (o *pageOptions) add(c *cobra.Command) {
	f := c.Flags()
	f.BoolVar(&o.on, "page", false, "open a page with a form that plans as you type, until interrupted")
	f.BoolVar(&o.serve.noOpen, "no-open", false, "with --page: do not open the browser")
	f.StringVar(&o.serve.listen, "listen", "", "with --page: serve on `PORT`, and print how to reach it from elsewhere")
}

// A pageMode is a command that the page has a form for, and its fields: flags. No
// flag but --model, of which [pageModels] takes care, makes the command read a file.
type pageMode struct {
	name   string
	fields []string
}

var pageModes = []pageMode{
	{"serve", strings.Fields(`model quant gpu gpus capacity engine engine-version tp pp ep dp cpu-experts kv-dtype max-model-len
		max-batched-tokens max-num-seqs block-size mem-fraction eager mtp formats solve requests prompt-tokens output-tokens images image-size
		gpu-layers n-cpu-moe flash-attn nodes`)},
	{"train", strings.Fields(`model gpu gpus capacity trainer optimizer tp pp interleaved cp shard batch accumulate seq loss-chunks
		checkpointing offload lora lora-targets lora-base compile cpu-experts solve`)},
	{"rl", strings.Fields(`model quant gpu gpus capacity trainer optimizer train-tp train-pp interleaved cp shard batch accumulate seq
		loss-chunks checkpointing offload lora lora-targets lora-base compile cpu-experts rollout engine-version rollout-tp
		max-model-len mem-fraction eager reference critic prompts group prompt-tokens response-tokens host-link sync-link disk`)},
}

// planPage serves the page, with the flags of a command filled in.
func (g *globals) planPage(c *cobra.Command, o *planOptions) error {
	name := c.Name()
	if name == "plan" {
		name = "serve"
	}
	mode := pageModes[slices.IndexFunc(pageModes, func(m pageMode) bool { return m.name == name })]
	state := url.Values{"mode": {name}}
	var err error
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		switch {
		case !f.Changed:
		case slices.Contains(mode.fields, f.Name):
			state.Set(f.Name, f.Value.String())
		case !slices.Contains([]string{"page", "no-open", "listen"}, f.Name):
			err = cmp.Or(err, fmt.Errorf("--%s cannot be used with --page", f.Name))
		}
	})
	if err == nil && o.model != "" { // what cannot be read is reported before the page is served
		_, err = loadModel(o.model, "")
	}
	if err != nil {
		return err
	}
	return g.serve(c.Context(), o.page.serve, page{asker: newPlanner(o.model), index: "plan.html", state: "#" + state.Encode()})
}

// A planner answers the page with what the commands print. It keeps one tree of
// commands, whose flags are set again for each request.
type planner struct {
	mu      sync.Mutex
	globals *globals
	out     bytes.Buffer
	command *cobra.Command
}

// newPlanner plans the models of the catalog, and the given one.
func newPlanner(given string) *planner {
	p := &planner{}
	p.globals = &globals{env: &Env{Stdout: &p.out, Stderr: &p.out}, json: true, models: &pageModels{given: given, read: map[[2]string]*model.Model{}}}
	p.command = newPlan(p.globals)
	return p
}

// Ask answers a question of the page: form is what it has fields for, plan the
// JSON of `strandline plan`: a plan, or the reason that there is none. The latter is
// not an error of the page, which asks while the user types.
func (p *planner) Ask(_ context.Context, name string, q url.Values) engine.Answer {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out.Reset()
	status := 200
	switch name {
	case "form":
		json.NewEncoder(&p.out).Encode(p.form()) // into memory: does not fail
	case "plan":
		if mode, c := p.mode(q.Get("mode")); c == nil {
			status = 400
			p.globals.fail(fmt.Errorf("there is no mode %q", q.Get("mode")))
		} else if err := p.plan(mode, c, q); err != nil {
			p.globals.fail(err)
		}
	default:
		status = 404
		p.globals.fail(fmt.Errorf("there is no request %q", name))
	}
	return engine.Answer{Status: status, Type: "application/json; charset=utf-8", Body: bytes.Clone(p.out.Bytes()), Lasting: status == 200}
}

// plan runs the command of a mode under the flags that a question gives.
func (p *planner) plan(mode pageMode, c *cobra.Command, q url.Values) error {
	c.LocalFlags().VisitAll(func(f *pflag.Flag) {
		if slices.Contains(mode.fields, f.Name) {
			f.Value.Set(f.DefValue)
			f.Changed = false
		}
	})
	for name, values := range q {
		if name == "mode" {
			continue
		}
		if !slices.Contains(mode.fields, name) || len(values) != 1 {
			return fmt.Errorf("there is no field %q", name)
		}
		if err := c.Flags().Set(name, values[0]); err != nil {
			return fmt.Errorf("--%s: invalid value %q", name, values[0])
		}
	}
	var code exit
	if err := c.RunE(c, nil); !errors.As(err, &code) { // it printed a plan that does not fit
		return err
	}
	return nil
}

// mode returns a mode and its command, nil if no mode has the name.
func (p *planner) mode(name string) (pageMode, *cobra.Command) {
	for _, m := range pageModes {
		if m.name == name {
			if name == "serve" {
				return m, p.command
			}
			c, _, _ := p.command.Find([]string{name})
			return m, c
		}
	}
	return pageMode{}, nil
}

func (p *planner) form() api.PlanForm {
	out := api.PlanForm{Given: p.globals.models.given, Modes: map[string][]api.FormField{}}
	for _, m := range pageModes {
		_, c := p.mode(m.name)
		for _, name := range m.fields {
			f := c.Flags().Lookup(name)
			_, help := pflag.UnquoteUsage(f)
			one := api.FormField{Name: name, Help: help, Kind: f.Value.Type(), Default: f.DefValue, Choices: []string{}}
			if complete, ok := c.GetFlagCompletionFunc(name); ok {
				one.Choices, _ = complete(c, nil, "")
			}
			out.Modes[m.name] = append(out.Modes[m.name], one)
		}
	}
	return out
}

// pageModels are the models that the page may plan: those of the catalog and the
// one that the command named. What a page asks for names no other file.
type pageModels struct {
	given string
	read  map[[2]string]*model.Model
}

func (k *pageModels) find(name, quant string) (m *model.Model, err error) {
	key := [2]string{name, quant}
	if m := k.read[key]; m != nil {
		return m, nil
	}
	if name == k.given {
		m, err = loadModel(name, quant)
	} else {
		m, err = model.Find(name, quant)
	}
	const many = 200
	if err == nil {
		if len(k.read) >= many {
			clear(k.read)
		}
		k.read[key] = m
	}
	return m, err
}

// model finds a model: for the page one that it may have, else any.
func (g *globals) model(name, quant string) (*model.Model, error) {
	if g.models != nil {
		return g.models.find(name, quant)
	}
	return loadModel(name, quant)
}

// quantFormats and kvTypes are those that are offered; others are known, too.
func quantFormats() []string {
	return strings.Fields("bf16 fp8 fp8-block int8 int4 awq gptq nf4 mxfp4 nvfp4")
}

func kvTypes() []string { return strings.Fields("auto bf16 fp16 fp8 int8 nvfp4 q8_0 q4_0") }

func engines() []string {
	return []string{serving.VLLM, serving.SGLang, serving.LlamaCPP, serving.Ollama}
}

func optimizers() []string {
	return strings.Fields("adamw adamw-bf16 adamw-8bit paged-adamw-8bit muon sgd")
}
