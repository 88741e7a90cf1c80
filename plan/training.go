package plan

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"strandline/model"
)

// Checkpointing says what of a block's activations is kept for the backward pass.
type Checkpointing string

const (
	KeepAll     Checkpointing = "none"
	KeepMatmuls Checkpointing = "selective-op" // attention's output and every second product
	KeepInputs  Checkpointing = "full"
)

// Adapters are LoRA's.
type Adapters struct {
	Rank    int64
	Targets []string // of q, k, v, o, gate, up, down
	Base    string   // the format of the frozen weights: "none" or "nf4"
}

// Training is a set-up of a training run.
type Training struct {
	Model *model.Model
	// Framework and Year say whose conventions hold: torchtitan, torchtune,
	// deepspeed, megatron; others are taken for plain FSDP2.
	Framework string
	Year      float64 // with the month as a fraction; 0 is the newest

	Shard, TP, PP, CP int64
	ZeRO              int64 // 0 to 3; 3 is FSDP
	SequenceParallel  bool
	Interleaved       int64 // stages a rank has; 0 and 1 are plain 1F1B
	Keep              bool  // gathered parameters stay until their backward pass

	Sequences, Accumulate, Length int64 // a forward's sequences; forwards a step; tokens of a sequence

	ParamBytes, ComputeBytes, GradBytes float64
	Optimizer                           string
	StateBytes                          float64 // optimizer states of a parameter
	Master                              bool    // a further fp32 copy of the parameters

	Checkpointing         Checkpointing
	EveryNth              int64 // of selective-layer: every n-th block is recomputed
	Compile, LossCompiled bool
	Float8                string
	LoRA                  *Adapters
	LossChunks            int64
	OptimizerInBackward   bool
	OffloadStates         bool // parameters and optimizer in the host's memory
	OffloadOptimizer      bool
	OffloadActivations    bool
	ExpertsOnCPU          bool
	Observed              string // "peak active" or "peak reserved"; anything else may be either
}

func (t Training) normal() Training {
	for _, n := range []*int64{&t.Shard, &t.TP, &t.PP, &t.CP, &t.Sequences, &t.Accumulate, &t.LossChunks, &t.Interleaved} {
		*n = max(*n, 1)
	}
	if t.Length == 0 {
		t.Length = 4096
	}
	for _, b := range []*float64{&t.ParamBytes, &t.ComputeBytes, &t.GradBytes} {
		if *b == 0 {
			*b = 2
		}
	}
	if t.Checkpointing == "" {
		t.Checkpointing = KeepInputs
	}
	if t.Year == 0 {
		t.Year = 2026
	}
	return t
}

// A Part is what one thing takes.
type Part struct {
	Name string
	Size Range
}

// A Moment is a time in a training step at which memory may peak.
type Moment struct {
	Name  string
	Parts []Part
}

// Size is the sum of the parts.
func (m *Moment) Size() (sum Range) {
	for _, p := range m.Parts {
		sum = sum.plus(p.Size)
	}
	return sum
}

func (m *Moment) add(name string, s span) {
	if s.high > 0 {
		m.Parts = append(m.Parts, Part{name, s.bytes()})
	}
}

// Step is the memory of a training step on the rank that takes most.
type Step struct {
	Stage   int64 // of the pipeline
	Moments []Moment
	Largest int   // index of the moment that peaks
	Active  Range // what the largest moment sums up to
	Peak    Range // the same as what is logged, of which Observed tells
	Host    int64 // bytes in the host's memory for a rank
}

// Step plans one training step.
func (t Training) Step() Step {
	t = t.normal()
	var worst Step
	for _, stage := range slices.Compact([]int64{0, t.PP - 1}) {
		s := t.stage(stage)
		if s.Active.Middle() > worst.Active.Middle() || len(worst.Moments) == 0 {
			worst = s
		}
	}
	low, high := t.margins()
	active := span{float64(worst.Active.Low), float64(worst.Active.High)}
	worst.Peak = active.stretched(low, high).within(1.5).bytes()
	return worst
}

// margins are the bounds of what is logged, as factors of what is counted here.
// Reserved memory runs up to a quarter above it; active memory is a little less
// where a compiler fuses away a tensor that is counted, and a little more for
// rounding and what is too small to be counted. Where it is not said which of the
// two was logged, it may be either.
func (t Training) margins() (low, high float64) {
	const fused, rounded, reserved = 0.93, 1.12, 1.25
	switch t.Observed {
	case "peak active":
		return fused, rounded
	case "peak reserved":
		return 1, reserved
	}
	return fused, reserved
}

