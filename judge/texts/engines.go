package texts

import (
	"fmt"
	"math"
	"strings"

	"strandline/finding"
	"strandline/judge/shortage"
	"strandline/logs/failure"
	"strandline/plan/engine"
	"strandline/units"
)

// engineKinds are the failures of inference engines.
var engineKinds = map[failure.Kind]func(*view){
	failure.VLLMFree: (*view).vllmFree, failure.VLLMLength: (*view).vllmLength, failure.VLLMCache: (*view).vllmCache, failure.VLLMWarmUp: (*view).vllmWarmUp,
	failure.VLLMMapping: (*view).vllmMapping, failure.VLLMSwap: (*view).vllmSwap, failure.VLLMHostCache: (*view).vllmHostCache,
	failure.SGLangWeights: (*view).sglangStart, failure.SGLangNothing: (*view).sglangStart, failure.SGLangPool: (*view).sglangPool, failure.SGLangSlots: (*view).sglangSlots, failure.SGLangUnbalanced: (*view).sglangUnbalanced, failure.SGLangLost: (*view).sglangLost,
	failure.FlashInferWorkspace: (*view).flashInfer,
	failure.TGIPrefill:          (*view).tgi,
	failure.TGITotal:            (*view).tgiTotal,
	failure.TensorRTMemory:      (*view).tensorRT, failure.TensorRTTactics: (*view).tensorRT, failure.TensorRTLLM: (*view).tensorRTLLM, failure.TensorRTStart: (*view).tensorRTLLM,
	failure.ONNXArena: (*view).onnx, failure.ONNXLimit: (*view).onnx,
}

// sglangLost is SGLang's check while it is idle: memory did not run out, but slots of a pool were
// not given back.
func (v *view) sglangLost() {
	v.Kind, v.Evidence, v.Severity = finding.Leak, nil, finding.Warning
	pool := "pool"
	if of := v.f.Words["of"]; of != "" {
		pool = of + " pool"
	}
	v.title("SGLang's idle check found slots of its %s that are neither free nor in use", pool)
	switch lost := v.f.Figures[failure.Lost]; {
	case lost < 0:
		v.title("SGLang's idle check found %s too many in its %s of %s: requests gave them back twice", units.Plural(int64(-lost), "free slot"), pool, v.count(failure.Slots))
	case lost > 0:
		v.title("SGLang's idle check found %s lost, of the %s in its %s: requests did not give them back", units.Plural(int64(v.f.Figures[failure.Lost]), "slot"), v.count(failure.Slots), pool)
	}
	v.say("this is a bug in SGLang's scheduling, not memory that ran out: the process ends by its own check")
	v.do("update SGLang: a failed or aborted request kept its slots; report the lines around this one")
	v.set("SGLANG_ENABLE_STRICT_MEM_CHECK_DURING_IDLE=0", "turn the check off: the pool shrinks by the lost slots")
}

// What vLLM and SGLang take of a device.
var vllm, sglang = engine.Named(engine.VLLM).Share, engine.Named(engine.SGLang).Share

// addOtherHolders adds who else may hold memory on the device, and how to find out.
func (v *view) addOtherHolders(text string) {
	command, _ := shortage.ListerOf(v.f.Words["maker"])
	v.set(command, "%s", text)
}

