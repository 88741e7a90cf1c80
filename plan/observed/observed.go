// Package observed compares plans with tables of observed runs, row by row. The rows
// test the plans; nothing is fitted to them.
package observed

import (
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"

	"strandline/internal/budget"
	"strandline/internal/lazyregexp"
	"strandline/plan"
	"strandline/plan/engine"
	"strandline/plan/model"
	"strandline/plan/serving"
)

// Compared is one figure of a table beside its plan, in the table's unit.
type Compared struct {
	ID, Component string
	Observed      *float64
	Low, High     float64 // equal where one figure is planned
	Point         bool
	Error         *float64 // percent of what was observed; of a range, of its middle
	Reason        string   // why the plan of this row is known to be off or unsure
	Unplanned     string   // the reason that there is no plan
}

// Inside reports whether the observed figure is in the range.
func (c *Compared) Inside() bool {
	return c.Observed != nil && *c.Observed >= c.Low && *c.Observed <= c.High
}

// row is a line of a table by the names of its columns.
type row map[string]string

func (r row) number(name string) (float64, bool) {
	x, err := strconv.ParseFloat(r[name], 64)
	return x, err == nil && !math.IsNaN(x) && !math.IsInf(x, 0)
}

func (r row) integer(name string, def int64) int64 {
	x, ok := r.number(name)
	if !ok || x != math.Trunc(x) || x < 1 || x > 1<<40 {
		return def
	}
	return int64(x)
}

// numbers refuses cells that are neither empty nor whole numbers from low on.
func (r row) numbers(low float64, names ...string) error {
	for _, name := range names {
		if x, ok := r.number(name); r[name] != "" && (!ok || x != math.Trunc(x) || x < low || x > 1<<40) {
			return fmt.Errorf("the column %s: %q is not a value it can have", name, r[name])
		}
	}
	return nil
}

const (
	maxRows    = 100_000
	maxColumns = 1_000
	maxTable   = 64 << 20 // bytes
	cellBytes  = 64       // at most, of a row of the table
)

// readTable reads a CSV table with a header.
func readTable(r io.Reader) (out []row, err error) {
	in := &io.LimitedReader{R: r, N: maxTable}
	counted, b := budget.Reader(in, budget.Plain)
	c := csv.NewReader(counted)
	names, err := c.Read()
	if err != nil {
		return nil, fmt.Errorf("the table has no header: %w", err)
	}
	if len(names) > maxColumns || in.N <= 0 {
		return nil, fmt.Errorf("the table has more than %d columns, or more than %d bytes", maxColumns, maxTable)
	}
	names[0] = strings.TrimPrefix(names[0], "\ufeff") // as spreadsheets begin a file
	for i, name := range names {
		if names[i] = strings.TrimSpace(name); slices.Contains(names[:i], names[i]) {
			return nil, fmt.Errorf("the table has two columns %q", names[i])
		}
	}
	for {
		cells, err := c.Read()
		switch {
		case len(out) == maxRows && err == nil, in.N <= 0:
			return nil, fmt.Errorf("the table has more than %d rows, or more than %d bytes", maxRows, maxTable)
		case errors.Is(err, io.EOF):
			return out, nil
		case err != nil:
			return nil, err
		}
		if err := b.Spend(cellBytes*len(names), "cells"); err != nil {
			return nil, err
		}
		one := row{}
		for i, name := range names {
			if cell := strings.TrimSpace(cells[i]); cell != "" {
				one[name] = cell
			}
		}
		out = append(out, one)
	}
}

// Against plans every row of a table of observed figures. find gives the model of
// an id, with the weights in a format that is named, or that of the config.
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

func checkpointRow(r row, find func(id, quant string) (*model.Model, error)) Compared {
	m, err := find(r["model_id"], r["quant"])
	if err != nil {
		return unplanned(r, "checkpoint", "weights_gib", err)
	}
	return pointRow(r, "checkpoint", "weights_gib", float64(m.CheckpointBytes())/plan.GiB, m.Unsure)
}

// hostExperts is how tables state that experts are in the host's memory.
var hostExperts = lazyregexp.New(`(\d{1,5}) of \d{1,5} experts on CPU`)

