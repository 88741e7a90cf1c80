package planner

import (
	"errors"
	"fmt"
	"strings"

	"strandline/plan/engine"
	"strandline/plan/model"
	"strandline/plan/serving"
)

// localOptions are the flags of plan for llama.cpp and Ollama.
type localOptions struct {
	layers, hostMoE     int64
	prompts             int64
	values, flash       string
	fullWindow, unified bool
}

func (o *localOptions) add(f *Flags) {
	f.Int64Var(&o.layers, "gpu-layers", -1, "layers `N` on the GPUs, with the output layer (default: as many as fit)")
	f.Int64Var(&o.hostMoE, "n-cpu-moe", 0, "llama.cpp: first layers `N` with experts in host memory")
	f.StringVar(&o.values, "kv-dtype-v", "", "llama.cpp: `TYPE` of values (default: --kv-dtype)")
	f.StringVar(&o.flash, "flash-attn", "auto", "flash attention: `on`, off or auto")
	f.BoolVar(&o.fullWindow, "swa-full", false, "llama.cpp: window layers keep every token")
	f.BoolVar(&o.unified, "kv-unified", false, "llama.cpp: requests share one context")
	f.Int64Var(&o.prompts, "cache-ram", engine.DefaultCacheRAM, "llama.cpp: host memory `MIB` for earlier prompts (0: none, -1: no limit)")
	f.Choices["kv-dtype-v"] = kvTypes
	f.offer("flash-attn", "on", "off", "auto")
}

// local are the options for the plan of a model.
func (o *localOptions) local(m *model.Model) (l serving.Local, err error) {
	l = serving.Local{HostMoE: o.hostMoE, FullWindow: o.fullWindow, Unified: o.unified}
	if o.layers >= 0 {
		l.Layers = &o.layers
	}
	if o.prompts != engine.DefaultCacheRAM {
		if o.prompts < -1 || o.prompts > 1<<30 {
			return l, fmt.Errorf("--cache-ram %d: want a size in MiB, 0 or -1", o.prompts)
		}
		n := o.prompts << 20
		l.Prompts = &n
	}
	if o.values != "" {
		var ok bool
		if l.Values, ok = serving.ParseKV(o.values, m); !ok {
			return l, fmt.Errorf("unknown --kv-dtype-v %q", o.values)
		}
	}
	switch strings.ToLower(o.flash) {
	case "on", "1", "true", "enabled":
		l.Flash = serving.On
	case "off", "0", "false", "disabled":
		l.Flash = serving.Off
	case "auto", "-1", "":
	default:
		return l, fmt.Errorf("--flash-attn %q: want on, off or auto", o.flash)
	}
	return l, nil
}

// refuseOthers refuses flags that the engine has no equivalent of.
func (o *localOptions) refuseOthers(e engine.Release, all *Serving) error {
	given := func(list map[string]bool, why string) error {
		for name, is := range list {
			if is {
				return fmt.Errorf("--%s %s", name, why)
			}
		}
		return nil
	}
	if e.Local() {
		return given(map[string]bool{"tp": all.tp > 1, "pp": all.pp > 0 && all.pp != all.GPUs, "ep": all.ep > 1, "dp": all.dp > 1}, "cannot be used with "+e.Name+": it divides the layers among the GPUs")
	}
	return given(map[string]bool{"gpu-layers": o.layers >= 0, "n-cpu-moe": o.hostMoE != 0, "kv-dtype-v": o.values != "", "swa-full": o.fullWindow, "kv-unified": o.unified, "cache-ram": o.prompts != engine.DefaultCacheRAM},
		"is an option of llama.cpp; --engine llama.cpp plans it")
}

// ggufModel is the model as llama.cpp reads it: of one that is not a GGUF file, and
// of which no format is asked for, the mixture that is offered first.
func (o *Serving) ggufModel(find Models, m *model.Model) (*model.Model, error) {
	if o.host > 0 {
		return nil, errors.New("--cpu-experts cannot be used with llama.cpp, which keeps the experts of whole layers in the host's memory (--n-cpu-moe)")
	}
	if o.fraction > 0 {
		return nil, errors.New("--mem-fraction cannot be used with llama.cpp, which takes memory as needed")
	}
	if o.Quant != "" || strings.HasPrefix(m.Quant, "gguf") || m.Quant == "mxfp4" {
		return m, nil
	}
	m, err := find(o.Model, "q4_k_m")
	if err == nil {
		own := *m
		own.Notes = append(own.Notes[:len(own.Notes):len(own.Notes)], "the weights are planned as Q4_K_M, which is usual; the GGUF file as --model, or --quant, gives a better figure")
		m = &own
	}
	return m, err
}
