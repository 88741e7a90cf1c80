package report

import (
	"fmt"
	"io"
	"math"
	"strings"

	"strandline/plan"
	"strandline/plan/model"
	"strandline/plan/serving"
	"strandline/units"
)

// PlannedModel is the model of a plan.
type PlannedModel struct {
	Name       string   `json:"name"`
	Parameters int64    `json:"parameters"`
	Active     int64    `json:"active_parameters"`
	Layers     int      `json:"layers"`
	Format     string   `json:"format"`
	Checkpoint int64    `json:"checkpoint_bytes"`
	Context    *int64   `json:"context_tokens"`
	Notes      []string `json:"notes"`

	mixture bool // of experts, so that fewer parameters are active
}

func plannedModel(m *model.Model) PlannedModel {
	p := PlannedModel{Name: m.Name, Parameters: m.Params(), Active: m.ActiveParams(), Layers: len(m.Layers), Format: formatOf(m), Checkpoint: m.CheckpointBytes(), Notes: list(m.Notes)}
	for i := range m.Layers {
		p.mixture = p.mixture || m.Layers[i].Experts > 0
	}
	if m.Context > 0 {
		p.Context = &m.Context
	}
	return p
}

func formatOf(m *model.Model) string {
	switch {
	case m.Quant != "":
		return m.Quant
	case m.Width == 4:
		return "fp32"
	}
	return "bf16"
}

// list is a list that is [] in JSON where it is empty.
func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}

// PlannedPart is a component of a plan.
type PlannedPart struct {
	Name   string `json:"name"`
	Low    int64  `json:"low_bytes"`
	High   int64  `json:"high_bytes"`
	Source string `json:"source,omitempty"`
}

// Plan is the document of `strandline plan` for an inference engine.
type Plan struct {
	Schema     string          `json:"schema"`
	Model      PlannedModel    `json:"model"`
	Engine     string          `json:"engine"`
	GPU        *plan.GPU       `json:"gpu"`
	Parallel   PlannedParallel `json:"parallel"`
	Fraction   float64         `json:"memory_fraction"`
	Verdict    plan.Verdict    `json:"verdict"`
	Binding    string          `json:"binding"`
	Components []PlannedPart   `json:"components"`
	Stages     []PlannedStage  `json:"stages"`
	KV         PlannedKV       `json:"kv"`
	Flags      []string        `json:"flags"`
	Notes      []string        `json:"notes"`
	Latency    *PlannedLatency `json:"latency,omitempty"`
	Formats    []PlannedFormat `json:"formats,omitempty"`

	fit *serving.Fit
}

// PlannedParallel is how the model is divided.
type PlannedParallel struct {
	GPUs int64 `json:"gpus"`
	TP   int64 `json:"tp"`
	PP   int64 `json:"pp"`
	EP   int64 `json:"ep"`
	DP   int64 `json:"dp"`
}

// PlannedStage is a stage of the pipeline.
type PlannedStage struct {
	Layers  int64 `json:"layers"`
	Weights int64 `json:"weights_bytes"`
}

// PlannedKV is what the KV cache holds.
type PlannedKV struct {
	PerToken   float64    `json:"bytes_per_token"`
	InWindow   float64    `json:"window_bytes_per_token"`
	Window     int64      `json:"window_tokens"`
	State      int64      `json:"state_bytes"`
	Block      int64      `json:"block_tokens"`
	BlockBytes int64      `json:"block_bytes"`
	Tokens     [2]int64   `json:"tokens"`
	Length     int64      `json:"length_tokens"`
	Need       int64      `json:"request_bytes"`
	Requests   [2]float64 `json:"requests"`
	Longest    [2]int64   `json:"longest_tokens"`
}

// PlannedLatency is the roofline of a prompt and a step.
type PlannedLatency struct {
	Prompt  int64      `json:"prompt_tokens"`
	Batch   int64      `json:"batch"`
	First   [2]float64 `json:"first_token_us"`
	Token   [2]float64 `json:"token_us"`
	Bound   string     `json:"bound"`
	Assumed string     `json:"assumed"`
}

// PlannedFormat is the same set-up with the weights in another format.
type PlannedFormat struct {
	Format  string       `json:"format"`
	Weights int64        `json:"weights_bytes"`
	Tokens  [2]int64     `json:"tokens"`
	Verdict plan.Verdict `json:"verdict"`
}

