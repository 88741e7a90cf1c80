package texts

import (
	"strings"

	"strandline/judge/shortage"
	"strandline/logs/failure"
	"strandline/units"
)

func sizeOf(x float64) string { return units.Bytes(int64(x)) }

// localKinds are the failures of engines that run on one's own machine.
var localKinds = map[failure.Kind]func(*view){
	failure.LlamaWeights: (*view).llama, failure.LlamaCache: (*view).llama, failure.LlamaCompute: (*view).llama, failure.LlamaBuffer: (*view).llama,
	failure.LlamaMetal: (*view).llamaMetal, failure.LlamaHost: (*view).llamaHost,
	failure.OllamaHost: (*view).ollamaHost, failure.OllamaKilled: (*view).ollamaKilled, failure.OllamaRunner: (*view).ollamaRunner,
	failure.MLXBuffer: (*view).mlx, failure.MLXCount: (*view).mlx, failure.MLXMemory: (*view).mlx, failure.MLXCommand: (*view).mlx,
}

// llama is a buffer of llama.cpp on a device; there are three sorts of buffer.
func (v *view) llama() {
	what := map[failure.Kind]string{
		failure.LlamaWeights: "the weights", failure.LlamaCache: "the KV cache", failure.LlamaCompute: "the compute buffer", failure.LlamaBuffer: "a buffer",
	}[v.f.Kind]
	where := "the device"
	if b := v.f.Words["buffer"]; b != "" {
		where = b
	} else if v.states("device") {
		where = "device " + v.count("device")
	}
	v.title("memory ran out for llama.cpp: %s did not fit on %s", what, where)
	if v.states(failure.Request) {
		v.cause(shortage.TooBig)
		v.title("memory ran out for llama.cpp: %s of %s did not fit on %s", what, v.size(failure.Request), where)
	}
	if v.hint(failure.HintWhisper) { // it has neither layers to leave out nor a context to shorten
		v.Title = strings.Replace(v.Title, "for llama.cpp", "for whisper.cpp", 1)
		v.do("a smaller model, or one of fewer bits (whisper.cpp's quantize makes it)")
		v.set("-ng", "run on the CPU (--no-gpu), in the host's memory")
		return
	}
	if v.hint(failure.HintOllama) {
		v.Title = strings.Replace(v.Title, "for llama.cpp", "for Ollama", 1)
		v.ollamaRemedies()
		return
	}
	layers := func() {
		v.set("-ngl 20", "fewer layers on the GPU (--n-gpu-layers); --n-cpu-moe keeps the experts of a mixture of experts on the host")
	}
	cache := func() {
		v.set("-c 8192 --cache-type-k q8_0 --cache-type-v q8_0", "a shorter context (--ctx-size), and a cache of fewer bits")
	}
	compute := func() {
		v.set("-ub 256 -b 512 -fa on", "a smaller batch (--ubatch-size) and flash attention, which make the compute buffer smaller")
	}
	switch v.f.Kind {
	case failure.LlamaCache:
		cache()
		layers()
	case failure.LlamaCompute:
		compute()
		cache()
		layers()
	default:
		layers()
		cache()
		compute()
	}
	v.set("-ts 1,1", "spread the layers over several GPUs by their free memory (--tensor-split); or a smaller quantization")
}

// llamaMetal is llama.cpp on Apple's GPUs, which may use only a part of the memory.
func (v *view) llamaMetal() {
	v.cause(shortage.Limit)
	v.title("memory ran out on Apple's GPU for llama.cpp: weights, KV cache and compute buffers exceed the GPU's share")
	v.set("-c 8192", "a shorter context: fewer tokens in the KV cache (--ctx-size), with --cache-type-k q8_0 --cache-type-v q8_0 a smaller one")
	v.set("-ngl 20", "fewer layers on the GPU, or a smaller quantization")
	v.set("sudo sysctl iogpu.wired_limit_mb=24576", "let the GPU use more of the memory, up to some GiB below all")
}

// llamaHost is a buffer of llama.cpp in host memory.
func (v *view) llamaHost() {
	v.title("the host's memory ran out for llama.cpp")
	if v.states(failure.Request) {
		v.cause(shortage.TooBig)
		v.title("the host's memory ran out for llama.cpp: it could not provide %s", v.size(failure.Request))
	}
	v.do("a shorter context (-c), a smaller quantization, or more layers on the GPU (-ngl). Leave mmap on, so that weights stay in the page cache and need no extra RAM")
	v.traceHost()
}