// vllmFree is a device with less free memory than the engine is set to take.
func (v *view) vllmFree() {
	v.cause(shortage.Startup)
	if !v.states(failure.Free, failure.Capacity) {
		v.title("memory ran out before vLLM started: less of the device is free than it is set to take")
		v.set(vllm.Set("0.6"), "take a smaller share of the device, below the free part")
		v.addOtherHolders("look for other processes on the device: they hold the memory")
		return
	}
	free, capacity := v.f.Figures[failure.Free], v.f.Figures[failure.Capacity]
	held := capacity - free
	v.title("vLLM does not start: %s of the device's %s is free, and it is set to take %s", v.size(failure.Free), v.size(failure.Capacity), v.size(failure.Needed))
	const little = 0.1 // of the device
	if held < little*capacity {
		v.say("%s is in use outside the engine: a desktop, the driver, another process. On unified memory (GB10, Jetson) also the host's own programs", sizeOf(held))
	} else {
		v.say("%s is held by other processes, or by an earlier run that is still alive", sizeOf(held))
	}
	fits := math.Floor(free/capacity*100) / 100
	const useful = 0.3
	fit := func() {
		v.set(vllm.Set(fmt.Sprintf("%.2f", fits)), "take no more than is free now: gpu_memory_utilization of at most %.2f. Weights and KV cache have to fit into it", fits)
	}
	if fits >= useful {
		fit()
	}
	if held < little*capacity {
		v.addOtherHolders("look for other processes on the device")
	} else {
		v.addOtherHolders("end stale processes on the device")
	}
	if fits < useful && fits > 0 {
		fit()
	}
}

// vllmLength is a KV cache that is too small for one request of maximum length.
func (v *view) vllmLength() {
	v.cause(shortage.Startup)
	length, haveLength := v.f.Figure(failure.Length)
	fits, haveFits := v.f.Figure(failure.MaxLength)
	switch {
	case v.states(failure.Needed, failure.Available):
		v.title("vLLM does not start: one request of maximum length needs %s of KV cache, and %s is available", v.size(failure.Needed), v.size(failure.Available))
	case haveFits:
		v.title("vLLM does not start: its KV cache holds %s tokens, less than one request of maximum length", v.count(failure.MaxLength))
	default:
		v.title("vLLM does not start: its KV cache does not hold one request of maximum length")
	}
	if haveLength {
		v.say("the longest request is set to %s tokens", v.count(failure.Length))
	}
	switch needed, available := v.f.Figures[failure.Needed], v.f.Figures[failure.Available]; {
	case haveFits:
		v.set(fmt.Sprintf("--max-model-len %d", fits), "this length fits: max_model_len of %s tokens", v.count(failure.MaxLength))
	case haveLength && needed > 0 && available > 0:
		const block = 16
		about := int64(float64(length)*available/needed) / block * block
		v.set(fmt.Sprintf("--max-model-len %d", about), "about this length fits, by the rounded figures")
	default:
		v.set("--max-model-len 8192", "a smaller maximum length")
	}
	v.moreForCache()
}

// moreForCache adds the ways to get a larger KV cache in vLLM.
func (v *view) moreForCache() {
	v.set(raisedShare(v.f.Figures[failure.Fraction], 0.95), "give the engine more of the device (gpu_memory_utilization), if nothing else needs it")
	v.set("--kv-cache-dtype fp8", "halve the cache; --tensor-parallel-size spreads weights and cache over more GPUs")
}

// raisedShare is a larger share of the device than is set now.
func raisedShare(now, maxShare float64) string {
	const step = 0.05
	to := maxShare
	if now > 0 {
		to = min(now+step, 0.97)
	}
	return vllm.Set(fmt.Sprintf("%.2f", to))
}

// vllmCache is an engine with nothing left for the KV cache.
func (v *view) vllmCache() {
	v.cause(shortage.Startup)
	v.title("vLLM does not start: weights and the profiling batch leave nothing for the KV cache")
	if n, ok := v.f.Figures[failure.Available]; ok && n < 0 {
		v.title("vLLM does not start: %s short before the KV cache", sizeOf(-n))
	}
	const usual = 2 << 30 // bytes that the context and libraries of vLLM take
	held := v.f.Figures["outside_bytes"]
	v.budget()
	larger := func() {
		v.set(raisedShare(v.f.Figures[failure.Fraction], 0.95), "give the engine more of the device, if nothing else needs it")
	}
	if held > usual {
		v.Brief.Fact = fmt.Sprintf("%s is held outside PyTorch: another process", sizeOf(held))
		v.say("%s", v.Brief.Fact)
		v.addOtherHolders("end stale processes on the device")
		defer larger() // no share is large enough for both
	} else {
		v.say("non-torch memory above about 1 GiB in the log means that another process allocated while the engine measured")
		larger()
		defer v.addOtherHolders("look for other processes on the device")
	}
	v.set("--max-num-seqs 16 --max-num-batched-tokens 2048 --enforce-eager", "a smaller profiling batch and no CUDA graphs; fewer images per request with --limit-mm-per-prompt")
	v.do("make the weights smaller: a quantized checkpoint, or --tensor-parallel-size over more GPUs")
}

