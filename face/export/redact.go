package export

import (
	_ "embed" // public.txt.gz
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"sync"

	"strandline/internal/lazyregexp"
	"strandline/internal/packed"
	"strandline/stack"
	"strandline/torch/snapshot"
)

// A Redaction states what [Redact] takes out.
type Redaction uint8

// What can be taken out, alone or together.
const (
	Paths Redaction = 1 << iota // files of frames
	Names                       // functions and annotations
)

// Redact is a snapshot like s in which pseudonyms, numbered by first appearance,
// replace what the program's author named. Stacks, line numbers and all that
// is measured stay. So do the files and functions of PyTorch, of Python's
// library and of generated code, without the folders that they are installed in,
// and names that Python or PyTorch prescribes, such as forward and __init__:
// analysis finds in the result what it finds in s.
//
// The result is built only from what is known to be measured or public (see
// [snapshot.Snapshot.Measured]): whatever is redacted, texts that the program
// attached to events are replaced, keys that PyTorch does not write are left out,
// except for plain counts such as rank and step, and so are fields without a column.
// Of a damaged file nothing is quoted. The measured columns are shared with s.
func Redact(s *snapshot.Snapshot, what Redaction) *snapshot.Snapshot {
	r := redactor{what: what, names: map[string]map[string]string{}}
	out := s.Measured(r.stacks(s.Stacks), r.column)
	out.Extra = counts(s.Extra)
	out.Settings = settings(s.Settings)
	if s.Partial != nil {
		out.Partial = &snapshot.Partial{Offset: s.Partial.Offset, Unpacked: s.Partial.Unpacked, Err: errDamaged}
	}
	return out
}

// errDamaged replaces the error at which reading ended, which may quote the file.
var errDamaged = errors.New("the file is cut off or damaged")

type redactor struct {
	what  Redaction
	names map[string]map[string]string // by kind and text
}

// pseudonym returns the replacement of a text: its kind and a number.
func (r *redactor) pseudonym(kind, text string) string {
	known := r.names[kind]
	if known == nil {
		known = map[string]string{}
		r.names[kind] = known
	}
	if known[text] == "" {
		known[text] = fmt.Sprintf("%s-%d", kind, len(known)+1)
	}
	return known[text]
}

// stacks is the table with other frames. Frames and stacks keep their ids, so
// frames that have become equal are kept apart.
func (r *redactor) stacks(t *stack.Table) *stack.Table {
	out := stack.NewTable()
	seen := map[stack.Frame]bool{}
	for id := range frameCount(t) {
		f := r.frame(t.At(stack.FrameID(id)))
		var apart any
		if seen[f] {
			apart = struct{}{}
		}
		seen[f] = true
		out.Frame(f, apart)
	}
	for id := stack.Empty + 1; int(id) < t.Len(); id++ {
		out.Intern(t.Frames(id))
	}
	return out
}

// frameCount returns how many frames the stacks of a table draw from.
func frameCount(t *stack.Table) (n int) {
	for id := range t.Len() {
		for _, f := range t.Frames(stack.ID(id)) {
			n = max(n, int(f)+1)
		}
	}
	return n
}

func (r *redactor) frame(f stack.Frame) stack.Frame {
	out := f
	file, public := publicFile(f)
	if r.what&Paths != 0 {
		if out.File = file; !public {
			out.File = r.file(f)
		}
	}
	if r.what&Names != 0 && !publicFunction(f, public && file != "" && !nameless.MatchString(file) || inductor.MatchString(f.File)) {
		out.Function = r.pseudonym("func", f.Function)
	}
	return out
}

// publicFunction reports whether a frame's function is one of PyTorch or Python, or
// has a name that they want it to have, so that it states nothing of the program.
// Known is that its file is public.
func publicFunction(f stack.Frame, known bool) bool {
	switch name := f.Function; {
	case prescribed.MatchString(name):
		return true
	case strings.Contains(name, "::"), cAPI.MatchString(name):
		return publicSymbol(name)
	case known, strings.HasPrefix(name, "__"):
		return isPublic(name)
	}
	return false
}

