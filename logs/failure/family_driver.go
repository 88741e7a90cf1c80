package failure

import (
	"bytes"
	"strings"

	"strandline/internal/lazyregexp"
)

// The kinds of drivers and of libraries over them.
const (
	DriverMemory    Kind = "driver"            // a call of the driver, with no figure
	DriverLibrary   Kind = "driver-library"    // cuBLAS or cuDNN could not create its handle or workspace
	DriverNVML      Kind = "driver-nvml"       // PyTorch failed to ask how much is free, as it does when memory ran out
	DriverXPU       Kind = "driver-xpu"        // Level Zero, SYCL or OpenCL
	DriverPool      Kind = "driver-pool"       // of a pool with a limit, as CuPy's
	DriverPoolLimit Kind = "driver-pool-limit" // of RMM's, which has reached the size that it may
	DriverManaged   Kind = "driver-managed"    // bitsandbytes
	DriverSaver     Kind = "driver-saver"      // memory that torch_memory_saver could not get back
	DriverPinned    Kind = "driver-pinned"     // memory of the host that the driver was to lock
	DriverVulkan    Kind = "driver-vulkan"     // of a program that uses Vulkan
	DriverBuffer    Kind = "driver-buffer"     // one buffer that is larger than Metal gives
	DriverResident  Kind = "driver-resident"   // memory that Windows could not make resident for WSL
	DirectML        Kind = "directml"
)