// ollamaHost is a model that needs more than the host has.
func (v *view) ollamaHost() {
	v.cause(shortage.TooBig)
	v.title("the model needs more of the host's memory than Ollama finds available")
	if v.states(failure.Needed, failure.Available) {
		v.title("the model needs %s of the host's memory, and %s is available", v.size(failure.Needed), v.size(failure.Available))
	}
	v.do("a smaller model or quantization, or a shorter context (/set parameter num_ctx 4096). End other programs that hold RAM, or add swap")
	v.say("Ollama keeps the rest of the model in host memory (RAM). In a container or WSL that is the memory given to it")
}

// ollamaKilled is a runner that was killed.
func (v *view) ollamaKilled() {
	v.Confidence = 0.8
	v.title("Ollama's runner was killed, most likely for the host's memory, not the GPU's")
	v.do("a smaller model or quantization, or a shorter context (num_ctx); more RAM for the machine or the container")
	v.kernelLog()
}

// ollamaRunner is a runner that found no room on the device.
func (v *view) ollamaRunner() {
	v.title("memory ran out on the device for Ollama's runner")
	v.ollamaRemedies()
}

// ollamaRemedies has a model take less of a device.
func (v *view) ollamaRemedies() {
	v.set("/set parameter num_gpu 20", "fewer layers on the GPU; the others are computed on the host")
	v.set("/set parameter num_ctx 4096", "a shorter context makes the KV cache smaller; so does OLLAMA_FLASH_ATTENTION=1 OLLAMA_KV_CACHE_TYPE=q8_0")
	v.set("OLLAMA_NUM_PARALLEL=1 OLLAMA_MAX_LOADED_MODELS=1", "one request and one model at a time; or a smaller quantization")
}

// mlx is MLX, and Metal's own limits.
func (v *view) mlx() {
	switch v.f.Kind {
	case failure.MLXBuffer:
		v.cause(shortage.Limit)
		v.title("memory ran out for MLX: one buffer of %s, and Metal gives at most %s at once", v.size(failure.Request), v.size(failure.Limit))
		v.do("make that one array smaller: a smaller batch, a shorter prompt or prefill in steps, attention in chunks. All memory may be free, the limit is for one buffer")
		return
	case failure.MLXCount:
		v.cause(shortage.Limit)
		v.title("memory ran out for MLX: more buffers than the system allows")
		v.do("keep fewer arrays: mx.eval() more often, mx.clear_cache(), larger and fewer arrays; the limit is a number of buffers, not bytes")
		return
	case failure.MLXMemory:
		v.cause(shortage.TooBig)
		v.title("memory ran out for MLX: %s could not be allocated", v.size(failure.Request))
	default:
		v.cause(shortage.Limit)
		v.title("memory ran out on Apple's GPU: a command failed, as more is allocated than the system lets the GPU use")
	}
	v.do("a smaller model or fewer bits, a smaller batch or a shorter prompt. Call mx.clear_cache() and mx.set_cache_limit() to return the cache")
	v.set("sudo sysctl iogpu.wired_limit_mb=24576", "let the GPU use more of the memory, up to some GiB below all")
}

// arrayKinds are the failures of XLA, JAX and TensorFlow.
var arrayKinds = map[failure.Kind]func(*view){
	failure.XLARequest: (*view).xlaRequest, failure.XLAScratch: (*view).xlaScratch, failure.XLACompile: (*view).xlaCompile, failure.XLABuffer: (*view).xlaBuffer, failure.XLAProgram: (*view).xlaBuffer,
	failure.TensorFlowPool: (*view).tensorFlow, failure.TensorFlowTensor: (*view).tensorFlow, failure.TensorFlowDriver: (*view).tensorFlow,
}

// smallerProgram adds what makes an XLA program smaller.
func (v *view) smallerProgram() {
	v.do("make the program smaller: a smaller batch, jax.checkpoint (remat), fewer bits, attention in blocks. Or shard it over more devices, and donate inputs that are not needed again (donate_argnums)")
}

