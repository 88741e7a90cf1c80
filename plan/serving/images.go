package serving

import (
	"fmt"
	"strings"

	"strandline/plan"
	"strandline/plan/engine"
	"strandline/plan/model"
)

// Images are what a request brings beside its text.
type Images struct {
	Count         int64
	Width, Height int64 // pixels; 0 is 1,024
}

// ImageLoad is what the images of a request take.
type ImageLoad struct {
	Images
	Each   model.Encoded
	Tokens int64      // of all images of a request
	KV     int64      // bytes of them, on the GPU that has the least free memory
	AtOnce int64      // images that the encoder works on at once
	Work   plan.Range // bytes that it takes for them
}

func (i Images) normal() Images {
	const usual = 1024
	if i.Width == 0 {
		i.Width = usual
	}
	if i.Height == 0 {
		i.Height = usual
	}
	return i
}

// perPatch returns what the encoder has of a patch at one time, in bytes: the pixels, the
// residual stream, and the widest of attention and the feed-forward part; at most all of
// them, with the pixels in 32 bits.
func (s Setup) perPatch() plan.Span {
	var width, inner, heads, matrices int64
	for i := range s.Model.Towers {
		t := &s.Model.Towers[i]
		if !strings.HasPrefix(t.Name, "vision") {
			continue
		}
		switch {
		case strings.HasSuffix(t.Name, "mlp.up"):
			inner, width, matrices = t.Out, t.In, matrices+2
		case strings.HasSuffix(t.Name, "mlp.gate"):
			matrices++
		case strings.HasSuffix(t.Name, "attn.qkv"):
			heads = t.Out
		}
	}
	if width == 0 {
		return plan.Span{}
	}
	const pixels = 1176 // 3 colors, 2 frames, 14 × 14
	return plan.Between(float64(2*(2*width+max((matrices-1)*inner, heads+width))+2*pixels), float64(2*(3*inner+heads+5*width)+4*pixels))
}

// encodedAtOnce returns how many images of a request the encoder works on at once: SGLang
// all of them; vLLM as many as the tokens of a pass allow, and one at least.
func (s Setup) encodedAtOnce(each model.Encoded) int64 {
	n := max(s.Images.Count, 1)
	if s.Engine.Name == engine.VLLM {
		n = min(n, max(s.step()/max(each.Tokens, 1), 1))
	}
	if s.Engine.Local() {
		n = 1
	}
	return n
}

// images returns what the images of a request take, nil where none are asked for.
func (s Setup) images(k kvCell) (*ImageLoad, error) {
	if s.Images.Count == 0 {
		return nil, nil
	}
	i := s.Images.normal()
	each, ok := s.Model.Encode(i.Width, i.Height)
	if !ok {
		return nil, fmt.Errorf("--images %d: %s takes no images, or its config has no tower for them", i.Count, s.Model.Name)
	}
	load := &ImageLoad{Images: i, Each: each, Tokens: i.Count * each.Tokens, AtOnce: s.encodedAtOnce(each)}
	load.KV = plan.Whole(k.full*float64(load.Tokens) + k.window*float64(min(load.Tokens, max(k.size, 1))))
	load.Work = s.perPatch().Times(float64(load.AtOnce * each.Patches)).Bytes()
	return load, nil
}

// imageNotes returns what the engine does with images.
func (s Setup) imageNotes(i *ImageLoad) (out []string) {
	if i == nil {
		return nil
	}
	switch s.Engine.Name {
	case engine.SGLang:
		out = append(out, "SGLang encodes all images of a request at once, in memory outside its fraction. Newer releases take SGLANG_VLM_MAX_IMAGES_PER_VIT and SGLANG_VLM_MAX_PATCHES_PER_VIT to do fewer at a time")
	case engine.VLLM:
		out = append(out, "width and height in --limit-mm-per-prompt bound vLLM's profile. Without them, and before 0.11, it profiles the processor's largest image (max_pixels in --mm-processor-kwargs)")
	}
	return out
}
