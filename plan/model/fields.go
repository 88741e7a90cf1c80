package model

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
)

// MaxConfig is the largest config.json that is read, in bytes. The longest known
// one, with a list of every layer's quantization, has half a megabyte.
const MaxConfig = 16 << 20

// fields reads the values of a JSON object by name. The first value of a wrong
// kind is kept as the error, with its place; the reads after it give defaults.
type fields struct {
	of   map[string]any
	path string
	err  *error
}

// parseFields reads a JSON object, in which Python may have written NaN and
// Infinity.
func parseFields(data []byte) (fields, error) {
	if len(data) > MaxConfig {
		return fields{}, fmt.Errorf("the config has %d bytes; more than %d are not read", len(data), MaxConfig)
	}
	dec := json.NewDecoder(bytes.NewReader(withoutNaN(data)))
	dec.UseNumber()
	var m map[string]any
	if err := dec.Decode(&m); err != nil {
		return fields{}, fmt.Errorf("the config is not a JSON object: %w", err)
	}
	if dec.More() {
		return fields{}, fmt.Errorf("the config continues after its end, at byte %d", dec.InputOffset())
	}
	return fields{m, "", new(error)}, nil
}

// QuantFiles are the files beside config.json that may hold the quantization: of NVIDIA's
// ModelOpt, of AutoGPTQ, of AutoAWQ and of AutoRound.
var QuantFiles = []string{"hf_quant_config.json", "quantize_config.json", "quant_config.json", "quantization_config.json"}

// WithQuantization adds what one of [QuantFiles] states about the quantization to a config
// that does not mention it.
func WithQuantization(config []byte, name string, beside []byte) ([]byte, error) {
	f, err := parseFields(config)
	if err != nil {
		return nil, err
	}
	if f.has("quantization_config") {
		return config, nil
	}
	q, err := parseFields(beside)
	if err == nil {
		if q.has("quantization") {
			q = q.object("quantization")
		}
		err = *q.err
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	if len(q.of) > 0 {
		f.of["quantization_config"] = q.of
	}
	return json.Marshal(f.of)
}

// withoutNaN puts null in place of the bare words NaN and Infinity, which
// are not JSON.
func withoutNaN(data []byte) []byte {
	var out []byte
	inString := false
	for i := 0; i < len(data); i++ {
		c := data[i]
		switch {
		case inString && c == '\\' && i+1 < len(data):
			out = append(out, c)
			i++
			c = data[i]
		case c == '"':
			inString = !inString
		case !inString && (c == 'N' || c == 'I' || c == '-'):
			for _, word := range []string{"-Infinity", "Infinity", "NaN"} {
				if bytes.HasPrefix(data[i:], []byte(word)) {
					out = append(out, "null"...)
					i += len(word)
					break
				}
			}
			if i >= len(data) {
				return out
			}
			c = data[i]
		}
		out = append(out, c)
	}
	return out
}

func (f fields) fail(name, format string, args ...any) {
	if *f.err == nil {
		*f.err = fmt.Errorf("field %s%s: %s", f.path, name, fmt.Sprintf(format, args...))
	}
}

// has reports whether a field is present and not null.
func (f fields) has(name string) bool { return f.of[name] != nil }

// whole is the first of some fields that is there, or def. It is between low and
// high, or the config is wrong.
func (f fields) whole(def, low, high int64, names ...string) int64 {
	for _, name := range names {
		if v := f.of[name]; v != nil {
			return f.integer(name, v, low, high)
		}
	}
	return def
}

// each is whole of fields that may be lists with a number for each layer.
func (f fields) each(layer int, def, low, high int64, names ...string) int64 {
	for _, name := range names {
		list, ok := f.of[name].([]any)
		switch {
		case ok && layer >= len(list):
			f.fail(name, "has %d entries for more layers", len(list))
			return def
		case ok:
			return f.integer(name, list[layer], low, high)
		case f.has(name):
			return f.whole(def, low, high, name)
		}
	}
	return def
}

func (f fields) integer(name string, v any, low, high int64) int64 {
	n, ok := v.(json.Number)
	if !ok {
		f.fail(name, "%s is not a number", shown(v))
		return low
	}
	x, err := n.Float64()
	if err != nil || x != math.Trunc(x) {
		f.fail(name, "%s is not a whole number", shown(v))
		return low
	}
	if x < float64(low) || x > float64(high) {
		f.fail(name, "%s is not between %d and %d", shown(v), low, high)
		return low
	}
	return int64(x)
}

// number is a field that is a number between low and high, or def.
func (f fields) number(def, low, high float64, name string) float64 {
	v := f.of[name]
	if v == nil {
		return def
	}
	n, ok := v.(json.Number)
	if !ok {
		f.fail(name, "%s is not a number", shown(v))
		return def
	}
	x, err := n.Float64()
	if err != nil || x < low || x > high {
		f.fail(name, "%s is not between %g and %g", shown(v), low, high)
		return def
	}
	return x
}

func (f fields) text(name string) string {
	v := f.of[name]
	if v == nil {
		return ""
	}
	s, ok := v.(string)
	if !ok {
		f.fail(name, "%s is not a string", shown(v))
	}
	return s
}

func (f fields) flag(def bool, name string) bool {
	v := f.of[name]
	if v == nil {
		return def
	}
	b, ok := v.(bool)
	if !ok {
		f.fail(name, "%s is neither true nor false", shown(v))
	}
	return b
}

// object is a field that is an object; one that is not there has no fields.
func (f fields) object(name string) fields {
	v := f.of[name]
	m, ok := v.(map[string]any)
	if v != nil && !ok {
		f.fail(name, "%s is not an object", shown(v))
	}
	return fields{m, f.path + name + ".", f.err}
}

func (f fields) list(name string) []any {
	v := f.of[name]
	l, ok := v.([]any)
	if v != nil && !ok {
		f.fail(name, "%s is not a list", shown(v))
	}
	return l
}

// texts is a field that is a list of texts.
func (f fields) texts(name string) (out []string) {
	for _, v := range f.list(name) {
		s, ok := v.(string)
		if !ok {
			f.fail(name, "%s is not a string", shown(v))
			return nil
		}
		out = append(out, s)
	}
	return out
}

// integers is a field that is a list of whole numbers.
func (f fields) integers(name string, low, high int64) (out []int64) {
	for _, v := range f.list(name) {
		out = append(out, f.integer(name, v, low, high))
	}
	return out
}

// shown returns a value in the form that errors print.
func shown(v any) string {
	s, err := json.Marshal(v)
	const maxLen = 60
	switch {
	case err != nil:
		return "the value"
	case len(s) > maxLen:
		return strings.ToValidUTF8(string(s[:maxLen]), "") + "…"
	}
	return string(s)
}

func oneOf(s string, list ...string) bool { return slices.Contains(list, s) }