// familyDriver is of the CUDA and HIP drivers, and of programs that print their
// errors.
var familyDriver = &family{
	source: SourceDriver,
	keys: []string{
		"cudaruntimeerror(2)", "cudaruntimeerr(2)", "_status_alloc_failed", "_device_allocation_failed", "_host_allocation_failed", "tritonerror[", "cudaerrormemoryallocation", "hiperroroutofmemory", "hiperror:outofmemory", "hiperrormemoryallocation",
		"errorcuda_error_out_of_memory", "cuda_error_out_of_memory", "witherroroutofmemory", "erroroutofmemoryatline", "cudaerror:outofmemory", "cuda_outofmemory",
		"nvml_success==", "outofmemoryallocating", "cudaerror2:outofmemory", "cudaerror(2):outofmemory", "notenoughgpuvideomemory", "memoryongpu", "nvmapmemalloc",
		"cuda:outofmemory", "cumemallocfailed", "cudasuccess(2vs.0)", "outofgpumemorytrying", "allocationfailedforsize",
		"gpumemory,availablememory", "enforceallocating", "morethantotalmemsize", "memoryisn'tenoughandalloc", "cudahostallocfailed", "vk_error_out_of_",
		"el0004", "cudaruntimeerror:outofmemory", "cudamallocfailed:outofmemory", "cudamallocretryfailed", "outofmemoryondevice.toview", "outofmemorytoallocate", "maximumpoolsizeexceeded", "gpuoutofmemory:",
		"curesulterror", "cudafailure2:", "dmlallocatoroutofmemory", "cudafailedwitherror2", "dxgkio_make_resident:", "invalidbuffersize:", "cudaerror2for", "cudaexecutionfailedwitherror2",
	},
	wordings: []wording{
		{kind: DriverNVML, text: "NVML_SUCCESS =={:any}INTERNAL ASSERT FAILED", source: SourcePyTorch},
		{kind: DriverLibrary, text: "CUBLAS_STATUS_ALLOC_FAILED"},
		{kind: DriverLibrary, text: "CUDNN_STATUS_ALLOC_FAILED"},
		{kind: DriverLibrary, text: "{library:word}_STATUS_ALLOC_FAILED"},
		{kind: DriverLibrary, text: "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED"}, // since cuDNN 9
		{kind: HostUnknown, text: "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED", host: true},
		{kind: DriverMemory, text: "Triton Error [{:word}]: out of memory"},
		{kind: DriverMemory, text: "cudaMalloc{:any}failed with error out of memory"},
		{kind: DirectML, text: "Could not allocate tensor with {request_bytes:int} bytes. There is not enough GPU video memory", source: SourceDirectML},
		{kind: DirectML, text: "There is not enough GPU video memory", source: SourceDirectML},
		{kind: DirectML, text: "DML allocator out of memory", source: SourceDirectML},
		{kind: DriverPool, text: "Out of memory allocating {request_bytes:int} bytes (allocated so far: {active_bytes:int} bytes, limit set to: {limit_bytes:int} bytes)"},
		{kind: DriverPool, text: "Out of memory allocating {request_bytes:int} bytes (allocated so far: {active_bytes:int} bytes"},
		{kind: DriverPool, text: "out of memory to allocate {request_bytes:int} bytes (total {active_bytes:int} bytes)"},
		{kind: DriverPoolLimit, text: "Maximum pool size exceeded (failed to allocate {request_bytes:size})"},
		{kind: DriverPoolLimit, text: "Maximum pool size exceeded"},
		{kind: DriverMemory, text: "GPU OutOfMemory: could not split"},
		{kind: DriverMemory, text: "Cannot allocate {request_bytes:size} memory on GPU {device:int}, {active_bytes:size} memory has been allocated and available memory is only {device_free_bytes:size}"},
		{kind: DriverMemory, text: "Cannot allocate {request_bytes:size} memory on GPU {device:int}, available memory is only {device_free_bytes:size}"},
		{kind: DriverMemory, text: "Cannot allocate {request_bytes:size} GPU memory, available memory is {device_free_bytes:size}"},
		{kind: DriverMemory, text: "enforce allocating <= available failed, {request_bytes:int} > {device_free_bytes:int}"},
		{kind: DriverMemory, text: "alloc size : {request_bytes:int} is more than total mem size : {capacity_bytes:int}"},
		{kind: DriverMemory, text: "memory isn't enough and alloc failed, {:any}alloc size: {request_bytes:size}"},
		{kind: DriverMemory, text: "Out of GPU memory trying to allocate {request_bytes:size}"},
		{kind: DriverMemory, text: "Allocation failed for size::{request_bytes:int}"},
		{kind: DriverMemory, text: "cuMemAlloc failed: out of memory"},
		{kind: DriverMemory, text: "cudaSuccess (2 vs. 0) out of memory"},
		{kind: DriverMemory, text: "CUDA: out of memory"},
		{kind: DriverPinned, text: "cudaHostAlloc failed", host: true},
		{kind: DriverVulkan, text: "VK_ERROR_OUT_OF_HOST_MEMORY", host: true},
		{kind: DriverVulkan, text: "VK_ERROR_OUT_OF_"},
		{kind: DriverManaged, text: "Error out of memory at line {:int} in file"},
		{kind: DriverMemory, text: "cuda runtime error (2)"},
		{kind: DriverMemory, text: "cuda runtime err(2): out of memory"},
		{kind: DriverMemory, text: "CUDA failed with error out of memory"},
		{kind: DriverSaver, line: `\bCUresult error(?::| {1,2}result=) ?2\b.*memory_saver|memory_saver.*\bCUresult error(?::| {1,2}result=) ?2\b`},
		{kind: DriverMemory, text: "CUDA failure 2: out of memory"}, // CNTK's
		{kind: DriverMemory, text: "cuda failed with error 2 out of memory"},
		{kind: DriverMemory, text: "cuda execution failed with error 2"}, // spconv's
		{kind: DriverMemory, text: "CUDA Error: out of memory"},
		{kind: DriverMemory, text: "CUDA runtime error: out of memory"},
		{kind: DriverMemory, text: "cudaMalloc failed: out of memory"},
		{kind: DriverMemory, text: "Out of memory on device. To view more detail about available memory on the GPU"}, // MATLAB's
		{kind: DriverMemory, text: "cudaMalloc retry failed: out of memory"},                                         // MXNet's
		{kind: DriverMemory, text: "HIP error: out of memory"},
		{kind: DriverMemory, text: "CUDA error 2: out of memory"},
		{kind: DriverMemory, text: "CUDA error (2): out of memory"},
		{kind: DriverMemory, text: "cudaErrorMemoryAllocation"},
		{kind: DriverMemory, text: "hipErrorOutOfMemory"},
		{kind: DriverMemory, text: "CUDA_ERROR_OUT_OF_MEMORY"},
		{kind: DriverMemory, text: "CUDA error 2 for {request_bytes:int}-byte allocation", source: SourceTensorRT},
		{kind: DriverBuffer, text: "Invalid buffer size: {request_bytes:size}", source: SourcePyTorch},
		{kind: DriverResident, text: "dxgkio_make_resident: Ioctl failed: -12"},
		{kind: DriverMemory, text: "NvMapMemAllocInternalTagged{:any}error 12"},
		{kind: DriverMemory, text: "EL0004: {:any}allocate memory"},
		{kind: DriverMemory, text: "(EL0004): {:any}allocate memory"},
	},
	facts: []string{
		"Free memory: {device_free_bytes:size}{:any}Requested memory: {request_bytes:size}", // XGBoost's
		"Call rtMalloc fail, {:any}size:{request_bytes:int}", "TotalUsedMemStatistics : {active_bytes:int}",
		"Effective GPU memory usage: {:num}% ({:size}/{capacity_bytes:size})", "Memory pool usage: {active_bytes:size} ({reserved_bytes:size} reserved)",
	},
	read: func(e *excerpt, f *Failure) bool {
		if hipWord.Match(e.raw) {
			f.Words["maker"] = MakerAMD
		} else if ascendWord.Match(e.raw) {
			f.Words["maker"] = MakerHuawei
		} else if bytes.Contains(e.raw, []byte("PT_DEVMEM")) {
			f.Words["maker"] = MakerHabana
		}
		return !listed(f.Quote) && !ofLlama.MatchString(f.Quote)
	},
}

