package model

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
)

// safetensorsOf writes a header as the format's writer does.
func safetensorsOf(t testing.TB, entries map[string]any) []byte {
	header, err := json.Marshal(entries)
	if err != nil {
		t.Fatal(err)
	}
	return append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
}

func tensor(kind string, begin, end int64, shape ...int64) map[string]any {
	return map[string]any{"dtype": kind, "shape": shape, "data_offsets": []int64{begin, end}}
}

func TestReadSafetensors(t *testing.T) {
	data := safetensorsOf(t, map[string]any{
		"__metadata__":                           map[string]string{"format": "pt"},
		"model.embed_tokens.weight":              tensor("BF16", 0, 128000, 1000, 64),
		"model.layers.0.self_attn.k_proj.weight": tensor("BF16", 128000, 132096, 32, 64),
		"model.layers.1.mlp.down_proj.qweight":   tensor("I32", 132096, 136192, 16, 64),
		"model.layers.1.mlp.down_proj.scales":    tensor("F16", 136192, 136320, 1, 64),
		"model.layers.2.eh_proj.weight":          tensor("BF16", 136320, 152704, 64, 128),
	})
	list, err := ReadSafetensors(bytes.NewReader(data))
	if err != nil {
		t.Fatal(err)
	}
	m, err := Parse("test", []byte(with(llama, `"quantization_config":{"quant_method":"gptq","bits":4,"group_size":128}`)), "")
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Hold(list); err != nil {
		t.Fatal(err)
	}
	if m.Bytes() != 152704 {
		t.Errorf("%d bytes, want those of the file", m.Bytes())
	}
	if !m.Tied {
		t.Error("a model without lm_head is not taken for tied")
	}
	if k := m.Layers[0].Tensors[0]; k.Part != ByKV || k.Heads != 2 || k.Role != Attention {
		t.Errorf("k_proj read as %+v", k)
	}
	down := m.Layers[1].Tensors
	if len(down) != 2 || down[0].Params()+down[1].Params() != 16*64*8 {
		t.Errorf("packed weights read as %+v", down)
	}
	if len(m.Predictors) != 1 || m.Params() != 64000+2048+8192 {
		t.Errorf("%d predictors, %d parameters", len(m.Predictors), m.Params())
	}
}

func TestBadSafetensors(t *testing.T) {
	long := binary.LittleEndian.AppendUint64(nil, 1<<40)
	for _, c := range []struct {
		data []byte
		want string
	}{
		{nil, "length"},
		{long, "more than"},
		{binary.LittleEndian.AppendUint64(nil, 90<<20), "ends after 0 of"},
		{append(binary.LittleEndian.AppendUint64(nil, 2), "[]"...), "not a JSON object"},
		{safetensorsOf(t, map[string]any{"a": tensor("BF16", 4, 2, 1)}), "are not a range"},
		{safetensorsOf(t, map[string]any{"a": tensor("BF16", 0, 2, 1<<40, 1<<40)}), "not a size that a tensor"},
		{safetensorsOf(t, map[string]any{"a": tensor("BF16", 0, 2, 3, 4)}), "is not the 2 bytes"},
		{safetensorsOf(t, map[string]any{"a": map[string]any{"dtype": "BF16", "data_offsets": make([]int64, 100_000)}}), "…"},
		{safetensorsOf(t, map[string]any{"a": map[string]any{"dtype": "BF16", "shape": make([]int64, 100_000), "data_offsets": []int64{0, 2}}}), "…"},
	} {
		const maxLen = 300
		if _, err := ReadSafetensors(bytes.NewReader(c.data)); err == nil || !strings.Contains(err.Error(), c.want) || len(err.Error()) > maxLen {
			t.Errorf("got %.300v, want %q", err, c.want)
		}
	}
}

