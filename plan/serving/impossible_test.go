package serving

import (
	"strings"
	"testing"

	"strandline/internal/test/plantest"
	"strandline/plan"
	"strandline/plan/engine"
	"strandline/plan/model"
)

// TestNothingImpossible plans every model that is built in, in every format, on GPUs of every
// kind: weights are parameters times the bits of the format, the parts are no more than the
// files, and what fits fits.
func TestNothingImpossible(t *testing.T) {
	formats := strings.Fields("bf16 fp8 fp8-block int8 int4 awq gptq nf4 mxfp4 nvfp4 mxfp8 q2_k iq3_xxs iq4_xs q4_k_m ud-q4_k_xl q5_0 q6_k q8_0")
	gpus := plan.KnownGPUs()
	n := 0
	for _, name := range model.Catalog() {
		for _, quant := range formats {
			m := plantest.Model(t, name, quant)
			checkBits(t, m, quant)
			if n++; n%3 != 0 { // each model in a third of the formats
				continue
			}
			g := gpus[7*n%len(gpus)]
			s := Setup{Model: m, GPU: &g, Engine: engine.Release{Name: engine.VLLM}, Parallel: plan.Parallel{TP: []int64{1, 2, 8}[n/3%3], PP: 1 + int64(n/9%2)}, Length: 2048}
			switch {
			case strings.HasPrefix(m.Quant, "gguf"):
				s.Engine.Name, s.Parallel = []string{engine.LlamaCPP, engine.Ollama}[n%2], plan.Parallel{TP: 1, PP: 1}
			case n%4 == 0:
				s.Engine.Name = engine.SGLang
			}
			if f, err := s.Fit(); err == nil {
				checkFit(t, f, quant)
			} else if !strings.Contains(err.Error(), "divide") {
				t.Errorf("%s, %s: %v", name, quant, err)
			}
		}
	}
	m := plantest.Model(t, "Qwen3-8B", "")
	for i := range gpus {
		f, err := Setup{Model: m, GPU: &gpus[i], Engine: engine.Release{Name: engine.VLLM}, Length: 2048}.Fit()
		if err != nil {
			t.Fatal(gpus[i].Name, err)
		}
		checkFit(t, f, gpus[i].Name)
	}
}

// checkBits holds a model's bytes against the format that was asked for.
func checkBits(t *testing.T, m *model.Model, quant string) {
	t.Helper()
	bits := map[string]float64{"bf16": 16, "fp8": 8, "fp8-block": 8, "int8": 8, "int4": 4, "awq": 4, "gptq": 4, "nf4": 4.5, "mxfp4": 4, "nvfp4": 4, "mxfp8": 8,
		"q2_k": 3.16, "iq3_xxs": 3.25, "iq4_xs": 4.46, "q4_k_m": 4.89, "ud-q4_k_xl": 4.97, "q5_0": 5.57, "q6_k": 6.56, "q8_0": 8.5}[quant]
	var named, all, bytes int64
	m.Each(func(_ int, x *model.Tensor) {
		own := 8 * float64(x.Bytes()) / float64(max(x.Params(), 1))
		if x.Role != model.Norm && own < bits-0.01 || x.Format.Bits > 64 {
			t.Errorf("%s in %s: %s has %.3g bits a number", m.Name, quant, x.Name, own)
		}
		if x.Role == model.Tower {
			return
		}
		bytes += x.Bytes()
		if all += x.Params(); x.Format.Bits < bits+0.01 {
			named += x.Params()
		}
	})
	if part := float64(named) / float64(all); part < 0.25 {
		t.Errorf("%s in %s: %.2g of the parameters have the format", m.Name, quant, part)
	}
	if low, high := bits/8*float64(all), 4*float64(all); float64(bytes) < 0.99*low || float64(bytes) > high {
		t.Errorf("%s in %s: %d bytes of %d parameters", m.Name, quant, bytes, all)
	}
}

// checkFit holds a plan's parts against the files and the GPU.
func checkFit(t *testing.T, f *Fit, of string) {
	t.Helper()
	m, g := f.Serving.Model, f.Serving.GPU
	var low, weights int64
	for _, c := range f.Components {
		if c.Size.Low < 0 || c.Size.Low > c.Size.High {
			t.Errorf("%s, %s on %s: %+v", m.Name, of, g.Name, c)
		}
		if c.Name != plan.Slack {
			low += c.Size.Low
		}
	}
	if f.Verdict == plan.Fits && low > g.Total {
		t.Errorf("%s, %s on %s: fits with %d of %d bytes", m.Name, of, g.Name, low, g.Total)
	}
	for _, st := range f.Stages {
		weights += (st.Weights.Allocated + st.offloaded) * max(f.Serving.Parallel.TP, 1)
	}
	file, tied := m.Bytes(), int64(0)
	for i := range m.Predictors {
		file -= m.Predictors[i].Bytes()
	}
	for _, x := range m.TiedHead() {
		tied += x.Bytes()
	}
	if f.Serving.Engine.Local() {
		weights += f.Host[0].Size.High
		if weights > file+tied+file/100 {
			t.Errorf("%s, %s on %s: parts of %d bytes of a file of %d", m.Name, of, g.Name, weights, file)
		}
	}
	if weights < file-file/100 {
		t.Errorf("%s, %s on %s: weights of %d bytes of %d in the files", m.Name, of, g.Name, weights, file)
	}
}