var (
	// prescribed are names that Python and PyTorch give, or want a function to
	// have.
	prescribed = lazyregexp.New(`^(\?*|<(module|lambda|listcomp|dictcomp|setcomp|genexpr|eval_with_key)>|forward|backward|_start|__libc_start_(main|call_main)(_impl)?)$`)
	// cAPI are names of functions of Python in C, and of PyTorch for it.
	cAPI = lazyregexp.New(`^(THP|_?Py)`)
	// nameless is code without a known file: its functions may be
	// of any origin.
	nameless = lazyregexp.New(`^(\?\?|<string>(\.\d+)?)$`)
	// publicCode is generated code whose file name states nothing of the program.
	publicCode = lazyregexp.New(`^<(string|frozen (abc|codecs|io|os|site|runpy|zipimport|genericpath|ntpath|posixpath|stat|_collections_abc|importlib\.(_bootstrap|_bootstrap_external|_abc|util|machinery))|eval_with_key|__array_function__ internals)>(\.\d+)?$`)
	// publicNative are libraries that everybody has, and sources of CPython. Those
	// of PyTorch are in the list of public names.
	publicNative = lazyregexp.New(`(^|/)(` +
		`lib(torch(_(cpu|cuda|cuda_linalg|global_deps|hip|npu|python|xpu))?|c10(_(cuda|hip|xpu))?|caffe2_nvrtc|shm)\.so[.\d]*|` +
		`lib(cuda|cudart|cupti|cublas|cublasLt|cufft|cufftw|cufile|curand|cusolver|cusolverMg|cusparse|cusparseLt|nccl|nvrtc|nvrtc-builtins|nvJitLink|nvToolsExt|nvidia-ml|` +
		`cudnn(_(adv|adv_infer|adv_train|cnn|cnn_infer|cnn_train|engines_precompiled|engines_runtime_compiled|graph|heuristic|ops|ops_infer|ops_train))?)\.so[.\d]*|` +
		`(lib(c|m|dl|rt|gomp|pthread|stdc\+\+|gcc_s|util|python[\d.]*)|ld-linux-x86-64)\.so[.\d]*|python[\d.]*t?|` +
		`Python/(bltinmodule|ceval|errors|import|pylifecycle|pythonrun|sysmodule|generated_cases)\.c(\.h)?|` +
		`Objects/((abstract|bool|bytearray|bytes|capsule|cell|class|code|complex|descr|dict|enum|file|float|frame|func|genericalias|gen|iter|list|long|memory|method|module|namespace|odict|picklebuf|range|set|slice|tuple|type|typevar|unicode|union|weakref|)(object)?|call|exceptions|obmalloc|structseq)\.c|` +
		`Modules/(main|_functoolsmodule|_asynciomodule|_threadmodule|gcmodule)\.c|` +
		`Include/(internal|cpython)/(pycore_(abstract|call|ceval|dict|frame|gc|genobject|interp|list|object|pyerrors|pystate|runtime|tuple)|abstract|object|ceval)\.h)$`)
	// torchSource is where a path of PyTorch's C++ sources begins.
	torchSource = lazyregexp.New(`(^|/)(aten/src/ATen|torch/csrc|c10)/`)
	// installed is PyTorch as pip and Debian install it.
	installed = lazyregexp.New(`.*/(site|dist)-packages/(torch/)`)
	// library is the folder of Python's own.
	library      = lazyregexp.New(`(?i)^.*/lib(32|64)?/((python|pypy)\d+(\.\d+)?t?/)?`)
	inductor     = lazyregexp.New(`(^|/)torchinductor_`)
	nativeSuffix = lazyregexp.New(`^\.(so|c|cc|cpp|cu|h|hpp|cuh)$`)
)

// publicSymbol reports whether a C++ symbol names nothing but what PyTorch, the
// standard library and the language do.
func publicSymbol(symbol string) bool {
	return !slices.ContainsFunc(identifier.FindAllString(symbol, -1), func(word string) bool { return !isPublic(word) && !ofLanguage.MatchString(word) })
}

var (
	identifier = lazyregexp.New(`[\pL_$][\pL\pN_$]*`)
	ofLanguage = lazyregexp.New(`^(anonymous|namespace|std|auto|bool|char|const|decltype|double|enable_if|false|float|int|lambda|long|noexcept|operator|short|signed|true|u?int\d+_t|[sp]?size_t|unsigned|void|volatile|CUstream_st|cudaStream_t|abi|cxx11|clone|constprop|isra|part|cold|ul|lu|l|u)$`)
)