// xlaRequest is a buffer of a program that could not be allocated.
func (v *view) xlaRequest() {
	v.title("memory ran out for XLA: %s could not be allocated", v.size(failure.Request))
	needed, request := v.f.Figures[failure.Needed], v.f.Figures[failure.Request]
	if needed > 0 {
		v.say("the program needs %s in total: %s for inputs, %s for temporaries", v.size(failure.Needed), v.size("parameters"), v.size("temporary"))
	}
	if op := v.f.Words["operator"]; op != "" {
		v.say("the largest buffer, %s, is made by %s", v.size(failure.Largest), op)
	}
	const small = 1 << 30
	held := func() {
		v.addOtherHolders("find the holder of the device: another process, or arrays that this one keeps. A JAX process takes 75 % of a GPU when it starts, so a second one finds little")
		v.set("XLA_PYTHON_CLIENT_PREALLOCATE=false", "take memory as it is needed, or XLA_PYTHON_CLIENT_MEM_FRACTION=.4 for each of two processes")
	}
	if v.hint(failure.HintTPU) {
		v.smallerProgram()
		return
	}
	if request < small && needed < small {
		v.say("that is little for a device: most of it is held by something other than this program")
		held()
		v.smallerProgram()
		return
	}
	v.smallerProgram()
	held()
}

// xlaCompile is a program that does not fit a device, whatever else is on it.
func (v *view) xlaCompile() {
	v.cause(shortage.TooBig)
	v.title("memory ran out when XLA compiled a program for the device")
	if v.states(failure.Needed, failure.Capacity) {
		v.title("a program needs %s of a device's %s: XLA does not compile it", v.size(failure.Needed), v.size(failure.Capacity))
	}
	v.say("the failure is at compile time: nothing had run yet, so no other array or process is the reason")
	if op := v.f.Words["operator"]; op != "" {
		v.say("the largest buffer, %s, is made by %s", v.size(failure.Largest), op)
	} else if shape := v.f.Words["shape"]; shape != "" {
		v.say("the largest buffer, %s, has the shape %s", v.size(failure.Largest), shape)
	}
	v.smallerProgram()
}

// xlaScratch is a kernel that does not fit in the memory of a TPU core.
func (v *view) xlaScratch() {
	v.cause(shortage.Limit)
	v.title("a kernel needs more of a TPU core's own memory (vmem) than there is: XLA does not compile it")
	if v.states(failure.Needed, failure.Limit) {
		v.title("a kernel needs %s of a TPU core's own memory (vmem), and there is %s: XLA does not compile it", v.size(failure.Needed), v.size(failure.Limit))
	}
	v.say("that is one kernel's scratch memory, not the device's HBM: a smaller model does not change it")
	v.do("make that kernel's blocks smaller: the block sizes of Pallas or the attention, or a reduction's window")
	v.set("LIBTPU_INIT_ARGS=--xla_tpu_scoped_vmem_limit_kib=65536", "let a kernel have more of it, where the chip has it")
}

// xlaBuffer is an array or a program that found no room on a TPU.
func (v *view) xlaBuffer() {
	v.title("memory ran out on the device: an array of %s could not be allocated", v.size(failure.Request))
	if v.f.Kind == failure.XLAProgram {
		v.title("memory ran out on the device: a program of %s could not be loaded", v.size(failure.Request))
	}
	if v.states(failure.Free, failure.Request) {
		v.cause(shortage.TooBig)
		v.say("%s was free", v.size(failure.Free))
		if v.f.Figures[failure.Free] >= v.f.Figures[failure.Request] {
			v.cause(shortage.Fragmented)
			v.say("that would be enough, but it is not in one piece")
		}
	}
	if v.states(failure.Capacity, failure.Request) && v.f.Figures[failure.Request] > v.f.Figures[failure.Capacity] {
		v.cause(shortage.TooBig)
		v.title("memory ran out on the device: one array of %s is more than its %s", v.size(failure.Request), v.size(failure.Capacity))
		v.smallerProgram()
	}
	v.do("delete arrays (x.delete(), donate_argnums), unload programs (jax.clear_caches()), or shard more. A second process on the same chips also takes memory")
}

