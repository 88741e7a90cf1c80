package model

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
)

// Encoded is what an image becomes.
type Encoded struct {
	Tokens, Patches int64
	Source          string // what the figures are based on
}

// Processor is what a family's image processor does: it brings an image to a size between
// bounds, in multiples of what a token sees, or cuts it into tiles, of which the tower takes
// one at a time, and adds one of the whole. Sources: transformers, models/qwen2_vl/
// image_processing_qwen2_vl.py, smart_resize; InternVL, model cards, dynamic_preprocess;
// models/llama4/image_processing_llama4_fast.py, get_best_fit.
type Processor struct {
	Low, High              float64 // pixels
	Side, Tokens, MaxTiles int64   // pixels of a tile's side, its tokens, and how many are cut; 0 without tiles
	Tiles                  func(width, height, side, maxTiles int64) int64
}

// Vision is a tower for images as a config states it. Layers and Width are 24 and 1024
// where it uses other names; 0 layers mean that there is no tower.
type Vision struct {
	Layers, Width int64
	Type          string // of the tower, else of the whole model
	Patch, Merge  int64  // pixels of a side of a patch; patches of a side of a token, 0 if not stated
	Side          int64  // pixels of a side of the image, or of a tile, that the tower takes; 0 if any
	Tokens        int64  // of any image, 0 if they follow from its size
}

// visionOf reads what a config states about a tower for images. What it does not understand
// is left out: [builder.vision] refuses impossible values.
func (b *builder) visionOf(v fields) Vision {
	t := Vision{
		Layers: v.whole(24, 0, maxLayers, "num_hidden_layers"), Width: v.whole(1024, 0, maxHidden, "hidden_size"),
		Type: b.m.Type, Patch: firstNumber(v, "patch_size"), Side: firstNumber(v, "image_size"),
	}
	if kind, ok := v.of["model_type"].(string); ok {
		t.Type = kind
	}
	for _, f := range []fields{v, b.f} {
		for _, name := range []string{"spatial_merge_size", "merge_kernel_size"} {
			if n := firstNumber(f, name); t.Merge == 0 && n > 0 {
				t.Merge = n
			}
		}
	}
	for _, n := range []int64{firstNumber(b.f, "mm_tokens_per_image"), firstNumber(v, "default_output_length")} {
		if t.Tokens == 0 {
			t.Tokens = n
		}
	}
	return t
}

// firstNumber is a field that is a number, or a list of them; 0 if it is neither.
func firstNumber(f fields, name string) int64 {
	value := f.of[name]
	if list, ok := value.([]any); ok && len(list) > 0 {
		value = list[0]
	}
	n, ok := value.(json.Number)
	x, err := n.Int64()
	const maxSize = 1 << 16
	if !ok || err != nil || x < 0 || x > maxSize {
		return 0
	}
	return x
}

// TowerParams is the number of parameters of what turns images and sound into tokens.
func (m *Model) TowerParams() (n int64) {
	for i := range m.Towers {
		n += m.Towers[i].Params()
	}
	return n
}

// Encode returns what an image of some pixels becomes; false if the model takes none.
func (m *Model) Encode(width, height int64) (Encoded, bool) {
	v := m.Vision
	if v.Layers == 0 && len(m.Towers) == 0 {
		return Encoded{}, false
	}
	patch, merge := max(v.Patch, 1), max(v.Merge, 1)
	if v.Patch == 0 {
		patch = 14
	}
	if f, n := lookup(v.Type, func(f *family) bool { return f.images != nil }); n > 0 {
		p := f.images
		if p.Side > 0 {
			tiles := p.Tiles(width, height, p.Side, p.MaxTiles)
			if tiles > 1 {
				tiles++ // the whole image
			}
			each := p.Side / patch * (p.Side / patch)
			return Encoded{tiles * p.Tokens, tiles * each, fmt.Sprintf("%d tiles of %d pixels, %d tokens each", tiles, p.Side, p.Tokens)}, true
		}
		if v.Merge == 0 {
			merge = 2
		}
		factor := patch * merge
		w, h := p.resized(width, height, factor)
		tokens := (w / factor) * (h / factor)
		return Encoded{tokens, tokens * merge * merge, fmt.Sprintf("resized to %d × %d; a token is %d × %d pixels", w, h, factor, factor)}, true
	}
	switch {
	case v.Tokens > 0 || strings.HasPrefix(v.Type, "gemma3") || strings.HasPrefix(v.Type, "siglip") && strings.HasPrefix(m.Type, "gemma3"):
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
		return withRowEnds(width, height, patch*merge, max(v.Side, 1024), merge), true
	case v.Side > 0:
		n := v.Side / patch * (v.Side / patch)
		return Encoded{n / (merge * merge), n, fmt.Sprintf("one tile of %d × %d; a processor that cuts images into tiles takes more", v.Side, v.Side)}, true
	}
	factor := patch * merge
	n := max(ceil(width, factor)*ceil(height, factor), 1)
	return Encoded{n, n * merge * merge, fmt.Sprintf("a token for %d × %d pixels; the processor of this family is not known", factor, factor)}, true
}

// resized is the size to which an image is brought.
func (p *Processor) resized(width, height, factor int64) (w, h int64) {
	f, x, y := float64(factor), float64(width), float64(height)
	to := func(v float64, round func(float64) float64) float64 { return max(round(v/f)*f, f) }
	a, b := to(x, math.RoundToEven), to(y, math.RoundToEven)
	switch {
	case a*b > p.High:
		beta := math.Sqrt(x * y / p.High)
		a, b = to(x/beta, math.Floor), to(y/beta, math.Floor)
	case a*b < p.Low:
		beta := math.Sqrt(p.Low / (x * y))
		a, b = to(x*beta, math.Ceil), to(y*beta, math.Ceil)
	}
	return int64(a), int64(b)
}

// withRowEnds is Pixtral's: an image whose longer side is bounded, with a token at the end of each
// row. Source: transformers, models/pixtral/processing_pixtral.py.
func withRowEnds(width, height, factor, side, merge int64) Encoded {
	w, h := float64(width), float64(height)
	if ratio := max(w, h) / float64(side); ratio > 1 {
		w, h = math.Floor(w/ratio), math.Floor(h/ratio)
	}
	columns, rows := ceil(max(int64(w), 1), factor), ceil(max(int64(h), 1), factor)
	return Encoded{rows * (columns + 1), rows * columns * merge * merge, fmt.Sprintf("%d × %d tokens of %d × %d pixels, and one for each row", columns, rows, factor, factor)}
}

// nearestShape returns how many tiles InternVL cuts an image into: those of the shape
// nearest to the image's, the more of two equal ones if the image is large enough.
func nearestShape(width, height, side, maxTiles int64) int64 {
	best, diff := int64(1), math.Inf(1)
	shape := float64(width) / float64(height)
	for n := int64(1); n <= maxTiles; n++ {
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
func bestCanvas(width, height, side, maxTiles int64) int64 {
	best, scale := int64(1), 0.0
	for n := int64(1); n <= maxTiles; n++ {
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