func FuzzSafetensors(f *testing.F) {
	f.Add(safetensorsOf(f, map[string]any{"model.layers.0.mlp.up_proj.weight": tensor("BF16", 0, 16384, 128, 64)}))
	f.Add(safetensorsOf(f, map[string]any{"h.1.experts.3.w1.qweight": tensor("I32", 0, 0, 0, 0)}))
	m, err := Parse("test", []byte(llama), "")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		list, err := ReadSafetensors(bytes.NewReader(data))
		if err != nil {
			return
		}
		held := *m
		held.Layers = append([]Layer(nil), m.Layers...)
		if err := held.Hold(list); err == nil && (held.Bytes() < 0 || held.Params() < 0) {
			t.Errorf("%d bytes, %d parameters", held.Bytes(), held.Params())
		}
	})
}

// ggufWriter writes the header of a GGUF file.
type ggufWriter struct{ bytes.Buffer }

func (g *ggufWriter) number(v any) { binary.Write(g, binary.LittleEndian, v) }

func (g *ggufWriter) text(s string) {
	g.number(uint64(len(s)))
	g.WriteString(s)
}

func (g *ggufWriter) whole(key string, n uint32) {
	g.text(key)
	g.number(uint32(4))
	g.number(n)
}

func (g *ggufWriter) tensor(name string, kind uint32, dims ...uint64) {
	g.text(name)
	g.number(uint32(len(dims)))
	g.number(dims)
	g.number(kind)
	g.number(uint64(0))
}

func smallGGUF() []byte { return partGGUF(1, 0, 1, 2, 3) }

// partGGUF is one of so many files of the same model, with some of its four tensors.
func partGGUF(parts uint32, tensors ...int) []byte {
	var g ggufWriter
	g.WriteString("GGUF")
	g.number(uint32(3))
	g.number(uint64(len(tensors)))
	g.number(uint64(10))
	g.text("general.architecture")
	g.number(uint32(ggufString))
	g.text("llama")
	g.whole("split.count", parts)
	g.whole("llama.block_count", 2)
	g.whole("llama.embedding_length", 256)
	g.whole("llama.context_length", 512)
	g.whole("llama.feed_forward_length", 512)
	g.whole("llama.attention.head_count", 4)
	g.whole("llama.attention.head_count_kv", 2)
	g.text("tokenizer.ggml.tokens")
	g.number(uint32(ggufArray))
	g.number(uint32(ggufString))
	g.number(uint64(2))
	g.text("a")
	g.text("b")
	g.text("general.file_type")
	g.number(uint32(6))
	g.number(float32(1.5))
	for _, i := range tensors {
		switch i {
		case 0:
			g.tensor("token_embd.weight", 12, 256, 2)
		case 1:
			g.tensor("output.weight", 14, 256, 2)
		case 2:
			g.tensor("blk.0.attn_k.weight", 8, 256, 128)
		case 3:
			g.tensor("blk.1.ffn_down.weight", 1, 512, 256)
		}
	}
	return g.Bytes()
}