func inferenceRow(r row, find func(id, quant string) (*model.Model, error)) (out []Compared) {
	s, doubt, err := servingOf(r, find)
	if err != nil {
		return []Compared{unplanned(r, "weights", "weights_gib", err)}
	}
	reason := func(own string) string {
		if doubt != "" {
			return doubt
		}
		return own
	}
	out = append(out, pointRow(r, "weights", "weights_gib", float64(s.Weights())/plan.GiB, reason(weightsReason(r, s.Model))))
	if kv, ok := r.number("kv_gib"); ok && kv > 0 {
		out = append(out, pointRow(r, "kv_tokens", "kv_tokens", float64(s.TokensLogged(kv)), reason(s.KVDoubt())))
	}
	a := s.Activation()
	out = append(out, compared(r, "activation", "activation_gib", float64(a.Low)/plan.GiB, float64(a.High)/plan.GiB, doubt))
	if s.GPU != nil && s.MaxKV == 0 { // end to end
		if f, err := s.Fit(); err == nil {
			pool := compared(r, "kv_pool", "kv_gib", float64(f.KV.Low)/plan.GiB, float64(f.KV.High)/plan.GiB, doubt)
			pool.Error = nil // what is left of much may be little: its middle states nothing
			out = append(out, pool)
		}
	}
	return out
}

// servingOf is the set-up of a row. Where an engine or a format is not known, the
// usual one is taken, and doubt states so.
func servingOf(r row, find func(id, quant string) (*model.Model, error)) (s serving.Setup, doubt string, err error) {
	if err := r.numbers(1, "n_gpu", "tp", "pp", "max_model_len", "block_size"); err != nil {
		return s, "", err
	}
	e, ok := engine.ParseRelease(r["framework"], r["version"])
	if !ok || e.Local() {
		e, doubt = engine.Release{Name: engine.VLLM}, fmt.Sprintf("the engine %q is not known; it is planned as vLLM", r["framework"])
	}
	format, _, _ := strings.Cut(r["quant"], ",")
	m, err := find(r["model_id"], strings.TrimSpace(format))
	if err != nil {
		own, failed := find(r["model_id"], "")
		if failed != nil {
			return s, "", err
		}
		m, doubt = own, fmt.Sprintf("the format %q is not known; the weights are planned in the config's format", r["quant"])
	}
	if n := hostExperts.FindStringSubmatch(r["quant"] + " " + r["other_args"]); n != nil {
		count, _ := strconv.ParseInt(n[1], 10, 64)
		m = m.WithoutExperts(count)
	}
	s = serving.Setup{Model: m, Engine: e, Parallel: parallelOf(r, e), Length: r.integer("max_model_len", 0), Block: r.integer("block_size", 0), GPU: gpuOf(r)}
	if s.KV, ok = serving.ParseKV(r["kv_dtype"], m); !ok {
		doubt = fmt.Sprintf("the type %q of keys and values is not known; the model's own is taken", r["kv_dtype"])
	}
	s.ReadArgs(r["other_args"])
	if x, ok := r.number("mem_fraction"); ok && x > 0 && x <= 1 {
		s.Fraction = x
	}
	s = s.Normal()
	return s, doubt, s.Bounded()
}

// gpuOf is the GPU of a row, with the total that it states.
func gpuOf(r row) *plan.GPU {
	g, err := plan.FindGPU(r["gpu"])
	total, stated := r.number("total_gpu_gib")
	switch {
	case err != nil && !stated:
		return nil
	case err != nil:
		return &plan.GPU{Name: r["gpu"], Total: plan.Whole(total * plan.GiB), Board: plan.Whole(total * plan.GiB)}
	case stated:
		own := *g
		own.Total = plan.Whole(total * plan.GiB)
		return &own
	}
	return g
}

// weightsReason returns what a row leaves open about the weights.
func weightsReason(r row, m *model.Model) string {
	quant, args := strings.ToLower(r["quant"]), strings.ToLower(r["other_args"])
	switch {
	case strings.Contains(quant, "gguf"):
		return "a GGUF file's types differ from tensor to tensor, and the row does not name them"
	case strings.Contains(args, "offload"):
		return "some of the weights are in the host's memory"
	case strings.Contains(args, "lora"):
		return "slots for LoRA adapters are counted with the weights"
	case strings.Contains(args, "speculative") || strings.Contains(args, "eagle") || strings.Contains(args, "draft"):
		return "a draft model is counted with the weights"
	case m.Params() < small && m.Params() > 0:
		return "a model below 2 billion parameters: unused rests of the allocator's 20 MiB segments can be 5 % of it"
	}
	return m.Unsure
}

// small is the number of parameters below which the allocator's remainders show.
const small = 2e9

// parallelOf reads how a row divides the model. vLLM counts TP inside a replica,
// SGLang over all of them; the number of GPUs decides.
func parallelOf(r row, e engine.Release) plan.Parallel {
	p := plan.Parallel{TP: r.integer("tp", 1), PP: r.integer("pp", 1)}
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
	if gpus := r.integer("n_gpu", 0); p.DP > 1 && (gpus == p.TP*p.PP*p.DP || gpus == 0 && e.Name == engine.VLLM) {
		p.TP *= p.DP
	}
	if p.EP == 0 && strings.Contains(text, "ep") {
		p.EP = p.TP
	}
	return p.Normal()
}
