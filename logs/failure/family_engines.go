package failure

import (
	"cmp"
	"strings"

	"strandline/internal/lazyregexp"
)

// The kinds of vLLM.
const (
	VLLMFree      Kind = "vllm-free"       // less of the device is free than the engine should take
	VLLMLength    Kind = "vllm-length"     // the KV cache does not hold one request of the length that was set
	VLLMCache     Kind = "vllm-cache"      // nothing is left for the KV cache
	VLLMWarmUp    Kind = "vllm-warm-up"    // the trial of the largest batch did not fit
	VLLMMapping   Kind = "vllm-cumem"      // pages could not be mapped, as on waking up
	VLLMHostCache Kind = "vllm-host-cache" // of vLLM on the processor, whose cache has a fixed size
	VLLMSwap      Kind = "vllm-swap"       // the swap space is larger than the host's memory
)

// familyVLLM is vLLM's: vllm/v1/core/kv_cache_utils.py, v1/worker/gpu_worker.py and
// utils, worker/worker.py of the first engine, csrc/cumem_allocator.cpp.
var familyVLLM = &family{
	source: SourceVLLM,
	keys: []string{
		"lessthandesiredgpumemoryutilization", "reducegpumemoryusedbyotherprocesses", "kvcacheisneeded", "largerthantheavailablekvcache", "estimatedmaximummodellength", "tokensthatcanbestoredinkvcache", "noavailablememory",
		"reservedforkvcacheis-", "availablekvcachememory:-", "occurredwhenwarmingup", "cumem_allocator", "cumem.py", "wake_upmethodfailed", "toolargeswapspace",
	},
	nearby: []string{"availablekvcachememory", "restofthememoryreservedforkvcache", "kv_cache_size="},
	wordings: []wording{
		{kind: VLLMFree, text: "Free memory on device{:any}({device_free_bytes:gib}/{capacity_bytes:gib}){:any}is less than desired GPU memory utilization ({fraction:num}, {needed_bytes:gib})"},
		{kind: VLLMFree, text: "Free memory on device{:any}({device_free_bytes:gib}/{capacity_bytes:gib}){:any}is less than desired GPU memory utilization"},
		{kind: VLLMFree, text: "less than desired GPU memory utilization"},
		{kind: VLLMLength, text: "max seq len ({length_tokens:int}){:any}{needed_bytes:gib} KV cache is needed, which is larger than the available KV cache memory ({available_bytes:gib})"},
		{kind: VLLMLength, text: "{needed_bytes:gib} KV cache is needed, which is larger than the available KV cache"},
		{kind: VLLMLength, text: "max seq len ({length_tokens:int}) is larger than the maximum number of tokens that can be stored in KV cache ({max_length_tokens:int})"},
		{kind: VLLMLength, text: "max seq len ({length_tokens:int}) is larger than the maximum number of tokens that can be stored in KV cache"},
		{kind: VLLMMapping, text: "out of memory at {:any}cumem_allocator"},
		{kind: VLLMMapping, text: "cumem.py{:any}CUDA Error: out of memory"},
		{kind: VLLMMapping, text: "wake_up method failed: CUDA Error: out of memory"},
		{kind: VLLMSwap, text: "Too large swap space. {needed_bytes:gib} out of the {capacity_bytes:gib} total CPU memory", host: true},
		{kind: VLLMHostCache, text: "No available memory for the cache blocks. Try increasing `VLLM_CPU_KVCACHE_SPACE`", host: true},
		{kind: VLLMCache, text: "No available memory for the cache blocks"},
		{kind: VLLMCache, text: "failed: No available memory"},
		{kind: VLLMCache, text: "Error: No available memory"},
		{kind: VLLMCache, text: "reserved for KV Cache is -"},
		{kind: VLLMCache, text: "Available KV cache memory: -"},
		{kind: VLLMWarmUp, text: "occurred when warming up {what:word} with {requests:int} dummy requests", weak: true},
	},
	facts: []string{
		"the estimated maximum model length is {max_length_tokens:int}",
		"the rest of the memory reserved for KV Cache is {available_bytes:gib}",
		"model weights take {weights_bytes:gib}; non_torch_memory takes {outside_bytes:gib}; PyTorch activation peak memory takes {activation_bytes:gib}",
		"Available KV cache memory: {available_bytes:gib}",
		"kv_cache_size={available_bytes:gib}",
		"gpu_memory_utilization={fraction:num}",
	},
}