// budget is the account of what the engine needs beside the KV cache, where it states that.
func (v *view) budget() {
	a := &finding.Account{Name: "needed"}
	for _, x := range []struct {
		figure failure.Figure
		name   string
	}{{"weights_bytes", "weights"}, {"outside_bytes", "outside PyTorch"}, {"activation_bytes", "activations"}} {
		n, ok := v.f.Figure(x.figure)
		if !ok {
			return
		}
		a.Bytes += n
		a.Add(n, x.name)
	}
	v.Brief.Account = a
}

// vllmWarmUp is the largest batch, which the engine tries at start-up.
func (v *view) vllmWarmUp() {
	v.cause(shortage.Startup)
	v.title("vLLM does not start: the profiling run of its largest batch did not fit")
	v.set("--max-num-seqs 64", "fewer requests at once, so that the sampler computes fewer logits")
	v.set(vllm.Set("0.85"), "leave more room besides weights and KV cache")
}

// vllmMapping is memory that was there before the engine slept.
func (v *view) vllmMapping() {
	v.title("memory ran out when vLLM mapped its memory, as it does when it wakes up")
	v.say("the memory that it released for its sleep is taken: by a trainer on the same device, or its cache")
	v.do("let the trainer release its memory before the engine wakes up: offload parameters and optimizer state, then torch.cuda.empty_cache()")
	v.set(vllm.Set("0.6"), "a smaller share for the engine (gpu_memory_utilization)")
	v.addOtherHolders("look for other processes on the device")
}

// vllmHostCache is vLLM without a GPU, whose cache is as large as a variable says.
func (v *view) vllmHostCache() {
	v.cause(shortage.Startup)
	v.title("vLLM does not start: the space that is set for its KV cache in the host's memory holds nothing")
	v.set("VLLM_CPU_KVCACHE_SPACE=40", "a larger KV cache, in GiB of the host's memory (RAM), beside the weights. A lower --max-model-len makes each request smaller")
}

// vllmSwap is swap space that the host does not have.
func (v *view) vllmSwap() {
	v.cause(shortage.Startup)
	v.title("vLLM does not start: its swap space takes %s of the host's %s", v.size(failure.Needed), v.size(failure.Capacity))
	v.set("--swap-space 1", "a smaller swap space, in GiB per GPU: it is host memory (RAM)")
}

// sglangStart is SGLang with nothing left for its KV cache.
func (v *view) sglangStart() {
	v.cause(shortage.Startup)
	v.title("SGLang does not start: the weights leave nothing for the KV cache")
	if v.states(failure.InProcess, failure.Available) {
		v.say("the weights took %s per GPU, and %s was left", v.size(failure.InProcess), v.size(failure.Available))
	}
	least := v.f.Figures[failure.Least]
	if least == 0 && v.states(failure.InProcess, failure.Available) && v.f.Kind == failure.SGLangWeights {
		used, left := v.f.Figures[failure.InProcess], v.f.Figures[failure.Available]
		least = math.Ceil(used/(used+left)*1000) / 1000
	}
	const maxShare = 0.97
	switch fraction := v.f.Figures[failure.Fraction]; {
	case least > 0 && least < maxShare:
		v.set(sglang.Set(fmt.Sprintf("%.2f", min(maxShare, math.Ceil(least*100)/100+0.01))), "weights and KV cache need more than %.3f of the device; the cache takes the rest", least)
	case fraction > 0 && fraction < 0.9:
		v.set(sglang.Set("0.92"), "give weights and KV cache more of the device than the current %.2f", fraction)
	default:
		v.do("spread the weights over more GPUs (--tp-size), or take a quantized checkpoint. Data-parallel attention (--dp-size) copies its weights to each GPU")
		v.set(sglang.Set("0.92"), "give weights and KV cache more of the device, if it is set lower")
	}
	v.do("if that leaves too little for activations: more GPUs (--tp-size), fewer bits, or a smaller --cuda-graph-max-bs and --chunked-prefill-size")
	v.addOtherHolders("look for other processes on the device, which count as taken")
}

