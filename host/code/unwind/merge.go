package unwind

import (
	"fmt"

	"strandline/host/code/cpython"
	"strandline/host/code/image"
	"strandline/stack"
)

// A Step is one level of a stack: a Python function, or a call of native code.
type Step struct {
	Call   Call           // for a Python function, the call of its interpreter
	Python *cpython.Frame // nil for native code
}

// Merge replaces the calls of the interpreter by the Python frames, innermost first,
// that these calls run. It returns false if the two do not match; the remaining frames
// are then appended.
func Merge(im *image.Image, r *cpython.Runtime, calls []Call, frames []cpython.Frame) (steps []Step, whole bool) {
	steps = make([]Step, 0, len(calls)+len(frames))
	for _, c := range calls {
		n := 0
		if len(frames) > 0 {
			n = runsBy(im, r, c, frames)
		}
		if n == 0 {
			steps = append(steps, Step{Call: c})
			continue
		}
		steps = appendPython(steps, r, c, frames[:n])
		frames = frames[n:]
	}
	for len(frames) > 0 && r.Shim(frames[0]) {
		frames = frames[1:]
	}
	return appendPython(steps, r, Call{}, frames), len(frames) == 0
}

func appendPython(steps []Step, r *cpython.Runtime, c Call, frames []cpython.Frame) []Step {
	for i := range frames {
		if !r.Shim(frames[i]) {
			steps = append(steps, Step{c, &frames[i]})
		}
	}
	return steps
}

// runsBy returns how many of the frames a call runs.
func runsBy(im *image.Image, r *cpython.Runtime, c Call, frames []cpython.Frame) int {
	if r.Minor >= 12 { // the evaluator keeps a frame of its own on its stack, below the functions that it runs
		for i, f := range frames {
			if r.Shim(f) {
				if c.sp <= f.Address && f.Address < c.cfa {
					return i + 1
				}
				return 0
			}
		}
		return 0
	}
	if !r.Evaluates(im, c.PC) {
		return 0
	}
	if r.Minor < 11 { // one call per function
		return 1
	}
	for i, f := range frames {
		if f.Entry {
			return i + 1
		}
	}
	return len(frames)
}

// A Frame is one level of a stack with its name.
type Frame struct {
	stack.Frame
	// Object is the file that holds the native code; empty for Python and for code that
	// belongs to no file.
	Object string
}

// UnreadableFunction is the name of a Python function that can no longer be read. It is the same for
// all such functions: what runs them repeatedly is one place.
const UnreadableFunction = "<function of Python that is gone>"

// Name names a step. Native code without a name is given its place in the object. codes
// may be nil if there is no Python.
func Name(im *image.Image, codes *cpython.Codes, s Step) Frame {
	if s.Python != nil {
		f, err := codes.Name(im, *s.Python)
		if err != nil {
			f = stack.Frame{Function: UnreadableFunction}
		}
		return Frame{Frame: f}
	}
	place, ok := im.Locate(s.Call.PC)
	switch {
	case !ok:
		return Frame{Frame: stack.Frame{Function: fmt.Sprintf("%#x", s.Call.PC)}}
	case place.Object == nil:
		return Frame{Frame: stack.Frame{Function: fmt.Sprintf("%s+%#x", mappingName(place.Mapping), s.Call.PC-place.Mapping.Start)}, Object: place.Mapping.Path}
	}
	f := Frame{Object: place.Object.Path}
	if f.Function = place.Object.Function(place.Linked); f.Function == "" {
		f.Function = fmt.Sprintf("%s+%#x", place.Object.Name(), place.Linked)
	}
	return f
}