// tensorFlow is TensorFlow's allocator.
func (v *view) tensorFlow() {
	if v.f.Host {
		v.title("the host's memory ran out for TensorFlow: a tensor of %s could not be allocated", v.size(failure.Request))
		v.do("a smaller batch, fewer elements in shuffle() and prefetch(), less data in RAM at once")
		v.traceHost()
		return
	}
	v.title("memory ran out for TensorFlow")
	if v.states(failure.Request) {
		v.title("memory ran out for TensorFlow: %s could not be allocated", v.size(failure.Request))
	}
	if shape := v.f.Words["shape"]; shape != "" {
		v.say("it was requested for a tensor of shape [%s]", shape)
	}
	growth := func() {
		v.set("TF_FORCE_GPU_ALLOW_GROWTH=true", "take memory as it is needed (allow_growth): by default a process takes all of the device")
	}
	less := func() {
		v.do("a smaller batch or smaller inputs, mixed precision, or a model over several devices")
	}
	request, free, largest := v.f.Figures[failure.Request], v.f.Figures["pool_free_bytes"], v.f.Figures[failure.Largest]
	switch {
	case free > 0 && free >= request && largest < request && request > 0:
		v.cause(shortage.Fragmented)
		v.say("%s of the pool was free, its largest piece %s: enough, in pieces", sizeOf(free), sizeOf(largest))
		v.set("TF_GPU_ALLOCATOR=cuda_malloc_async", "the driver's allocator, which moves pages together")
		less()
	case v.f.Kind == failure.TensorFlowDriver:
		v.say("the driver refused the process its pool: other processes hold memory on the device")
		v.addOtherHolders("look for other processes on the device")
		growth()
		less()
	default:
		if request > 0 && v.f.Kind != failure.TensorFlowDriver && (free > 0 || v.states(failure.Active)) {
			v.cause(shortage.TooBig)
		}
		if free > 0 {
			v.say("%s of the pool was free, its largest piece %s", sizeOf(free), sizeOf(largest))
		}
		less()
		growth()
		v.addOtherHolders("look for other processes on the device")
	}
}

// driverKinds are the failures of drivers and of libraries on top of them.
var driverKinds = map[failure.Kind]func(*view){
	failure.DriverBuffer: (*view).buffer, failure.DriverResident: (*view).resident,
	failure.DriverMemory: (*view).driver, failure.DriverLibrary: (*view).library, failure.DriverNVML: (*view).nvml, failure.DriverXPU: (*view).xpu,
	failure.DriverPinned: (*view).pinned, failure.DriverVulkan: (*view).vulkan, failure.DriverPool: (*view).pool, failure.DriverPoolLimit: (*view).poolLimit, failure.DriverManaged: (*view).driver, failure.DriverSaver: (*view).saver, failure.DirectML: (*view).directML, failure.TorchShort: (*view).torchShort,
}

// driver is a driver call that states no figures.
func (v *view) driver() {
	v.title("memory ran out in a call to the GPU driver")
	if v.states(failure.Request, failure.Free) && v.f.Figures[failure.Request] <= v.f.Figures[failure.Free] {
		v.cause(shortage.Refused)
		v.title("the GPU driver refused %s, although it had %s free", v.size(failure.Request), v.size(failure.Free))
		v.say("no limit is named, so the cause is not in the text. Possible: free memory in pieces, another process, the host's memory, a quota (MIG, vGPU)")
	} else if v.states(failure.Request, failure.Free) {
		v.cause(shortage.TooBig)
		v.title("memory ran out on the GPU: %s was requested, and %s was free", v.size(failure.Request), v.size(failure.Free))
	} else if v.states(failure.Request, failure.Active, failure.Capacity) {
		v.cause(shortage.TooBig)
		v.title("memory ran out on the device: %s was requested, and %s of %s was allocated", v.size(failure.Request), v.size(failure.Active), v.size(failure.Capacity))
	} else if v.states(failure.Request) {
		v.title("memory ran out on the device: %s was requested", v.size(failure.Request))
	} else {
		v.say("the text names neither the size of the request nor the holder of the device. For pinned memory, it can be the host's")
	}
	if v.hint(failure.HintJulia) {
		v.set("GC.gc(true); CUDA.reclaim()", "let Julia's collector return memory to the driver; CUDA.unsafe_free! frees an array at once")
	}
	v.addOtherHolders("look for other processes on the device, which may hold most of it")
	v.engineOptions()
	v.do("allocate less at once: a smaller batch, a smaller model or fewer bits; leave room besides a cache")
}

