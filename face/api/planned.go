package api

import (
	"math"
	"slices"

	"strandline/plan"
	"strandline/plan/model"
	"strandline/plan/observed"
	"strandline/plan/rl"
	"strandline/plan/serving"
	"strandline/plan/training"
)

// list is [] in JSON where it is empty.
func list[T any](l []T) []T {
	if l == nil {
		return []T{}
	}
	return l
}

// given is nil for the zero of a type.
func given[T comparable](x T) *T {
	var zero T
	if x == zero {
		return nil
	}
	return &x
}

func partOf(name string, size plan.Range, source string) PlannedPart {
	return PlannedPart{Name: name, Low: size.Low, High: size.High, Source: source}
}

func partsOf(components []plan.Component) (out []PlannedPart) {
	for _, c := range components {
		out = append(out, partOf(c.Name, c.Size, c.Source))
	}
	return out
}

// withoutSources are parts without their sources.
func withoutSources(parts []PlannedPart) []PlannedPart {
	for i := range parts {
		parts[i].Source = ""
	}
	return parts
}

// micros are seconds in whole microseconds.
func micros(seconds [2]float64) [2]float64 {
	return [2]float64{math.Round(seconds[0] * 1e6), math.Round(seconds[1] * 1e6)}
}

// NewPlannedModel is the model of a plan.
func NewPlannedModel(m *model.Model) PlannedModel {
	p := PlannedModel{Name: m.Name, Parameters: m.Params(), Active: m.ActiveParams(), Layers: len(m.Layers), Format: formatOf(m), Checkpoint: m.CheckpointBytes(),
		Context: given(m.Context), Notes: list(m.Notes)}
	p.Mixture = slices.ContainsFunc(m.Layers, func(l model.Layer) bool { return l.Experts > 0 })
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

// NewPlan is the plan of a set-up; formats are the same with the weights in other formats.
func NewPlan(f *serving.Fit, formats []*serving.Fit) *Plan {
	s, p := f.Serving, f.Serving.Parallel
	d := &Plan{Schema: PlanSchema, Model: NewPlannedModel(s.Model), Engine: s.Engine.String(), GPU: s.GPU,
		Parallel: PlannedParallel{GPUs: p.TP * p.PP, TP: p.TP, PP: p.PP, EP: p.EP, DP: p.DP}, Fraction: f.Fraction, Verdict: f.Verdict, Binding: f.Binding,
		Components: partsOf(f.Components), Host: partsOf(f.Host), Flags: f.Flags, Notes: list(f.Notes), Offload: (*PlannedOffload)(f.Offload)}
	if p.Node > 0 {
		nodes := p.Nodes()
		d.Parallel.Nodes, d.Parallel.Node = &nodes, &p.Node
	}
	for _, st := range f.Stages {
		d.Stages = append(d.Stages, PlannedStage{Layers: st.Layers, Weights: st.Weights.Allocated})
	}
	d.KV = PlannedKV{PerToken: f.PerToken, InWindow: f.InWindow, Window: f.Window, State: f.State, Block: s.Block, BlockBytes: int64(math.Round((f.PerToken + f.InWindow) * float64(s.Block))),
		Tokens: f.Tokens.Ends(), Length: s.Length, Need: f.Need, Requests: f.Requests, Longest: f.Longest.Ends()}
	if i := f.Images; i != nil {
		d.Images = &PlannedImages{Count: i.Count, Width: i.Width, Height: i.Height, Tokens: i.Each.Tokens, Patches: i.Each.Patches, Source: i.Each.Source,
			All: i.Tokens, KV: i.KV, AtOnce: i.AtOnce, Low: i.Work.Low, High: i.Work.High}
	}
	if n := f.Load; n != nil {
		d.Load = &PlannedLoad{Requests: n.Requests, Prompt: n.Prompt, Output: n.Output, KV: n.KV, AtOnce: n.AtOnce}
	}
	if l := f.Latency; l != nil {
		d.Latency = &PlannedLatency{Prompt: l.Prompt, Batch: l.Batch, First: micros(l.First), Token: micros(l.Token), Bound: l.Bound, Assumed: l.Assumed}
		if d.Load != nil && l.Whole[1] > 0 {
			d.Load.Answer = given(micros(l.Whole))
		}
	}
	for _, o := range formats {
		one := PlannedFormat{Format: formatOf(o.Serving.Model), Weights: o.Components[0].Size.High, Tokens: o.Tokens.Ends(), Verdict: o.Verdict}
		if o.Offload != nil {
			one.GPULayers = &o.Offload.Layers
		}
		d.Formats = append(d.Formats, one)
	}
	return d
}

// NewTrainPlan is the plan of a training step; setup describes the rest of the set-up.
func NewTrainPlan(t training.Setup, trainer, setup string, g *plan.GPU, n int64) *TrainPlan {
	step, outside := t.Step(), t.Outside()
	d := &TrainPlan{Schema: PlanSchema, Model: NewPlannedModel(t.Model), Trainer: trainer, GPU: g, GPUs: n, Verdict: plan.Judge(step.Peak, outside, g.Total),
		Peak: partOf("peak", step.Peak, "allocator, from active to reserved"), Outside: partOf(plan.NonTorch, outside, "CUDA context and NCCL"),
		Host: step.Host, Stage: step.Stage, Notes: list(t.Notes()), Largest: step.Largest, Setup: setup}
	for i := range step.Moments {
		m := &step.Moments[i]
		size := m.Size()
		d.Moments = append(d.Moments, PlannedMoment{Name: m.Name, Low: size.Low, High: size.High, Parts: partsOf(m.Parts)})
	}
	return d
}

// NewRLPlan is the plan of a step. The title states what is planned, and share is the
// engine's name for its share of the GPU.
func NewRLPlan(title, share string, p *rl.Phases, notes []string) *RLPlan {
	d := &RLPlan{Schema: PlanSchema, Total: p.Total, Host: p.Host(), Components: partsOf(p.Components), Notes: list(notes), Title: title, Share: share}
	if p.Speeds.Host > 0 {
		d.Speeds = (*PlannedSpeeds)(&p.Speeds)
	}
	if n := p.Rollouts; n != nil {
		d.Rollouts = &PlannedRollouts{Prompts: n.Prompts, Group: n.Group, Prompt: n.Prompt, Response: n.Response, Workers: n.Workers,
			Sequences: n.Sequences, One: n.One, Low: n.KV.Low, High: n.KV.High}
	}
	for _, o := range p.Outcomes() {
		way := PlannedWay{Name: o.Way, Verdict: o.Verdict, Fraction: o.Fraction, Binding: o.Binding, Highest: o.Highest, AtOnce: o.AtOnce, HandOvers: []PlannedHandOver{}}
		if o.Fraction != nil {
			way.KV = &o.KV
		}
		if d.Speeds != nil {
			way.Seconds = (*[2]float64)(&o.Step)
		}
		for _, h := range o.HandOvers {
			way.HandOvers = append(way.HandOvers, PlannedHandOver{Phase: h.Phase, Seconds: h.Seconds, Moves: h.Moves})
		}
		for _, peak := range o.Peaks {
			way.Phases = append(way.Phases, PlannedMoment{Name: peak.Phase, Low: peak.Size.Low, High: peak.Size.High, Parts: list(withoutSources(partsOf(peak.Parts)))})
		}
		d.Ways = append(d.Ways, way)
	}
	return d
}

// NewSolved is the answers to a question; setup states what was given.
func NewSolved(m *model.Model, question, setup string, answers []plan.Answer) *Solved {
	d := &Solved{Schema: PlanSchema, Model: NewPlannedModel(m), Question: question, Setup: setup}
	for _, a := range answers {
		d.Answers = append(d.Answers, SolvedAnswer{Setup: a.Setup, Value: given(max(a.Value, 0)), Binding: a.Binding})
	}
	return d
}

// NewTextbook is the simple formulas beside the plan.
func NewTextbook(s serving.Setup, b *serving.Textbook) *Textbook {
	return &Textbook{Schema: PlanSchema, Model: NewPlannedModel(s.Model), Rows: []TextbookFigure{
		{Component: "weights_bytes", Textbook: b.Weights, Planned: b.OwnWeights},
		{Component: "bytes_per_token", Textbook: b.PerToken, Planned: b.OwnPerToken},
		{Component: "activation_bytes", Textbook: b.Activations, Planned: b.OwnActivations},
		{Component: "tokens", Textbook: b.Tokens, Planned: b.OwnTokens},
	}, Why: list(b.Why)}
}

// NewChecked is a run beside its plan, or alone without a model; setup states what was
// planned.
func NewChecked(file string, m *model.Model, setup string, rows []plan.Checked) *Checked {
	d := &Checked{Schema: PlanSchema, File: file, Setup: setup, Notes: []string{}}
	if m != nil {
		planned := NewPlannedModel(m)
		d.Model, d.Notes = &planned, list(m.Notes)
	}
	for i := range rows {
		c := &rows[i]
		r := CheckedRow{Component: c.Component, Unit: "bytes", Observed: c.Observed, Off: c.Off, Line: given(max(c.Line, 0)), Cause: given(c.Cause)}
		if !c.Unplanned {
			ends := c.Planned.Ends()
			r.Planned = &ends
		}
		if c.Tokens {
			r.Unit = "tokens"
		}
		d.Rows = append(d.Rows, r)
	}
	if i := plan.Headline(rows); i >= 0 {
		d.Off, d.First = &rows[i].Component, i
	}
	return d
}

// NewAgainst is a table beside its plans.
func NewAgainst(table string, rows []observed.Compared) *Against {
	a := &Against{Schema: PlanSchema, Table: table, Rows: []AgainstRow{}}
	for i := range rows {
		c := &rows[i]
		r := AgainstRow{ID: c.ID, Component: c.Component, Observed: c.Observed, Error: c.Error, Reason: given(c.Reason), Unplanned: given(c.Unplanned)}
		switch {
		case c.Unplanned != "":
		case c.Point:
			r.Planned = c.Low
		default:
			r.Planned = [2]float64{c.Low, c.High}
			if c.Observed != nil {
				in := c.Inside()
				r.Inside = &in
			}
		}
		a.Rows = append(a.Rows, r)
	}
	return a
}

// NewGPUTable lists the GPUs that are known.
func NewGPUTable() *GPUTable { return &GPUTable{Schema: PlanSchema, GPUs: plan.KnownGPUs()} }

// NewModelTable lists the models that are built in.
func NewModelTable() (*ModelTable, error) {
	d := &ModelTable{Schema: PlanSchema}
	for _, name := range model.Catalog() {
		m, err := model.Find(name, "")
		if err != nil {
			return nil, err
		}
		d.Models = append(d.Models, NewPlannedModel(m))
	}
	return d, nil
}
