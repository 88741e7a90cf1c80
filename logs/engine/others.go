package engine

import (
	"bytes"
	"strconv"
	"strings"

	"strandline/logs/text"
	"strandline/plan/engine"
)

// joined states what becomes of several lines of a figure.
type joined uint8

const (
	last    joined = iota // the last one counts
	summed                // of devices, and of several caches of one
	newest                // the last one of each device, which Ollama states again for each attempt; summed
	largest               // of the GPUs
)

// cells takes the context from llama.cpp's summary of a cache where no line states it: of
// layers with a window there is another one, which follows.
func (e *reader) cells(m *text.Match) {
	if e.Setup["max_len"] != "" {
		return
	}
	each, streams := text.Count(m.Text[0]), text.Count(m.Text[2])
	if each == nil || streams == nil {
		return
	}
	e.Setup["max_len"], e.Setup["slots"] = strconv.FormatInt(*each*max(*streams, 1), 10), string(m.Text[1])
	if !bytes.Equal(m.Text[1], m.Text[2]) {
		e.Setup["unified"] = "true"
	}
}

// estimates are what Ollama states before it loads a model, up to 0.12, by the field.
var estimates = []struct{ name, field string }{
	{engine.Weights, "memory.weights.total="}, {engine.KV, "memory.required.kv="}, {engine.Activation, "memory.graph.full="},
}

// estimate keeps what Ollama expects of a model that is on the GPUs as a whole; of one that
// is not, the line does not state which part of its sizes is on them.
func (e *reader) estimate(*text.Match) {
	const maxField = 300 // bytes
	field := func(name string) []byte {
		_, value, ok := bytes.Cut(e.text, []byte(name))
		if !ok {
			return nil
		}
		value = bytes.TrimLeft(value[:min(len(value), maxField)], `\"`)
		return value[:max(text.WithUnit(value, "B", "KiB", "MiB", "GiB"), text.Run(value, 15, text.Digit))]
	}
	model, offload := field("layers.model="), field("layers.offload=")
	if len(offload) == 0 {
		return
	}
	e.Engine, e.Setup["gpu_layers"] = engine.LlamaCPP, string(offload)
	e.estimated = nil
	if !bytes.Equal(model, offload) {
		return
	}
	for _, x := range estimates {
		if figure := field(x.field); len(figure) > 0 {
			e.estimated = append(e.estimated, expected{x.name, e.rank(), e.number, bytes.Clone(figure)})
		}
	}
}

// expected is a figure that counts where none was measured.
type expected struct {
	name   string
	rank   *worker
	line   int64
	figure []byte
}

// expect takes what was estimated where the log states nothing else.
func (e *reader) expect() {
	for _, x := range e.estimated {
		if _, stated := x.rank.Figures[x.name]; !stated {
			e.of, e.number = x.rank, x.line
			e.size(x.name, last, nil, [][]byte{x.figure})
		}
	}
}

// onHost reports whether a device of llama.cpp is the host's memory.
func onHost(device string) bool {
	return strings.HasPrefix(device, "CPU") || strings.HasSuffix(device, "_Host")
}

// device counts the GPUs that a log names.
func (e *reader) device(name []byte) {
	const maxDevices = 64
	if !e.gpus[string(name)] && len(e.gpus) < maxDevices && !onHost(string(name)) {
		e.gpus[string(name)] = true
		e.Setup["gpus"] = strings.TrimSpace(e.Setup["gpus"] + " " + string(name))
	}
}

// size takes a figure, or the sum of several, into the rank of the line; of a device, if
// it has one.
func (e *reader) size(name string, join joined, device []byte, figures [][]byte) {
	size, rounding := int64(0), int64(0)
	for _, figure := range figures {
		n, r, ok := sized(figure)
		if !ok {
			return
		}
		size, rounding = size+n, rounding+r
	}
	r := e.rank()
	if name != engine.GraphPool { // which are of both
		name = r.draft + name
	}
	had := r.Figures[name]
	switch join {
	case summed:
		size, rounding = had.Size+size, rounding+had.Rounding
	case newest:
		key := name + " " + string(device)
		before, seen := r.parts[key]
		if !seen && len(r.parts) == maxWorkers {
			return
		}
		if r.parts == nil {
			r.parts = map[string]int64{}
		}
		if r.parts[key] = size; !seen {
			rounding += had.Rounding
		}
		size += had.Size - before
	case largest:
		if onHost(string(device)) && had.Size > 0 {
			return
		}
		size = max(had.Size, size)
	}
	const maxBytes = 1 << 50
	if size > maxBytes {
		return
	}
	r.Figures[name] = engine.Stated{Size: size, Line: e.number, Rounding: rounding}
}
