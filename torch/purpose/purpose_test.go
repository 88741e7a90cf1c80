package purpose

import (
	"maps"
	"testing"

	"strandline/stack"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// A step of a made history: an allocation, or the free of one, by name.
type step struct {
	name string // of the allocation
	size int64
	at   string // the stack: a key of stacks
	free bool
	oom  bool // memory runs out
	old  bool // there before the first event, and still there after the last
}

const torch = "/usr/lib/python3/dist-packages/torch/"

// stacks are what the made programs run through, innermost frame first.
var stacks = map[string][]stack.Frame{
	"model": {{File: torch + "nn/modules/module.py", Function: "_apply"}, {File: "train.py", Function: "<module>"}},
	"copy":  {{File: "train.py", Line: 7, Function: "<module>"}},
	"load":  {{File: "train.py", Line: 9, Function: "load_batch"}, {File: "train.py", Function: "<module>"}},
	"forward": {{File: torch + "nn/functional.py", Function: "linear"}, {File: torch + "nn/modules/module.py", Function: "_call_impl"},
		{File: "train.py", Function: "<module>"}},
	"loss":     {{File: "train.py", Line: 12, Function: "<module>"}},
	"backward": {},
	"recompute": {{File: "model.py", Function: "forward"}, {File: torch + "nn/modules/module.py", Function: "_call_impl"},
		{File: torch + "utils/checkpoint.py", Function: "unpack_hook"}},
	"state": {{File: torch + "optim/adam.py", Function: "_init_group"}, {File: torch + "optim/optimizer.py", Function: "wrapper"},
		{File: "train.py", Function: "<module>"}},
	"update": {{File: torch + "optim/adam.py", Function: "_multi_tensor_adam"}, {File: torch + "optim/optimizer.py", Function: "wrapper"},
		{File: "train.py", Function: "<module>"}},
	"zero": {{File: torch + "optim/optimizer.py", Function: "zero_grad"}, {File: "train.py", Function: "<module>"}},
	"gather": {{File: torch + "distributed/fsdp/_fully_shard/_fsdp_collectives.py", Function: "foreach_all_gather"},
		{File: torch + "nn/modules/module.py", Function: "_call_impl"}, {File: "train.py", Function: "<module>"}},
	"reduce": {{File: torch + "distributed/fsdp/_fully_shard/_fsdp_collectives.py", Function: "foreach_reduce"}},
	"cache":  {{File: "engine.py", Function: "_allocate_kv_cache"}, {File: "serve.py", Function: "<module>"}},
	"serve": {{File: "model.py", Function: "forward"}, {File: torch + "utils/_contextlib.py", Function: "decorate_context"},
		{File: "serve.py", Function: "<module>"}},
	"keep":    {{File: "train.py", Line: 20, Function: "<module>"}},
	"answer":  {{File: "answer.py", Function: "forward"}, {File: "serve.py", Function: "<module>"}},
	"buffers": {{File: "store.py", Line: 3, Function: "reserve"}, {File: "serve.py", Function: "<module>"}},
	"init":    {{File: "model.py", Line: 2, Function: "__init__"}, {File: "train.py", Function: "<module>"}},
	"pass": {{File: "model.py", Line: 5, Function: "forward"}, {File: torch + "nn/modules/module.py", Function: "_call_impl"},
		{File: "train.py", Function: "<module>"}},
	"assign": {{File: "train.py", Line: 30, Function: "<module>"}},
	"first":  {{File: "adam.py", Line: 3, Function: "step"}, {File: torch + "optim/optimizer.py", Function: "wrapper"}, {File: "train.py", Function: "<module>"}},
	"second": {{File: "adam.py", Line: 4, Function: "step"}, {File: torch + "optim/optimizer.py", Function: "wrapper"}, {File: "train.py", Function: "<module>"}},
	"uncast": {{File: torch + "amp/autocast_mode.py", Function: "__exit__"}, {File: "train.py", Function: "<module>"}},
	"cast": {{File: "libtorch_cpu.so", Function: "at::autocast::cached_cast(c10::ScalarType, at::Tensor const&, c10::DeviceType)"},
		{File: torch + "nn/functional.py", Function: "linear"}, {File: torch + "nn/modules/module.py", Function: "_call_impl"}, {File: "train.py", Function: "<module>"}},
	"write": {{File: "adam.py", Line: 5, Function: "step"}, {File: torch + "optim/optimizer.py", Function: "wrapper"}, {File: "train.py", Function: "<module>"}},
}

func made(name string, size int64, at string) step { return step{name: name, size: size, at: at} }
func freed(name, at string) step                   { return step{name: name, at: at, free: true} }
func old(size int64, at string) step               { return step{size: size, at: at, old: true} }

var ranOut = step{at: "forward", oom: true}

// lineOf is the timeline of a made history.
func lineOf(steps []step) *timeline.Timeline {
	s := &snapshot.Snapshot{Stacks: stack.NewTable(), Strings: []string{""}, Streams: []uint64{0}, Pools: []snapshot.Pool{{}}}
	ids := map[string]stack.ID{}
	for name, frames := range stacks {
		var list []stack.FrameID
		for _, f := range frames {
			list = append(list, s.Stacks.Frame(f, nil))
		}
		ids[name] = s.Stacks.Intern(list)
	}
	trace := &snapshot.Trace{}
	add := func(a snapshot.Action, addr uint64, size int64, at stack.ID) {
		e := &trace.Events
		e.Action, e.Addr, e.Size = append(e.Action, a), append(e.Addr, addr), append(e.Size, size)
		e.Stream, e.Stack = append(e.Stream, 0), append(e.Stack, at)
	}
	type block struct {
		addr uint64
		size int64
	}
	live := map[string]block{}
	var seg snapshot.Segment
	for k, x := range steps {
		if x.old {
			seg.Blocks = append(seg.Blocks, snapshot.Block{Addr: uint64(k+1) << 20, Size: x.size, Requested: x.size, State: snapshot.Allocated, Stack: ids[x.at]})
			continue
		}
		if x.oom {
			add(snapshot.OOM, 0, 1, ids[x.at])
			continue
		}
		if x.free {
			b, ok := live[x.name]
			if !ok {
				b = block{uint64(k+1) << 20, x.size} // there before the history
			}
			delete(live, x.name)
			add(snapshot.FreeRequested, b.addr, b.size, ids[x.at])
			add(snapshot.FreeCompleted, b.addr, b.size, ids[x.at])
			continue
		}
		b := block{uint64(k+1) << 20, x.size}
		live[x.name] = b
		add(snapshot.Alloc, b.addr, b.size, ids[x.at])
	}
	s.Segments = []snapshot.Segment{seg}
	return timeline.New(s, snapshot.Device{Trace: trace, Segments: []int{0}})
}

// setup is a model of two tensors; trained is one step of training it.
var (
	setup   = []step{made("w", 1000, "model"), made("b", 10, "model")}
	trained = []step{
		made("x", 50, "load"), made("h", 300, "forward"), made("t", 200, "forward"), freed("t", "forward"), made("loss", 8, "loss"),
		made("g", 300, "backward"), made("gw", 1000, "backward"), made("gb", 10, "backward"), freed("g", "backward"), freed("h", "backward"),
		made("mw", 1000, "state"), made("mb", 10, "state"), made("u", 700, "update"), freed("u", "update"),
		freed("gw", "zero"), freed("gb", "zero"), freed("x", "loss"), freed("loss", "loss"),
	}
)

// written is a step after which a parameter has new storage: that of suffix n
// replaces that of suffix m. States are replaced too if there are any.
func written(m, n string, states bool) []step {
	out := []step{made("x"+n, 50, "load"), made("h"+n, 300, "pass"), made("i"+n, 200, "pass"),
		made("gw"+n, 1000, "backward"), made("gb"+n, 10, "backward"), freed("h"+n, "backward"), freed("i"+n, "backward")}
	for _, t := range []struct {
		name string
		size int64
	}{{"w", 1000}, {"b", 10}} {
		at := "assign"
		if states {
			at = "write"
			for _, s := range []string{"first", "second"} {
				out = append(out, made(s+t.name+n, t.size, s), freed(s+t.name+m, s))
			}
		}
		out = append(out, made("d"+t.name+n, t.size, at), made(t.name+n, t.size, at), freed("d"+t.name+n, at), freed(t.name+m, at))
	}
	return append(out, freed("gw"+n, "zero"), freed("gb"+n, "zero"), freed("x"+n, "loss"))
}

// builtHere are the tensors of a model that its own constructor makes.
var builtHere = []step{made("w0", 1000, "init"), made("b0", 10, "init")}

// answers is a batch of inference, the result of which is kept.
func answers(n string) []step {
	return []step{made("x"+n, 50, "load"), made("y"+n, 100, "answer"), freed("x"+n, "loss")}
}

func join(parts ...[]step) (out []step) {
	for _, p := range parts {
		out = append(out, p...)
	}
	return out
}

func TestPurposes(t *testing.T) {
	for _, c := range []struct {
		name      string
		steps     []step
		peak, end map[string]int64 // nil is not looked at
	}{
		{"a step of training", join(setup, trained),
			map[string]int64{"parameters": 1010, "gradients": 1010, "optimizer": 1010, "temporaries": 708, "input": 50, "other": 0},
			map[string]int64{"parameters": 1010, "optimizer": 1010}},
		{"before the backward pass, all that lives is kept for it", join(setup, trained[:5]),
			nil, map[string]int64{"parameters": 1010, "input": 50, "activations": 308}},
		{"the peak is in the backward pass", join(setup, trained[:5], []step{made("g", 9000, "backward"), freed("g", "backward")}),
			map[string]int64{"parameters": 1010, "input": 50, "activations": 308, "temporaries": 9000}, nil},
		{"a checkpoint recomputes", join(setup, trained[:5], []step{
			made("a", 400, "recompute"), made("b2", 100, "recompute"), freed("b2", "recompute"), made("g", 9000, "backward"),
			freed("a", "backward"), freed("g", "backward"), freed("h", "backward"), freed("x", "loss")}),
			map[string]int64{"parameters": 1010, "input": 50, "activations": 708, "temporaries": 9000}, nil},
		{"copies in another precision, which the optimizer updates", join(
			[]step{made("w16", 500, "model"), made("b16", 5, "model"), made("w", 1000, "copy"), made("b", 10, "copy")}, trained),
			nil, map[string]int64{"parameters": 1515, "optimizer": 1010}},
		{"an average of the weights", join(setup, trained, []step{made("aw", 1000, "copy"), made("ab", 10, "copy")}, trained[:10], trained[12:]),
			nil, map[string]int64{"parameters": 1010, "optimizer": 1010, "other": 1010}},
		{"parameters gathered for a while, gradients summed", join(
			[]step{made("w", 1000, "model"), made("x", 50, "load"), made("full", 4000, "gather"), made("h", 300, "forward"),
				made("g", 4000, "backward"), made("r", 1000, "reduce"), freed("g", "reduce"), freed("h", "backward"), freed("full", "reduce"),
				made("m", 1000, "state"), freed("r", "zero"), freed("x", "loss")}),
			map[string]int64{"parameters": 1000, "input": 50, "communication": 4000, "activations": 300, "gradients": 5000}, nil},
		{"a cache by its name", join(setup, []step{made("kv", 5000, "cache"), made("x", 50, "load"), made("h", 70, "serve")}),
			nil, map[string]int64{"parameters": 1010, "kv_cache": 5000, "input": 50, "temporaries": 70}},
		{"a cache by its shape", join(setup, []step{made("k", 5000, "buffers"), made("v", 5000, "buffers"), made("x", 50, "load"), made("h", 70, "serve")}),
			nil, map[string]int64{"parameters": 1010, "kv_cache": 10000, "input": 50, "temporaries": 70}},
		{"a workspace", join(setup, []step{made("x", 50, "load"), made("ws", cublasSizes[0], "serve"), made("h", 70, "serve"), freed("h", "serve")}),
			nil, map[string]int64{"parameters": 1010, "input": 50, "workspaces": cublasSizes[0]}},
		{"what was there before is unknown", []step{freed("old", "zero")}, map[string]int64{}, map[string]int64{}},
		{"nothing at all", nil, map[string]int64{}, map[string]int64{}},
		{"what is not freed where nothing separates steps", []step{made("a", 100, "loss"), made("b", 900, "loss"), freed("b", "loss")},
			map[string]int64{"temporaries": 900, "unknown": 100}, map[string]int64{"unknown": 100}},
		{"what a step under way keeps as those before did", join(setup, trained, []step{made("k", 70, "keep")}, trained, []step{made("k2", 70, "keep")}, trained[:5]),
			nil, map[string]int64{"parameters": 1010, "optimizer": 2020, "activations": 308, "input": 50, "other": 140}},
		{"what no step before made", join(setup, trained, trained[:5], []step{made("g", 300, "backward"), freed("h", "backward"), freed("g", "backward"), made("k", 70, "keep")}),
			nil, map[string]int64{"parameters": 1010, "optimizer": 1010, "input": 50, "temporaries": 78}},
		{"a pass that memory cut off, and the program went on", join(setup, trained, trained[:5], []step{made("h2", 9000, "forward"), ranOut, freed("h2", "loss"),
			freed("h", "loss"), freed("x", "loss"), freed("loss", "loss")}, trained),
			map[string]int64{"parameters": 1010, "optimizer": 1010, "activations": 9308, "input": 50}, nil},
		{"the ring of events overflowed", join([]step{old(1000, "model"), old(10, "model"), old(1000, "state"), old(10, "state"), old(77, "loss")}, trained[:10], trained[12:]),
			nil, map[string]int64{"parameters": 1010, "optimizer": 1010, "unknown": 77}},
		{"a state without events", []step{old(1000, "model"), old(2000, "update"), old(5000, "cache"), old(70, "answer")},
			nil, map[string]int64{"parameters": 1000, "optimizer": 2000, "kv_cache": 5000, "unknown": 70}},
		{"batches that no name identifies, beside a buffer that is made once", join(setup, []step{made("p", 5000, "buffers"), made("b", 60, "keep")}, trained,
			[]step{freed("b", "loss"), made("b", 60, "keep")}, trained, []step{freed("p", "loss"), freed("b", "loss")}),
			map[string]int64{"parameters": 1010, "gradients": 1010, "optimizer": 2020, "temporaries": 708, "input": 110, "other": 5000}, nil},
		{"parameters that a constructor makes, and nobody updates", join(builtHere, []step{made("x", 50, "load"), made("h", 300, "pass"), freed("h", "loss"), freed("x", "loss")}),
			nil, map[string]int64{"parameters": 1010}},
		{"parameters written by hand", join(builtHere, written("0", "1", false), written("1", "2", false)),
			nil, map[string]int64{"parameters": 1010}},
		{"parameters written by an optimizer of the program's own", join(builtHere, written("0", "1", true), written("1", "2", true)),
			nil, map[string]int64{"parameters": 1010, "optimizer": 2020}},
		{"the same, recorded late", join(written("0", "1", true), written("1", "2", true)),
			nil, map[string]int64{"parameters": 1010, "optimizer": 2020}},
		{"written by hand, recorded late", join(written("0", "1", false), written("1", "2", false)),
			nil, map[string]int64{"parameters": 1010}},
		{"results that are kept of batch after batch", join(setup, answers("1"), answers("2"), answers("3"), answers("4"), answers("5"), answers("6")),
			nil, map[string]int64{"parameters": 1010, "other": 600}},
	} {
		m := Of(lineOf(c.steps))
		for moment, x := range map[string]struct {
			got  Moment
			want map[string]int64
		}{"peak": {m.Peak, c.peak}, "end": {m.End, c.end}} {
			maps.DeleteFunc(x.want, func(_ string, n int64) bool { return n == 0 })
			if got := x.got.By.Map(); x.want != nil && !maps.Equal(got, x.want) {
				t.Errorf("%s, at the %s: %v, want %v", c.name, moment, got, x.want)
			}
		}
	}
}

// TestCutOff holds what is known of memory running out against a file that was
// dumped then.
func TestCutOff(t *testing.T) {
	atOnce := join(setup, trained, trained[:5], []step{made("h2", 9000, "forward"), ranOut})
	later := join(atOnce, []step{freed("h2", "loss"), freed("h", "loss")}, trained[:2])
	want := Of(lineOf(atOnce))
	got := Of(lineOf(later))
	if got.OOM == nil || !maps.Equal(got.OOM.By.Map(), want.End.By.Map()) || !maps.Equal(got.Peak.By.Map(), want.Peak.By.Map()) {
		t.Errorf("%+v, want %+v", got.OOM, want.End)
	}
	line := lineOf(later)
	for i, p := range Each(line) {
		if line.Size(i) == 9000 && p != Activations {
			t.Errorf("it is shown as %s", p)
		}
	}
}

// TestEach compares the purposes of allocations that are made after the peak and never
// freed with those of the end.
func TestEach(t *testing.T) {
	line := lineOf(join(setup, trained, trained[:5], []step{made("spike", 90000, "forward"), freed("spike", "forward"), made("kept", 700, "forward")}, trained[5:]))
	end := Of(line).End.By
	var later Sums
	for i, p := range Each(line) {
		if line.Birth(i) > line.PeakRequested.Event && line.Death(i) == timeline.Never {
			later[p] += line.Size(i)
		}
	}
	if later[Other] != 700 || later[Other] != end[Other] || later[Activations] != 0 {
		t.Errorf("%v, at the end %v", later.Map(), end.Map())
	}
}

// TestSums shows that a moment's sums and places are its bytes.
func TestSums(t *testing.T) {
	m := Of(lineOf(join(setup, trained))).Peak
	var by, places int64
	for _, n := range m.By {
		by += n
	}
	for _, p := range m.Places {
		places += p.Bytes
	}
	if by != m.Bytes || places != m.Bytes {
		t.Errorf("%d bytes, %d by purpose, %d by place", m.Bytes, by, places)
	}
}

// TestTraits checks what names are taken to mean.
func TestTraits(t *testing.T) {
	for _, c := range []struct {
		frame stack.Frame
		named Purpose
	}{
		{stack.Frame{File: "/x/vllm/worker/gpu_model_runner.py", Function: "_allocate_kv_cache_tensors"}, KVCache},
		{stack.Frame{File: "/x/sglang/srt/mem_cache/memory_pool.py", Function: "_create_buffers"}, KVCache},
		{stack.Frame{File: "/x/sglang/srt/mem_cache/memory_pool.py", Function: "get_key_buffer"}, count},
		{stack.Frame{File: "/x/transformers/cache_utils.py", Function: "update"}, KVCache},
		{stack.Frame{File: "model.py", Function: "setup_caches"}, KVCache},
		{stack.Frame{File: "train.py", Function: "empty_cache"}, count},
		{stack.Frame{File: "/x/transformers/modeling_utils.py", Function: "from_pretrained"}, Parameters},
		{stack.Frame{File: torch + "nn/modules/linear.py", Function: "__init__"}, Parameters},
		{stack.Frame{File: torch + "nn/parallel/distributed.py", Function: "_ddp_init_helper"}, Communication},
		{stack.Frame{File: torch + "distributed/fsdp/_fully_shard/_fsdp_param.py", Function: "_init_sharded_param"}, Parameters},
		{stack.Frame{File: torch + "utils/data/_utils/pin_memory.py", Function: "pin_memory"}, Input},
	} {
		if got := factsOf(&c.frame).named; got != c.named {
			t.Errorf("%s %s says %d, want %d", c.frame.File, c.frame.Function, got, c.named)
		}
	}
}
