package failure

import (
	"bytes"
	"strconv"
	"strings"

	"strandline/internal/lazyregexp"
	"strandline/logs/text"
)

// The kinds of XLA.
const (
	XLARequest Kind = "xla-request" // a buffer of a program, at run time
	XLACompile Kind = "xla-compile" // a program that needs more than the device has
	XLABuffer  Kind = "xla-buffer"  // an array on a TPU
	XLAProgram Kind = "xla-program" // a program that does not fit beside the arrays on a TPU
	XLAScratch Kind = "xla-scratch" // a kernel that needs more of a core's own memory than it has
)

// familyXLA is XLA's: xla/service/buffer_assignment.cc, docs/errors, and what the
// TPU's compiler prints.
var familyXLA = &family{
	source: SourceXLA,
	keys: []string{
		"memorywhiletryingtoallocate", "outofmemoryallocating", "ranoutofmemoryinmemoryspace", "thatwasnotpossible", "failedtoallocaterequestfor",
		"unlikelytohaveenoughmemory", "exceedingavailablebytes", ")wouldexceedmemory(", "bufferassignmentoomdebugging", "bytesfornewconstant",
	},
	lines: 80,
	bytes: 64 << 10,
	wordings: []wording{
		{kind: XLACompile, text: "Ran out of memory in memory space hbm. Used {needed_bytes:size} of {capacity_bytes:size}"},
		{kind: XLACompile, text: "Ran out of memory in memory space hbm"},
		{kind: XLAScratch, text: "Ran out of memory in memory space vmem{:any}Used {needed_bytes:size} of {limit_bytes:size}"},
		{kind: XLAScratch, text: "Ran out of memory in memory space vmem"},
		{kind: XLAScratch, text: "Ran out of memory in memory space {:word}. Used {needed_bytes:size} of {limit_bytes:size}"},
		{kind: XLACompile, text: "Requires {needed_bytes:size}, has {capacity_bytes:size} available"},
		{kind: XLACompile, text: "TensorCore Hbm usage: {needed_bytes:size}, SparseCore Hbm usage{:any}{sparse:size}, exceeding available bytes: {capacity_bytes:size}"},
		{kind: XLACompile, text: "TensorCore Hbm usage: {needed_bytes:size}, {:any}exceeding available bytes: {capacity_bytes:size}"},
		{kind: XLAProgram, text: "Attempting to reserve {request_bytes:size} at the bottom of memory. That was not possible. There are {device_free_bytes:size} free"},
		{kind: XLABuffer, text: "Attempting to allocate {request_bytes:size}. That was not possible. There are {device_free_bytes:size} free"},
		{kind: XLABuffer, text: "Attempting to {:any}{request_bytes:size}{:any}. That was not possible"},
		{kind: XLABuffer, text: "Allocation (size={request_bytes:int}) would exceed memory (size={capacity_bytes:int}){:any}space=hbm"},
		{kind: XLAScratch, text: "Allocation (size={needed_bytes:int}) would exceed memory (size={limit_bytes:int})"},
		{kind: XLARequest, text: "Failed to allocate request for {rounded:size} ({request_bytes:int}B) on device ordinal"},
		{kind: XLARequest, text: "of memory while trying to allocate {rounded:size} ({request_bytes:int} bytes)"},
		{kind: XLARequest, text: "of memory while trying to allocate {request_bytes:size}"},
		{kind: XLARequest, text: "Exhausted: Out of memory allocating {request_bytes:size}"},
		{kind: XLARequest, text: "Failed to allocate request for {request_bytes:size}"},
		{kind: XLARequest, text: "Failed to allocate {request_bytes:int} bytes for new constant"},
	},
	facts: []string{
		"HBM capacity {capacity_bytes:size}:",
		"total allocation: {needed_bytes:size}", "preallocated temp allocation: {temporary:size}", "parameter allocation: {parameters:size}",
		"Peak buffers:{:any}Buffer 1: Size: {largest:size}", "Largest program allocations in hbm: 1. Size: {largest:size}",
	},
	read: func(e *excerpt, f *Failure) bool {
		if n := f.Figures["sparse"]; n > 0 {
			f.Figures[Needed] += n
		}
		f.Words["operator"] = firstOf(operatorIn, e.raw)
		f.Words["shape"] = firstOf(shapeIn, e.raw)
		return true
	},
}

var (
	operatorIn = lazyregexp.New(`op_name="([^"]{1,200})"`)
	shapeIn    = lazyregexp.New(`Shape: ([a-z0-9]{2,12}\[[0-9,]{0,80}\])`)
)

// firstOf is the first group of an expression in a text, "" if it is not there.
func firstOf(expr *lazyregexp.Regexp, text []byte) string {
	if m := expr.FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return ""
}

