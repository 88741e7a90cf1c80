package stack

import (
	"path"
	"slices"
	"strings"

	"strandline/internal/lazyregexp"
)

// A Site is a stack cut to what identifies the place in the code: the innermost
// Python frame outside PyTorch, Python's own library and generated code. Other
// installed packages count as own code, for the line to change is often there.
// The zero Site is a stack without such a frame.
type Site = Frame

// Origin is whose code a frame is.
type Origin uint8

// The origins of a frame.
const (
	unasked   Origin = iota
	Own              // the program, or a package it uses
	Torch            // PyTorch itself
	Library          // Python's standard library
	Generated        // code without a file: <string>, torch.fx, torch.compile
	Native           // C, C++ and other code that is not Python
)

// torchParts are the names directly below PyTorch's folder, by which it is recognized
// from a user's own folder that is called torch.
var torchParts = lazyregexp.New(`^(_\w+|__init__\.py|_\w+\.py|accelerator|amp|ao|autograd|backends|compiler|contrib|cpu|cuda|distributed|distributions|export|fft|func|futures|functional\.py|fx|hub\.py|jit|library\.py|linalg|masked|monitor|mps|mtia|multiprocessing|nativert|nested|nn|numa|onnx|optim|overrides\.py|package|profiler|quantization|quasirandom\.py|random\.py|return_types\.py|serialization\.py|signal|sparse|special|storage\.py|testing|torch_version\.py|types\.py|utils|version\.py|xpu)(/|$)`)

var (
	// pythonLibrary is the standard library's folder in Unix and Windows
	// installations, virtual and conda environments.
	pythonLibrary = lazyregexp.New(`(?i)(^|/)(lib(32|64)?/(python|pypy)\d+(\.\d+)?t?|python\d*(\.\d+)*t?/lib|(ana|mini)conda\d*/lib|(ana|mini)conda\d*/envs/[^/]+/lib|miniforge\d*/lib)/`)
	// ownAngle is a source without file that a person typed.
	ownAngle = lazyregexp.New(`^<(ipython-input|stdin|input|doctest|console)`)
	// inKernel is the temporary file of a cell that a notebook runs.
	inKernel = lazyregexp.New(`(?i)ipykernel_\d+/`)
	// inductor is where torch.compile writes the code it makes.
	inductor = lazyregexp.New(`(^|/)(torchinductor_[^/]*|\.?inductor_cache|triton_cache|torch_compile_cache)/`)
)

// OriginOf is whose code a frame is.
func OriginOf(f Frame) Origin {
	file := f.File
	if strings.HasPrefix(file, "<") {
		if ownAngle.MatchString(file) {
			return Own
		}
		return Generated
	}
	if !pythonSource(file) {
		return Native
	}
	if containsAny(file, []string{"inductor", "_cache"}) && inductor.MatchString(file) {
		return Generated
	}
	if _, rest, ok := cutLast(file, "-packages/"); ok {
		switch {
		case strings.HasPrefix(rest, "torch/"):
			return Torch
		case strings.HasPrefix(rest, "jax/") || strings.HasPrefix(rest, "jaxlib/"):
			return Library
		}
		return Own
	}
	if _, rest, ok := cutLast("/"+file, "/torch/"); ok && torchParts.MatchString(rest) {
		return Torch
	}
	if pythonLibrary.MatchString(file) {
		return Library
	}
	return Own
}

// pythonSource reports whether a file is a Python source, or a cell of a notebook.
func pythonSource(file string) bool {
	switch strings.ToLower(path.Ext(file)) {
	case ".py", ".pyi", ".pyx", ".pyw", ".ipynb":
		return true
	}
	return strings.Contains(strings.ToLower(file), "ipykernel_") && inKernel.MatchString(file)
}

// cutLast cuts s around the last sep.
func cutLast(s, sep string) (before, after string, ok bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// Installed reports whether a frame is of an installed package.
func Installed(f Frame) bool {
	_, _, ok := cutLast(f.File, "-packages/")
	return ok
}

// wrappers are packages that call back into the program, or PyTorch on its behalf,
// and pass tensors on: notations for operations, checks of types and shapes,
// decorators, progress bars. What is below them was requested above them.
var wrappers = lazyregexp.New(`^(einops|einx|fancy_einsum|opt_einsum|jaxtyping|beartype|torchtyping|typeguard|wrapt|decorator|nvtx|tqdm|rich|tenacity|line_profiler|memory_profiler)(/|\.py$)`)

// Wrapper reports whether a frame is of an installed package that only passes
// tensors on, so that the line to change is further out.
func Wrapper(f Frame) bool {
	_, rest, ok := cutLast(f.File, "-packages/")
	return ok && (wrappers.MatchString(rest) || rest == "accelerate/hooks.py" && f.Function == "new_forward")
}

// Site is the place of a stack in the user's own code; wrappers stand for it only
// where there is nothing else. The answer is kept: a million events ask for some
// hundred stacks.
func (t *Table) Site(id ID) Site {
	if len(t.sites) < t.Len() {
		t.sites = append(t.sites, make([]Site, t.Len()-len(t.sites))...)
		t.known = append(t.known, make([]bool, t.Len()-len(t.known))...)
	}
	if !t.known[id] {
		t.known[id] = true
		for _, f := range t.Frames(id) {
			if !t.own(f) {
				continue
			}
			wrapper := Wrapper(t.frames[f])
			if !wrapper || t.sites[id] == (Site{}) {
				t.sites[id] = t.frames[f]
			}
			if !wrapper {
				break
			}
		}
	}
	return t.sites[id]
}

// own reports whether a frame is the user's own. The answer is kept, as stacks
// share most of their frames.
func (t *Table) own(id FrameID) bool {
	if len(t.origins) < len(t.frames) {
		t.origins = append(t.origins, make([]Origin, len(t.frames)-len(t.origins))...)
	}
	if t.origins[id] == unasked {
		t.origins[id] = OriginOf(t.frames[id])
	}
	return t.origins[id] == Own
}

// hidden are functions and files that are in every recorded stack and show
// nothing: the recorder itself, the Python interpreter, the call of a module.
var (
	hiddenFunctions = []string{
		"unwind::unwind", "CapturedTraceback::gather", "gather_with_cpp", "_start", "__libc_start_main",
		"PyEval_", "PyObject_", "PyFunction_", "Py_RunMain", "Py_BytesMain", "_call_impl",
	}
	hiddenFiles = []string{
		"core/boxing", "/Register", "/Redispatch", "pythonrun.c", "Modules/main.c", "Objects/call.c",
		"Objects/methodobject.c", "pycore_ceval.h", "ceval.c", "cpython/abstract.h",
	}
)

// Readable leaves out of a stack what is of no use to a reader: native frames
// where there are Python frames, and else those of the recorder. A stack of
// which nothing would be left is returned whole.
func Readable(frames []Frame) []Frame {
	python := false
	for _, f := range frames {
		python = python || OriginOf(f) != Native
	}
	var out []Frame
	for _, f := range frames {
		native := OriginOf(f) == Native
		if native && (python || f.Function == "" || f.Function == "??") ||
			containsAny(f.Function, hiddenFunctions) || containsAny(f.File, hiddenFiles) {
			continue
		}
		out = append(out, f)
	}
	if len(out) == 0 {
		return frames
	}
	return out
}

func containsAny(s string, parts []string) bool {
	return slices.ContainsFunc(parts, func(p string) bool { return strings.Contains(s, p) })
}
