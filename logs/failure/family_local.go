package failure

import (
	"bytes"
	"strings"

	"strandline/internal/lazyregexp"
)

// The kinds of llama.cpp.
const (
	LlamaWeights Kind = "llama.cpp-weights"
	LlamaCache   Kind = "llama.cpp-cache"
	LlamaCompute Kind = "llama.cpp-compute"
	LlamaBuffer  Kind = "llama.cpp" // a buffer, for any purpose
	LlamaHost    Kind = "llama.cpp-host"
	LlamaMetal   Kind = "llama.cpp-metal"
)

// familyLlama is llama.cpp's and ggml's: ggml-alloc.c, ggml-cuda.cu, ggml-vulkan.cpp,
// ggml-metal.
var familyLlama = &family{
	source: SourceLlama,
	keys: []string{
		"can'talloc", "can'tmalloc", "mallocfailed:outofmemory", "bufferofsize", "unabletoallocate", "failedtoallocatebuffer", "failedtoallocatecomputebuffers",
		"kiogpucommandbuffercallbackerroroutofmemory", "devicememoryallocationofsize", "ggml_aligned_malloc", "ggml-cuda", "erroroutofdevicememory", "currentdevice:",
		"kvcachebuffer",
	},
	nearby:   []string{"ggml_metal"},
	lines:    12,
	harmless: lazyregexp.New(`(?i)(?:warning|host_malloc): ?failed ?to ?allocate ?[\d.,]+ ?Mi?B ?of ?pinned ?memory(?:: ?out ?of ?memory)?|ggml_vulkan: ?failed ?to ?allocate ?pinned ?memory\.?(?: ?\([^()]*\))?(?:[^:]{0,40}ggml_vulkan: ?vk::Device::allocateMemory: ?ErrorOutOf(?:Device|Host)Memory)?`),
	wordings: []wording{
		{kind: LlamaCompute, text: "gallocr{:any}failed to allocate {buffer:word} buffer of size {request_bytes:int}"},
		{kind: LlamaCompute, text: "failed to allocate {buffer:word} buffer of size {request_bytes:int}{:any}failed to allocate compute"},
		{kind: LlamaCache, text: "failed to allocate {buffer:word} buffer of size {request_bytes:int}{:any}for kv cache"},
		{kind: LlamaHost, text: "cpu_buffer_type_alloc_buffer: failed to allocate buffer of size {request_bytes:int}", host: true},
		{kind: LlamaHost, text: "failed to allocate CPU buffer of size {request_bytes:int}", host: true},
		{kind: LlamaWeights, text: "failed to allocate {buffer:word} buffer of size {request_bytes:int}{:any}unable to allocate"},
		{kind: LlamaBuffer, text: "failed to allocate {buffer:word} buffer of size {request_bytes:int}"},
		{kind: LlamaHost, text: "ggml_aligned_malloc: insufficient memory (attempted to allocate {request_bytes:mib}", host: true},
		{kind: LlamaBuffer, text: "allocating {request_bytes:mib} on device {device:int}: {call:word}Malloc failed: out of memory"},
		{kind: LlamaBuffer, text: "can't allocate {request_bytes:int} Bytes of memory on device"},
		{kind: LlamaBuffer, text: "can't alloc {request_bytes:int} Bytes of memory on device"},
		{kind: LlamaBuffer, text: "can't malloc {request_bytes:int} Bytes memory on device"},
		{kind: LlamaBuffer, text: "Device memory allocation of size {request_bytes:int} failed"},
		{kind: LlamaBuffer, text: "ErrorOutOfDeviceMemory"},
		{kind: LlamaWeights, text: "unable to allocate {buffer:word} buffer"},
		{kind: LlamaCache, text: "failed to allocate buffer for kv cache"},
		{kind: LlamaCompute, text: "failed to allocate compute buffers"},
		{kind: LlamaMetal, text: "ggml_metal{:any}failed to allocate buffer, size = {request_bytes:mib}"},
		{kind: LlamaMetal, text: "ggml_metal{:any}kIOGPUCommandBufferCallbackErrorOutOfMemory"},
		{kind: LlamaMetal, text: "kIOGPUCommandBufferCallbackErrorOutOfMemory){:any}ggml_metal"},
		{kind: LlamaBuffer, text: `&& "failed to allocate buffer"`},
		{kind: LlamaBuffer, text: "out of memory current device: {device:int}, in function"},
		{kind: LlamaBuffer, text: "ggml-cuda{:any}out of memory"},
	},
	facts: []string{"on device {device:int}: {call:word}Malloc failed"},
	read: func(e *excerpt, f *Failure) bool {
		if strings.Contains(f.Quote, "ErrorOutOfDeviceMemory") && !ggmlWord.Match(e.raw) {
			f.Kind, f.Source = DriverVulkan, SourceDriver
		}
		if f.Kind == LlamaCompute && strings.HasPrefix(f.Words["buffer"], "CPU") {
			f.Kind, f.Host = LlamaHost, true
		}
		buffer := f.Words["buffer"] // "requested" in ONNX Runtime's words, "a" in others'
		return !strings.Contains(buffer, "requested") && buffer != "a"
	},
}

