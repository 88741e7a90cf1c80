package training

import (
	"strandline/plan"
)

// onStage is what the moments of a step are summed up from, on one stage of the
// pipeline.
type onStage struct {
	Setup
	held
	states      States
	units       gathered
	saved       plan.Span
	first, last bool
}

// stage plans one stage of the pipeline.
func (t Setup) stage(stage int64) Step {
	h := t.hold(stage)
	st := t.states(h)
	out := Step{Stage: stage}
	if t.OffloadStates {
		out.Host = plan.Whole(st.Parameters + st.Optimizer + st.Master + st.Gradients)
		st = States{}
	} else if t.OffloadOptimizer {
		out.Host = plan.Whole(st.Optimizer + st.Master)
		st.Optimizer, st.Master = 0, 0
	}
	s := onStage{t, h, st, t.units(h), t.saved(h, stage), stage == 0, stage == t.PP-1}
	out.Moments = []Moment{s.atLoss(), s.atFirstBlock(), s.atEnd(), s.atStep()}
	for i := range out.Moments {
		if size := out.Moments[i].Size(); size.Middle() > out.Active.Middle() {
			out.Largest, out.Active = i, size
		}
	}
	return out
}

// resident begins a moment with what is there at all of them.
func (s *onStage) resident(name string) Moment {
	m := Moment{Name: name}
	m.add("parameters", plan.Point(s.states.Parameters))
	m.add("optimizer states", plan.Point(s.states.Optimizer))
	m.add("master weights", plan.Point(s.states.Master))
	if s.Buckets {
		m.add("gradient buckets", plan.Point(s.states.Gradients))
	}
	return m
}

// communication adds what sharding has at a moment.
func (s *onStage) communication(m *Moment, parameters plan.Span) {
	m.add("gathered parameters", parameters)
	m.add("gradients, not reduced", plan.Point(s.units.kept))
	m.add("reduce buckets", s.units.buckets)
}

// accumulated adds the gradients of earlier forwards; zero_grad sets others to none.
func (s *onStage) accumulated(m *Moment) {
	if s.Accumulate > 1 && s.PP == 1 {
		m.add("gradients", plan.Point(s.states.Gradients))
	}
}

// atLoss: every activation is saved, and the logits are there.
func (s *onStage) atLoss() Moment {
	m := s.resident("loss")
	s.accumulated(&m)
	m.add("activations", s.saved)
	m.add("cast weights", s.casts())
	if s.last {
		m.add("logits and loss", s.loss())
	}
	s.communication(&m, s.units.forward)
	return m
}

// atFirstBlock: the backward pass is in the block before the head.
func (s *onStage) atFirstBlock() Moment {
	m := s.resident("first block backward")
	s.accumulated(&m)
	m.add("activations", s.saved)
	m.add("block at work", s.working())
	if s.Checkpointing == KeepAll {
		m.add("cast weights", s.casts())
	}
	if s.last && s.LoRA == nil {
		m.add("lm_head's gradient", plan.Point(s.headGradient()))
		if s.OptimizerInBackward {
			m.add("optimizer temporaries", s.temporaries(s.held))
		}
	}
	s.communication(&m, s.units.backward)
	return m
}

// casts are autocast's copies of the matrices. They stay in its cache until it ends, and
// in the graph until their backward pass; with recomputation the graph does not keep them.
func (s *onStage) casts() plan.Span {
	if !s.casting() {
		return plan.Span{}
	}
	head := s.head
	if head == 0 && s.last {
		head = s.embed
	}
	n := s.ComputeBytes * (s.matrices + head)
	if s.Checkpointing != KeepAll {
		return plan.Between(0, n)
	}
	return plan.Point(n)
}

// headGradient returns lm_head's gradient: in its own unit it is reduced by then; in
// the root unit it stays unsharded until the end.
func (s *onStage) headGradient() float64 {
	head := s.head
	if head == 0 {
		head = s.embed
	}
	switch {
	case s.ZeRO == 3 && s.ownEnds():
		return head / float64(s.Shard*s.CP) * s.GradBytes
	case s.ZeRO == 3:
		return head * s.ComputeBytes
	}
	return head * s.GradBytes
}