// sglangPool is SGLang's pool of tokens, full while serving.
func (v *view) sglangPool() {
	v.title("SGLang's KV cache has no room for the batch")
	if v.states(failure.Tokens) {
		v.title("SGLang's KV cache has no room for another %s tokens", v.count(failure.Tokens))
	}
	v.say("the token pool is full, not the device: it was sized when the engine started")
	v.set("--max-running-requests 64 --chunked-prefill-size 4096", "fewer requests and less prefill at once")
	v.set(sglang.Set("0.92"), "a larger pool, if the device has room for it; --schedule-conservativeness 1.3 admits fewer requests")
}

// sglangSlots is SGLang's table of requests, in which each has a slot.
func (v *view) sglangSlots() {
	v.title("SGLang has no slot for another request: a table of the engine is full, not the device")
	v.say("the table has a slot for each of --max-running-requests; requests that are retracted or speculated can need more than one")
	v.set("--max-running-requests 64", "a number of requests at which the engine starts and all of them have slots. Without the option SGLang derives it from the memory of the device")
	v.do("a newer release of SGLang, or no speculative decoding and overlapped scheduling (--disable-overlap-schedule), if few requests also fail")
}

// sglangUnbalanced is a device that others hold a part of.
func (v *view) sglangUnbalanced() {
	v.cause(shortage.OthersHold)
	v.title("SGLang does not start: other processes hold memory of some of its GPUs")
	v.addOtherHolders("end stale processes on the devices")
	v.set(sglang.Set("0.7"), "take less of each device")
}

// flashInfer is a workspace of FlashInfer's, whose size the engine sets.
func (v *view) flashInfer() {
	v.cause(shortage.Limit)
	v.title("FlashInfer's workspace is too small: %s was requested of it; the device itself need not be full", v.size(failure.Request))
	if v.states(failure.Request, failure.Available) {
		v.title("FlashInfer's workspace is too small: %s was requested of it, and %s was left; the device itself need not be full", v.size(failure.Request), v.size(failure.Available))
	}
	v.say("the engine allocates it once, when it starts: a share of the device that is smaller or larger changes nothing")
	size := int64(1) << 30
	for n, _ := v.f.Figure(failure.Request); size < 2*n && size < 1<<40; {
		size *= 2
	}
	switch {
	case v.hint(failure.HintSGLang):
		v.figures.Source = string(failure.SourceSGLang)
		v.set(fmt.Sprintf("SGLANG_FLASHINFER_WORKSPACE_SIZE=%d", size), "a larger workspace, in bytes per GPU (FLASHINFER_WORKSPACE_SIZE in older releases)")
		v.set("--attention-backend triton", "or another backend for attention; a smaller --chunked-prefill-size and --max-running-requests need less of it")
	case v.hint(failure.HintVLLM):
		v.figures.Source = string(failure.SourceVLLM)
		v.set(fmt.Sprintf("VLLM_FLASHINFER_WORKSPACE_BUFFER_SIZE=%d", size), "a larger workspace, in bytes per GPU")
		v.set("--max-num-batched-tokens 4096", "or smaller batches, which need less of it")
	default:
		v.do("a larger workspace buffer, which the program passes to FlashInfer's wrappers, or fewer tokens in a batch")
	}
}

