package logs

import (
	"bytes"
	"slices"
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
func headIn(text []byte, from int) (first head, ok bool) {
	for at := from; !ok; {
		i := bytes.IndexByte(text[at:], 'y') // few words end so
		if i < 0 {
			break
		}
		if at += i + 1; at < 2 || text[at-2] != 'r' {
			continue
		}
		for _, word := range []string{outOfMemory, exceeds, class} {
			if hasSuffix(text[:at], word) {
				first, ok = headAt(text, at-len(word), word)
			}
		}
	}
	if bytes.IndexByte(text[from:], calloc[0]) < 0 {
		return first, ok
	}
	if i := bytes.Index(text[from:], []byte(calloc)); i >= 0 && (!ok || from+i < first.at) {
		if h, is := headAt(text, from+i, calloc); is {
			return h, true
		}
	}
	return first, ok
}

// headAt is the head that contains a word.
func headAt(text []byte, at int, word string) (head, bool) {
	before, behind := text[:at], text[at+len(word):]
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
			h.request, h.end = &n, len(text)-len(figure)+length
		}
		return h, h.request != nil
	case exceeds:
		h.wording = Async
		if hasPrefix(behind, ".("+outOfMemory+")") {
			h.end += len(".(" + outOfMemory + ")")
		}
		digits := lastDigits(before)
		if name := "Allocationondevice"; hasSuffix(before[:at-len(digits)], name) {
			h.at -= len(name) + len(digits)
		}
		return h, true
	}
	switch {
	case hasSuffix(before, "error:"):
		return h.ofDriver(text)
	case hasSuffix(before, "'"):
		return h.ofNCCL(text)
	case hasSuffix(before, "MPSbackend"):
		h.wording, h.backend, h.at = Metal, "MPS", at-len("MPSbackend")
		return h, true
	}
	return h.ofAllocator(text)
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
func (h head) ofNCCL(text []byte) (head, bool) {
	before := text[:h.at-1]
	before = before[:len(before)-len(lastDigits(before))]
	for _, failure := range []string{"Cudafailure", "HIPfailure"} {
		if hasSuffix(before, failure) {
			h.wording, h.device = NCCL, deviceOfNCCL(before)
			h.at, h.end = len(before)-len(failure), min(h.end+1, len(text))
			return h, !h.quoted(text)
		}
	}
	return h, false
}

// ofAllocator is the head "CUDA out of memory. Tried to allocate".
func (h head) ofAllocator(text []byte) (head, bool) {
	before := text[:h.at]
	h.backend = backendOf(lastCapitals(before))
	if hasSuffix(before, "Cuda") {
		h.backend = "Cuda"
	}
	h.at -= len(h.backend)
	tried := bytes.TrimPrefix(text[h.end:], []byte("."))
	const request = "Triedtoallocate"
	switch {
	case hasPrefix(tried, request+"morethan1EB"):
		h.wording = Absurd
		return h, true
	case hasPrefix(tried, request):
		h.end = len(text) - len(tried)
		return h, true
	case hasPrefix(tried, ",pleaseuse`empty_cache`"):
		h.wording = Silent
		return h, len(h.backend) > 1
	}
	return h, len(h.backend) > 1 && bytes.HasPrefix([]byte(request), tried) // the text ends here
}

// quoted reports whether words are alone between quotes, as in a program that looks
// for them.
func (h *head) quoted(text []byte) bool {
	return h.at > 0 && h.end < len(text) && quotation(text[h.at-1]) && quotation(text[h.end])
}

func quotation(c byte) bool { return c == '"' || c == '\'' || c == '`' }

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
	digits := digitsOf(line[open+1:])
	if end := open + 1 + len(digits); len(digits) == 0 || len(digits) > 3 || line[end] != ']' {
		return nil
	}
	n := numeral(string(digits))
	return &n
}

// digitsOf are the digits that a text begins with.
func digitsOf(text []byte) []byte {
	n := 0
	for n < len(text) && digit(text[n]) {
		n++
	}
	return text[:n]
}

// lastDigits are those that it ends with.
func lastDigits(text []byte) []byte {
	n := len(text)
	for n > 0 && digit(text[n-1]) {
		n--
	}
	return text[n:]
}

// lastCapitals are the capital letters that it ends with.
func lastCapitals(text []byte) []byte {
	n := len(text)
	for n > 0 && capital(text[n-1]) {
		n--
	}
	return text[n:]
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
func (h *head) endIn(text []byte, from int) int {
	switch {
	case h.wording.bare():
		return h.end - h.at
	case h.wording == Metal:
		if at := bytes.Index(text[from:], []byte("pool.")); at >= 0 {
			return from + at + len("pool.")
		}
		return -1
	case h.wording == Async:
		const limit = "memoryfraction):"
		at := bytes.Index(text[from:], []byte(limit))
		if at < 0 {
			return -1
		}
		at += from
		if _, length := size(text[at+len(limit):]); length > 0 {
			return at + len(limit) + length
		}
		return -1
	}
	const name = "PyTorch"
	for begin := from; ; {
		at := bytes.Index(text[begin:], []byte(name))
		if at < 0 {
			break
		}
		begin += at + len(name)
		for _, words := range []string{"butunallocated", ")"} {
			if hasPrefix(text[begin:], words) && (words != ")" || hasSuffix(text[:begin], "reservedintotalbyPyTorch")) {
				return begin + len(words)
			}
		}
	}
	for begin := from; ; { // until PyTorch 1.3
		at := bytes.IndexByte(text[begin:], ')')
		if at < 0 {
			return -1
		}
		if begin += at + 1; hasSuffix(text[:begin], "Bcached)") {
			return begin
		}
	}
}
