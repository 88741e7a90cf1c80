package export

import (
	"fmt"
	"path"
	"regexp"
	"slices"
	"strings"

	"strandline/snapshot"
	"strandline/stack"
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
	if r.what&Names != 0 && !(public && file != "" && file != "??") && !prescribed.MatchString(f.Function) {
		out.Function = r.pseudonym("func", f.Function)
	}
	return out
}

var (
	// prescribed are names that Python and PyTorch give, or want a function to
	// have, and symbols of theirs.
	prescribed = regexp.MustCompile(`^(\?*|__\w+__|<\w+>|forward|backward|_start|(at|c10|caffe2|torch)::[\w:~]*(\([\w:&*, ]*\))?( const)?|_?Py[A-Z_]\w*|THP\w*|__libc\w*)$`)
	// publicCode is generated code whose file name says nothing of the program.
	publicCode = regexp.MustCompile(`^<(string|frozen (runpy|importlib\.\S+|zipimport)|eval_with_key|__array_function__ internals)>(\.\d+)?$`)
	// publicNative are libraries that everybody has, and sources of PyTorch and
	// of CPython.
	publicNative = regexp.MustCompile(`(^|/)(` +
		`lib(torch|c10|caffe2|shm)(_\w+)?\.so[.\d]*|` +
		`libcu(da|dart|pti|blas|blasLt|dnn|fft|rand|solver|sparse|sparseLt)(_\w+)?\.so[.\d]*|libnccl\.so[.\d]*|` +
		`lib(c|m|dl|rt|gomp|pthread|stdc\+\+|gcc_s|util|python[\d.]*)\.so[.\d]*|python[\d.]*t?|` +
		`(aten/src/ATen|torch/csrc|c10/(core|cuda|util|macros))/.*|` +
		`(Python|Objects|Modules|Include)/[\w/]+\.[ch])$`)
	// inductorFolder has the name of its owner.
	inductorFolder = regexp.MustCompile(`torchinductor_[^/\\]*`)
	nativeSuffix   = regexp.MustCompile(`^\.(so|c|cc|cpp|cu|h|hpp|cuh)$`)
)

// publicFile is the file of a frame without the folder of an installation, if it
// is not of the program.
func publicFile(f stack.Frame) (file string, public bool) {
	switch origin := stack.OriginOf(f); {
	case f.File == "" || f.File == "??" || publicCode.MatchString(f.File):
		return f.File, true
	case origin == stack.Torch, origin == stack.Library:
		return shortest(f.File, origin), true
	case origin == stack.Generated && !strings.HasPrefix(f.File, "<"):
		return inductorFolder.ReplaceAllString(shortest(f.File, origin), "torchinductor_"), true
	case origin == stack.Native:
		file = publicNative.FindString(f.File)
		return strings.TrimPrefix(file, "/"), file != ""
	}
	return "", false
}

// shortest is the end of a path that is still of an origin.
func shortest(file string, origin stack.Origin) string {
	for i := len(file) - 1; i > 0; i-- {
		if c := file[i-1]; (c == '/' || c == '\\') && stack.OriginOf(stack.Frame{File: file[i:]}) == origin {
			return file[i:]
		}
	}
	return file
}

// file is the pseudonym of a frame's file. It tells of what origin the file is.
func (r *redactor) file(f stack.Frame) string {
	name := r.pseudonym("file", f.File)
	switch stack.OriginOf(f) {
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