// atEnd: all gradients are there.
func (s *onStage) atEnd() Moment {
	m := s.resident("end of backward")
	m.add("gradients", plan.Point(s.states.Gradients))
	m.add("block at work", s.working())
	if s.LoRA == nil && s.first {
		// The embedding's own gradient, and of a tied one that of lm_head too.
		m.add("embedding's gradient", plan.Point(s.embed*min(s.GradBytes, s.ComputeBytes)))
		if s.OptimizerInBackward {
			m.add("optimizer temporaries", s.temporaries(s.held))
		}
	}
	s.communication(&m, s.units.root)
	return m
}

// atStep: the optimizer works.
func (s *onStage) atStep() Moment {
	m := s.resident("optimizer step")
	m.add("gradients", plan.Point(s.states.Gradients))
	if !s.OptimizerInBackward {
		m.add("optimizer temporaries", s.temporaries(s.held))
	}
	return m
}

// temporaries returns what the optimizer makes while it steps.
func (t Setup) temporaries(h held) plan.Span {
	trained := h.all()
	if t.LoRA != nil {
		trained = h.adapters
	}
	switch {
	case t.OffloadStates || t.OffloadOptimizer:
		return plan.Span{}
	case t.Optimizer == "adamw-8bit":
		// Two states in fp32, and the update and the gradient with them.
		largest := h.largest
		if t.LoRA != nil {
			largest = 0
		}
		if t.ZeRO >= 3 {
			largest /= float64(t.Shard * t.CP)
		}
		return plan.Between(8*largest, 16*largest)
	case t.Framework == "deepspeed" && t.ZeRO >= 1 && t.ZeRO <= 2:
		return plan.Point(4 * trained / float64(t.Shard)) // an fp32 copy of the gradient's part
	case t.ZeRO == 3:
		return plan.Between(0, t.ParamBytes*trained/float64(t.Shard*t.CP)) // fused has none, foreach one
	case t.OptimizerInBackward:
		return plan.Span{}
	}
	return plan.Between(0, t.ParamBytes*trained/4)
}

// gathered are the buffers of sharded parameters at the moments of a step.
type gathered struct {
	forward, backward, root, buckets plan.Span
	kept                             float64 // gradients that pipeline stages keep unsharded
}

// units are the buffers of FSDP and ZeRO. Source: FSDP2's prefetching of the next
// unit, and the reduce-scatter of one while the next block runs.
func (t Setup) units(h held) (u gathered) {
	cb := t.ComputeBytes
	if t.Framework == "deepspeed" && (t.ZeRO == 1 || t.ZeRO == 2) {
		const bucket = 5e8 // elements, reduce_bucket_size
		n := min(bucket, h.all())
		u.buckets = plan.Between(n*cb, 2*n*cb)
	}
	// FSDP of one rank still copies to the type of computation.
	if t.ZeRO < 3 || t.Shard*t.CP == 1 && t.PP == 1 && t.ParamBytes == cb {
		return u
	}
	if t.PP > 1 || t.Keep { // nothing is returned between micro-batches
		u.forward = plan.Point(h.all() * cb)
		u.backward, u.root = u.forward, u.forward
		if t.PP > 1 {
			u.kept = h.all() * t.GradBytes
		}
		return u
	}
	block := h.block * cb
	if t.Float8 == "all-gather" {
		block /= 2
	}
	if t.LoRA != nil && t.LoRA.Base == "nf4" {
		block = h.block * nf4Bytes
	}
	ends := (h.embed + h.head + h.norms) * cb
	if h.head == 0 {
		ends = (h.embed + h.norms) * cb
	}
	root := ends
	if t.ownEnds() {
		root = h.head * cb
		if h.head == 0 {
			root = ends
		}
	}
	grad := h.block * cb
	reduce := h.block * t.GradBytes
	if t.LoRA != nil {
		grad, reduce = 0, 0
	}
	u.forward = plan.Point(root).Plus(plan.Between(block, 2*block))
	u.backward = plan.Point(root).Plus(plan.Between(2*block+grad+reduce, 3*block+grad+2*reduce))
	u.root = plan.Point(ends).Plus(plan.Between(0, reduce))
	if t.ownEnds() {
		u.backward = plan.Between(2*block+grad+reduce, 3*block+grad+2*reduce)
	}
	return u
}

// ownEnds reports whether embedding and lm_head are separate FSDP units, as in
// torchtune's full recipes and in torchtitan from 2026.
func (t Setup) ownEnds() bool {
	switch t.Framework {
	case "torchtune":
		return t.LoRA == nil
	case "torchtitan":
		return t.Year >= 2026
	}
	return false
}