// held are the parameters of a stage, by what they are, on one rank of TP.
type held struct {
	blocks      float64 // all transformer blocks
	block       float64 // the largest of them
	embed, head float64 // embedding, lm_head; a tied one is embed alone
	norms       float64
	largest     float64 // the largest single tensor
	matrices    float64 // of blocks: what Muon updates
	linears     float64 // of blocks: what a base_quant stores in few bits
	adapters    float64 // parameters of LoRA
	layers      int64
}

func (h held) all() float64 { return h.blocks + h.embed + h.head + h.norms }

// divided is a tensor's parameters on one rank of TP.
func (t Training) divided(x *model.Tensor) float64 {
	n := float64(x.Params())
	if x.Part != model.Whole {
		n /= float64(t.TP)
	}
	return n
}

func (t Training) hold(stage int64) (h held) {
	m := t.Model
	first, count := int64(0), int64(0)
	for i, n := range (Parallel{PP: t.PP}).stages(int64(len(m.Layers))) {
		if int64(i) == stage {
			count = n
			break
		}
		first += n
	}
	h.layers = count
	for i := first; i < first+count; i++ {
		block := 0.0
		for j := range m.Layers[i].Tensors {
			x := &m.Layers[i].Tensors[j]
			if t.ExpertsOnCPU && x.Role == model.Expert {
				continue
			}
			n := t.divided(x)
			block += n
			if x.Out > 1 && x.In > 1 {
				h.matrices += n
				h.linears += n
			}
			h.largest = max(h.largest, n/float64(max(x.Count, 1)))
			h.adapters += t.adapters(x)
		}
		h.blocks += block
		h.block = max(h.block, block)
	}
	if stage == 0 || stage == t.PP-1 && m.Tied {
		for i := range m.Embedding {
			h.embed += t.divided(&m.Embedding[i])
		}
	}
	if stage == t.PP-1 {
		for i := range m.Last {
			if m.Last[i].Role == model.Head {
				h.head += t.divided(&m.Last[i])
			} else {
				h.norms += t.divided(&m.Last[i])
			}
		}
	}
	h.largest = max(h.largest, h.embed, h.head)
	return h
}

var targetNames = map[string]string{
	"q": "q_proj", "k": "k_proj", "v": "v_proj", "o": "o_proj", "gate": "gate_proj", "up": "up_proj", "down": "down_proj",
}

func (t Training) targets(x string) bool {
	return t.LoRA != nil && slices.Contains(t.LoRA.Targets, x)
}

// adapters are the parameters of LoRA beside a matrix, r(in + out).
func (t Training) adapters(x *model.Tensor) float64 {
	if t.LoRA == nil || x.Role == model.Router || x.Role == model.Norm {
		return 0
	}
	for _, target := range t.LoRA.Targets {
		if name := targetNames[target]; name != "" && strings.HasSuffix(x.Name, name) {
			return float64(t.LoRA.Rank * (x.In + x.Out) * x.Count)
		}
	}
	return 0
}

// states are the bytes that stay from step to step, and the gradients when all
// of them are there, on one rank.
type states struct{ params, optimizer, master, grads float64 }

// adam8Scales are the scales of block-wise 8-bit states, 4 bytes for 256 numbers
// of two states.
const adam8Scales = 2 * 4.0 / 256

func (t Training) states(h held) (s states) {
	sharded, gradShard, stateShard := 1.0, 1.0, 1.0
	n := float64(t.Shard * t.CP)
	if t.ZeRO >= 1 {
		stateShard = n
	}
	if t.ZeRO >= 2 {
		gradShard = n
	}
	if t.ZeRO >= 3 {
		sharded = n
	}
	perParam := t.StateBytes
	if t.Optimizer == "adamw-8bit" {
		perParam += adam8Scales
	}
	trained := h.all()
	if t.LoRA != nil {
		base := h.all() * t.ParamBytes
		if t.LoRA.Base == "nf4" {
			base = h.linears*nf4Bytes + (h.all()-h.linears)*t.ParamBytes
		}
		s.params = (base + h.adapters*t.ParamBytes) / sharded
		trained = h.adapters
	} else {
		s.params = trained * t.ParamBytes / sharded
	}
	s.optimizer = trained * perParam / stateShard
	if t.Optimizer == "muon" && t.LoRA == nil { // AdamW's two states elsewhere
		s.optimizer = (h.matrices*4 + (trained-h.matrices)*8) / stateShard
	}
	if t.Master {
		s.master = trained * 4 / stateShard
	}
	s.grads = trained * t.GradBytes / gradShard
	if t.OptimizerInBackward {
		s.grads = 0
	}
	return s
}