// tgi is text-generation-inference's trial run of the largest prefill.
func (v *view) tgi() {
	v.cause(shortage.Startup)
	v.title("text-generation-inference does not start: there is not enough memory for its largest prefill")
	tokens, ok := v.f.Figure(failure.Tokens)
	if ok {
		v.title("text-generation-inference does not start: there is not enough memory to prefill %s tokens", v.count(failure.Tokens))
	}
	const minTokens, usual = 1024, 2048
	switch {
	case ok && tokens < minTokens:
		v.do("make the weights smaller with --quantize, or use more GPUs with --num-shard: so few tokens need little")
		v.say("the message asks for fewer tokens (--max-batch-prefill-tokens), which gains nothing here: it is the weights that do not fit")
	default:
		if !ok {
			tokens = 2 * usual
		}
		v.set(fmt.Sprintf("--max-batch-prefill-tokens %d", max(minTokens, tokens/2)), "prefill less at once")
		v.do("bound requests by --max-input-length and --max-total-tokens; make the weights smaller with --quantize, or use more GPUs with --num-shard")
	}
	v.addOtherHolders("look for other processes on the device")
}

// tgiTotal is the trial run of as many tokens as its cache is to hold.
func (v *view) tgiTotal() {
	v.cause(shortage.Startup)
	v.title("text-generation-inference does not start: there is not enough memory for the %s tokens that its batches may have", v.count(failure.Tokens))
	tokens, _ := v.f.Figure(failure.Tokens)
	v.set(fmt.Sprintf("--max-batch-total-tokens %d", int64(tokens)/2), "fewer tokens at once; without the option the server takes as many as fit")
	v.do("make the weights smaller with --quantize, or use more GPUs with --num-shard")
	v.addOtherHolders("look for other processes on the device")
}

// tensorRT is TensorRT's builder or runtime.
func (v *view) tensorRT() {
	v.title("memory ran out for TensorRT")
	if v.states(failure.Request) {
		v.cause(shortage.TooBig)
		v.title("memory ran out for TensorRT: the device refused it %s", v.size(failure.Request))
	}
	v.do("build with smaller shapes: a smaller max_batch_size, max_num_tokens or optimization profile; fewer bits (FP16, INT8)")
	v.set("config.set_memory_pool_limit(trt.MemoryPoolType.WORKSPACE, 1 << 30)", "a smaller workspace, so that the builder tries no tactics that do not fit")
	v.addOtherHolders("look for other processes on the device")
}

// tensorRTLLM is TensorRT-LLM, whose KV cache takes most of what is free.
func (v *view) tensorRTLLM() {
	v.title("memory ran out for TensorRT-LLM: weights, KV cache and the engine's buffers do not fit the device")
	if v.f.Kind == failure.TensorRTStart {
		v.cause(shortage.Startup)
		if v.states(failure.Free, failure.Capacity) {
			v.title("TensorRT-LLM does not start: a part did not fit into %s, free of the device's %s", v.size(failure.Free), v.size(failure.Capacity))
		}
		if c := v.f.Words["component"]; c != "" {
			v.say("the part that could not be created is the %s", strings.Replace(c, "KVcache", "KV cache", 1))
		}
	}
	share := engine.Named(engine.TensorRT).Share
	v.set(share.Set("0.7"), "a smaller KV cache: %s", share.Words())
	v.do("build the engine with a smaller max_batch_size, max_num_tokens, max_seq_len; more GPUs (tp_size), or fewer bits")
	v.addOtherHolders("look for other processes on the device")
}

// onnx is ONNX Runtime's arena.
func (v *view) onnx() {
	v.title("memory ran out for ONNX Runtime")
	if v.states(failure.Request) {
		v.title("memory ran out for ONNX Runtime: its arena could not get %s", v.size(failure.Request))
	}
	if v.f.Kind == failure.ONNXLimit {
		v.cause(shortage.Limit)
		v.title("memory ran out for ONNX Runtime: %s was requested, and its arena may take %s more", v.size(failure.Request), v.size(failure.Available))
		v.set(`"gpu_mem_limit": 8 * 1024 * 1024 * 1024`, "raise the limit of the CUDA provider, or remove it")
	}
	v.set(`"arena_extend_strategy": "kSameAsRequested"`, "let the arena grow by the request, not to the next power of two")
	v.do("run a smaller batch or shorter input; several sessions on one device each keep an arena: bound them with gpu_mem_limit")
	v.addOtherHolders("look for other processes on the device")
}