// The makers of devices, as the word "maker" of a failure names them; NVIDIA is not named.
const (
	MakerAMD    = "AMD"
	MakerHuawei = "Huawei"
	MakerHabana = "Habana"
)

var (
	hipWord    = lazyregexp.New(`(?i)\bhip|rocm|amdgpu`)
	ascendWord = lazyregexp.New(`(?i)EL0004|\bascend|torch_npu|mindspore`)
	ofLlama    = lazyregexp.New(`on device \d+: \w+Malloc failed`)
	inSource   = lazyregexp.New(`^\s*(?:if|elif|case|#define|//|/\*|\*(?:\s|/|$)|static|const|return "|"[^"]*"[,;)\]]*\s*$)`)

	// instance is a statement with its figures: no line of a program's source.
	instance = lazyregexp.New(`\d{4,} bytes|\d[.,]\d+ ?[KMGT]i?B\b`)
)

// listed reports whether a line is one of a program's source.
func listed(line string) bool { return inSource.MatchString(line) && !instance.MatchString(line) }

// familyXPU is of Intel's drivers, and of OpenCL's of all makers.
var familyXPU = &family{
	source: SourceDriver,
	keys:   []string{"_error_out_of_", "cl_out_of_", "cl_mem_object_allocation_failure", "pi_error_mem_object"},
	wordings: []wording{
		{kind: DriverXPU, text: "UR_RESULT_ERROR_OUT_OF_HOST_MEMORY", host: true},
		{kind: DriverXPU, text: "UR_RESULT_ERROR_OUT_OF_"},
		{kind: DriverXPU, text: "ZE_RESULT_ERROR_OUT_OF_HOST_MEMORY", host: true},
		{kind: DriverXPU, text: "ZE_RESULT_ERROR_OUT_OF_"},
		{kind: DriverXPU, text: "PI_ERROR_OUT_OF_"},
		{kind: DriverXPU, text: "PI_ERROR_MEM_OBJECT_ALLOCATION_FAILURE"},
		{kind: DriverXPU, text: "CL_OUT_OF_"},
		{kind: DriverXPU, text: "CL_MEM_OBJECT_ALLOCATION_FAILURE"},
	},
	read: func(e *excerpt, f *Failure) bool {
		if strings.Contains(f.Quote, "CL_") && !intelWord.Match(e.raw) {
			f.Words["maker"] = "any"
		}
		return !listed(f.Quote)
	},
}

