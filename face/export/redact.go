package export

import (
	_ "embed" // public.txt
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"

	"strandline/stack"
	"strandline/torch/snapshot"
)

// A Redaction says what [Redact] takes out.
type Redaction uint8

// What can be taken out, alone or together.
const (
	Paths Redaction = 1 << iota // files of frames
	Names                       // functions and annotations
)

// Redact is a snapshot like s in which pseudonyms, numbered by first appearance,
// stand for what the program's author named. Stacks, line numbers and all that
// is measured stay. So do the files and functions of PyTorch, of Python's
// library and of generated code, without the folders that they are installed in,
// and names that Python or PyTorch prescribes, such as forward and __init__:
// analysis finds in the result what it finds in s.
//
// Whatever is redacted, texts that the program attached to events are replaced,
// keys that PyTorch does not write are left out, but for plain counts such as
// rank and step, and so are fields of frames that have no column. The result
// shares the measured columns of s.
func Redact(s *snapshot.Snapshot, what Redaction) *snapshot.Snapshot {
	out := *s
	r := redactor{what: what, out: &out, names: map[string]map[string]string{}}
	// Blocks of a file that is as PyTorch writes it hold no text. Those of
	// others are made anew of what is measured.
	odd := len(s.UnknownKeys)+len(s.Faults) > 0
	out.Name, out.UnknownKeys, out.Faults = "", nil, nil
	out.Strings = slices.Clip(s.Strings)
	out.Stacks = r.stacks(s.Stacks)
	out.Segments, out.HostSegments = measured(s.Segments, odd), measured(s.HostSegments, odd)
	out.Traces, out.HostTraces = r.traces(s.Traces), r.traces(s.HostTraces)
	out.Annotations = r.annotations(s.Annotations)
	out.Extra = counts(s.Extra)
	out.Settings = settings(s.Settings)
	return &out
}

type redactor struct {
	what  Redaction
	out   *snapshot.Snapshot
	names map[string]map[string]string // by kind and text
}

// pseudonym is what stands for a text: its kind and a number.
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

// frameCount is how many frames the stacks of a table draw from.
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
	ofAll := public && file != "" && !nameless.MatchString(file)
	if r.what&Names != 0 && !ofAll && !prescribed.MatchString(f.Function) && !publicSymbol(f.Function) {
		out.Function = r.pseudonym("func", f.Function)
	}
	return out
}

var (
	// prescribed are names that Python and PyTorch give, or want a function to
	// have, and symbols of theirs.
	prescribed = regexp.MustCompile(`^(\?*|__\w+__|<\w+>|forward|backward|_start|_?Py(Eval|Object|Run|Vectorcall|Function|CFunction|Import|Method|Dict|List|Tuple|Type|Cell|Gen)_\w*|Py_\w*|THP\w*|__libc\w*)$`)
	// nameless is code of which the file says nothing: its functions may be
	// anybody's.
	nameless = regexp.MustCompile(`^(\?\?|<string>(\.\d+)?)$`)
	// publicCode is generated code whose file name says nothing of the program.
	publicCode = regexp.MustCompile(`^<(string|frozen (runpy|importlib\.\S+|zipimport)|eval_with_key|__array_function__ internals)>(\.\d+)?$`)
	// publicNative are libraries that everybody has, and sources of PyTorch and
	// of CPython.
	publicNative = regexp.MustCompile(`(^|/)(` +
		`lib(torch|c10|caffe2|shm)(_\w+)?\.so[.\d]*|` +
		`libcu(da|dart|pti|blas|blasLt|dnn|fft|rand|solver|sparse|sparseLt)(_\w+)?\.so[.\d]*|libnccl\.so[.\d]*|` +
		`lib(c|m|dl|rt|gomp|pthread|stdc\+\+|gcc_s|util|python[\d.]*)\.so[.\d]*|python[\d.]*t?|` +
		`(aten/src/ATen|torch/csrc|c10/(core|cuda|util|macros))/.*|` +
		`Python/(bltinmodule|ceval|errors|import|pylifecycle|pythonrun|sysmodule|generated_cases)\.c(\.h)?|` +
		`Objects/(\w+object|call|typevarobject)\.c|Modules/(main|_functoolsmodule|_asynciomodule|_threadmodule|gcmodule)\.c|` +
		`Include/(internal|cpython)/(pycore_\w+|abstract|object|ceval)\.h)$`)
	// installed is PyTorch as pip and Debian install it.
	installed = regexp.MustCompile(`.*/(site|dist)-packages/(torch/)`)
	// library is the folder of Python's own.
	library = regexp.MustCompile(`(?i)^.*/lib(32|64)?/((python|pypy)\d+(\.\d+)?t?/)?`)
	// compiled is a file that torch.compile names by a hash of what is in it.
	compiled     = regexp.MustCompile(`(^|/)torchinductor_[^/]*(/[a-z0-9]{2}/c[a-z2-7]{51}\.py)$`)
	nativeSuffix = regexp.MustCompile(`^\.(so|c|cc|cpp|cu|h|hpp|cuh)$`)
)

