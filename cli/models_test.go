package cli

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strandline/internal/test/live"
)

const smallConfig = `{"model_type":"llama","dtype":"bfloat16","hidden_size":64,"num_hidden_layers":1,"num_attention_heads":4,"intermediate_size":128,"vocab_size":100}`

// shard writes a safetensors file of one tensor of bf16.
func shard(t *testing.T, dir, file, tensor, shape, end string) {
	t.Helper()
	header := `{"` + tensor + `":{"dtype":"BF16","shape":` + shape + `,"data_offsets":[0,` + end + `]}}`
	data := append(binary.LittleEndian.AppendUint64(nil, uint64(len(header))), header...)
	if err := os.WriteFile(filepath.Join(dir, file), data, 0o666); err != nil {
		t.Fatal(err)
	}
}

func write(t *testing.T, dir, file, text string) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

// TestModelFolder reads a folder as published models have it: what its headers state
// wins over counting, as long as all files are there.
func TestModelFolder(t *testing.T) {
	live.Sequential(t)
	dir := filepath.Join(t.TempDir(), "small[1]*") // no pattern, but a name
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	write(t, dir, "config.json", smallConfig)
	counted, err := loadModel(dir, "")
	if err != nil || len(counted.Notes) != 1 || !strings.Contains(counted.Notes[0], "counted") {
		t.Fatalf("without safetensors: %+v, %v", counted, err)
	}
	shard(t, dir, "model-00001-of-00002.safetensors", "model.embed_tokens.weight", "[100,64]", "12800")
	shard(t, dir, "model-00002-of-00002.safetensors", "model.layers.0.mlp.up_proj.weight", "[128,64]", "16384")
	shard(t, dir, "consolidated.safetensors", "tok_embeddings.weight", "[100,64]", "12800")
	write(t, dir, "model.safetensors.index.json", `{"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"}}`)
	m, err := loadModel(dir, "")
	if err != nil || m.Bytes() != 12800+16384 {
		t.Fatalf("with safetensors: %d bytes, %v", m.Bytes(), err)
	}
	if m, err := loadModel(dir, "fp8"); err != nil || m.Quant != "fp8" || m.Bytes() >= counted.Bytes() {
		t.Errorf("in another format: %+v, %v", m, err)
	}
	if err := os.Remove(filepath.Join(dir, "model-00002-of-00002.safetensors")); err != nil {
		t.Fatal(err)
	}
	if m, err := loadModel(dir, ""); err != nil || m.Bytes() != counted.Bytes() {
		t.Errorf("with a file missing: %d bytes, %v; want those counted", m.Bytes(), err)
	}
	write(t, dir, "hf_quant_config.json", `{"quantization":{"quant_algo":"FP8","exclude_modules":["lm_head"]}}`)
	if m, err := loadModel(dir, ""); err != nil || m.Quant != "fp8" {
		t.Errorf("with NVIDIA's quantization beside it: %+v, %v", m, err)
	}
	write(t, dir, "hf_quant_config.json", `{"quantization":7}`)
	if _, err := loadModel(dir, ""); err == nil || !strings.Contains(err.Error(), "hf_quant_config.json: field quantization") {
		t.Errorf("with a broken one: %v", err)
	}
	if _, err := loadModel(t.TempDir(), ""); err == nil || !strings.Contains(err.Error(), "neither config.json nor a GGUF file") {
		t.Errorf("an empty folder: %v", err)
	}
}
