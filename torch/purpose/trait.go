package purpose

import (
	"strings"

	"strandline/internal/lazyregexp"
	"strandline/stack"
)

// A phase is the part of a program that a stack is in.
type phase uint8

const (
	unrecorded  phase = iota // the stack was not recorded
	own                      // the program's own code, outside of all below
	forward                  // inside a module's call
	backward                 // the autograd engine
	recomputing              // a forward pass that a checkpoint repeats in backward
	updating                 // an optimizer's step
	clearing                 // zero_grad
)

// A trait is what a stack shows without its context.
type trait struct {
	known bool
	phase phase
	named Purpose // what the names of the frames indicate, otherwise count
	// noGrad is below no_grad or inference_mode.
	noGrad bool
	// reduces is a collective that sums gradients; its result becomes them.
	reduces bool
	// loads is a stack that names the loading of data.
	loads bool
	// initial is a stack in which an optimizer makes its state.
	initial bool
	// builds is a layer of PyTorch's that makes its parameters, or a class of the
	// program's whose constructor makes something.
	builds bool
	// copies is deepcopy of a parameter.
	copies bool
	// casts is autocast's copy of a tensor in another type, uncasts the end of its
	// block, which releases the copies of weights.
	casts, uncasts bool
	// made is the innermost Python frame.
	made stack.Frame
	// root is the outermost one's file and function, which distinguish threads.
	root stack.Frame
}

// The names that by convention show what a function makes.
var (
	cacheFunction = lazyregexp.New(`(?i)kv_?(cache|pool|buffer)|memory_pool|past_key_values|(alloc\w*|init\w*|create|set_?up|make|build|reserve)_(\w*_)?caches?(_|$)`)
	// cacheFile are sources whose every allocation is part of a cache: the
	// dynamic caches of Transformers and similar ones.
	cacheFile = lazyregexp.New(`(?i)(^|/)(cache_utils\w*|kv_?cache\w*|past_key_values?)\.py$`)
	// poolFile are sources that hold caches and also work on them; poolFunction are
	// those that make them.
	poolFile     = lazyregexp.New(`(?i)(^|/)(memory_pool\w*|cache_engine|paged_\w*|block_(manager|pool))\.py$`)
	poolFunction = lazyregexp.New(`(?i)^_?(create|alloc|allocate|init|make|build)\w*|^__init__$`)

	loadFunction  = lazyregexp.New(`(?i)load|batch|collate|prefetch|input|token|image|to_device|_data|fetch|next|feed|prepare|pin_memory`)
	weightLoading = lazyregexp.New(`(?i)load_(weights|state_dict|model|checkpoint|pretrained)|from_pretrained|create_weights|weight_loader|_load_from_state_dict|materialize`)
	reducing      = lazyregexp.New(`(?i)reduce|post_backward`)
	collective    = lazyregexp.New(`(?i)all_?gather|reduce_?scatter|all_?reduce|all_?to_?all`)
	workspace     = lazyregexp.New(`getCurrentCUDABlasHandle|getCUDABlasLtWorkspace|getChosenWorkspaceSize|allocateCUDABlasWorkspace|cudnnGetDropoutState`)
)

// facts are what one frame shows, whatever the frames around it.
type facts struct {
	known  bool
	origin stack.Origin
	// wrapper is a package that only passes tensors on.
	wrapper bool
	named   Purpose // count if nothing
	loads   bool
	// reduces, copies and builds are as in a trait.
	reduces, copies, builds bool
	enters                  phase // own if the frame enters none
	initial, noGrad         bool
	casts, uncasts          bool
}

// factsOf reads a frame.
func factsOf(f *stack.Frame) facts {
	x := facts{known: true, origin: stack.OriginOf(*f), named: count, enters: own}
	switch x.origin {
	case stack.Native:
		x.native(f)
	case stack.Torch:
		x.torch(f)
		x.torchEnters(f)
	case stack.Own:
		x.wrapper = stack.Wrapper(*f)
		x.own(f)
	}
	return x
}