// nf4Bytes is a double-quantised nf4 number: 4 bits, one byte for 64 and four
// bytes for 64 × 256 numbers.
const nf4Bytes = (4 + 8.0/64 + 32.0/(64*256)) / 8

// stage plans one stage of the pipeline.
func (t Training) stage(stage int64) Step {
	h := t.hold(stage)
	st := t.states(h)
	out := Step{Stage: stage}
	if t.OffloadStates {
		out.Host = whole(st.params + st.optimizer + st.master + st.grads)
		st = states{}
	} else if t.OffloadOptimizer {
		out.Host = whole(st.optimizer + st.master)
		st.optimizer, st.master = 0, 0
	}
	saved := t.saved(h, stage)
	units := t.units(h)
	resident := func(name string) Moment {
		m := Moment{Name: name}
		m.add("parameters", point(st.params))
		m.add("optimizer states", point(st.optimizer))
		m.add("master weights", point(st.master))
		return m
	}
	last := stage == t.PP-1

	a := resident("loss")
	if t.Accumulate > 1 && t.PP == 1 {
		a.add("gradients", point(st.grads))
	}
	a.add("activations", saved)
	if last {
		a.add("logits and loss", t.loss())
	}
	a.add("gathered parameters", units.forward)
	a.add("gradients, not reduced", point(units.kept))
	a.add("reduce buckets", units.buckets)

	first := resident("first block backward")
	if t.Accumulate > 1 && t.PP == 1 {
		first.add("gradients", point(st.grads))
	}
	first.add("activations", saved)
	first.add("block at work", t.working(h))
	if last && t.LoRA == nil {
		width := t.GradBytes
		if t.ZeRO == 3 {
			width = t.ComputeBytes
		}
		head := h.head
		if head == 0 {
			head = h.embed
		}
		if t.ZeRO == 3 && t.ownEnds() { // reduced when its unit was done
			head, width = head/float64(t.Shard*t.CP), t.GradBytes
		}
		first.add("lm_head's gradient", point(head*width))
		if t.OptimizerInBackward {
			first.add("optimizer temporaries", t.temporaries(h))
		}
	}
	first.add("gathered parameters", units.backward)
	first.add("gradients, not reduced", point(units.kept))
	first.add("reduce buckets", units.buckets)

	end := resident("end of backward")
	end.add("gradients", point(st.grads))
	end.add("block at work", t.working(h))
	if t.LoRA == nil && stage == 0 {
		// The embedding's own gradient, and of a tied one that of lm_head too.
		end.add("embedding's gradient", point(h.embed*min(t.GradBytes, t.ComputeBytes)))
		if t.OptimizerInBackward {
			end.add("optimizer temporaries", t.temporaries(h))
		}
	}
	end.add("gathered parameters", units.root)
	end.add("gradients, not reduced", point(units.kept))
	end.add("reduce buckets", units.buckets)

	step := resident("optimizer step")
	step.add("gradients", point(st.grads))
	if !t.OptimizerInBackward {
		step.add("optimizer temporaries", t.temporaries(h))
	}
	out.Moments = []Moment{a, first, end, step}
	for i := range out.Moments {
		if size := out.Moments[i].Size(); size.Middle() > out.Active.Middle() {
			out.Largest, out.Active = i, size
		}
	}
	return out
}

// temporaries are what the optimizer makes while it steps.
func (t Training) temporaries(h held) span {
	trained := h.all()
	if t.LoRA != nil {
		trained = h.adapters
	}
	switch {
	case t.OffloadStates || t.OffloadOptimizer:
		return span{}
	case t.Optimizer == "adamw-8bit":
		// Two states in fp32, and the update and the gradient with them.
		largest := h.largest
		if t.LoRA != nil {
			largest = 0
		}
		if t.ZeRO >= 3 {
			largest /= float64(t.Shard * t.CP)
		}
		return between(8*largest, 16*largest)
	case t.Framework == "deepspeed" && t.ZeRO >= 1 && t.ZeRO <= 2:
		return point(4 * trained / float64(t.Shard)) // an fp32 copy of the gradient's part
	case t.ZeRO == 3:
		return between(0, t.ParamBytes*trained/float64(t.Shard*t.CP)) // fused has none, foreach one
	case t.OptimizerInBackward:
		return span{}
	}
	return between(0, t.ParamBytes*trained/4)
}

