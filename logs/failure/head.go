package failure

import (
	"bytes"
	"slices"
	"strconv"

	"strandline/logs/text"
)

// A head is how a message begins.
type head struct {
	known   bool // false: the beginning of the message is cut off
	wording Wording
	backend string
	at, end int // where it is in the text

	device  *int // of the communication library's words, which state both in the head
	request *int64
}

// What each head contains.
const (
	outOfMemory = "outofmemory"
	exceeds     = "wouldexceedallowedmemory"
	class       = "OutOfMemory"
	calloc      = "FailedtoCUDAcalloc"
)

// headIn is the first head that is in a text without white space, from some
// byte on.
func headIn(line []byte, from int) (first head, ok bool) {
	for at := from; !ok; {
		i := bytes.IndexByte(line[at:], 'y') // few words end so
		if i < 0 {
			break
		}
		if at += i + 1; at < 2 || line[at-2] != 'r' {
			continue
		}
		for _, word := range []string{outOfMemory, exceeds, class} {
			if text.HasSuffix(line[:at], word) {
				first, ok = headAt(line, at-len(word), word)
			}
		}
	}
	if bytes.IndexByte(line[from:], calloc[0]) < 0 {
		return first, ok
	}
	if i := bytes.Index(line[from:], []byte(calloc)); i >= 0 && (!ok || from+i < first.at) {
		if h, is := headAt(line, from+i, calloc); is {
			return h, true
		}
	}
	return first, ok
}

// headAt is the head that contains a word.
func headAt(line []byte, at int, word string) (head, bool) {
	before, behind := line[:at], line[at+len(word):]
	h := head{known: true, at: at, end: at + len(word), backend: "CUDA"}
	switch word {
	case class: // where the text ends, the message itself may be cut off
		const rest = "Error:CUDA" + outOfMemory
		return h, len(behind) > len("Error:") && bytes.HasPrefix([]byte(rest), behind)
	case calloc:
		h.wording, h.device = NCCL, deviceOfNCCL(before)
		figure := bytes.TrimPrefix(behind, []byte("async"))
		n, length := size(figure)
		if length > 0 && n >= 0 {
			h.request, h.end = &n, len(line)-len(figure)+length
		}
		return h, h.request != nil
	case exceeds:
		h.wording = Async
		if text.HasPrefix(behind, ".("+outOfMemory+")") {
			h.end += len(".(" + outOfMemory + ")")
		}
		digits := text.LastDigits(before)
		if name := "Allocationondevice"; text.HasSuffix(before[:at-len(digits)], name) {
			h.at -= len(name) + len(digits)
		}
		return h, true
	}
	switch {
	case text.HasSuffix(before, "error:"):
		return h.ofDriver(line)
	case text.HasSuffix(before, "'"):
		return h.ofNCCL(line)
	case text.HasSuffix(before, "MPSbackend"):
		h.wording, h.backend, h.at = Metal, "MPS", at-len("MPSbackend")
		return h, true
	}
	return h.ofAllocator(line)
}

// ofDriver is the head "CUDA error: out of memory", or "CUDA driver error: …".
func (h head) ofDriver(text []byte) (head, bool) {
	name := bytes.TrimSuffix(text[:h.at], []byte("error:"))
	h.wording = Runtime
	if shorter, ok := bytes.CutSuffix(name, []byte("driver")); ok {
		name, h.wording = shorter, Driver
	}
	h.backend = backendOf(lastCapitals(name))
	h.at = len(name) - len(h.backend)
	return h, len(h.backend) > 1 && !h.quoted(text)
}

// backendOf is the name of a backend, the same string for those that are known.
func backendOf(name []byte) string {
	for _, known := range []string{"CUDA", "HIP", "XPU", "NPU"} {
		if string(name) == known {
			return known
		}
	}
	return string(name)
}

// ofNCCL is the head "Cuda failure 2 'out of memory'".
func (h head) ofNCCL(line []byte) (head, bool) {
	before := line[:h.at-1]
	before = before[:len(before)-len(text.LastDigits(before))]
	for _, failure := range []string{"Cudafailure", "HIPfailure"} {
		if text.HasSuffix(before, failure) {
			h.wording, h.device = NCCL, deviceOfNCCL(before)
			h.at, h.end = len(before)-len(failure), min(h.end+1, len(line))
			return h, !h.quoted(line)
		}
	}
	return h, false
}

