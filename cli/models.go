package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"strandline/internal/budget"
	"strandline/internal/safefile"
	"strandline/plan/model"
)

// loadModel reads a model from a folder, a config.json, a GGUF file, or takes it
// from the catalog. Quant names a format other than the file's own.
func loadModel(name, quant string) (*model.Model, error) {
	info, err := os.Stat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !strings.HasPrefix(name, ".") && !strings.HasPrefix(name, "/") && !strings.HasSuffix(name, ".json"):
		return model.Find(name, quant)
	case err != nil:
		return nil, err
	case info.IsDir():
		m, err := modelFolder(name, quant)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		return m, nil
	case model.IsGGUF(name):
		return ggufFile(name, quant, os.Open)
	}
	data, err := readNamed(name, model.MaxConfig)
	if err != nil {
		return nil, err
	}
	if data, err = quantBeside(filepath.Dir(name), data); err != nil {
		return nil, err
	}
	m, err := model.Parse(name, data, quant)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return m, nil
}

// ggufFile reads a GGUF file with open, and the other parts of its model.
func ggufFile(name, quant string, open func(string) (*os.File, error)) (*model.Model, error) {
	var parts []io.Reader
	for _, part := range model.FileParts(name) {
		open := open
		if part != name {
			open = openFound
		}
		f, err := open(part)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		parts = append(parts, f)
	}
	m, err := model.ReadGGUF(name, parts...)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if quant != "" {
		m.Notes = append(m.Notes, "a GGUF file has the format of every tensor; the requested format is ignored")
	}
	return m, nil
}

func openFound(name string) (*os.File, error) { return safefile.Open(name, safefile.Unbounded) }

// Bounds of files that are read as a whole, in bytes.
const (
	maxIndex   = 64 << 20
	maxConfigs = 64 << 20
)

// readNamed reads a file that the user named, of at most so many bytes.
func readNamed(name string, maxBytes int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return safefile.ReadAll(f, maxBytes)
}

// modelFolder reads a folder as published models have it.
func modelFolder(dir, quant string) (*model.Model, error) {
	if _, err := os.Stat(filepath.Join(dir, "model_index.json")); err == nil {
		return nil, errors.New(model.Diffusion)
	}
	config, err := safefile.ReadFile(filepath.Join(dir, "config.json"), model.MaxConfig)
	if errors.Is(err, fs.ErrNotExist) {
		list, err := withSuffix(dir, ".gguf")
		if err != nil || len(list) == 0 {
			return nil, errors.New("contains neither config.json nor a GGUF file")
		}
		if len(list) > 1 && !slices.Equal(list, model.FileParts(list[0])) {
			return nil, fmt.Errorf("contains %d GGUF files; name one of them", len(list))
		}
		return ggufFile(list[0], quant, openFound)
	}
	if err != nil {
		return nil, err
	}
	if config, err = quantBeside(dir, config); err != nil {
		return nil, err
	}
	var list []model.Stored
	if quant == "" { // else the files hold another format
		if list, err = safetensors(dir); err != nil {
			return nil, err
		}
	}
	name := dir
	if len(list) > 0 {
		name = "" // the files state the format, whatever the folder is called
	}
	m, err := model.Parse(name, config, quant)
	if err != nil {
		return nil, fmt.Errorf("config.json: %w", err)
	}
	m.Name = dir
	if quant != "" {
		return m, nil
	}
	if len(list) == 0 {
		m.Notes = append(m.Notes, "safetensors files are missing; the weights are counted from config.json")
		return m, nil
	}
	return m, m.Hold(list)
}

// quantBeside is a config with the quantization that a file beside it holds.
func quantBeside(dir string, config []byte) ([]byte, error) {
	for _, name := range model.QuantFiles {
		if text, err := safefile.ReadFile(filepath.Join(dir, name), model.MaxConfig); err == nil {
			return model.WithQuantization(config, name, text)
		}
	}
	return config, nil
}

// withSuffix returns the paths of a folder's files whose names end with suffix.
// The folder's own name may have any characters, as it could not in a pattern.
func withSuffix(dir, suffix string) (paths []string, err error) {
	entries, err := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), suffix) && !e.IsDir() {
			paths = append(paths, filepath.Join(dir, e.Name()))
		}
	}
	return paths, err
}

// safetensors are the tensors of a folder's files. Where an index names the files,
// others are copies of the same weights.
func safetensors(dir string) (all []model.Stored, err error) {
	files, err := withSuffix(dir, ".safetensors")
	if err != nil {
		return nil, err
	}
	have := map[string]bool{}
	for _, f := range files {
		have[f] = true
	}
	if named := indexed(dir); len(named) > 0 {
		for i, name := range named {
			if named[i] = filepath.Join(dir, name); !have[named[i]] {
				return nil, nil // some weights are missing: the rest cannot be taken for the whole
			}
		}
		files = named
		clear(have)
		for _, f := range files {
			have[f] = true
		}
	}
	slices.Sort(files)
	files = slices.Compact(files)
	for _, name := range files {
		for _, part := range model.FileParts(name) {
			if !have[part] {
				return nil, nil
			}
		}
	}
	seen := map[string]bool{}
	for _, name := range files {
		list, err := safetensorsFile(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", filepath.Base(name), err)
		}
		for _, s := range list {
			if !seen[s.Name] {
				seen[s.Name] = true
				all = append(all, s)
			}
		}
	}
	return all, nil
}

func safetensorsFile(name string) ([]model.Stored, error) {
	f, err := openFound(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return model.ReadSafetensors(f)
}

// indexed are the files that an index of safetensors names.
func indexed(dir string) (files []string) {
	data, err := safefile.ReadFile(filepath.Join(dir, "model.safetensors.index.json"), maxIndex)
	if err != nil {
		return nil
	}
	var index struct {
		Files map[string]string `json:"weight_map"`
	}
	if budget.Of(int64(len(data)), budget.Plain).Spend(budget.JSON(data), "tensors") != nil {
		return nil
	}
	if json.Unmarshal(data, &index) != nil {
		return nil
	}
	for _, f := range index.Files {
		files = append(files, f)
	}
	slices.Sort(files)
	return slices.Compact(files)
}

// modelConfigs reads a file of configs by the name of their model.
func modelConfigs(path string) (func(id, quant string) (*model.Model, error), error) {
	configs := map[string]json.RawMessage{}
	if path != "" {
		data, err := readNamed(path, maxConfigs)
		if err != nil {
			return nil, err
		}
		if err := budget.Of(int64(len(data)), budget.Packed).Spend(budget.JSON(data), "configs"); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if err := json.Unmarshal(data, &configs); err != nil {
			return nil, fmt.Errorf("%s: not a JSON object of configs by name: %w", path, err)
		}
	}
	type key struct{ id, quant string }
	known := map[key]*model.Model{} // many rows are of one model
	return func(id, quant string) (*model.Model, error) {
		k := key{id, quant}
		if m := known[k]; m != nil {
			return m, nil
		}
		config, ok := configs[id]
		var m *model.Model
		var err error
		if ok {
			m, err = model.Parse(id, config, quant)
		} else {
			m, err = model.Find(id, quant)
		}
		if err == nil {
			known[k] = m
		}
		return m, err
	}, nil
}
