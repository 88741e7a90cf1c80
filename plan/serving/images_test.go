package serving

import (
	"strings"
	"testing"

	"strandline/internal/test/plantest"
	"strandline/plan"
	"strandline/plan/engine"
	"strandline/plan/model"
)

// TestImageTokens counts tokens as the processors of the families do.
func TestImageTokens(t *testing.T) {
	for _, c := range []struct {
		v               model.Vision
		width, height   int64
		tokens, patches int64
	}{
		{model.Vision{Type: "qwen2_5_vl", Patch: 14, Merge: 2}, 1920, 1080, 69 * 39, 69 * 39 * 4},
		{model.Vision{Type: "qwen2", Patch: 14, Merge: 2}, 20, 20, 4, 16},     // enlarged to the least
		{model.Vision{Type: "qwen2_vl", Patch: 14}, 3584, 3584, 16384, 65536}, // the most
		{model.Vision{Type: "qwen2_vl", Patch: 14}, 7168, 7168, 16384, 65536}, // made smaller
		{model.Vision{Type: "qwen3_vl", Patch: 16, Merge: 2}, 1920, 1080, 2040, 8160},
		{model.Vision{Type: "intern_vit_6b", Patch: 14}, 448, 448, 256, 1024},
		{model.Vision{Type: "internvl_vision", Patch: 14}, 1920, 1080, 9 * 256, 9 * 1024},
		{model.Vision{Type: "llama4_vision_model", Patch: 14}, 336, 336, 144, 576},
		{model.Vision{Type: "llama4_vision_model", Patch: 14}, 1000, 700, 10 * 144, 10 * 576},
		{model.Vision{Type: "gemma3", Patch: 14, Side: 896}, 4000, 10, 256, 4096},
		{model.Vision{Type: "gemma4_vision", Patch: 16}, 4000, 10, 280, 2520},
		{model.Vision{Type: "pixtral", Patch: 16, Side: 1024}, 1024, 1024, 64 * 65, 4096},
		{model.Vision{Type: "pixtral", Patch: 14, Merge: 2, Side: 1540}, 3080, 3080, 55 * 56, 55 * 55 * 4},
		{model.Vision{Type: "clip_vision_model", Patch: 14, Side: 336}, 800, 600, 576, 576},
		{model.Vision{Type: "new", Patch: 16}, 160, 33, 30, 30},
	} {
		c.v.Layers = 24
		s := Setup{Model: &model.Model{Vision: c.v}}
		got, ok := s.Model.Encode(c.width, c.height)
		if !ok || got.Tokens != c.tokens || got.Patches != c.patches || got.Source == "" {
			t.Errorf("%s, %d × %d: %+v, want %d tokens of %d patches", c.v.Type, c.width, c.height, got, c.tokens, c.patches)
		}
	}
}

// TestManyImages holds the encoder against a run in which 1,500 images took 30 GiB
// outside SGLang's fraction.
func TestManyImages(t *testing.T) {
	s := Setup{Model: plantest.Model(t, "Qwen2.5-VL-7B-Instruct", ""), Engine: engine.Release{Name: engine.SGLang}, GPU: plantest.GPU(t, "H200"), Length: 400000,
		Images: Images{Count: 1500, Width: 448, Height: 448}}
	f := fitOf(t, s)
	if i := f.Images; i.Tokens != 1500*256 || i.AtOnce != 1500 || i.Work.Low > 31<<30 || i.Work.High < 30<<30 || i.KV != 1500*256*56<<10 {
		t.Errorf("%+v", i)
	}
	one := s
	one.Images.Count = 1
	if a, b := fitOf(t, one), f; a.Activation() >= b.Activation() {
		t.Errorf("an image takes %d bytes, 1,500 take %d", a.Activation(), b.Activation())
	}
	s.Engine.Name = engine.VLLM
	f = fitOf(t, s)
	if f.Images.AtOnce != 32 || !strings.Contains(strings.Join(f.Flags, " "), `"count": 1500, "width": 448`) { // 8,192 tokens of a pass
		t.Errorf("%d at once, %v", f.Images.AtOnce, f.Flags)
	}
	s.Images.Width = 1 << 40
	if _, err := s.Fit(); err == nil {
		t.Error("an image of any width is planned")
	}
	text := Setup{Model: plantest.Model(t, "Qwen3-8B", ""), Engine: engine.Release{Name: engine.VLLM}, GPU: s.GPU, Images: Images{Count: 1}}
	if _, err := text.Fit(); err == nil || !strings.Contains(err.Error(), "takes no images") {
		t.Errorf("a model without a tower: %v", err)
	}
}

// Activation is the high end of what a forward pass allocates.
func (f *Fit) Activation() int64 { return component(f, "activations").High }

// TestLoad states what the requests that are asked for need.
func TestLoad(t *testing.T) {
	s := Setup{Model: plantest.Model(t, "Qwen3-VL-8B-Instruct", ""), Engine: engine.Release{Name: engine.VLLM}, GPU: plantest.GPU(t, "H100"), Length: 32768,
		Load: Load{Requests: 20, Prompt: 500, Output: 300}}
	plain := fitOf(t, s)
	const token = 144 << 10
	if got := plain.Load.KV; got != 20*800*token {
		t.Errorf("800 tokens each need %d bytes", got)
	}
	s.Images = Images{Count: 10, Width: 1920, Height: 1080}
	with := fitOf(t, s)
	if got := with.Load.KV; got != 20*(800+20400)*token {
		t.Errorf("with images they need %d bytes", got)
	}
	if with.Load.AtOnce[0] >= plain.Load.AtOnce[0] || with.Latency.First[0] <= plain.Latency.First[0] || with.Latency.Whole[0] <= with.Latency.First[0] {
		t.Errorf("%+v %+v, without images %+v", with.Load, with.Latency, plain.Load)
	}
	s.Load.Prompt = 20000
	if f := fitOf(t, s); f.Verdict != plan.TooMuch || !strings.Contains(f.Binding, "the context of 32,768 tokens") {
		t.Errorf("a request that is too long: %s, %s", f.Verdict, f.Binding)
	}
}