// intelWord is how a text shows that an error of OpenCL is of Intel's driver.
var intelWord = lazyregexp.New(`(?i)\bintel|\bxpu\b|\bsycl|\bipex|level.zero|_zero_|Native API`)

// The kinds of PyTorch that [OOM] does not hold, as they state no figure.
const (
	TorchShort Kind = "torch-short" // the name of the error alone
	TorchBlock Kind = "torch-block" // a block larger than the platform can make
)

// familyTorch is PyTorch's error without its figures: as ComfyUI prints it, and
// where the message was cut off.
var familyTorch = &family{
	source: SourcePyTorch,
	weak:   true,
	keys:   []string{"allocationondevice", "outofmemoryerror", "outofmemory.triedtoallocate", "gotanoom", "cudaoutofthememory", "ranoutofmemoryonyourgpu", "cudaoutofmemory", "hipoutofmemory", "xpuoutofmemory", "npuoutofmemory", "mpsbackendoutofmemory"},
	wordings: []wording{
		// As search engines and chats write it, in lower case, in which [scanner] does not find it.
		{kind: TorchShort, text: "cuda out of memory. tried to allocate {request_bytes:size} (gpu {device:int}; {capacity_bytes:size} total capacity; {active_bytes:size} already allocated; {device_free_bytes:size} free; {reserved_bytes:size} reserved"},
		{kind: TorchShort, line: `\bcuda out of memory\. tried to allocate`},
		{kind: TorchShort, line: `(?i)\bAllocation on device(?: \d+)?\s*(?:$|This error means|\()`},
		{kind: TorchShort, line: `\bAllocation on device\b`},
		{kind: TorchShort, line: `(?i)\b(?:torch\.(?:cuda\.|xpu\.|npu\.)?)OutOfMemoryError\b`},
		{kind: TorchShort, line: `\bOutOfMemoryError: (?:CUDA|HIP|XPU|NPU|MUSA)`},
		{kind: TorchShort, line: `Got an OOM, unloading all loaded models`},
		{kind: TorchShort, line: `This error means you ran out of memory on your GPU`},
		{kind: TorchShort, line: `(?i)(?:error|exception|failed|fatal)[^.]{0,80}\b(?:CUDA|HIP|XPU|NPU|MPS backend) out of memory\b`},
		{kind: TorchShort, text: "CUDA out of the memory. Tried to allocate {request_bytes:size}"},
		{kind: TorchShort, line: `\b(?:CUDA|HIP|XPU|NPU|MPS backend) out of memory\. Tried to`},
		{kind: TorchShort, line: `^\W*(?:CUDA|HIP|XPU|NPU) out of memory\b`},
	},
	read: func(e *excerpt, f *Failure) bool {
		if f.Figures[Capacity] > 0 && !bytes.Contains(e.raw, []byte("cuda out of memory. tried")) {
			clear(f.Figures) // [scanner] reads the message itself
		}
		return !listed(f.Quote) && !exceptIn.MatchString(f.Quote) && !strings.Contains(f.Quote, "occurred when warming up") // vLLM's own
	},
}

// exceptIn is a line of a program's source that names the error.
var exceptIn = lazyregexp.New(`\bexcept\b.*:|isinstance\(|raise \w|\bimport\b`)