// publicSymbol tells whether a C++ symbol names nothing but what PyTorch, the
// standard library and the language do.
func publicSymbol(symbol string) bool {
	if !strings.Contains(symbol, "::") {
		return false
	}
	symbol = strings.ReplaceAll(symbol, "(anonymous namespace)", "_")
	for _, at := range identifier.FindAllStringIndex(symbol, -1) {
		within := strings.HasSuffix(symbol[:at[0]], "::") && at[0] > len("::")
		if !within && !publicWord.MatchString(symbol[at[0]:at[1]]) {
			return false
		}
	}
	return true
}

var (
	identifier = regexp.MustCompile(`[\pL_$][\pL\pN_$]*`)
	publicWord = regexp.MustCompile(`^(_|at|c10|caffe2|torch|std|auto|bool|char|const|decltype|double|enable_if|false|float|int|lambda|long|noexcept|operator|short|signed|true|u?int\d+_t|[sp]?size_t|unsigned|void|volatile|CUstream_st|cudaStream_t|abi|cxx11|ul|lu|l|u)$`)
)

// publicFiles are those of PyTorch 2.6 and of the standard libraries of Python
// 3.8 to 3.13, from the folders that they are installed in. They tell a checkout
// of PyTorch, or a Python that somebody built, from folders of the same name.
//
//go:embed public.txt
var publicText string

var publicFiles = sync.OnceValue(func() map[string]bool {
	out := map[string]bool{}
	for name := range strings.Lines(publicText) {
		out[strings.TrimSpace(name)] = true
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
			return file[at[4]:], true
		}
		file = file[strings.LastIndex("/"+file, "/torch/"):]
		return file, publicFiles()[file]
	case origin == stack.Library:
		if at := library.FindStringIndex(file); at != nil && publicFiles()[file[at[1]:]] {
			return "lib/python3/" + file[at[1]:], true
		}
	case origin == stack.Generated:
		if m := compiled.FindStringSubmatch(file); m != nil {
			return "torchinductor_" + m[2], true
		}
	case origin == stack.Native:
		file = publicNative.FindString(f.File)
		return strings.TrimPrefix(file, "/"), file != ""
	}
	return "", false
}

// file is the pseudonym of a frame's file. It tells of what origin the file is.
func (r *redactor) file(f stack.Frame) string {
	name := r.pseudonym("file", f.File)
	switch stack.OriginOf(f) {
	case stack.Torch:
		return "torch/utils/" + name + ".py"
	case stack.Library:
		return "lib/python3/" + name + ".py"
	case stack.Native:
		if suffix := path.Ext(f.File); nativeSuffix.MatchString(suffix) {
			name += suffix
		}
		return name
	case stack.Generated:
		return "<" + name + ">"
	}
	return name + ".py"
}

// measured are segments and blocks without the fields that have no column.
func measured(list []snapshot.Segment, anew bool) []snapshot.Segment {
	out := slices.Clone(list)
	for i := range out {
		out[i].Extra = nil
		if !anew {
			continue
		}
		out[i].Blocks = slices.Clone(out[i].Blocks)
		for j, b := range out[i].Blocks {
			out[i].Blocks[j] = snapshot.Block{Addr: b.Addr, Size: b.Size, Requested: b.Requested, Stack: b.Stack, State: b.State}
		}
	}
	return out
}