// The kinds of SGLang.
const (
	SGLangWeights    Kind = "sglang-weights"    // the weights use all that the fraction allows
	SGLangNothing    Kind = "sglang-nothing"    // nothing is left for the KV cache
	SGLangPool       Kind = "sglang-pool"       // the KV cache ran out of tokens while serving
	SGLangSlots      Kind = "sglang-slots"      // there is no slot for another request
	SGLangUnbalanced Kind = "sglang-unbalanced" // others hold memory of some devices
	SGLangLost       Kind = "sglang-lost"       // slots of a pool are neither free nor in use
)

// familySGLang is SGLang's: python/sglang/srt/model_executor/model_runner.py and
// mem_cache.
var familySGLang = &family{
	source: SourceSGLang,
	keys: []string{
		"leavenogpumemoryforthekvcache", "notenoughmemory.pleasetrytoincrease", "islargerthantheprofiledvalue-", "trytoloweryourbatchsize", "smallernumberfor`--max-running-requests",
		"memorycapacityisunbalanced", "allocatormemoryleakdetected", "poolmemoryleakdetected", "poolleakdetected",
	},
	nearby: []string{"loadweightend."},
	wordings: []wording{
		{kind: SGLangLost, text: "memory leak detected!"},
		{kind: SGLangLost, text: "pool leak detected!"},
		{kind: SGLangWeights, text: "leave no GPU memory for the KV cache under --mem-fraction-static={fraction:num}"},
		{kind: SGLangWeights, text: "leave no GPU memory for the KV cache"},
		{kind: SGLangNothing, text: "Not enough memory. Please try to increase --mem-fraction-static"},
		{kind: SGLangNothing, text: "is larger than the profiled value -{missing:int}"},
		{kind: SGLangPool, text: "out of memory. Try to lower your batch size"},
		{kind: SGLangSlots, text: "out of memory. Please set a smaller number for `--max-running-requests"},
		{kind: SGLangUnbalanced, text: "Error: The memory capacity is unbalanced. Some GPUs may be occupied by other processes"},
	},
	facts: []string{
		"Raise --mem-fraction-static above {least_fraction:num}",
		"Current value: mem_fraction_static={fraction:num}",
		"Try to allocate {tokens:int} tokens",
		"Load weight end.{:any}avail mem={available_bytes:gib}",
		"Load weight end.{:any}mem usage={process_bytes:gib}",
	},
	read: func(e *excerpt, f *Failure) bool {
		if f.Kind == SGLangLost {
			f.slots(e)
		}
		return true
	},
}

// A pool of SGLang and its slots: "mamba_available_size=315, …, self.mamba_pool.size=454", or
// "[swa] total=9116, available=2352, evictable=6760".
var (
	slotsOf   = lazyregexp.New(`(?i)(?:\[(full|swa|mamba)\]|\b(?:(full|swa|mamba)_)?(available|evictable|protected|session_held|uncached|total)(?:_size)?(?:\(\))?)(?:=(\d{1,15}))?`)
	slotsSize = lazyregexp.New(`(?i)(?:(full|swa|mamba)\w*_)?(?:pool\.size|allocator\.size|max_total_num_tokens?|pool_size)=(\d{1,15})`)
)

