package sites

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"strandline/internal/lazyregexp"
	"strandline/profiles"
	"strandline/stack"
)

// Stacks is the format of a text with the stacks of calls that map memory, as bpftrace and gdb
// print them. The file of a native frame is its library, where the text names it.
const Stacks = "stacks"

var (
	stacksIn = lazyregexp.New(`(?m)^\s*(?:Thread \d+ called m(?:un|re)?map\(|@[\w]*\[$|#\d+  ?(?:0x[0-9a-f]+ in )?(?:\w*mmap(?:64)?|syscall|\w*mremap|\w*munmap) \()`)
	// callHead is a line before a stack: the call, and its bytes where it has some.
	callHead = lazyregexp.New(`\b(mmap|mremap|munmap)\((?:.*?\b(?:new_len|length|len|size)\s*[=:]\s*(\d+|0x[0-9a-f]+))?`)
	// gdbFrame is a frame of gdb: a number, a function, and a library or a line.
	gdbFrame = lazyregexp.New(`^#(\d+)\s+(?:0x[0-9a-f]+ in )?([^\s(]+)(?: \(.*?\))?(?: \(\))?(?: (?:from (\S+)|at (\S+):(\d+)))?\s*$`)
	// bpfFrame is a frame of bpftrace: a function and an offset, or an address.
	bpfFrame = lazyregexp.New(`^\s+([\w.:<>@~$]+)\+(?:0x)?[0-9a-f]+(?: \((\S+)\))?\s*,?$`)
	bpfSum   = lazyregexp.New(`^\](?:, .*?)?: (\d+)$`)
)

// stack takes a line of a text of stacks.
func (r *reader) stack(text string) {
	if m := gdbFrame.FindStringSubmatch(strings.TrimSpace(text)); m != nil {
		n, _ := strconv.Atoi(m[1])
		if n <= r.depth {
			r.endStack()
		}
		r.depth = n
		line, _ := strconv.ParseInt(m[5], 10, 64)
		r.frames = append(r.frames, stack.Frame{File: m[3] + m[4], Line: line, Function: m[2]})
		return
	}
	if m := bpfSum.FindStringSubmatch(text); m != nil {
		const page = 4096 // a sum of lengths is of whole pages; other values are counts
		n, err := strconv.ParseInt(m[1], 10, 40)
		switch {
		case err != nil:
		case n%page == 0:
			r.length = n
		default:
			r.times = n
		}
		r.endStack()
		return
	}
	if m := bpfFrame.FindStringSubmatch(text); m != nil {
		r.frames = append(r.frames, stack.Frame{File: m[2], Function: m[1]})
		return
	}
	if m := callHead.FindStringSubmatch(text); m != nil {
		r.endStack()
		r.call = m[1]
		r.length, _ = strconv.ParseInt(m[2], 0, 50)
		return
	}
	if strings.TrimSpace(text) == "" && len(r.frames) > 0 {
		r.endStack()
	}
}

// endStack adds the stack that is complete. One that returns memory is left out, unless it maps
// some, and so is one that the text has already: it is counted.
func (r *reader) endStack() {
	frames, bytes, call, times := r.frames, max(r.length, 1), r.call, max(r.times, 1)
	r.frames, r.depth = nil, -1
	if len(frames) == 0 {
		return
	}
	r.length, r.times, r.call = 0, 0, ""
	maps := slices.ContainsFunc(frames, func(f stack.Frame) bool {
		return strings.Contains(f.Function, "mmap") || strings.Contains(f.Function, "mremap") || strings.Contains(f.Function, "sys_alloc") || f.Function == "syscall"
	})
	if call == "munmap" && !maps || len(frames) == 1 && strings.HasSuffix(frames[0].Function, "munmap") {
		return
	}
	key := fmt.Sprint(frames)
	if i, ok := r.stacks[key]; ok {
		u := &r.file.Uses[i]
		u.Size = (u.Size*u.Count + bytes*times) / (u.Count + times)
		u.Count += times
		return
	}
	const maxStacks = 4096
	if len(r.file.Uses) < maxStacks {
		r.stacks[key] = len(r.file.Uses)
		r.file.Uses = append(r.file.Uses, profiles.Use{Kind: "mmap", Stack: frames, Size: bytes, Count: times})
	}
}

// maps reports whether a text has calls that map memory.
func maps(head []byte) bool {
	return bytes.Contains(head, []byte("mmap")) || bytes.Contains(head, []byte("mremap"))
}

// Caller is the frame of a stack that asked for the memory: the first outside the C library.
// Where there is none, the stack was cut off, and ok is false.
func Caller(frames []stack.Frame) (f stack.Frame, ok bool) {
	for _, f := range frames {
		name := filepath.Base(f.File)
		libc := strings.HasPrefix(name, "libc.so") || strings.HasPrefix(name, "libc-") || strings.HasPrefix(name, "ld-linux")
		if !libc && !systemCall.MatchString(f.Function) {
			return f, true
		}
	}
	return frames[0], false
}

// systemCall are the functions of the C library that enter the kernel, and those of UCX that pass
// each call on.
var systemCall = lazyregexp.New(`^(?:__)?(?:syscall|mmap(?:64)?|munmap|mremap|brk|sbrk)$|^ucm_(?:orig_|event_|mmap$|override_)`)