// TestGGUFParts reads a model that is split over files.
func TestGGUFParts(t *testing.T) {
	whole, err := ReadGGUF("whole", bytes.NewReader(smallGGUF()))
	if err != nil {
		t.Fatal(err)
	}
	part := func(tensors ...int) io.Reader { return bytes.NewReader(partGGUF(2, tensors...)) }
	m, err := ReadGGUF("split", part(), part(0, 1, 2, 3))
	if err != nil || m.Bytes() != whole.Bytes() {
		t.Errorf("two parts: %v, want as in one", err)
	}
	for _, c := range []struct {
		parts []io.Reader
		want  string
	}{{[]io.Reader{part(0, 1)}, "one of 2 parts, and 1 are given"}, {[]io.Reader{part(), part()}, "no tensors"}, {[]io.Reader{part(0), part(2)}, "nothing of layer 1"}, {[]io.Reader{part(0, 1), part(1)}, "twice"}} {
		if _, err := ReadGGUF("split", c.parts...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
	want := []string{"a/b-00001-of-00002.gguf", "a/b-00002-of-00002.gguf"}
	for name, want := range map[string][]string{want[1]: want, "a/b.gguf": {"a/b.gguf"}, "b-00001-of-99999.gguf": {"b-00001-of-99999.gguf"}} {
		if got := FileParts(name); !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

func TestReadGGUF(t *testing.T) {
	m, err := ReadGGUF("small.gguf", bytes.NewReader(smallGGUF()))
	if err != nil {
		t.Fatal(err)
	}
	if want := int64(512*4.5/8 + 512*6.5625/8 + 32768*8.5/8 + 131072*2); m.Bytes() != want {
		t.Errorf("%d bytes, want %d", m.Bytes(), want)
	}
	if m.Context != 512 || m.Vocab != 2 || len(m.Layers) != 2 || m.Tied || m.Layers[0].Cache.Heads != 2 {
		t.Errorf("read as %+v", m)
	}
}

func TestBadGGUF(t *testing.T) {
	good := smallGGUF()
	for n := range good {
		if _, err := ReadGGUF("cut", bytes.NewReader(good[:n])); err == nil {
			t.Fatalf("a file of %d of %d bytes is read", n, len(good))
		}
	}
	odd := bytes.Clone(good)
	odd[4] = 9
	huge := bytes.Clone(good)
	copy(huge[8:], bytes.Repeat([]byte{255}, 8))
	for _, c := range []struct {
		data []byte
		want string
	}{{[]byte("GGML...."), "not a GGUF file"}, {odd, "version 9"}, {huge, "tensors"}} {
		if _, err := ReadGGUF("bad", bytes.NewReader(c.data)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("got %v, want %q", err, c.want)
		}
	}
}

func FuzzGGUF(f *testing.F) {
	f.Add(smallGGUF())
	f.Fuzz(func(t *testing.T, data []byte) {
		if m, err := ReadGGUF("fuzz", bytes.NewReader(data)); err == nil && m.Bytes() < 0 {
			t.Errorf("%d bytes", m.Bytes())
		}
	})
}

// TestHoldAgrees keeps what was counted where the files hold the same.
func TestHoldAgrees(t *testing.T) {
	m, err := Parse("test", []byte(llama), "")
	if err != nil {
		t.Fatal(err)
	}
	var list []Stored
	m.Each(func(_ int, x *Tensor) {
		list = append(list, Stored{Name: "some." + x.Name, Type: "BF16", Shape: []int64{x.Out, x.In}, Bytes: x.Bytes()})
	})
	if err := m.Hold(list); err != nil || m.Layers[0].Tensors[0].Name != "self_attn.q_proj" {
		t.Errorf("replaced by %+v, %v", m.Layers[0].Tensors[0], err)
	}
	if err := m.Hold(list[1:]); err != nil || len(m.Layers[0].Tensors) != 0 {
		t.Errorf("not replaced where they differ: %v", err)
	}
}

// TestHoldLayers holds files against the layers of the config.
func TestHoldLayers(t *testing.T) {
	file := func(layers ...int) (list []Stored) {
		for _, i := range layers {
			list = append(list, Stored{Name: fmt.Sprintf("model.layers.%d.mlp.up_proj.weight", i), Type: "BF16", Shape: []int64{128, 64}, Bytes: 128 * 64 * 2})
		}
		return list
	}
	for _, c := range []struct {
		layers []int
		want   string
	}{{[]int{0, 1}, ""}, {[]int{0}, "hold layer 0 and nothing of layer 1"}, {[]int{0, 1, 2}, ""}} {
		m, err := Parse("test", []byte(llama), "")
		if err != nil {
			t.Fatal(err)
		}
		err = m.Hold(file(c.layers...))
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("layers %v: got %v, want %q", c.layers, err, c.want)
		}
		if got := strings.Contains(strings.Join(m.Notes, ""), "layers up to 2"); got != (len(c.layers) == 3) {
			t.Errorf("layers %v: notes %q", c.layers, m.Notes)
		}
	}
}