var ggmlWord = lazyregexp.New(`(?i)ggml|llama|gguf|whisper`)

// The kinds of Ollama.
const (
	OllamaHost   Kind = "ollama-host"   // the host has less than the model needs
	OllamaKilled Kind = "ollama-killed" // its runner was killed
	OllamaRunner Kind = "ollama-runner" // its runner ran out of the device's memory
)

// familyOllama is Ollama's: llm/server.go.
var familyOllama = &family{
	source: SourceOllama,
	keys:   []string{"requiresmoresystemmemory", "runnerprocesshasterminated", "llamarunnerterminated", "memorylayoutcannotbeallocated"},
	wordings: []wording{
		{kind: OllamaHost, text: "requires more system memory ({needed_bytes:size}) than is available ({available_bytes:size})", host: true},
		{kind: OllamaHost, text: "requires more system memory", host: true},
		{kind: OllamaKilled, text: "runner process has terminated: signal: killed", host: true},
		{kind: OllamaKilled, text: `llama runner terminated" error="signal: killed"`, host: true},
		{kind: OllamaRunner, text: "runner process has terminated: {:any}out of memory"},
		{kind: OllamaRunner, text: "runner process has terminated: {:any}unable to allocate"},
		{kind: OllamaRunner, text: "runner process has terminated: {:any}failed to allocate"},
		{kind: OllamaRunner, text: "memory layout cannot be allocated"},
	},
}

// The kinds of MLX.
const (
	MLXBuffer  Kind = "mlx-buffer"  // one buffer above what Metal allows
	MLXCount   Kind = "mlx-count"   // more buffers than Metal allows
	MLXMemory  Kind = "mlx"         // no memory was left
	MLXCommand Kind = "mlx-command" // a command buffer failed for lack of memory
)

// familyMLX is MLX's and Metal's: mlx/backend/metal/allocator.cpp.
var familyMLX = &family{
	source: SourceMLX,
	keys:   []string{"[metal::malloc]", "[malloc_or_wait]", "[malloc]unable", "insufficientmemory(ioafcode", "executionfailed:insufficientmemory", "kiogpucommandbuffercallbackerroroutofmemory"},
	nearby: []string{"ggml_metal"},
	wordings: []wording{
		{kind: MLXBuffer, text: "Attempting to allocate {request_bytes:int} bytes which is greater than the maximum allowed buffer size of {limit_bytes:int} bytes"},
		{kind: MLXCount, text: "[metal::malloc] Resource limit ({count:int}) exceeded"},
		{kind: MLXMemory, text: "Unable to allocate {request_bytes:int} bytes"},
		{kind: MLXCommand, text: "kIOGPUCommandBufferCallbackErrorOutOfMemory"},
		{kind: MLXCommand, text: "Insufficient Memory (IOAF code"},
		{kind: MLXCommand, text: "Command buffer execution failed: Insufficient Memory"},
	},
	read: func(e *excerpt, f *Failure) bool {
		return !bytes.Contains(e.raw, []byte("ggml"))
	},
}
