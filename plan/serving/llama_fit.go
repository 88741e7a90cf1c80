package serving

import (
	"fmt"

	"strandline/plan"
	"strandline/plan/engine"
	"strandline/plan/model"
	"strandline/units"
	"strings"
)

// fitLocal computes the layout of a set-up of llama.cpp or Ollama.
func (s Setup) fitLocal() (*Fit, error) {
	asked := s.Length
	s = s.localNormal()
	var notes []string
	if s.Engine.Name == engine.Ollama && !s.flash() && (s.KV.ggml || s.Local.Values.ggml) {
		notes = append(notes, "Ollama takes OLLAMA_KV_CACHE_TYPE with flash attention only, which is off for this model. The plan assumes OLLAMA_FLASH_ATTENTION=1")
		s.Local.Flash = On
	}
	if err := s.possibleLocal(); err != nil {
		return nil, err
	}
	if asked == 0 && s.Engine.Name == engine.LlamaCPP && s.Local.Layers == nil {
		if own := s.ownContext(); own < s.Length {
			notes = append(notes, fmt.Sprintf("llama.cpp shortens the context of %s tokens until it fits unless one is given (-c)", units.Count(s.Length)))
			s.Length = own
		}
	}
	l := s.layout()
	f := &Fit{Serving: s, Fraction: 1, Offload: &Offload{Layers: l.onGPU, Of: int64(len(s.Model.Layers)) + 1, ExpertLayers: l.hostMoE}}
	if _, err := s.images(kvCell{}); err != nil {
		return nil, err
	}
	f.place(&l)
	f.capacityLocal(&l)
	f.judgeLocal(&l)
	f.judgeFormat()
	f.Host = []plan.Component{
		{Name: plan.Weights, Size: plan.Exactly(l.host.weights), Source: s.hostWeights(&l)},
		{Name: plan.KVCache, Size: plan.Exactly(l.host.kv), Source: "of the layers that stay there"},
		{Name: plan.Buffers, Size: l.host.buffer, Source: "inputs, masks, logits, and the results of layers there"},
	}
	f.Host = append(f.Host, s.prompts()...)
	f.Flags = s.localFlags(&l)
	f.Notes = append(append(notes, s.Model.Notes...), s.localNotes(&l)...)
	f.Latency = s.latency()
	return f, nil
}

// prompts is llama-server's cache of the states of earlier prompts. It begins empty.
func (s Setup) prompts() []plan.Component {
	size := int64(defaultPrompts)
	if s.Local.Prompts != nil {
		size = *s.Local.Prompts
	}
	if s.Engine.Name != engine.LlamaCPP || size <= 0 {
		return nil
	}
	return []plan.Component{{Name: "prompt cache", Size: plan.Range{High: size}, Source: "earlier prompts, which llama-server keeps up to --cache-ram (8192 MiB by default)"}}
}

func (s Setup) hostWeights(l *layout) string {
	switch {
	case l.onGPU == 0:
		return "all of them"
	case int(l.onGPU) <= len(s.Model.Layers):
		return fmt.Sprintf("the embedding and %d layers", len(l.host.layers))
	case l.hostMoE > 0:
		return fmt.Sprintf("the embedding and the experts of %d layers", l.hostMoE)
	}
	return "the embedding"
}

// place fills in the GPU that has the least free memory.
func (f *Fit) place(l *layout) {
	used := func(d *holding) int64 { return d.weights + d.kv + d.buffer.Middle() }
	for i := range l.gpus {
		d := &l.gpus[i]
		if used(d) > used(&l.gpus[f.Stage]) {
			f.Stage = i
		}
		st := Stage{Layers: int64(len(d.layers)), Weights: placed{Allocated: d.weights, Reserved: d.weights}}
		if len(d.layers) > 0 {
			st.first = int64(d.layers[0])
		}
		f.Stages = append(f.Stages, st)
	}
	d, s := &l.gpus[f.Stage], f.Serving
	rest := s.GPU.Total - used(d) - localOutside.Middle()
	f.KV = plan.Exactly(d.kv)
	flash := "with flash attention"
	if !s.flash() {
		flash = "without flash attention"
	}
	f.Components = []plan.Component{
		{Name: plan.Weights, Size: plan.Exactly(d.weights), Source: "the file's tensors that go to this GPU"},
		{Name: plan.KVCache, Size: f.KV, Source: "allocated up front for the whole context"},
		{Name: plan.Activations, Size: d.buffer, Source: fmt.Sprintf("the compute buffer of a pass of %d tokens, %s; the high end makes the logits of all of them", s.Step, flash)},
		{Name: plan.NonTorch, Size: localOutside, Source: localOutsideSource},
		{Name: plan.Slack, Size: plan.Exactly(max(rest, 0)), Source: "the rest of the GPU"},
	}
}

// capacityLocal fills in what the cache of that GPU keeps, and for how many.
func (f *Fit) capacityLocal(l *layout) {
	s := f.Serving
	var k kvCell
	for _, i := range l.gpus[f.Stage].layers {
		k = k.plus(s.localCell(&s.Model.Layers[i].Cache), 1)
	}
	f.PerToken, f.InWindow, f.Window, f.State = k.full, k.window, k.size, plan.Whole(k.state)
	tokens, requests := plan.Whole(float64(s.Length)*float64(s.Requests)), float64(s.Requests)
	if s.Local.Unified {
		tokens, requests = s.Length, 1
	}
	f.Tokens, f.Requests = plan.Exactly(tokens), [2]float64{requests, requests}
	f.Need = f.KV.High / int64(requests)
	f.Images, _ = s.images(k)
	f.load(k)
	w := s.layerSizes()
	longest := func(high bool) int64 {
		t := s
		const maxTokens = 1 << 24 // tokens
		return pad * plan.Largest(maxTokens/pad, func(n int64) bool {
			t.Length = n * pad
			l := t.split(&w, l.onGPU, l.hostMoE)
			if high {
				return t.holds(&l, 0)
			}
			return t.mayHold(&l)
		})
	}
	f.Longest = plan.Range{Low: longest(true), High: longest(false)}
}