// traitOf reads a stack, innermost frame first. Each field is set by the
// innermost frame that determines it.
func traitOf(frames []stack.Frame, read func(i int) *facts) trait {
	r := trait{known: true, phase: own, named: count}
	depth, called, optimizer := 0, false, false // own frames seen; a module's call, an optimizer were seen
	for i := range frames {
		x := read(i)
		if x.origin == stack.Own && !x.wrapper {
			depth++
		}
		r.noGrad = r.noGrad || x.noGrad
		r.casts, r.uncasts = r.casts || x.casts, r.uncasts || x.uncasts
		optimizer = optimizer || x.enters == updating
		if !called {
			r.read(x, depth)
		}
		if x.enters != own {
			r.enter(x.enters)
			called = called || x.enters != clearing
		}
		if x.origin != stack.Native {
			if r.made == (stack.Frame{}) {
				r.made = frames[i]
			}
			r.root = stack.Frame{File: frames[i].File, Function: frames[i].Function}
		}
	}
	r.noGrad = r.noGrad && !optimizer // whose closure computes gradients again
	if len(frames) == 0 {             // the autograd engine's threads have no Python frames
		r.phase = backward
	}
	return r
}

// read takes what a frame shows, inside of any module's call.
func (r *trait) read(x *facts, depth int) {
	const maxDepth = 3 // frames of the program's own within which a name counts
	if r.named == count {
		r.named, r.reduces, r.copies = x.named, x.reduces, x.copies
	} else if r.named == Communication {
		r.reduces = r.reduces || x.reduces
	}
	if x.origin == stack.Own {
		r.loads = r.loads || x.loads && depth <= maxDepth
		r.builds = r.builds || x.builds && depth == 1
	} else {
		r.builds = r.builds || x.builds && r.named == Parameters
	}
	r.initial = r.initial || x.initial && r.phase == own
}

// enter notes a phase: the innermost counts, but what a backward pass calls
// forward is a recomputation.
func (r *trait) enter(p phase) {
	switch {
	case r.phase == own:
		r.phase = p
	case r.phase == forward && p == backward:
		r.phase = recomputing
	}
}

// native reads a frame of C++.
func (x *facts) native(f *stack.Frame) {
	switch {
	case strings.Contains(f.Function, "torch::autograd::Engine"):
		x.enters = backward
	case strings.Contains(f.Function, "c10d::"):
		x.named = Communication
	case workspace.MatchString(f.Function):
		x.named = Workspaces
	case strings.HasPrefix(f.Function, "at::autocast::cached_cast"):
		x.casts = true
	}
}

// torchEnters reads which phase a frame of PyTorch is.
func (x *facts) torchEnters(f *stack.Frame) {
	name := f.Function
	within := func(part string) bool { return strings.Contains(f.File, part) }
	switch {
	case name == "_engine_run_backward", within("/autograd/__init__.py"), name == "backward" && within("/_tensor.py"),
		within("checkpoint.py") && (name == "unpack_hook" || name == "backward"):
		x.enters = backward
	case name == "zero_grad":
		x.enters = clearing
	case within("/optim/") && !within("lr_scheduler") && !within("swa_utils"):
		x.enters, x.initial = updating, name == "_init_group"
	case name == "decorate_context" && within("_contextlib.py"):
		x.noGrad = true
	case name == "__exit__" && within("/amp/autocast_mode.py"):
		x.uncasts = true
	case name == "_call_impl", within("/nn/functional.py"):
		x.enters = forward
	}
}

// torch reads what PyTorch's own functions make.
func (x *facts) torch(f *stack.Frame) {
	within := func(part string) bool { return strings.Contains(f.File, part) }
	switch {
	case f.Function == "_apply" || f.Function == "to_empty" || weightLoading.MatchString(f.Function),
		within("/nn/parameter.py"), within("/fsdp/") && strings.HasPrefix(f.Function, "_init_sharded_param"):
		x.named = Parameters
		x.copies = f.Function == "__deepcopy__"
	case within("/nn/modules/") && (f.Function == "__init__" || f.Function == "reset_parameters"):
		x.named, x.builds = Parameters, true
	case within("/distributed/"), within("/nn/parallel/"):
		x.named = Communication
		x.reduces = reducing.MatchString(f.Function)
	case within("/utils/data/"):
		x.named = Input
	}
}

// own reads a frame of the program or of a package that it uses.
func (x *facts) own(f *stack.Frame) {
	// The end of a path and a readable name are enough to match.
	const longest = 96
	file, function := f.File[max(0, len(f.File)-longest):], f.Function[:min(len(f.Function), longest)]
	switch {
	case cacheFunction.MatchString(function), cacheFile.MatchString(file),
		poolFile.MatchString(file) && poolFunction.MatchString(function):
		x.named = KVCache
	case weightLoading.MatchString(function):
		x.named = Parameters
	case collective.MatchString(function):
		x.named = Communication
		x.reduces = reducing.MatchString(function)
	}
	x.loads = loadFunction.MatchString(function)
	x.builds = f.Function == "__init__"
	if f.Function == "forward" {
		x.enters = forward
	}
}