// buffer is one allocation that is larger than Metal gives.
func (v *view) buffer() {
	v.cause(shortage.Limit)
	v.title("memory ran out on Apple's GPU: one buffer of %s is larger than Metal allocates", v.size(failure.Request))
	v.say("Metal limits the size of a single buffer; the rest of the memory can be free")
	v.do("make the tensor smaller or compute it in parts: a smaller batch, shorter inputs, attention in chunks")
}

// resident is memory that Windows could not keep on the device for a program in WSL.
func (v *view) resident() {
	v.title("memory ran out on the GPU under WSL: Windows could not make an allocation resident")
	v.say("error -12 is ENOMEM: WSL's share of this device is full, or Windows' commit limit is reached")
	v.do("allocate less on the device: a smaller model, context or batch; end Windows programs that use the GPU")
	v.do("raise memory= and swap= in .wslconfig, if the commit limit is the problem")
	v.addOtherHolders("look for other processes on the device")
}

// saver is torch_memory_saver, which takes memory when an engine starts and again when it resumes.
func (v *view) saver() {
	v.title("memory ran out when torch_memory_saver took memory for an engine")
	v.say("the driver's error 2 means out of memory. The text names neither the size of the request nor the holder")
	v.do("let a trainer on the device release its memory before the engine resumes: offload its state, then torch.cuda.empty_cache()")
	v.set(sglang.Set("0.6"), "a smaller share for the engine, or more GPUs for it (--tp-size)")
	v.addOtherHolders("look for other processes on the device")
}

// pinned is host memory that the driver could not lock.
func (v *view) pinned() {
	v.title("memory ran out for pinned memory: the driver could not lock as much of the host's memory")
	v.say("it is the host's memory, not the GPU's. WSL, containers (memlock) and small machines allow little pinned memory")
	v.do("pin less: pin_memory=False in the loader, fewer workers and less prefetching, a smaller batch")
	v.set("ulimit -l", "how much a process may lock; in WSL memory= in .wslconfig, in a container --ulimit memlock=-1")
	v.traceHost()
}

// vulkan is a program that uses the GPU through Vulkan.
func (v *view) vulkan() {
	v.title("memory ran out on the GPU, in a call to Vulkan")
	if v.f.Host {
		v.title("the host's memory ran out, in a call to Vulkan")
	}
	v.say("the text has no figure; one allocation can also exceed the driver's maximum (maxMemoryAllocationSize in vulkaninfo)")
	v.do("a smaller model, fewer layers on the GPU, fewer bits, or a shorter context. Close other programs that use the GPU. An integrated GPU takes the host's memory, of which the firmware reserves a part")
}

// engineOptions adds the options of the engine that the text comes from.
func (v *view) engineOptions() {
	v.Remedies = append(v.Remedies, v.text.ofEngine(&account{OOM: &failure.OOM{}})...)
}

// library is cuBLAS or cuDNN without memory for its handle.
func (v *view) library() {
	v.title("memory ran out for a library outside the framework's cache: cuBLAS or cuDNN could not create its handle or workspace")
	v.say("the framework has taken the device, or other processes have: nothing was left for the library")
	if v.hint(failure.HintTensorFlow) {
		v.set("TF_FORCE_GPU_ALLOW_GROWTH=true", "let TensorFlow take memory as it is needed (allow_growth), so that some is left for cuBLAS and cuDNN")
	} else {
		v.do("leave room for the library: a smaller batch, or call the operation once before the cache grows")
	}
	v.addOtherHolders("look for other processes on the device")
	v.engineOptions()
}

// nvml is PyTorch's query for how much is free, which failed.
func (v *view) nvml() {
	v.Confidence = 0.6
	v.Basis = "the assertion is reached when an allocation has failed"
	v.title("memory ran out, and PyTorch could not say so: it asks NVML for the free memory, and NVML did not answer")
	v.say("NVML is missing or broken here, as on a Jetson, in some containers and after a driver update. The underlying failure is an allocation's")
	v.do("allocate less at once: a smaller batch, smaller tensors or fewer bits. On a Jetson the memory is the host's too, so end other programs (tegrastats shows it)")
	v.do("repair NVML to see the message: one version of driver and library, a PyTorch release for this platform")
}