// ofAllocator is the head "CUDA out of memory. Tried to allocate".
func (h head) ofAllocator(line []byte) (head, bool) {
	before := line[:h.at]
	h.backend = backendOf(lastCapitals(before))
	if text.HasSuffix(before, "Cuda") {
		h.backend = "Cuda"
	}
	h.at -= len(h.backend)
	tried := bytes.TrimPrefix(line[h.end:], []byte("."))
	const request = "Triedtoallocate"
	switch {
	case text.HasPrefix(tried, request+"morethan1EB"):
		h.wording = Absurd
		return h, true
	case text.HasPrefix(tried, request):
		h.end = len(line) - len(tried)
		return h, true
	case text.HasPrefix(tried, ",pleaseuse`empty_cache`"):
		h.wording = Silent
		return h, len(h.backend) > 1
	}
	return h, len(h.backend) > 1 && bytes.HasPrefix([]byte(request), tried) // the text ends here
}

// quoted reports whether words are alone between quotes, as in a program that looks
// for them.
func (h *head) quoted(line []byte) bool {
	return h.at > 0 && h.end < len(line) && text.Quotation(line[h.at-1]) && text.Quotation(line[h.end])
}

// deviceOfNCCL is the device that a line of the communication library names:
// "host:3063:3152 [2] include/alloc.h:178 NCCL WARN …".
func deviceOfNCCL(before []byte) *int {
	const within = 256
	line := before[max(0, len(before)-within):]
	at := bytes.LastIndex(line, []byte("NCCLWARN"))
	if at < 0 {
		return nil
	}
	open := bytes.LastIndexByte(line[:at], '[')
	if open < 0 {
		return nil
	}
	digits := text.Digits(line[open+1:])
	if end := open + 1 + len(digits); len(digits) == 0 || len(digits) > 3 || line[end] != ']' {
		return nil
	}
	n, _ := strconv.Atoi(string(digits))
	return &n
}

// lastCapitals are the capital letters that it ends with.
func lastCapitals(line []byte) []byte {
	n := len(line)
	for n > 0 && text.Capital(line[n-1]) {
		n--
	}
	return line[n:]
}

// headlessWords are those of which one is in a message that is known by its figures alone.
var headlessWords = [][]byte{[]byte("lloc"), []byte("capac"), []byte("reserved"), []byte("cached)"), []byte("accordingto")}

// headless reports whether a text has figures of a message, though its head is cut
// off.
func (p *parser) headless(text []byte) bool {
	if bytes.IndexByte(text, 'B') < 0 && !bytes.Contains(text, []byte("bytes")) {
		return false // no size, as in the prefixes of logs
	}
	if !slices.ContainsFunc(headlessWords, func(word []byte) bool { return bytes.Contains(text, word) }) {
		return false
	}
	before := p.figures
	o := p.parse(head{}, text)
	if o == nil {
		return false
	}
	p.spare, p.figures = o, before
	if o.Wording == Async { // many programs write "Requested:"
		return o.Free != nil
	}
	return o.Total != nil || o.Reserved != nil || o.Unallocated != nil || o.Allocated != nil
}

// endIn returns where a message with this head is whole, -1 if it is not. It is not looked
// for before some byte.
func (h *head) endIn(line []byte, from int) int {
	switch {
	case h.wording.bare():
		return h.end - h.at
	case h.wording == Metal:
		if at := bytes.Index(line[from:], []byte("pool.")); at >= 0 {
			return from + at + len("pool.")
		}
		return -1
	case h.wording == Async:
		const limit = "memoryfraction):"
		at := bytes.Index(line[from:], []byte(limit))
		if at < 0 {
			return -1
		}
		at += from
		if _, length := size(line[at+len(limit):]); length > 0 {
			return at + len(limit) + length
		}
		return -1
	}
	const name = "PyTorch"
	for begin := from; ; {
		at := bytes.Index(line[begin:], []byte(name))
		if at < 0 {
			break
		}
		begin += at + len(name)
		for _, words := range []string{"butunallocated", ")"} {
			if text.HasPrefix(line[begin:], words) && (words != ")" || text.HasSuffix(line[:begin], "reservedintotalbyPyTorch")) {
				return begin + len(words)
			}
		}
	}
	for begin := from; ; { // until PyTorch 1.3
		at := bytes.IndexByte(line[begin:], ')')
		if at < 0 {
			return -1
		}
		if begin += at + 1; text.HasSuffix(line[:begin], "Bcached)") {
			return begin
		}
	}
}