// gathered are the buffers of sharded parameters at the moments of a step.
type gathered struct {
	forward, backward, root, buckets span
	kept                             float64 // gradients that pipeline stages keep unsharded
}

// units are the buffers of FSDP and ZeRO. Source: FSDP2's prefetching of the next
// unit, and the reduce-scatter of one while the next block runs.
func (t Training) units(h held) (u gathered) {
	cb := t.ComputeBytes
	if t.Framework == "deepspeed" && (t.ZeRO == 1 || t.ZeRO == 2) {
		const bucket = 5e8 // elements, reduce_bucket_size
		n := min(bucket, h.all())
		u.buckets = between(n*cb, 2*n*cb)
	}
	// FSDP of one rank still copies to the type of computation.
	if t.ZeRO < 3 || t.Shard*t.CP == 1 && t.PP == 1 && t.ParamBytes == cb {
		return u
	}
	if t.PP > 1 || t.Keep { // nothing is given back between micro-batches
		u.forward = point(h.all() * cb)
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
	u.forward = point(root).plus(between(block, 2*block))
	u.backward = point(root).plus(between(2*block+grad+reduce, 3*block+grad+2*reduce))
	u.root = point(ends).plus(between(0, reduce))
	if t.ownEnds() {
		u.backward = between(2*block+grad+reduce, 3*block+grad+2*reduce)
	}
	return u
}

// ownEnds tells whether embedding and lm_head are FSDP units of their own: so in
// torchtune's full recipes and in torchtitan from 2026.
func (t Training) ownEnds() bool {
	switch t.Framework {
	case "torchtune":
		return t.LoRA == nil
	case "torchtitan":
		return t.Year >= 2026
	}
	return false
}

// tokens are those that a rank puts through one forward.
func (t Training) tokens() float64 {
	return float64(t.Sequences) * float64(t.Length) / float64(t.CP)
}

// perToken are the bytes that a block keeps of a token: H of the residual stream,
// q and kv of the attention, i of the feed-forward part, n its heads.
type perToken struct{ H, q, kv, i, n float64 }

func (t Training) perToken(l *model.Layer) perToken {
	c := &l.Cache
	p := perToken{H: float64(t.Model.Hidden), n: float64(c.QueryHeads)}
	switch c.Kind {
	case model.State:
		p.q, p.kv = float64(c.OutputWidth), float64(c.LinearWidths)/2
	case model.Latent: // keys and values are made for every head
		p.q, p.kv = float64(c.QueryWidth), float64(c.QueryWidth+c.OutputWidth)/2
	default:
		p.q, p.kv = float64(c.QueryWidth), float64(c.Heads*c.Key)
	}
	p.i = float64(l.FFN) + float64(l.TopK*l.ExpertFFN)
	if l.TopK > 0 { // a token's copy for each of its experts, in and out
		p.i += float64(l.TopK) * p.H / 2
	}
	return p
}

// share divides what TP divides: everything with sequence parallelism, else all but
// the residual stream.
func (t Training) share(p perToken) perToken {
	n := float64(t.TP)
	p.q, p.kv, p.i, p.n = p.q/n, p.kv/n, p.i/n, p.n/n
	if t.SequenceParallel {
		p.H /= n
	}
	return p
}

// all are the bytes of a token and block where nothing is recomputed. They count
// the inputs of the norms, of the linear layers, of attention and of the gate;
// eager norms work in fp32. Attention takes keys and values as they are, or
// repeated for every query head.
func (t Training) all(p perToken) span {
	w := t.ComputeBytes / 2
	switch {
	case t.LoRA != nil:
		// A frozen linear layer keeps its input only where an adapter needs it.
		h, i := 4*p.H, 4*p.i
		if t.targets("q") || t.targets("k") || t.targets("v") {
			h += 2 * p.H
		}
		if t.targets("gate") || t.targets("up") {
			h += 2 * p.H
		}
		if t.targets("down") {
			i += 2 * p.i
		}
		if !t.Compile {
			h, i = 2*h, i+2*p.i
		}
		return between(h+4*p.q+4*p.kv+i, h+8*p.q+i+2*p.i).times(w)
	case t.Compile:
		return between(8*p.H+4*p.q+4*p.kv+6*p.i, 8*p.H+8*p.q+8*p.i).times(w)
	}
	return between(16*p.H+6*p.q+4*p.kv+8*p.i, 16*p.H+10*p.q+8*p.i).times(w)
}

// kept are the bytes of a token and block that wait for the backward pass.
func (t Training) kept(p perToken, layer int64) span {
	switch {
	case t.Checkpointing == KeepInputs:
		return point(2 * p.H)
	case t.EveryNth > 1:
		if layer%t.EveryNth == 0 {
			return point(2 * p.H)
		}
		return t.all(p)
	case t.EveryNth == 1:
		return point(2 * p.H)
	case t.Checkpointing == KeepMatmuls:
		// The block's input, attention's output and the products q, v, gate and down;
		// 4 bytes a head for attention's log-sum-exp.
		s := point(2*(2*p.H+2*p.q+p.kv+p.i) + 4*p.n)
		if t.Float8 == "nvfp4" { // these products are not on the list
			s.low = 2*(p.H+p.q) + 4*p.n
		}
		return s
	}
	return t.all(p)
}

// inFlight is how many micro-batches of all its layers a stage keeps. Sources:
// 1F1B, and Narayanan et al. 2021 for interleaved stages.
func (t Training) inFlight(stage int64) float64 {
	if t.PP == 1 {
		return 1
	}
	if t.Interleaved > 1 {
		chunks := 2*(t.PP-stage-1) + (t.Interleaved-1)*t.PP + 1
		return min(float64(chunks)/float64(t.Interleaved), float64(t.Accumulate))
	}
	return float64(min(t.PP-stage, t.Accumulate))
}

// saved are the activations that wait for the backward pass.
func (t Training) saved(h held, stage int64) (sum span) {
	if t.OffloadActivations && t.Checkpointing == KeepInputs {
		const left = 5 // tensors on their way
		p := t.share(perToken{H: float64(t.Model.Hidden)})
		return between(1, left).times(2 * p.H * t.tokens())
	}
	first := int64(0)
	for i, n := range (Parallel{PP: t.PP}).stages(int64(len(t.Model.Layers))) {
		if int64(i) == stage {
			break
		}
		first += n
	}
	for i := first; i < first+h.layers; i++ {
		sum = sum.plus(t.kept(t.share(t.perToken(&t.Model.Layers[i])), i))
	}
	return sum.times(t.tokens() * t.inFlight(stage))
}

// working is what the block whose backward pass runs has beside what was saved of
// it: what is recomputed, and the gradients of its activations.
func (t Training) working(h held) span {
	var most span
	for i := range t.Model.Layers {
		p := t.share(t.perToken(&t.Model.Layers[i]))
		all, kept := t.all(p), t.kept(p, int64(i))
		s := between(max(all.low-kept.low, 0), max(all.high-kept.high, 0)).plus(between(2*p.H+2*p.i, 4*p.H+4*p.i))
		if t.SequenceParallel && t.TP > 1 { // the block works on all of the sequence
			s = s.plus(between(4*float64(t.Model.Hidden), 8*float64(t.Model.Hidden)))
		}
		if s.high > most.high {
			most = s
		}
	}
	return most.times(t.tokens())
}

// loss are the logits and what the loss makes of them, by the bytes of a logit.
func (t Training) loss() span {
	n := t.tokens() * float64(t.Model.Vocab) / float64(t.TP)
	chunks := float64(t.LossChunks)
	switch {
	case t.LossChunks > 1 && t.Framework == "torchtitan":
		// lm_head, loss and backward of one chunk after the other; the gradient of
		// lm_head's input waits.
		return between(8, 14).times(n / chunks).plus(point(2 * t.tokens() * float64(t.Model.Hidden)))
	case t.LossChunks > 1 && t.LossCompiled:
		return between(2, 2+4/chunks).times(n) // bf16 logits of all, fp32 of one
	case t.LossChunks > 1:
		return between(2+4/chunks, 2+12/chunks).times(n)
	case t.TP > 1 && t.SequenceParallel:
		return between(14, 19).times(n) // loss parallel over TP
	case t.LossCompiled && (t.Framework == "torchtune" || t.Framework == "torchtitan" && t.Year < 2025.2):
		return point(8 * n) // the model casts to fp32
	case t.LossCompiled:
		return point(4 * n)
	case t.Framework == "deepspeed":
		return point(14 * n) // outputs hold the bf16 logits through backward
	}
	return point(12 * n)
}

// trainingOf reads a row of a table with the columns of a training set-up.
func trainingOf(r row, m *model.Model) (Training, error) {
	for _, name := range []string{"micro_batch", "seq_len", "optimizer", "param_dtype"} {
		if r[name] == "" {
			return Training{}, fmt.Errorf("the column %s is empty; there is no plan without it", name)
		}
	}
	t := Training{
		Model: m, Framework: strings.ToLower(r["framework"]), Year: yearOf(r["version"]),
		Shard: r.whole("dp_shard", 1), TP: r.whole("tp", 1), PP: r.whole("pp", 1), CP: r.whole("cp", 1), ZeRO: r.whole("zero_stage", 0),
		SequenceParallel: r["sequence_parallel"] == "1", Keep: r["reshard_after_forward"] == "no",
		Sequences: r.whole("micro_batch", 1), Accumulate: r.whole("grad_accum", 1), Length: r.whole("seq_len", 1),
		ParamBytes: widthOf(r["param_dtype"]), ComputeBytes: widthOf(r["compute_dtype"]), GradBytes: widthOf(r["grad_dtype"]),
		Optimizer: r["optimizer"], Master: r["master_weights"] == "yes",
		Compile: r["compile"] == "1", LossCompiled: r["loss_compiled"] == "1", Float8: r["float8"], LossChunks: r.whole("loss_chunks", 1),
		OptimizerInBackward: r["optimizer_in_backward"] == "1", OffloadActivations: r["activation_offload"] == "1",
		OffloadStates: strings.Contains(r["cpu_offload"], "params"), OffloadOptimizer: r["cpu_offload"] == "optimizer",
		Checkpointing: Checkpointing(r["activation_checkpointing"]), Observed: r["observed_what"],
	}
	t.StateBytes, _ = r.number("optimizer_state_bytes_per_param")
	if t.ZeRO > 3 {
		return t, fmt.Errorf("zero_stage %d is not known", t.ZeRO)
	}
	if n, ok := strings.CutPrefix(r["activation_checkpointing"], "selective-layer-"); ok {
		every, err := strconv.ParseInt(n, 10, 32)
		if err != nil || every < 1 {
			return t, fmt.Errorf("activation_checkpointing %q is not known", r["activation_checkpointing"])
		}
		t.EveryNth = every
	} else if !slices.Contains([]Checkpointing{KeepAll, KeepMatmuls, KeepInputs, ""}, t.Checkpointing) {
		return t, fmt.Errorf("activation_checkpointing %q is not known", t.Checkpointing)
	}
	if n, ok := strings.CutPrefix(r["pp_schedule"], "interleaved-1F1B-"); ok {
		t.Interleaved, _ = strconv.ParseInt(n, 10, 32)
	}
	if r["method"] == "lora" || r["method"] == "qlora" {
		t.LoRA = &Adapters{Rank: r.whole("lora_rank", 8), Targets: strings.Fields(r["lora_targets"]), Base: r["base_quant"]}
	}
	return t, nil
}

// yearOf is a version that is a date, such as "2024-12", as a year.
func yearOf(version string) float64 {
	year, rest, _ := strings.Cut(version, "-")
	y, err := strconv.Atoi(year)
	if err != nil || y < 2000 || y > 2100 {
		return 0
	}
	month, err := strconv.Atoi(rest)
	if err != nil || month < 1 || month > 12 {
		return float64(y)
	}
	return float64(y) + float64(month-1)/12
}

// widthOf is the bytes of a number by the name of its type, 0 if unknown.
func widthOf(name string) float64 {
	return map[string]float64{"fp32": 4, "float32": 4, "bf16": 2, "bfloat16": 2, "fp16": 2, "float16": 2, "fp8": 1}[name]
}

func trainingRow(r row, find func(id, quant string) (*model.Model, error)) Compared {
	const component, column = "train_peak", "train_peak_gib"
	m, err := find(r["model_id"], "bf16")
	if err != nil {
		return unplanned(r, component, column, err)
	}
	t, err := trainingOf(r, m)
	if err == nil {
		err = t.Check()
	}
	if err != nil {
		return unplanned(r, component, column, err)
	}
	p := t.Step().Peak
	return compared(r, component, column, float64(p.Low)/gib, float64(p.High)/gib, "")
}