// xpu is Intel's driver.
func (v *view) xpu() {
	v.title("an Intel GPU's driver was out of memory or resources")
	v.say("the text has no figure; out of resources can also mean a kernel's registers and local memory")
	if v.f.Words["maker"] == "any" {
		v.title("a device's OpenCL driver was out of memory or resources")
		v.do("allocate less at once: a smaller batch or fewer rows. OpenCL limits one buffer, often to a quarter of the device (CL_DEVICE_MAX_MEM_ALLOC_SIZE)")
		v.addOtherHolders("look for other processes on the device")
		return
	}
	v.do("allocate less at once: a smaller batch or shorter sequences; a single allocation above 4 GiB needs UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS=1")
	v.set("xpu-smi ps", "look for other processes on the device")
}

// pool is a pool with a limit, such as CuPy's.
func (v *view) pool() {
	v.title("memory ran out in CuPy's pool: %s was requested, with %s allocated", v.size(failure.Request), v.size(failure.Active))
	if v.states(failure.Limit) && v.f.Figures[failure.Active]+v.f.Figures[failure.Request] > v.f.Figures[failure.Limit] {
		v.cause(shortage.Limit)
		v.set("CUPY_GPU_MEMORY_LIMIT=90%", "raise the pool's limit")
	}
	v.do("allocate less at once, or cupy.get_default_memory_pool().free_all_blocks() between phases")
	v.addOtherHolders("look for other processes on the device")
}

// poolLimit is RMM's pool.
func (v *view) poolLimit() {
	v.cause(shortage.Limit)
	v.title("memory ran out in RMM's pool: it has reached the size that was set for it")
	if v.states(failure.Request) {
		v.title("memory ran out in RMM's pool: %s was requested, and it has reached the size that was set for it", v.size(failure.Request))
	}
	v.do("a larger maximum_pool_size in rmm.reinitialize or --rmm-maximum-pool-size of dask-cuda, or smaller partitions")
	v.addOtherHolders("look for other processes on the device")
}

// directML is DirectML.
func (v *view) directML() {
	v.title("memory ran out for DirectML")
	if v.states(failure.Request) {
		v.title("memory ran out for DirectML: a tensor of %s could not be allocated", v.size(failure.Request))
	}
	v.do("a smaller batch or image, fewer bits, or a tiled VAE; DirectML keeps no cache that could be released")
	if v.hint(failure.HintComfyUI) {
		v.set("--lowvram", "let ComfyUI keep less on the device")
	}
}

// torchShort is PyTorch's error without its figures.
func (v *view) torchShort() {
	v.title("memory ran out for PyTorch; the text does not contain the figures of its message")
	if v.states(failure.Request) {
		v.title("memory ran out for PyTorch: %s was requested; the text does not contain the other figures of its message", v.size(failure.Request))
	}
	if v.states(failure.Request, failure.Capacity, failure.Free, failure.Reserved, failure.Active) {
		v.title("memory ran out: %s was requested, with %s of the device's %s allocated and %s free", v.size(failure.Request), v.size(failure.Active), v.size(failure.Capacity), v.size(failure.Free))
		room := v.f.Figures[failure.Free] + v.f.Figures[failure.Reserved] - v.f.Figures[failure.Active]
		const material = 0.05 // of the device
		if pieces := v.f.Figures[failure.Reserved] - v.f.Figures[failure.Active]; v.f.Figures[failure.Request] > room || pieces < material*v.f.Figures[failure.Capacity] {
			v.cause(shortage.TooBig)
		}
	}
	if strings.Contains(v.f.Quote, "preemptively rejected") {
		v.title("PyTorch refused a request of %s before it returned its cache, as throw_on_cudamalloc_oom demands", v.size(failure.Request))
		v.set("throw_on_cudamalloc_oom:False", "return cached memory to the driver first, in PYTORCH_CUDA_ALLOC_CONF")
	}
	v.engineOptions()
	if v.hint(failure.HintComfyUI) || strings.Contains(v.f.Quote, "Allocation on device") {
		if !v.hint(failure.HintComfyUI) {
			v.set("--lowvram", "if it is ComfyUI: let it keep less on the device; a smaller resolution, a model in fp8 or GGUF")
		}
		v.set("--disable-cuda-malloc", "with PyTorch's own allocator the message has figures, and strandline diagnose explains them")
	}
	v.Remedies = append(v.Remedies, shortage.NeedLess()...)
	v.do("give the whole message: its figures show whether to change a setting, another process or the batch")
}
