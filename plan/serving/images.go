package serving

import (
	"fmt"
	"math"
	"strings"

	"strandline/plan"
	"strandline/plan/engine"
)

// Images are what a request brings beside its text.
type Images struct {
	Count         int64
	Width, Height int64 // pixels; 0 is 1,024
}

// Encoded is what an image becomes.
type Encoded struct {
	Tokens, Patches int64
	Source          string // what the figures are based on
}

// ImageLoad is what the images of a request take.
type ImageLoad struct {
	Images
	Each   Encoded
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

// sized is a processor that keeps an image's size, in multiples of what a token sees,
// between bounds in pixels. Sources: transformers, models/qwen2_vl/
// image_processing_qwen2_vl.py, smart_resize, with the bounds of the published
// preprocessor_config.json.
type sized struct {
	types     string
	low, high float64
}

var sizedProcessors = []sized{
	{"qwen3_vl qwen3_5 qwen3_6 qwen3_omni", 256 * 256, 4096 * 4096},
	{"qwen2", 56 * 56, 3584 * 3584},
	{"glm4v", 112 * 112, 9633792},
	{"kimi moonvit", 28 * 28, 16384 * 14 * 14},
}

// tiled is a processor that cuts an image into tiles, of which the tower takes one at a
// time, and adds one of the whole.
type tiled struct {
	types        string
	side, tokens int64
	most         int64
	choose       func(w, h, side, most int64) int64
}

// Sources: InternVL, model cards, dynamic_preprocess; transformers, models/llama4/
// image_processing_llama4_fast.py, get_best_fit.
var tiledProcessors = []tiled{
	{"intern", 448, 256, 12, nearestShape},
	{"llama4", 336, 144, 16, bestCanvas},
}

func ofType(types, kind string) bool {
	for _, begin := range strings.Fields(types) {
		if strings.HasPrefix(kind, begin) {
			return true
		}
	}
	return false
}

// encode returns what an image of some pixels becomes; false if the model takes none.
func (s Setup) encode(width, height int64) (Encoded, bool) {
	v := s.Model.Vision
	if v.Layers == 0 && len(s.Model.Towers) == 0 {
		return Encoded{}, false
	}
	patch, merge := max(v.Patch, 1), max(v.Merge, 1)
	if v.Patch == 0 {
		patch = 14
	}
	for _, t := range tiledProcessors {
		if ofType(t.types, v.Type) {
			tiles := t.choose(width, height, t.side, t.most)
			if tiles > 1 {
				tiles++ // the whole image
			}
			each := t.side / patch * (t.side / patch)
			return Encoded{tiles * t.tokens, tiles * each, fmt.Sprintf("%d tiles of %d pixels, %d tokens each", tiles, t.side, t.tokens)}, true
		}
	}
	for _, p := range sizedProcessors {
		if ofType(p.types, v.Type) {
			if v.Merge == 0 {
				merge = 2
			}
			factor := patch * merge
			w, h := p.resized(width, height, factor)
			n := (w / factor) * (h / factor)
			return Encoded{n, n * merge * merge, fmt.Sprintf("resized to %d × %d; a token is %d × %d pixels", w, h, factor, factor)}, true
		}
	}
	switch {
	case v.Tokens > 0 || strings.HasPrefix(v.Type, "gemma3") || strings.HasPrefix(v.Type, "siglip") && strings.HasPrefix(s.Model.Type, "gemma3"):
		tokens, side := v.Tokens, v.Side
		if tokens == 0 {
			tokens = 256
		}
		patches := tokens * 9 // pooled by 3 × 3
		if side > 0 {
			patches = side / patch * (side / patch)
		}
		return Encoded{tokens, patches, "the same for an image of any size"}, true
	case strings.HasPrefix(v.Type, "gemma4"):
		const tokens, pooled = 280, 9
		return Encoded{tokens, tokens * pooled, "280 tokens at most, the processor's default"}, true
	case strings.HasPrefix(v.Type, "pixtral"), strings.Contains(v.Type, "mistral"):
		return pixtral(width, height, patch*merge, max(v.Side, 1024), merge), true
	case v.Side > 0:
		n := v.Side / patch * (v.Side / patch)
		return Encoded{n / (merge * merge), n, fmt.Sprintf("one tile of %d × %d; a processor that cuts images into tiles takes more", v.Side, v.Side)}, true
	}
	factor := patch * merge
	n := max(ceil(width, factor)*ceil(height, factor), 1)
	return Encoded{n, n * merge * merge, fmt.Sprintf("a token for %d × %d pixels; the processor of this family is not known", factor, factor)}, true
}

// resized is the size to which an image is brought.
func (p sized) resized(width, height, factor int64) (w, h int64) {
	f, x, y := float64(factor), float64(width), float64(height)
	to := func(v float64, round func(float64) float64) float64 { return max(round(v/f)*f, f) }
	a, b := to(x, math.RoundToEven), to(y, math.RoundToEven)
	switch {
	case a*b > p.high:
		beta := math.Sqrt(x * y / p.high)
		a, b = to(x/beta, math.Floor), to(y/beta, math.Floor)
	case a*b < p.low:
		beta := math.Sqrt(p.low / (x * y))
		a, b = to(x*beta, math.Ceil), to(y*beta, math.Ceil)
	}
	return int64(a), int64(b)
}

// pixtral is an image whose longer side is bounded, with a token at the end of each
// row. Source: transformers, models/pixtral/processing_pixtral.py.
func pixtral(width, height, factor, side, merge int64) Encoded {
	w, h := float64(width), float64(height)
	if ratio := max(w, h) / float64(side); ratio > 1 {
		w, h = math.Floor(w/ratio), math.Floor(h/ratio)
	}
	columns, rows := ceil(max(int64(w), 1), factor), ceil(max(int64(h), 1), factor)
	return Encoded{rows * (columns + 1), rows * columns * merge * merge, fmt.Sprintf("%d × %d tokens of %d × %d pixels, and one for each row", columns, rows, factor, factor)}
}

// nearestShape returns how many tiles InternVL cuts an image into: those of the shape
// nearest to the image's, the more of two equal ones if the image is large enough.
func nearestShape(width, height, side, most int64) int64 {
	best, diff := int64(1), math.Inf(1)
	shape := float64(width) / float64(height)
	for n := int64(1); n <= most; n++ {
		for columns := int64(1); columns <= n; columns++ {
			if n%columns != 0 {
				continue
			}
			d := math.Abs(shape - float64(columns)/float64(n/columns))
			if d < diff || d == diff && float64(width*height) > 0.5*float64(side*side*n) {
				best, diff = n, min(d, diff)
			}
		}
	}
	return best
}

// bestCanvas returns how many tiles Llama 4 cuts an image into: the canvas that enlarges the
// image least, or if none is large enough shrinks it least; the smaller of equal ones.
func bestCanvas(width, height, side, most int64) int64 {
	best, scale := int64(1), 0.0
	for n := int64(1); n <= most; n++ {
		for columns := int64(1); columns <= n; columns++ {
			if n%columns != 0 {
				continue
			}
			f := min(float64(columns*side)/float64(width), float64(n/columns*side)/float64(height))
			if better := f >= 1 && (scale < 1 || f < scale) || f < 1 && f > scale; better {
				best, scale = n, f
			}
		}
	}
	return best
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
func (s Setup) encodedAtOnce(each Encoded) int64 {
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
	each, ok := s.encode(i.Width, i.Height)
	if !ok {
		return nil, fmt.Errorf("--images %d: %s takes no images, or its config states no tower for them", i.Count, s.Model.Name)
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
		out = append(out, "SGLang encodes all images of a request at once, in memory outside its fraction; newer releases take SGLANG_VLM_MAX_IMAGES_PER_VIT and SGLANG_VLM_MAX_PATCHES_PER_VIT to do fewer at a time")
	case engine.VLLM:
		out = append(out, "the width and height in --limit-mm-per-prompt bound what vLLM profiles; without them, and before 0.11, it profiles the largest image that the processor allows (max_pixels in --mm-processor-kwargs)")
	}
	return out
}
