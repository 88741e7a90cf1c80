package processes

import (
	"fmt"
	"path/filepath"
	"strings"

	"strandline/finding"
	"strandline/host/code/symbolize"
	"strandline/host/code/unwind"
	"strandline/host/store/recording"
	"strandline/internal/lazyregexp"
	"strandline/stack"
)

// ofAllocator matches the functions of allocators, which give out memory rather than
// request it: those of the C library, of jemalloc, tcmalloc and mimalloc if a program has
// them built in, of Python, and of Go's runtime.
var ofAllocator = lazyregexp.New(`^(__)?(libc_)?(malloc|calloc|realloc|memalign|aligned_alloc|posix_memalign|valloc|pvalloc|reallocarray)(\b|$)|` +
	`^operator new|^_int_(malloc|memalign|realloc|free)\b|^sysmalloc|^sbrk$|^__default_morecore|^(grow|new|alloc_new)_heap|^arena_get|^tcache_init|^mremap_chunk|` +
	`^_?(je|jemalloc)_|^(tc|mi)_(new|malloc|calloc|realloc|memalign|posix_memalign)|^(tc|TC)[Mm]alloc|^(Sbrk|Mmap|Default)SysAllocator::|` +
	`^_?mi_(heap|page|segment|arena|os|prim|zalloc|unix)|^do_(malloc|mmap)|` +
	`^_?PyObject_(Arena|Malloc|Realloc|Calloc)|^_?PyMem_|^new_arena|^pymalloc_alloc|^runtime\.`)

// hooked matches the libraries that stand between an allocator and the kernel because
// they hook the calls.
var hooked = lazyregexp.New(`^libucm[.-]`)

func allocates(f symbolize.Frame) bool {
	return allocator.MatchString(filepath.Base(f.Object)) || f.Object != "" && ofAllocator.MatchString(f.Function)
}

// Requested returns the frames of a stack from the one that requested the memory: without
// those of the allocator, the innermost of which can have names that are on no list. A
// stack of nothing else is returned whole.
func Requested(frames []symbolize.Frame) []symbolize.Frame {
	const maxUnknown = 2 // frames of the allocator in a row that are not recognized
	from, gap := 0, 0
	for i, f := range frames {
		object := filepath.Base(f.Object)
		switch {
		case f.Object == "" && f.File != "": // Python
			gap = maxUnknown + 1
		case allocates(f):
			if gap == 0 || f.Object == frames[i-1].Object {
				from, gap = i+1, 0
			}
		case InLibrary(f), hooked.MatchString(object):
		case gap > 0 && f.Object != frames[i-1].Object:
			gap = maxUnknown + 1
		default:
			gap++
		}
		if gap > maxUnknown {
			break
		}
	}
	if from == len(frames) {
		return frames
	}
	return frames[from:]
}

// InLibrary reports whether a frame belongs to the C library or a related library.
func InLibrary(f symbolize.Frame) bool { return library.MatchString(filepath.Base(f.Object)) }

// Unnamed reports whether a function is only an address in an object without symbols.
func Unnamed(function string) bool {
	return strings.Contains(function, "+0x") || strings.HasPrefix(function, "0x")
}

// Frames returns the frames of a stack in a recording as they were when it was unwound.
func Frames(s *recording.Stack) (out []symbolize.Frame) {
	text := func(t *string) string {
		if t == nil {
			return ""
		}
		return *t
	}
	for _, f := range s.Frames {
		frame := unwind.Frame{Frame: stack.Frame{File: text(f.File), Function: text(f.Function)}, Object: text(f.Object)}
		if f.Line != nil {
			frame.Line = *f.Line
		}
		out = append(out, frame)
	}
	return out
}

// callPath names the functions that lead to a call: the first native function above the
// allocator, further native functions that have a name and do not belong to the C
// library, and the lines of Python.
func callPath(frames []symbolize.Frame) string {
	const maxNative, maxPython = 6, 2
	var native, lines []string
	for _, f := range Requested(frames) {
		object := filepath.Base(f.Object)
		switch {
		case f.Object == "" && f.File != "":
			if stack.OriginOf(f.Frame) == stack.Own && len(lines) < maxPython {
				lines = append(lines, fmt.Sprintf("%s %s:%d", f.Function, filepath.Base(f.File), f.Line))
			}
		case len(lines) > 0 || len(native) == maxNative || outermost[f.Function] || InLibrary(f),
			Unnamed(f.Function) && (len(native) > 0 || f.Object == "" || python.MatchString(object)):
		default:
			if name := withoutParameters(f.Function); len(native) == 0 || native[len(native)-1] != name {
				native = append(native, name)
			}
		}
	}
	return strings.Join(append(native, lines...), " ← ")
}

// qualifiers are what follows the parameters of a function of C++.
var qualifiers = lazyregexp.New(`( const| volatile|\s?&&?| noexcept|\[abi:\w+\]| \[clone [^\]]*\])+$`)

// withoutParameters returns the name of a function of C++ without the list of its
// parameters, which a sentence has no room for.
func withoutParameters(function string) string {
	if !strings.Contains(function, "(") {
		return function
	}
	name, depth := qualifiers.ReplaceAllString(function, ""), 0
	for i := len(name) - 1; i > 0 && (depth > 0 || i == len(name)-1); i-- {
		switch name[i] {
		case ')':
			depth++
		case '(':
			if depth--; depth == 0 && !strings.HasSuffix(name[:i], "operator") {
				return name[:i]
			}
		}
	}
	return function
}

// outermost are the functions that every stack ends in.
var outermost = map[string]bool{"_start": true, "Py_RunMain": true, "Py_BytesMain": true, "Py_Main": true}

// HostFrames are those of a stack, as findings have them.
func HostFrames(frames []symbolize.Frame) []finding.Frame {
	out := make([]finding.Frame, len(frames))
	for i, f := range frames {
		out[i] = hostFrame(f)
	}
	return out
}

func hostFrame(f symbolize.Frame) finding.Frame {
	file := f.File
	if file == "" {
		file = f.Object
	}
	return finding.Frame{File: file, Line: f.Line, Function: f.Function}
}

// HostSite is the innermost line of Python that is the user's own, otherwise the innermost
// function that belongs to neither an allocator nor the C library.
func HostSite(frames []symbolize.Frame) *finding.Site {
	for _, f := range frames {
		if f.Line > 0 && stack.OriginOf(f.Frame) == stack.Own {
			site := hostFrame(f)
			return &site
		}
	}
	for _, f := range Requested(frames) {
		if f.Function != "" && !InLibrary(f) {
			site := hostFrame(f)
			return &site
		}
	}
	return nil
}
