package planner

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/spf13/pflag"

	"strandline/face/api"
	"strandline/face/report"
	"strandline/face/web/engine"
	"strandline/plan/model"
)

// A Mode is a kind of plan that the page has a form for, and its fields: flags.
type Mode struct {
	Name   string // of the page
	Fields []string
	kind   func() Kind
}

// Modes are the modes of the page.
var Modes = []Mode{
	{"serve", strings.Fields(`model quant gpu gpus capacity engine engine-version tp pp ep dp cpu-experts kv-dtype max-model-len
		max-batched-tokens max-num-seqs block-size mem-fraction eager mtp formats solve requests prompt-tokens output-tokens images image-size
		gpu-layers n-cpu-moe flash-attn nodes`), func() Kind { return &Serving{} }},
	{"train", strings.Fields(`model gpu gpus capacity trainer optimizer tp pp interleaved cp shard batch accumulate seq loss-chunks
		checkpointing offload lora lora-targets lora-base compile cpu-experts solve`), func() Kind { return &Training{} }},
	{"rl", strings.Fields(`model quant gpu gpus capacity trainer optimizer train-tp train-pp interleaved cp shard batch accumulate seq
		loss-chunks checkpointing offload lora lora-targets lora-base compile cpu-experts rollout engine-version rollout-tp
		max-model-len mem-fraction eager reference critic prompts group prompt-tokens response-tokens host-link sync-link disk`), func() Kind { return &RL{} }},
}

// A Page answers the form of the page with what the command prints.
type Page struct {
	given string
	load  Models
	mu    sync.Mutex
	read  map[[2]string]*model.Model
}

// NewPage plans the models of the catalog, and the given one, which load reads. What a
// page asks for makes it read nothing else. Without a given model load is not called.
func NewPage(given string, load Models) *Page {
	return &Page{given: given, load: load, read: map[[2]string]*model.Model{}}
}

// Ask answers a question of the page: form is what it has fields for, plan the
// JSON of `strandline plan`: a plan, or the reason that there is none. The latter is
// not an error of the page, which asks while the user types.
func (p *Page) Ask(_ context.Context, name string, q url.Values) engine.Answer {
	var doc any
	var err error
	status := 200
	switch name {
	case "form":
		doc = p.form()
	case "plan":
		if at := slices.IndexFunc(Modes, func(m Mode) bool { return m.Name == q.Get("mode") }); at < 0 {
			status, err = 400, fmt.Errorf("there is no mode %q", q.Get("mode"))
		} else {
			doc, err = p.plan(Modes[at], q)
		}
	default:
		status, err = 404, fmt.Errorf("there is no request %q", name)
	}
	var out bytes.Buffer
	if err == nil {
		err = report.JSON(&out, doc)
	}
	if err != nil {
		out.Reset()
		report.JSON(&out, api.Error{Schema: api.ErrorSchema, Error: strings.TrimSpace(err.Error())}) // into memory: does not fail
	}
	return engine.Answer{Status: status, Type: "application/json; charset=utf-8", Body: out.Bytes(), Lasting: status == 200}
}

// plan is the plan of a mode under the flags that a question gives.
func (p *Page) plan(m Mode, q url.Values) (Document, error) {
	kind := m.kind()
	flags := kind.Flags()
	for name, values := range q {
		if name == "mode" {
			continue
		}
		if !slices.Contains(m.Fields, name) || len(values) != 1 {
			return nil, fmt.Errorf("there is no field %q", name)
		}
		if err := flags.Set(name, values[0]); err != nil {
			return nil, fmt.Errorf("--%s: invalid value %q", name, values[0])
		}
	}
	doc, _, err := kind.Plan(p.find)
	return doc, err
}

func (p *Page) form() api.PlanForm {
	out := api.PlanForm{Given: p.given, Modes: map[string][]api.FormField{}}
	for _, m := range Modes {
		flags := m.kind().Flags()
		for _, name := range m.Fields {
			f := flags.Lookup(name)
			_, help := pflag.UnquoteUsage(f)
			one := api.FormField{Name: name, Help: help, Kind: f.Value.Type(), Default: f.DefValue, Choices: []string{}}
			if choices := flags.Choices[name]; choices != nil {
				one.Choices = choices()
			}
			out.Modes[m.Name] = append(out.Modes[m.Name], one)
		}
	}
	return out
}

// find finds a model that the page may plan.
func (p *Page) find(name, quant string) (m *model.Model, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	key := [2]string{name, quant}
	if m := p.read[key]; m != nil {
		return m, nil
	}
	if p.given != "" && name == p.given {
		m, err = p.load(name, quant)
	} else {
		m, err = model.Find(name, quant)
	}
	const maxKept = 200
	if err == nil {
		if len(p.read) >= maxKept {
			clear(p.read)
		}
		p.read[key] = m
	}
	return m, err
}