// publicText lists what PyTorch 2.6 and Python 3.8 to 3.13 name, a line each:
// files from the folders that they are installed in, with slashes or a dot in
// them, and functions and parts of C++ symbols. It distinguishes a checkout of PyTorch, or a
// Python built from source, from folders of the same name, and an operator of
// PyTorch from one that was added to it. public_gen.go makes it.
//
//go:embed public.txt.gz
var publicText []byte

var publicNames = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{}
	for name := range strings.Lines(string(packed.Own(publicText))) {
		out[strings.TrimSuffix(name, "\n")] = true
	}
	return out
})

// isPublic reports whether a file, a function or a part of a symbol is listed.
func isPublic(name string) bool { return publicNames()[name] }

// publicFolders are the folders of the listed files.
var publicFolders = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{}
	for name := range publicNames() {
		for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
			out[dir] = true
		}
	}
	return out
})

// publicFile is the file of a frame without the folder of an installation, if it
// is not of the program.
func publicFile(f stack.Frame) (file string, public bool) {
	file = f.File
	switch origin := stack.OriginOf(f); {
	case f.File == "" || f.File == "??" || publicCode.MatchString(f.File):
		return f.File, true
	case origin == stack.Torch:
		if at := installed.FindStringSubmatchIndex(file); at != nil {
			file = file[at[4]:]
		} else {
			file = file[strings.LastIndex("/"+file, "/torch/"):]
		}
		return file, isPublic(file)
	case origin == stack.Library:
		if at := library.FindStringIndex(file); at != nil && isPublic(file[at[1]:]) {
			return "lib/python3/" + file[at[1]:], true
		}
	case origin == stack.Native:
		if at := torchSource.FindStringSubmatchIndex(file); at != nil {
			return file[at[4]:], isPublic(file[at[4]:])
		}
		file = publicNative.FindString(f.File)
		return strings.TrimPrefix(file, "/"), file != ""
	}
	return "", false
}

// file returns the pseudonym of a frame's file, which shows the file's origin.
func (r *redactor) file(f stack.Frame) string {
	name := r.pseudonym("file", f.File)
	switch stack.OriginOf(f) {
	case stack.Torch:
		file, _ := publicFile(f)
		dir := path.Dir(file)
		for dir != "torch" && dir != "." && !publicFolders()[dir] {
			dir = path.Dir(dir)
		}
		if dir == "torch" || dir == "." {
			dir = "torch/utils" // of one below torch/ it is not known to be PyTorch
		}
		return dir + "/" + name + ".py"
	case stack.Library:
		return "lib/python3/" + name + ".py"
	case stack.Native:
		if suffix := path.Ext(f.File); nativeSuffix.MatchString(suffix) {
			name += suffix
		}
		return name
	case stack.Generated:
		if inductor.MatchString(f.File) {
			return "torchinductor_/" + name + ".py"
		}
		return "<" + name + ">"
	}
	return name + ".py"
}

