package serving

import (
	"strconv"
	"strings"

	"strandline/plan"
	"strandline/plan/engine"
)

// fromLlama takes from a log of llama.cpp or Ollama what it states of the set-up, where
// the set-up given does not state it. The context in the log is for all requests.
func (s Setup) fromLlama(log *engine.Log) Setup {
	number := func(name string) int64 {
		n, err := strconv.ParseInt(log.Setup[name], 10, 64)
		if err != nil || n < 0 {
			return 0
		}
		return n
	}
	s.Requests = max(s.Requests, 1)
	s.Local.Unified = s.Local.Unified || log.Setup["unified"] == "true"
	if context := number("max_len"); s.Length == 0 && context > 0 {
		if s.Length = context; !s.Local.Unified {
			s.Length = max(context/s.Requests, 1)
		}
	}
	if s.Local.Layers == nil {
		n := int64(len(s.Model.Layers)) + 1
		if log.Setup["gpu_layers"] != "" {
			n = number("gpu_layers")
		}
		s.Local.Layers = &n
	}
	if gpus := int64(len(strings.Fields(log.Setup["gpus"]))); s.Parallel.PP <= 1 {
		s.Parallel.PP = max(gpus, 1)
	}
	if s.Local.Values.bytes == 0 && log.Setup["kv_dtype_v"] != "" {
		s.Local.Values, _ = ParseKV(strings.ToLower(log.Setup["kv_dtype_v"]), s.Model)
	}
	if s.Local.Flash == Auto {
		switch strings.ToLower(log.Setup["flash"]) {
		case "1", "enabled", "on", "true":
			s.Local.Flash = On
		case "0", "disabled", "off", "false":
			s.Local.Flash = Off
		}
	}
	return s
}

// checkLlama compares the figures of such a log with the plan: weights and KV cache of
// all devices and the host, and the largest compute buffer of a GPU.
func (s Setup) checkLlama(log *engine.Log) ([]plan.Checked, error) {
	context := s.Length > 0
	s = s.localNormal()
	if err := s.possibleLocal(); err != nil {
		return nil, err
	}
	w := s.layerSizes()
	l := s.split(&w, *s.Local.Layers, s.Local.HostMoE)
	full := s
	full.Local.FullWindow = true
	whole := full.split(&w, *s.Local.Layers, s.Local.HostMoE)
	weights, kv := float64(l.host.weights), plan.Range{Low: l.host.kv, High: whole.host.kv}
	buffer := l.gpus[0].buffer
	for i := range l.gpus {
		weights += float64(l.gpus[i].weights)
		kv = kv.Plus(plan.Range{Low: l.gpus[i].kv, High: whole.gpus[i].kv})
		if b := l.gpus[i].buffer; b.High > buffer.High {
			buffer = b
		}
	}
	tolerance := 0.01 // of a file's own tensors
	if s.Model.Quant != "gguf" {
		tolerance = 0.08 // mixtures differ by tensor
	}
	var out []plan.Checked
	if n, ok := log.Largest(engine.Weights); ok {
		out = append(out, stated(plan.Weights, &plan.Range{Low: plan.Whole((1 - tolerance) * weights), High: plan.Whole((1 + tolerance) * weights)}, n))
	}
	if n, ok := log.Smallest(engine.KV); ok {
		planned := &kv
		if !context {
			planned = nil
		}
		out = append(out, stated(plan.KVCache, planned, n))
	}
	if n, ok := log.Largest(engine.Activation); ok {
		out = append(out, stated(plan.Activations, &buffer, n))
	}
	return s.explained(out)
}

// causeLlama returns what usually makes a component of llama.cpp differ that way.
func (s Setup) causeLlama(c *plan.Checked) string {
	more := c.Off > 0
	switch c.Component {
	case plan.Weights:
		if more {
			return "the file is less quantized than planned, or an image encoder or a draft model is loaded beside it. Give the file itself as --model for a closer plan"
		}
		return "the file is quantized further than planned, or a part of the log is missing. Give the file itself as --model for a closer plan"
	case plan.KVCache:
		if more {
			return "a longer context, more requests or another type than planned, or a build with MLA's values. Give --max-model-len, --max-num-seqs, --kv-dtype"
		}
		return "a shorter context or another type than planned: give --max-model-len, --kv-dtype"
	}
	if more {
		return "a longer pass (-ub), no flash attention, or tensors of the host that are copied"
	}
	return "a shorter pass (-ub) than planned"
}