// traces are the traces without the fields that have no column.
func (r *redactor) traces(list []snapshot.Trace) []snapshot.Trace {
	out := slices.Clone(list)
	for i := range out {
		t := &out[i]
		for k := range t.Action {
			if len(t.Extra(k)) > 0 {
				*t = snapshot.Trace{Device: t.Device, Events: t.Events}
				break
			}
		}
		t.CompileContext = r.column(t.CompileContext, "context", compileID)
		t.UserMetadata = r.column(t.UserMetadata, "metadata", nil)
		t.Category = r.column(t.Category, "category", categories)
	}
	return out
}

var (
	compileID  = regexp.MustCompile(`^[\d/_]+$`)
	categories = regexp.MustCompile(`(?i)^(input|temporary|activation|gradient|autograd_detail|parameter|optimizer_state|unknown)$`)
)

// column replaces the texts of a column that are not public.
func (r *redactor) column(ids []snapshot.StringID, kind string, public *regexp.Regexp) []snapshot.StringID {
	if ids == nil {
		return nil
	}
	fresh := map[snapshot.StringID]snapshot.StringID{0: 0}
	out := make([]snapshot.StringID, len(ids))
	for k, id := range ids {
		to, ok := fresh[id]
		if !ok {
			to = id
			if text := r.out.String(id); text != "" && (public == nil || !public.MatchString(text)) {
				to = snapshot.StringID(len(r.out.Strings))
				r.out.Strings = append(r.out.Strings, r.pseudonym(kind, text))
			}
			fresh[id] = to
		}
		out[k] = to
	}
	return out
}

var (
	// scopeHead is the part of an annotation's name that PyTorch gives, scopeTail
	// the number of a step.
	scopeHead = regexp.MustCompile(`^(ProfilerStep#\d+|FSDP::\w+ ?|(aten|c10d|autograd)::\w+|Optimizer\.\w+#((SGD|ASGD|Adam|AdamW|Adamax|NAdam|RAdam|SparseAdam|Adagrad|Adadelta|Adafactor|LBFGS|RMSprop|Rprop|Muon)\.\w+)?)`)
	scopeTail = regexp.MustCompile(`(?i)\b(step|iter|iteration|batch|request|epoch)\b\W{0,3}\d+$`)
)

func (r *redactor) annotations(list []snapshot.Annotation) []snapshot.Annotation {
	out := slices.Clone(list)
	for i := range out {
		out[i].Extra = nil
		if r.what&Names != 0 || strings.ContainsAny(out[i].Name, `/\`) {
			out[i].Name = r.scope(out[i].Name)
		}
	}
	return out
}

// scope is the name of an annotation, with a pseudonym for what the program
// called it.
func (r *redactor) scope(name string) string {
	head := scopeHead.FindString(name)
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

// counts are the fields that tell which of many files this is.
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
	option      = regexp.MustCompile(`\b[a-z][a-z0-9_]*\s*:\s*(\d+(\.\d+)?|True|False|native|cudaMallocAsync|\[[\d:,>\s]*\])`)
	knownOption = regexp.MustCompile(`^(backend|expandable_segments|garbage_collection_threshold|graph_capture_record_stream_reuse|large_segment_size_mb|max_non_split_rounding_mb|max_split_size_mb|per_process_memory_fraction|pinned_max_cached_size_mb|pinned_max_power2_size_mb|pinned_num_register_threads|pinned_reserve_segment_size_mb|pinned_use_background_threads|pinned_use_cuda_host_register|release_lock_on_(cuda|hip)malloc|roundup_power2_divisions|throw_on_cudamalloc_oom|use_async_allocator_ipc)\b`)
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

// numeric tells whether nothing but numbers stands in a value, under keys that
// are numbers or the one of an allocator's sizes.
func numeric(v any) bool {
	switch v := v.(type) {
	case []any:
		return !slices.ContainsFunc(v, func(x any) bool { return !numeric(x) })
	case []snapshot.Field:
		return !slices.ContainsFunc(v, func(f snapshot.Field) bool {
			key, ok := f.Key.(string)
			return ok && strings.Trim(key, "0123456789") != "" || !numeric(f.Value)
		})
	case int64, float64, bool:
		return true
	}
	return false
}