// NewPlan renders a plan; formats are the same one with other formats.
func NewPlan(f *serving.Fit, formats []*serving.Fit) *Plan {
	s := f.Serving
	p := &Plan{Schema: "strandline.plan/1", Model: plannedModel(s.Model), Engine: s.Engine.String(), GPU: s.GPU,
		Parallel: PlannedParallel{s.Parallel.TP * s.Parallel.PP, s.Parallel.TP, s.Parallel.PP, s.Parallel.EP, s.Parallel.DP},
		Fraction: f.Fraction, Verdict: f.Verdict, Binding: f.Binding, Flags: f.Flags, Notes: list(f.Notes), fit: f}
	for _, c := range f.Components {
		p.Components = append(p.Components, PlannedPart{c.Name, c.Size.Low, c.Size.High, c.Source})
	}
	for _, st := range f.Stages {
		p.Stages = append(p.Stages, PlannedStage{st.Layers, st.Weights.Allocated})
	}
	p.KV = PlannedKV{PerToken: f.PerToken, InWindow: f.InWindow, Window: f.Window, State: f.State, Block: s.Block, BlockBytes: int64(math.Round((f.PerToken + f.InWindow) * float64(s.Block))),
		Tokens: [2]int64{f.Tokens.Low, f.Tokens.High}, Length: s.Length, Need: f.Need, Requests: f.Requests, Longest: [2]int64{f.Longest.Low, f.Longest.High}}
	if l := f.Latency; l != nil {
		const us = 1e6
		p.Latency = &PlannedLatency{l.Prompt, l.Batch, [2]float64{math.Round(l.First[0] * us), math.Round(l.First[1] * us)},
			[2]float64{math.Round(l.Token[0] * us), math.Round(l.Token[1] * us)}, l.Bound, l.Assumed}
	}
	for _, o := range formats {
		p.Formats = append(p.Formats, PlannedFormat{formatOf(o.Serving.Model), o.Components[0].Size.High, [2]int64{o.Tokens.Low, o.Tokens.High}, o.Verdict})
	}
	return p
}

// sizeRange is a range of sizes, one size where both ends read the same.
func sizeRange(low, high int64) string {
	a, b := units.Bytes(low), units.Bytes(high)
	if a == b {
		return a
	}
	if x, unit, ok := strings.Cut(a, " "); ok && strings.HasSuffix(b, " "+unit) {
		a = x
	}
	return a + "–" + b
}

func countRange(low, high int64) string {
	if low == high {
		return units.Count(low)
	}
	return units.Count(low) + "–" + units.Count(high)
}

// billions is a number of parameters as people call it.
func billions(n int64) string {
	switch x := float64(n); {
	case x >= 1e12:
		return fmt.Sprintf("%.3gT", x/1e12)
	case x >= 1e9:
		return fmt.Sprintf("%.3gB", x/1e9)
	default:
		return fmt.Sprintf("%.3gM", x/1e6)
	}
}

func (m *PlannedModel) words() string {
	text := billions(m.Parameters) + " parameters"
	if m.mixture {
		text += ", " + billions(m.Active) + " active"
	}
	return text + ", " + m.Format
}

func (p *PlannedParallel) words(g string) string {
	text := fmt.Sprintf("%d × %s", p.GPUs, g)
	for _, d := range []struct {
		name string
		n    int64
	}{{"TP", p.TP}, {"PP", p.PP}, {"EP", p.EP}, {"DP", p.DP}} {
		if d.n > 1 {
			text += fmt.Sprintf(", %s %d", d.name, d.n)
		}
	}
	return text
}

// verdict paints a verdict.
func (s Style) verdict(v plan.Verdict) string {
	switch v {
	case plan.Fits:
		return s.green(string(v))
	case plan.Tight:
		return s.yellow(string(v))
	}
	return s.red(string(v))
}

// bar draws a part of a whole that begins at a place: what is sure as full blocks,
// what it may be beyond that as light ones.
func bar(begin, low, high, total int64, width int) string {
	at := func(n int64) int {
		if total <= 0 {
			return 0
		}
		return min(int(math.Round(float64(n)/float64(total)*float64(width))), width)
	}
	from, sure, may := at(begin), at(begin+low), at(begin+high)
	if may == from && high > 0 && from < width {
		may++ // what is there shows
	}
	return strings.Repeat(" ", from) + strings.Repeat("█", max(sure-from, 0)) + strings.Repeat("░", max(may-max(sure, from), 0))
}

// parts draws components one below the other, each where the one before it ends.
func parts(w io.Writer, s Style, list []PlannedPart, total int64, rest string) {
	width := min(max(s.columns()-44, 20), 60)
	t := table{right: map[int]bool{1: true}}
	begin := int64(0)
	for _, c := range list {
		t.row(c.Name, sizeRange(c.Low, c.High), bar(begin, c.Low, c.High, total, width))
		if c.Name != rest {
			begin += c.Low + (c.High-c.Low)/2
		}
	}
	t.write(w, "  ")
}