// slots reads which pool of an excerpt lost slots, and how many: fewer than none if some were
// given back twice.
func (f *Failure) slots(e *excerpt) {
	held, size, pool := map[string]float64{}, map[string]float64{}, ""
	seen := map[string]bool{}
	for _, m := range slotsOf.FindAllSubmatch(e.raw, 64) {
		if pool = cmp.Or(string(m[1]), pool); len(m[4]) == 0 {
			continue
		}
		n, _ := amountOf("int", string(m[4]))
		name, part := cmp.Or(string(m[2]), pool), strings.ToLower(string(m[3]))
		if part == "total" {
			size[name] = n
		} else if k := name + " " + part; !seen[k] { // later lines take it apart
			seen[k] = true
			held[name] += n
		}
	}
	for _, m := range slotsSize.FindAllSubmatch(e.raw, 8) {
		name := string(m[1])
		if _, ok := held[name]; !ok && name == "" {
			name = "full"
		}
		size[name], _ = amountOf("int", string(m[2]))
	}
	for _, name := range []string{"", "full", "swa", "mamba"} {
		if lost := size[name] - held[name]; size[name] > 0 && lost != 0 && seen[name+" available"] {
			f.Figures[Lost], f.Figures[Slots], f.Words["of"] = lost, size[name], name
		}
	}
}

// FlashInferWorkspace is a buffer of fixed size that FlashInfer shares out.
const FlashInferWorkspace Kind = "flashinfer-workspace"

// familyFlashInfer is FlashInfer's, which an engine gives a workspace when it starts:
// include/flashinfer/allocator.h.
var familyFlashInfer = &family{
	source: SourceProcess,
	keys:   []string{"inalignedallocator"},
	wordings: []wording{
		{kind: FlashInferWorkspace, text: "when allocating memory for {buffer:word} with size {request_bytes:int} and alignment {:int}, but only {available_bytes:int} bytes available in AlignedAllocator"},
		{kind: FlashInferWorkspace, text: "Failed to allocate memory for {buffer:word} with size {request_bytes:int} and alignment {:int} in AlignedAllocator"},
	},
}

// The kinds of text-generation-inference, of its trial of the largest batch.
const (
	TGIPrefill Kind = "tgi-prefill"
	TGITotal   Kind = "tgi-total" // of all tokens, of which few are prefilled
)

// familyTGI is text-generation-inference's: server/text_generation_server/models.
var familyTGI = &family{
	source: SourceTGI,
	keys:   []string{"notenoughmemorytohandle", "youneedtodecrease`--max-batch"},
	wordings: []wording{
		{kind: TGIPrefill, text: "Not enough memory to handle {tokens:int} prefill tokens"},
		{kind: TGITotal, text: "Not enough memory to handle {tokens:int} total tokens"},
		{kind: TGIPrefill, text: "Not enough memory to handle"},
		{kind: TGIPrefill, text: "You need to decrease `--max-batch"},
	},
}

// The kinds of TensorRT.
const (
	TensorRTMemory  Kind = "tensorrt"      // of the builder or the runtime
	TensorRTTactics Kind = "tensorrt-node" // no implementation of a layer fits into the workspace
	TensorRTLLM     Kind = "tensorrt-llm"  // of TensorRT-LLM
	TensorRTStart   Kind = "tensorrt-llm-start"
)