// The kinds of TensorFlow.
const (
	TensorFlowPool   Kind = "tensorflow-pool"   // its allocator ran out
	TensorFlowTensor Kind = "tensorflow-tensor" // a tensor could not be made
	TensorFlowDriver Kind = "tensorflow-driver" // the driver did not give its pool
)

// familyTensorFlow is the allocator of TensorFlow, which XLA has too:
// xla/tsl/framework/bfc_allocator.cc. A text that states that it is not a failure
// is not one.
var familyTensorFlow = &family{
	source: SourceTensorFlow,
	keys: []string{
		"ranoutofmemorytryingtoallocate", "oomwhenallocatingtensor", "cuda_error_out_of_memory", "failedtoallocatememory[op", "dsttensorisnotinitialized", "bfcallocatordumpfor", "bytes)fromdevice:",
	},
	lines:    100_000,
	bytes:    4 << 20,
	harmless: lazyregexp.New(`(?i)ran ?out ?of ?memory ?trying ?to ?allocate ?[\d.]+ ?[KMGT]?i?B(?: ?with ?freed_by_count=\d+)?\. ?The ?caller ?indicates ?that ?this ?is ?not ?a ?failure`),
	wordings: []wording{
		{kind: TensorFlowTensor, text: "OOM when allocating tensor with shape[{shape:any}] and type {type:word} on {:any}by allocator {allocator:word}[[", source: ""},
		{kind: TensorFlowTensor, text: "OOM when allocating tensor with shape[{shape:any}] and type {type:word} on {place:any}by allocator"},
		{kind: TensorFlowTensor, text: "OOM when allocating tensor with shape[{shape:any}]"},
		{kind: TensorFlowPool, text: "ran out of memory trying to allocate {rounded:size} (rounded to {request_bytes:int})"},
		{kind: TensorFlowPool, text: "ran out of memory trying to allocate {request_bytes:size}"},
		{kind: TensorFlowDriver, text: "failed to allocate {rounded:size} ({request_bytes:int} bytes) from device: CUDA_ERROR_OUT_OF_MEMORY"},
		{kind: TensorFlowDriver, text: "failed to allocate {rounded:size} ({request_bytes:int} bytes) from device: HIP"},
		{kind: TensorFlowDriver, text: "failed to alloc {request_bytes:int} bytes unified memory; result: CUDA_ERROR_OUT_OF_MEMORY"},
		{kind: TensorFlowTensor, text: "failed to allocate memory [Op:{operation:word}]"},
		{kind: TensorFlowTensor, text: "Dst tensor is not initialized", weak: true},
	},
	facts: []string{
		"(rounded to {request_bytes:int})",
		"Total bytes in pool: {reserved_bytes:int} memory_limit_: {limit_bytes:int}",
		"total_region_allocated_bytes_: {reserved_bytes:int} memory_limit_: {limit_bytes:int}",
		"Limit: {limit_bytes:int} InUse: {active_bytes:int}",
		"by allocator {allocator:word}_",
	},
	read: readChunks,
}

// bytesOf are the bytes of an element, by TensorFlow's name of its type.
var bytesOf = map[string]float64{
	"float": 4, "half": 2, "bfloat16": 2, "double": 8, "int32": 4, "int64": 8, "int8": 1, "uint8": 1, "bool": 1, "complex64": 8, "complex128": 16,
}

// readChunks adds the request of a tensor, and the free chunks of a dump: their sum
// and the largest.
func readChunks(e *excerpt, f *Failure) bool {
	if _, ok := f.Figures[Request]; !ok && f.Words["shape"] != "" {
		n := bytesOf[strings.ToLower(f.Words["type"])]
		for x := range strings.SplitSeq(f.Words["shape"], ",") {
			d, err := strconv.ParseFloat(x, 64)
			if n *= d; err != nil {
				n = 0
			}
		}
		if n > 0 && n < 1<<53 {
			f.Figures[Request] = n
		}
	}
	if strings.HasPrefix(strings.ToLower(f.Words["allocator"]), "cpu") || strings.HasPrefix(strings.ToLower(f.Words["allocator"]), "mklcpu") {
		f.Host = true
	}
	if bytes.Contains(e.raw, []byte("HIP_ERROR")) || bytes.Contains(e.raw, []byte("hipError")) {
		f.Words["maker"] = MakerAMD
	}
	var free, largest float64
	for line := range bytes.Lines(e.raw) {
		at := bytes.Index(line, []byte("Free "))
		if at < 0 {
			continue
		}
		size := bytes.Index(line[at:], []byte(" of size "))
		if size < 0 {
			continue
		}
		n, err := strconv.ParseFloat(string(text.Digits(bytes.TrimLeft(line[at+size+len(" of size "):], " "))), 64)
		if err == nil && n < 1<<53 {
			free, largest = free+n, max(largest, n)
		}
	}
	if free > 0 {
		f.Figures["pool_free_bytes"], f.Figures[Largest] = free, largest
	}
	return true
}