// mayHold reports whether the GPUs hold a layout at the low ends.
func (s Setup) mayHold(l *layout) bool {
	for i := range l.gpus {
		if d := &l.gpus[i]; d.weights+d.kv+d.buffer.Low+localOutside.Low > s.GPU.Total {
			return false
		}
	}
	return true
}

func (f *Fit) judgeLocal(l *layout) {
	s := f.Serving
	d := &l.gpus[f.Stage]
	switch {
	case s.holds(l, 0):
		f.Verdict, f.Binding = plan.Fits, "the KV cache"
		return
	case s.mayHold(l):
		f.Verdict, f.Binding = plan.Tight, "the compute buffer"
	case d.weights+localOutside.Low > s.GPU.Total:
		f.Verdict, f.Binding = plan.TooMuch, "the weights"
	default:
		f.Verdict, f.Binding = plan.TooMuch, "the KV cache of the whole context"
	}
	s.Local.Layers, s.Local.HostMoE = nil, 0
	if best := s.layout(); best.onGPU > 0 {
		f.Binding += "; what fits is " + s.placeFlags(&best)
	}
}

// placeFlags are the options for what goes to the GPUs.
func (s Setup) placeFlags(l *layout) string {
	if s.Engine.Name == engine.Ollama {
		return fmt.Sprintf("num_gpu %d", l.onGPU)
	}
	return strings.Join(s.Engine.Engine().Command(s.placed(l)), " ")
}

// placed are the settings of llama.cpp for what goes to the GPUs.
func (s Setup) placed(l *layout) map[engine.Setting]string {
	const all = 99
	n := int64(all)
	if l.onGPU <= int64(len(s.Model.Layers)) {
		n = l.onGPU
	}
	values := map[engine.Setting]string{engine.Layers: fmt.Sprint(n)}
	if l.hostMoE > 0 {
		values[engine.HostMoE] = fmt.Sprint(l.hostMoE)
	}
	return values
}

// localNotes returns what to know beside the figures.
func (s Setup) localNotes(l *layout) (out []string) {
	add := func(format string, args ...any) { out = append(out, fmt.Sprintf(format, args...)) }
	if s.Model.Unsure != "" {
		out = append(out, s.Model.Unsure)
	}
	if n := len(l.host.layers); n > 0 {
		add("%d of %d layers stay in the host's memory: every token waits for them", n, len(s.Model.Layers))
	} else if l.hostMoE > 0 {
		add("the experts of %d layers stay in the host's memory: every token waits for those it goes through", l.hostMoE)
	}
	if s.Engine.Name == engine.Ollama && !s.flash() && s.Local.Flash == Auto {
		add("Ollama does not use flash attention by itself for this family; OLLAMA_FLASH_ATTENTION=1 makes the compute buffer smaller")
	}
	if n := s.Local.Prompts; n != nil && *n < 0 && s.Engine.Name == engine.LlamaCPP {
		add("--cache-ram %d keeps all earlier prompts in host memory, without a limit", *n>>20)
	}
	if s.Local.Unified && s.Requests > 1 {
		add("%d requests share the context; -np gives each its own", s.Requests)
	}
	if int64(len(l.gpus)) < s.Parallel.PP {
		add("Ollama takes one of the %d GPUs where that is enough; OLLAMA_SCHED_SPREAD=1 takes all", s.Parallel.PP)
	}
	if s.hasKind(model.Window) && !s.Local.FullWindow {
		add("layers with a window keep the window and one pass; --swa-full keeps every token, for the cache of prompts")
	}
	if len(s.Model.Towers) > 0 {
		add("the image encoder (mmproj) is counted on the first GPU, without its activations")
	}
	if s.Model.Quant == "" {
		add("the weights are planned in 16 bits; give the GGUF file itself, or --quant q4_k_m, for a closer plan")
	}
	return out
}

// localFlags returns what to paste: options of llama-server, or Ollama's environment, in which
// num_gpu is an option of a request or a Modelfile.
func (s Setup) localFlags(l *layout) []string {
	values := s.placed(l)
	add := func(when bool, setting engine.Setting, value any) {
		if when {
			values[setting] = fmt.Sprint(value)
		}
	}
	context, on, off := s.Length, "on", "off"
	if s.Engine.Name == engine.Ollama {
		on, off = "1", "0"
	}
	if !s.Local.Unified {
		context *= s.Requests
	}
	add(true, engine.Context, context) // llama.cpp's is of all requests, Ollama's of one
	add(true, engine.Length, s.Length)
	add(true, engine.Requests, s.Requests)
	add(s.Local.Unified, engine.Unified, "")
	add(s.Step != 512, engine.Step, s.Step)
	add(s.KV.name != "auto", engine.KVType, s.KV.name)
	add(s.Local.Values.name != "auto", engine.ValType, s.Local.Values.name)
	add(s.Local.Flash == On, engine.Flash, on)
	add(s.Local.Flash == Off, engine.Flash, off)
	add(s.Local.FullWindow, engine.AllKeys, "")
	if n := s.Local.Prompts; n != nil {
		add(true, engine.CacheRAM, max(*n>>20, -1))
	}
	return s.Engine.Engine().Command(values)
}
