package model

import "encoding/json"

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
	const most = 1 << 16
	if !ok || err != nil || x < 0 || x > most {
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