// familyTensorRT is TensorRT's and TensorRT-LLM's. The builder tries tactics that
// do not fit, states so, and continues: that is not a failure.
var familyTensorRT = &family{
	source: SourceTensorRT,
	keys: []string{
		"requestedamountofgpumemory", "requestedamountofmemory", "errorcode2:outofmemory", "outofmemory(nofurtherinformation)", "outofmemory(requestedsize",
		"[tensorrt-llm][error]", "executorcreationfailed", "couldnotfindanyimplementation", "cudaruntime(outofmemory)", "tensorrt_llm", "allocate:2(outofmemory)", "cudaruntimeerrorin",
	},
	harmless: lazyregexp.New(`(?i)(?:requested ?amount ?of ?(?:gpu ?)?memory|error ?code ?2: ?outofmemory).{0,800}?skipping ?tactic|skipping ?tactic.{0,120}`),
	wordings: []wording{
		{kind: TensorRTLLM, text: "[TensorRT-LLM]{:any}CUDA runtime error in{:any}out of memory"},
		{kind: TensorRTLLM, text: "CUDA runtime error in {:any}: out of memory"},
		{kind: TensorRTStart, text: "Executor creation failed due to insufficient GPU memory"},
		{kind: TensorRTLLM, text: "tensorrt_llm{:any}out of memory"},
		{kind: TensorRTLLM, text: "[TensorRT-LLM][ERROR]{:any}out of memory"},
		{kind: TensorRTMemory, text: "Requested amount of GPU memory ({request_bytes:int} bytes) could not be allocated"},
		{kind: TensorRTMemory, text: "Requested amount of memory ({request_bytes:int} bytes) could not be allocated"},
		{kind: TensorRTMemory, text: "OutOfMemory (Requested size was {request_bytes:int} bytes"},
		{kind: TensorRTMemory, text: "Error Code 2: OutOfMemory"},
		{kind: TensorRTMemory, text: "OutOfMemory (no further information)"},
		{kind: TensorRTMemory, text: "Cuda Runtime (out of memory)"},
		{kind: TensorRTMemory, text: "Cuda Error in {:any}allocate: 2 (out of memory)"},
		{kind: TensorRTTactics, text: "insufficient memory{:any}Could not find any implementation for node"},
	},
	facts: []string{
		"The following component could not be created: {component:any}Total GPU memory (GiB): {capacity_bytes:gib}",
		"Free GPU memory before component creation attempt (GiB): {device_free_bytes:gib}",
	},
	read: func(e *excerpt, f *Failure) bool {
		if _, ok := f.Figure(Request); !ok && noEngine.Match(e.raw) { // a tactic that was skipped was the last
			if m := tacticMemory.FindSubmatch(e.raw); m != nil {
				f.set(string(Request), "int", string(m[1]))
			}
		}
		return true
	},
}

// noEngine is how TensorRT's builder ends without an engine, and tacticMemory what one of its
// tactics was refused.
var (
	noEngine     = lazyregexp.New(`(?i)could not find any implementation|engine could not be created`)
	tacticMemory = lazyregexp.New(`(?i)requested amount of GPU memory \((\d{1,15}) bytes\)`)
)

// The kinds of ONNX Runtime.
const (
	ONNXArena Kind = "onnxruntime"       // its arena could not grow
	ONNXLimit Kind = "onnxruntime-limit" // gpu_mem_limit is exceeded
)

// familyONNX is ONNX Runtime's: core/framework/bfc_arena.cc, providers/cuda.
var familyONNX = &family{
	source: SourceONNX,
	keys:   []string{"memoryforrequestedbufferofsize", "issmallerthanrequestedbytesof", "cudafailure2:", "hipfailure2:", "onnxruntime"},
	wordings: []wording{
		{kind: ONNXArena, text: "Failed to allocate memory for requested buffer of size {request_bytes:int}"},
		{kind: ONNXLimit, text: "Available memory of {available_bytes:int} is smaller than requested bytes of {request_bytes:int}"},
		{kind: ONNXArena, text: "CUDA failure 2: out of memory"},
		{kind: ONNXArena, text: "HIP failure 2: out of memory"},
		{kind: ONNXArena, text: "onnxruntime{:any}bad allocation", host: true},
		{kind: ONNXArena, text: "onnxruntime{:any}CUBLAS_STATUS_ALLOC_FAILED"},
	},
	read: func(e *excerpt, f *Failure) bool {
		// CNTK, which its code comes from, words the driver's errors in the same way.
		return !strings.Contains(f.Quote, "failure 2:") || ofONNX.Match(e.raw)
	},
}

// ofONNX is how a text shows that it is ONNX Runtime's.
var ofONNX = lazyregexp.New(`(?i)onnx|providers[/\\](?:cuda|rocm)|ExecutionProvider`)