// Text writes the plan for a person.
func (p *Plan) Text(w io.Writer, s Style) {
	fmt.Fprintf(w, "%s  %s\n%s on %s\n\n", s.bold(Line(p.Model.Name)), p.Model.words(), p.Engine, p.Parallel.words(p.GPU.Name))
	fmt.Fprintf(w, "%s: %s\n\n", s.verdict(p.Verdict), p.sentence())
	parts(w, s, p.Components, p.GPU.Total, plan.Slack)
	fmt.Fprintln(w)
	keyValues(w, func(w io.Writer) {
		fmt.Fprintf(w, "  KV cache\t%s; %s tokens\n", p.token(), countRange(p.KV.Tokens[0], p.KV.Tokens[1]))
		fmt.Fprintf(w, "  requests\t%s of %s tokens at once\n", requests(p.KV.Requests), units.Count(p.KV.Length))
		fmt.Fprintf(w, "  longest context\t%s\n", p.longest())
		if l := p.Latency; l != nil {
			fmt.Fprintf(w, "  first token\t%s after a prompt of %s tokens\n", micros(l.First), units.Count(l.Prompt))
			fmt.Fprintf(w, "  a token\t%s with %d requests; %s is the limit\n", micros(l.Token), l.Batch, l.Bound)
		}
	})
	if len(p.Formats) > 0 {
		fmt.Fprintln(w)
		p.formats().write(w, "  ")
	}
	fmt.Fprintf(w, "\n  %s\n\n", strings.Join(p.Flags, " "))
	for _, c := range p.Components {
		fmt.Fprintf(w, "%s: %s\n", c.Name, c.Source)
	}
	if p.Latency != nil {
		fmt.Fprintf(w, "times: a roofline; %s\n", p.Latency.Assumed)
	}
	notes(w, s, p.Notes)
}

func notes(w io.Writer, s Style, list []string) {
	for _, n := range list {
		for i, line := range wrap("note: "+n, s.columns()) {
			if i > 0 {
				line = "  " + line
			}
			fmt.Fprintln(w, line)
		}
	}
}

func (p *Plan) sentence() string {
	used := p.GPU.Total
	text := fmt.Sprintf("%s on each GPU, %.4g of it for the engine", units.Bytes(used), p.Fraction)
	if p.Engine == serving.SGLang {
		text = fmt.Sprintf("%s on each GPU, mem_fraction_static %.4g", units.Bytes(used), p.Fraction)
	}
	if p.Verdict != plan.Fits {
		text += "; what is short: " + p.Binding
	}
	return text
}

// token says what a token and a request take of the KV cache.
func (p *Plan) token() string {
	text := units.Bytes(int64(p.KV.PerToken)) + " a token"
	if p.KV.InWindow > 0 {
		text += fmt.Sprintf(", %s more inside a window of %s", units.Bytes(int64(p.KV.InWindow)), units.Count(p.KV.Window))
	}
	if p.KV.State > 0 {
		text += ", " + units.Bytes(p.KV.State) + " a request"
	}
	return text
}

// longest says how long one request can be. A pool may hold more than the model can
// use.
func (p *Plan) longest() string {
	text := countRange(p.KV.Longest[0], p.KV.Longest[1]) + " tokens for one request"
	if c := p.Model.Context; c != nil && p.KV.Longest[0] >= *c {
		return fmt.Sprintf("the model's own limit, %s tokens; there is room for %s", units.Count(*c), countRange(p.KV.Longest[0], p.KV.Longest[1]))
	}
	return text
}

func requests(r [2]float64) string {
	a, b := fmt.Sprintf("%.1f", r[0]), fmt.Sprintf("%.1f", r[1])
	if a == b {
		return a
	}
	return a + "–" + b
}

func micros(r [2]float64) string {
	unit, size := " ms", 1e3
	if r[1] >= 1e6 {
		unit, size = " s", 1e6
	}
	return fmt.Sprintf("%.3g–%.3g", r[0]/size, r[1]/size) + unit
}

func (p *Plan) formats() *table {
	t := &table{right: map[int]bool{1: true, 2: true}}
	t.row("format", "weights", "tokens", "")
	for _, f := range p.Formats {
		t.row(f.Format, units.Bytes(f.Weights), countRange(f.Tokens[0], f.Tokens[1]), string(f.Verdict))
	}
	return t
}

// Markdown writes the plan for a ticket.
func (p *Plan) Markdown(w io.Writer) {
	fmt.Fprintf(w, "**%s** (%s), %s on %s: **%s**, %s.\n\n", cell(p.Model.Name), p.Model.words(), p.Engine, p.Parallel.words(p.GPU.Name), p.Verdict, p.sentence())
	fmt.Fprint(w, "| each GPU | size | source |\n| --- | --: | --- |\n")
	for _, c := range p.Components {
		fmt.Fprintf(w, "| %s | %s | %s |\n", c.Name, sizeRange(c.Low, c.High), cell(c.Source))
	}
	if len(p.Formats) > 0 {
		fmt.Fprintln(w)
		p.formats().markdown(w)
	}
	fmt.Fprintf(w, "\n- KV cache: %s; %s tokens\n", p.token(), countRange(p.KV.Tokens[0], p.KV.Tokens[1]))
	fmt.Fprintf(w, "- %s requests of %s tokens at once; the longest context: %s\n", requests(p.KV.Requests), units.Count(p.KV.Length), p.longest())
	fmt.Fprintf(w, "- flags: %s\n", code(strings.Join(p.Flags, " ")))
	for _, n := range p.Notes {
		fmt.Fprintf(w, "- %s\n", cell(n))
	}
}