// column returns the replacement of a text of a column.
func (r *redactor) column(column, text string) string {
	switch column {
	case "annotation":
		if r.what&Names == 0 && !strings.ContainsAny(text, `/\`) {
			return text
		}
		return r.scope(text)
	case "compile_context":
		if compileID.MatchString(text) {
			return text
		}
		return r.pseudonym("context", text)
	case "category":
		if categories.MatchString(text) {
			return text
		}
	case "segment_type":
		if text == "small" || text == "large" {
			return text
		}
	case "user_metadata":
		column = "metadata"
	}
	return r.pseudonym(column, text)
}

var (
	compileID  = lazyregexp.New(`^[\d/_]+$`)
	categories = lazyregexp.New(`(?i)^(input|temporary|activation|gradient|autograd_detail|parameter|optimizer_state|unknown)$`)
)

var (
	// scopeHead is the part of an annotation's name that PyTorch gives, scopeTail
	// the number of a step.
	scopeHead = lazyregexp.New(`^(ProfilerStep#\d+|` +
		`FSDP::(all_gather|all_gather_copy_out|all_reduce|backward_prefetch|cast_forward_inputs|cast_forward_outputs|foreach_all_gather|inputs_to_device|` +
		`post_backward|post_backward_accumulate|post_backward_reduce|post_backward_reshard|post_forward|pre_backward|pre_forward|reduce_scatter|` +
		`root_post_backward_callback|root_pre_forward)\b ?|` +
		`(aten|c10d)::\w+|Optimizer\.(step|zero_grad)#((SGD|ASGD|Adam|AdamW|Adamax|NAdam|RAdam|SparseAdam|Adagrad|Adadelta|Adafactor|LBFGS|RMSprop|Rprop|Muon)\.(step|zero_grad)\b)?)`)
	scopeTail = lazyregexp.New(`(?i)\b(step|iter|iteration|batch|request|epoch)\b\W{0,3}\d+$`)
)

// scope is the name of an annotation, with a pseudonym for what the program
// called it.
func (r *redactor) scope(name string) string {
	head := scopeHead.FindString(name)
	if _, operator, ok := strings.Cut(head, "::"); ok && !strings.HasPrefix(head, "FSDP::") && !isPublic(operator) {
		head = ""
	}
	name = name[len(head):]
	tail := scopeTail.FindString(name)
	if name = strings.TrimSpace(name[:len(name)-len(tail)]); name != "" {
		name = r.pseudonym("scope", name)
		if tail != "" {
			name += " "
		}
	}
	return head + name + tail
}

// counts returns the fields that identify this file among many.
func counts(fields []snapshot.Field) (out []snapshot.Field) {
	for _, f := range fields {
		switch f.Key {
		case "rank", "local_rank", "world_size", "step", "iteration", "epoch":
			if _, ok := f.Value.(int64); ok {
				out = append(out, f)
			}
		}
	}
	return out
}

var (
	settingKeys = []string{
		"max_split_size", "garbage_collection_threshold", "expandable_segments", "pinned_num_register_threads",
		"release_lock_on_cudamalloc", "pinned_use_cuda_host_register", "graph_capture_record_stream_reuse",
		"roundup_power2_divisions", "trace_alloc_overflowed", "trace_alloc_max_entries",
	}
	// option is one of a string of settings as PyTorch reads it.
	option      = lazyregexp.New(`\b[a-z][a-z0-9_]*\s*:\s*(\d+(\.\d+)?|True|False|native|cudaMallocAsync|\[[\d:,>\s]*\])`)
	knownOption = lazyregexp.New(`^(backend|expandable_segments|garbage_collection_threshold|graph_capture_record_stream_reuse|large_segment_size_mb|max_non_split_rounding_mb|max_split_size_mb|per_process_memory_fraction|pinned_max_cached_size_mb|pinned_max_power2_size_mb|pinned_num_register_threads|pinned_reserve_segment_size_mb|pinned_use_background_threads|pinned_use_cuda_host_register|release_lock_on_(cuda|hip)malloc|roundup_power2_divisions|throw_on_cudamalloc_oom|use_async_allocator_ipc)\b`)
)

// settings are those that PyTorch writes, where their values are numbers.
func settings(s *snapshot.Settings) *snapshot.Settings {
	if s == nil {
		return nil
	}
	var fields []snapshot.Field
	for _, f := range s.Fields() {
		text, ok := f.Value.(string)
		switch {
		case f.Key == "PYTORCH_CUDA_ALLOC_CONF" && ok:
			fields = append(fields, snapshot.Field{Key: f.Key, Value: options(text)})
		case slices.ContainsFunc(settingKeys, func(k string) bool { return f.Key == k }) && numeric(f.Value):
			fields = append(fields, f)
		}
	}
	return snapshot.NewSettings(fields)
}

// options are those of a string of settings that PyTorch knows.
func options(conf string) string {
	var out []string
	for _, o := range option.FindAllString(conf, -1) {
		if knownOption.MatchString(o) {
			out = append(out, o)
		}
	}
	return strings.Join(out, ",")
}

// numeric reports whether a value holds nothing but numbers, under keys that
// are numbers or the one of an allocator's sizes.
func numeric(v any) bool {
	switch v := v.(type) {
	case []any:
		return !slices.ContainsFunc(v, func(x any) bool { return !numeric(x) })
	case []snapshot.Field:
		return !slices.ContainsFunc(v, func(f snapshot.Field) bool {
			key, ok := f.Key.(string)
			return (!ok || strings.Trim(key, "0123456789") != "") && !numeric(f.Key) || !numeric(f.Value)
		})
	case int64, float64, bool:
		return true
	}
	return false
}
