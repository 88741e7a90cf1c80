package logs

import "bytes"

// A head is how a message begins.
type head struct {
	known   bool // false: the beginning of the message is cut off
	wording Wording
	backend string
	at, end int // where it stands in the text

	device  *int // of the communication library's words, which state both in the head
	request *int64
}

// What stands in each head.
const (
	outOfMemory = "outofmemory"
	exceeds     = "wouldexceedallowedmemory"
	class       = "OutOfMemory"
	calloc      = "FailedtoCUDAcalloc"
)

// headIn is the first head that stands in a text without white space, from some
// byte on.
func headIn(text []byte, from int) (h head, ok bool) {
	failed := bytes.Index(text[from:], []byte("calloc"))
	if failed >= 0 {
		failed += from + len("calloc")
	}
	for {
		end := len(text)
		if i := bytes.IndexByte(text[from:], 'y'); i >= 0 { // few words end so
			end = from + i + 1
		} else if failed < 0 {
			return head{}, false
		}
		word := ""
		if failed >= 0 && failed <= end {
			end, failed, word = failed, -1, calloc
		}
		for _, w := range []string{outOfMemory, exceeds, class, word} {
			if w != "" && hasSuffix(text[:end], w) {
				if h, ok := headAt(text, end-len(w), w); ok {
					return h, true
				}
			}
		}
		from = end
	}
}

// headAt is the head in which a word stands.
func headAt(text []byte, at int, word string) (head, bool) {
	before, behind := text[:at], text[at+len(word):]
	h := head{known: true, at: at, end: at + len(word)}
	begins := func(words string, wording Wording, backend string) (head, bool) {
		h.at, h.wording, h.backend = at-len(words), wording, backend
		return h, true
	}
	switch {
	case word == class: // where the text ends, the message itself may be cut off
		const rest = "Error:CUDA" + outOfMemory
		return h, len(behind) > len("Error:") && bytes.HasPrefix([]byte(rest), behind)
	case word == exceeds:
		if hasPrefix(behind, ".("+outOfMemory+")") {
			h.end += len(".(" + outOfMemory + ")")
		}
		digits := trailing(before, digit)
		if name := "Allocationondevice"; hasSuffix(before[:len(before)-len(digits)], name) {
			return begins(name+string(digits), Async, "CUDA")
		}
		return begins("", Async, "CUDA")
	case word == calloc:
		digits := leading(bytes.TrimPrefix(behind, []byte("async")), digit)
		if n, length := size(append(bytes.Clone(digits), "bytes"...)); length > 0 {
			h.request = n
		}
		h.device = deviceOfNCCL(before)
		return begins("", NCCL, "CUDA")
	case hasSuffix(before, "MPSbackend"):
		return begins("MPSbackend", Metal, "MPS")
	case hasSuffix(before, "error:"):
		name := bytes.TrimSuffix(before, []byte("error:"))
		wording := Runtime
		if shorter, ok := bytes.CutSuffix(name, []byte("driver")); ok {
			name, wording = shorter, Driver
		}
		backend := string(trailing(name, capital))
		return begins(string(before[len(name)-len(backend):]), wording, backend)
	case hasSuffix(before, "'"):
		digits := trailing(before[:len(before)-1], digit)
		name := before[:len(before)-1-len(digits)]
		for _, failure := range []string{"Cudafailure", "HIPfailure"} {
			if hasSuffix(name, failure) {
				h.device = deviceOfNCCL(name)
				return begins(failure+string(digits)+"'", NCCL, "CUDA")
			}
		}
		return head{}, false
	}
	backend := string(trailing(before, capital))
	if hasSuffix(before, "Cuda") {
		backend = "Cuda"
	}
	tried, _ := bytes.CutPrefix(behind, []byte("."))
	const request = "Triedtoallocate"
	switch {
	case hasPrefix(tried, request+"morethan1EB"):
		return begins(backend, Absurd, backend)
	case hasPrefix(tried, request):
		h.end = len(text) - len(tried)
		return begins(backend, Native, backend)
	case len(backend) > 1 && bytes.HasPrefix([]byte(request), tried): // the end of the text
		return begins(backend, Native, backend)
	}
	return head{}, false
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
	digits := leading(line[open+1:], digit)
	if end := open + 1 + len(digits); len(digits) == 0 || len(digits) > 3 || line[end] != ']' {
		return nil
	}
	n := numeral(string(digits))
	return &n
}

// trailing is the end of a text that consists of such characters.
func trailing(text []byte, is func(byte) bool) []byte {
	n := len(text)
	for n > 0 && is(text[n-1]) {
		n--
	}
	return text[n:]
}

// headless tells text in which figures of a message stand, though its head is cut
// off.
func headless(text []byte) bool {
	o := parse(head{}, text)
	switch {
	case o == nil:
		return false
	case o.Wording == Async: // many programs write "Requested:"
		return o.Free != nil
	}
	return o.Total != nil || o.Reserved != nil || o.Unallocated != nil || o.Allocated != nil
}

// endIn is where a message with this head is whole, -1 if it is not.
func (h *head) endIn(text []byte) int {
	switch {
	case h.wording.bare():
		return h.end - h.at
	case h.wording == Metal:
		if at := bytes.Index(text, []byte("pool.")); at >= 0 {
			return at + len("pool.")
		}
		return -1
	case h.wording == Async:
		const limit = "memoryfraction):"
		at := bytes.Index(text, []byte(limit))
		if at < 0 {
			return -1
		}
		if _, length := size(text[at+len(limit):]); length > 0 {
			return at + len(limit) + length
		}
		return -1
	}
	const name = "PyTorch"
	for from := 0; ; {
		at := bytes.Index(text[from:], []byte(name))
		if at < 0 {
			break
		}
		from += at + len(name)
		for _, words := range []string{"butunallocated", ")"} {
			if hasPrefix(text[from:], words) && (words != ")" || hasSuffix(text[:from], "reservedintotalbyPyTorch")) {
				return from + len(words)
			}
		}
	}
	for from := 0; ; { // until PyTorch 1.3
		at := bytes.IndexByte(text[from:], ')')
		if at < 0 {
			return -1
		}
		if from += at + 1; hasSuffix(text[:from], "Bcached)") {
			return from
		}
	}
}
