package plan

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"strandline/model"
)

// Compared is one figure of a table beside its plan, in the table's unit.
type Compared struct {
	ID, Component string
	Observed      *float64
	Low, High     float64 // equal where one figure is planned
	Point         bool
	Error         *float64 // percent of what was observed; of a range, of its middle
	Reason        string   // why the plan of this row is known to be off or unsure
	Unplanned     string   // why there is no plan
}

// Inside tells whether the observed figure lies in the range.
func (c *Compared) Inside() bool {
	return c.Observed != nil && *c.Observed >= c.Low && *c.Observed <= c.High
}

// row is a line of a table by the names of its columns.
type row map[string]string

func (r row) number(name string) (float64, bool) {
	x, err := strconv.ParseFloat(r[name], 64)
	return x, err == nil && !math.IsNaN(x) && !math.IsInf(x, 0)
}

func (r row) whole(name string, def int64) int64 {
	x, ok := r.number(name)
	if !ok || x != math.Trunc(x) || x < 1 || x > 1<<40 {
		return def
	}
	return int64(x)
}

const maxRows = 100_000

// readTable reads a CSV table with a header.
func readTable(r io.Reader) (out []row, err error) {
	c := csv.NewReader(r)
	names, err := c.Read()
	if err != nil {
		return nil, fmt.Errorf("the table has no header: %w", err)
	}
	for {
		cells, err := c.Read()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		if len(out) == maxRows {
			return nil, fmt.Errorf("the table has more than %d rows", maxRows)
		}
		one := row{}
		for i, name := range names {
			one[name] = strings.TrimSpace(cells[i])
		}
		out = append(out, one)
	}
}

// Against plans every row of a table of observed figures. find gives the model of
// an id, with the weights in a format that is named, or as the config says.
func Against(table io.Reader, find func(id, quant string) (*model.Model, error)) ([]Compared, error) {
	rows, err := readTable(table)
	if err != nil {
		return nil, err
	}
	var out []Compared
	for i, r := range rows {
		if r["id"] == "" {
			return nil, fmt.Errorf("row %d of the table has no id", i+1)
		}
		switch {
		case r["optimizer"] != "" || r["activation_checkpointing"] != "":
			out = append(out, trainingRow(r, find))
		case r["kind"] == "checkpoint":
			out = append(out, checkpointRow(r, find))
		case r["kind"] == "inference":
			out = append(out, inferenceRow(r, find)...)
		}
	}
	return out, nil
}

// pointRow is a row with one planned figure.
func pointRow(r row, component, column string, planned float64, reason string) Compared {
	return compared(r, component, column, planned, planned, reason)
}

func compared(r row, component, column string, low, high float64, reason string) Compared {
	c := Compared{ID: r["id"], Component: component, Low: low, High: high, Point: low == high, Reason: reason}
	if x, ok := r.number(column); ok {
		c.Observed = &x
		if x != 0 {
			e := 100 * ((low+high)/2 - x) / x
			c.Error = &e
		}
	}
	return c
}

func unplanned(r row, component, column string, err error) Compared {
	c := compared(r, component, column, 0, 0, "")
	c.Error, c.Unplanned = nil, err.Error()
	return c
}

const gib = 1 << 30

func checkpointRow(r row, find func(id, quant string) (*model.Model, error)) Compared {
	m, err := find(r["model_id"], r["quant"])
	if err != nil {
		return unplanned(r, "checkpoint", "weights_gib", err)
	}
	return pointRow(r, "checkpoint", "weights_gib", float64(m.CheckpointBytes())/gib, m.Unsure)
}

// hostExperts is how tables say that experts are in the host's memory.
var hostExperts = regexp.MustCompile(`(\d{1,5}) of \d{1,5} experts on CPU`)

func inferenceRow(r row, find func(id, quant string) (*model.Model, error)) (out []Compared) {
	e, ok := ParseEngine(r["framework"], r["version"])
	if !ok {
		return []Compared{unplanned(r, "weights", "weights_gib", fmt.Errorf("the engine %q is not known", r["framework"]))}
	}
	format, _, _ := strings.Cut(r["quant"], ",")
	m, err := find(r["model_id"], strings.TrimSpace(format))
	if err != nil {
		return []Compared{unplanned(r, "weights", "weights_gib", err)}
	}
	if n := hostExperts.FindStringSubmatch(r["quant"] + " " + r["other_args"]); n != nil {
		count, _ := strconv.ParseInt(n[1], 10, 64)
		m = m.WithoutExperts(count)
	}
	s := Serving{Model: m, Engine: e, Parallel: parallelOf(r), Length: r.whole("max_model_len", 0), Block: r.whole("block_size", 0)}
	var bad bool
	if s.KV, ok = ParseKV(r["kv_dtype"], m); !ok {
		s.KV, bad = KVType{"auto", 2, 0}, true
	}
	s.readArgs(r["other_args"])
	s.GPU = gpuOf(r)
	s = s.normal()
	weights := s.Weights()
	out = append(out, pointRow(r, "weights", "weights_gib", float64(weights)/gib, weightsReason(r, m)))
	if kv, ok := r.number("kv_gib"); ok && kv > 0 && !bad {
		out = append(out, pointRow(r, "kv_tokens", "kv_tokens", float64(s.tokensLogged(kv)), kvReason(r, s)))
	}
	a := s.Activation()
	out = append(out, compared(r, "activation", "activation_gib", float64(a.Low)/gib, float64(a.High)/gib, ""))
	return out
}

// gpuOf is the GPU of a row, with the total that it states.
func gpuOf(r row) *GPU {
	g, err := FindGPU(r["gpu"])
	total, stated := r.number("total_gpu_gib")
	switch {
	case err != nil && !stated:
		return nil
	case err != nil:
		return &GPU{Name: r["gpu"], Total: whole(total * gib), Board: whole(total * gib)}
	case stated:
		own := *g
		own.Total = whole(total * gib)
		return &own
	}
	return g
}

// weightsReason says what a row leaves open of the weights.
func weightsReason(r row, m *model.Model) string {
	quant := strings.ToLower(r["quant"])
	switch {
	case strings.Contains(quant, "gguf"):
		return "a GGUF file's types differ from tensor to tensor, and the row does not name them"
	case m.Params() < small && m.Params() > 0:
		return "a model below 2 billion parameters: what is left of the allocator's 20 MiB segments can be 5 % of it"
	}
	return m.Unsure
}

// small is the number of parameters below which the allocator's remainders show.
const small = 2e9

// kvReason says why the tokens of a row need not follow from its KV size.
func kvReason(r row, s Serving) string {
	if s.Engine.V0 && s.Parallel.TP*s.Parallel.PP > 1 {
		return "this engine logs the KV size of each worker and takes the tokens of the smallest; the size may be another worker's"
	}
	return ""
}

func parallelOf(r row) Parallel {
	p := Parallel{TP: r.whole("tp", 1), PP: r.whole("pp", 1)}
	text := strings.ToLower(r["dp_ep"])
	number := func(word string) int64 {
		_, rest, ok := strings.Cut(text, word)
		n := 0
		if ok {
			fmt.Sscanf(strings.TrimLeft(rest, " =:"), "%d", &n)
		}
		return int64(n)
	}
	p.DP, p.EP = number("dp"), number("ep")
	if p.EP == 0 && strings.Contains(text, "ep") {
		p.EP = p.TP * max(p.DP, 1)
	}
	return p.normal()
}
