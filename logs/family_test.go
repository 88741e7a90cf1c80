package logs

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"

	"strandline/logs/failure"
	"strandline/logs/text"
)

// stated are the failures of a text, as kinds with their figures in MiB.
func stated(t *testing.T, text string) (out []string) {
	t.Helper()
	found, err := Scan(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range found.Failures {
		s := string(f.Kind)
		for _, name := range []failure.Figure{failure.Request, failure.Capacity, failure.Free, failure.Reserved, failure.Active, failure.Limit, failure.RSS, failure.Needed, failure.Available} {
			if n, ok := f.Figure(name); ok {
				s += fmt.Sprintf(" %s=%.6g", strings.TrimSuffix(string(name), "_bytes"), float64(n)/(1<<20))
			}
		}
		for _, name := range []failure.Figure{failure.MaxLength, failure.Length, failure.Fraction, failure.Least, failure.Lost, failure.Slots} {
			if x, ok := f.Figures[name]; ok {
				s += fmt.Sprintf(" %s=%g", name, x)
			}
		}
		out = append(out, s)
	}
	return out
}

// TestFamilies reads a message of each, with figures of our own.
//
// It is long because it is one table of messages, a few for each family.
//
// long: one row a family
func TestFamilies(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"ValueError: Free memory on device (10.5/20.0 GiB) on startup is less than desired GPU memory utilization (0.8, 16.0 GiB).",
			"vllm-free capacity=20480 device_free=10752 needed=16384 fraction=0.8"},
		{"ValueError: Free memory on device cuda:1 (1.0/2.0 GiB) on startup\nis less than desired GPU memory utilization (0.9, 1.8 GiB)",
			"vllm-free capacity=2048 device_free=1024 needed=1843.2 fraction=0.9"},
		{"max seq len (4096), (2.50 GiB KV cache is needed, which is larger than the available KV cache memory (1.25 GiB). Based on the available memory, the estimated maximum model length is 2032.",
			"vllm-length needed=2560 available=1280 max_length_tokens=2032 length_tokens=4096"},
		{"The model's max seq len (8192) is larger than the maximum number of tokens that can be stored in KV cache (5120).",
			"vllm-length max_length_tokens=5120 length_tokens=8192"},
		{"model weights take 9.00GiB; the rest of the memory reserved for KV Cache is -1.50GiB.\nValueError: No available memory for the cache blocks.", "vllm-cache available=-1536"},
		{"RuntimeError: CUDA Error: out of memory at /src/csrc/cumem_allocator.cpp:99", "vllm-cumem|driver"},
		{"Load weight end. avail mem=10.00 GB, mem usage=60.00 GB.\nnothing\nValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.7. Raise --mem-fraction-static above 0.858",
			"sglang-weights available=10240 fraction=0.7 least_fraction=0.858"},
		{"RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.", "sglang-nothing"},
		{"RuntimeError: CUDA out of memory occurred when warming up sampler with 32 dummy requests.", "vllm-warm-up"},
		{"failed to allocate memory for requested buffer of size 4611686018427387904", "onnxruntime request=4.39805e+12"},
		{`level=ERROR msg="llama runner terminated" error="signal: killed"`, "ollama-killed"},
		{`[talos] Sending SIGKILL to cgroup {"component": "x", "controller": "runtime.OOMController", "cgroup": "/sys/fs/cgroup/a"}`, "pressure-kill"},
		{`providers\dml\DmlExecutionProvider\src\Allocator.cpp(9): 8007000E Not enough memory resources are available`, "directml"},
		{"Not enough memory resources are available to process this command.", "windows-commit"},
		{"Prefill out of memory. Try to lower your batch size.\nTry to allocate 512 tokens.", "sglang-pool"},
		{"step 90 | CPU memory usage: 40960 MB\nstep 91\nstep 92\nstep 93\nexits with return code = -9", "killed rss=40960"},
		{"RAM usage: 83%\nKilled", "killed"},
		{"CPU Memory Usage (MB): 40960\nGPU memory usage: 1024 MB\nKilled", "killed rss=40960"},
		{"Executor creation failed due to insufficient GPU memory.\n\nThe following component could not be created: Drafter\nTotal GPU memory (GiB): 80.00\nFree GPU memory before component creation attempt (GiB): 2.50\n", "tensorrt-llm-start capacity=81920 device_free=2560"},
		{"Attempting to reserve 2.00G at the bottom of memory. That was not possible. There are 1.00G free, 0B reserved, and 1.00G reservable.; \nHBM capacity 8.00G:\n", "xla-program request=2048 capacity=8192 device_free=1024"},
		{"to load the 40B model, RuntimeError: [TM][ERROR] CUDA runtime error: out of memory /a.cu:32", "driver"},
		{"[torch_memory_saver.cpp] CUresult error: 2 (out of memory)  file=csrc/utils.h func=cu_mem_create line=96", "driver-saver"},
		{"[torch_memory_saver.cpp] CUresult error result=1 file=csrc/torch_memory_saver.cpp func=cu_mem_create line=103", ""},
		{"Starting minibatch loop.\nCUDA failure 2: out of memory ; GPU=0 ; hostname=a ; expr=cudaMalloc((void**) &p, n)", "driver"},
		{"providers/cuda/cuda_call.cc:121 CUDA failure 2: out of memory ; GPU=0 ; hostname=a ; expr=cudaMalloc((void**)&p, size)", "onnxruntime|driver"},
		{"ptxas fatal   : Memory allocation failure", "host-memory"},
		{"onnxruntime/a.hpp(33): catastrophic error : out of memory [a.vcxproj]", "host-memory"},
		{"ERROR: error code -9", "killed"},
		{"ResourceExhaustedError: failed to allocate memory [Op:AddV2]", "tensorflow-tensor"},
		{"cuda_driver.cc:764] failed to alloc 4194304 bytes unified memory; result: CUDA_ERROR_OUT_OF_MEMORY: out of memory", "tensorflow-driver request=4|driver"},
		{"flashinfer/allocator.h:49: Buffer overflow when allocating memory for batch_prefill_tmp_v with size 314572800 and alignment 16, but only 268435456 bytes available in AlignedAllocator. Increase the workspace buffer size.", "flashinfer-workspace request=300 available=256"},
		{"RuntimeError: Failed to allocate memory for batch_prefill_tmp_v\nwith size 419430400 and alignment 16 in AlignedAllocator", "flashinfer-workspace request=400"},
		{"RuntimeError: cuda runtime err(2): out of memory at /a/THCstorage.cu:66", "driver"},
		{"\"cuda out of memory. tried to allocate 40.00 mib (gpu 0; 8.00 gib total capacity; 7.00 gib already allocated; 0 bytes free; 7.25 gib reserved in total by pytorch) if reserved", "torch-short request=40 capacity=8192 device_free=0 reserved=7424 active=7168"},
		{"RuntimeError: cuDNN Frontend error: [cudnn_frontend] Error: CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED", "driver-library"},
		{"cuDNN error: CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED", "host-memory"},
		{"RuntimeError: Triton Error [CUDA]: out of memory", "driver"},
		{"Could not allocate memory: CUDA Error: cudaMalloc(&rawptr, n+32) failed with error out of memory", "driver"},
		{"ValueError: No available memory for the cache blocks. Try increasing `VLLM_CPU_KVCACHE_SPACE` when initializing the engine.", "vllm-host-cache"},
		{"[F] RuntimeError: DML allocator out of memory!", "directml"},
		{"tensorview/tensor.h 168\ncuda failed with error 2 out of memory. use CUDA_LAUNCH_BLOCKING=1 to get correct traceback.", "driver"},
		{"bfc_arena.cc:330 Failed to allocate memory for requested buffer of size 4194304\n\n2021:07:08:01 more", "onnxruntime request=4"},
		{"bfc_arena.cc:330 Failed to allocate memory for requested buffer of size 419\n4304", "onnxruntime request=4"},
		{"Not enough memory to handle 4096 prefill tokens. You need to decrease `--max-batch-prefill-tokens`", "tgi-prefill"},
		{"Not enough memory to handle 9000 total tokens with 4 prefill tokens. You need to decrease `--max-batch-total-tokens` or `--max-batch-prefill-tokens`", "tgi-total"},
		{"[E] Error[1]: [defaultAllocator.cpp::allocate::31] Error Code 1: Cuda Runtime (out of memory)\n[W] [TRT] Requested amount of GPU memory (4194304 bytes) could not be allocated.\n[E] Error[9]: Error Code: 9: Skipping tactic 0x0 due to exception\n[E] Error Code 10: Internal Error (Could not find any implementation for node {a}.)", "tensorrt request=4"},
		{"[E] [TRT] Requested amount of GPU memory (1048576 bytes) could not be allocated. There may not be enough free memory for allocation to succeed.", "tensorrt request=1"},
		{"bfc_arena.cc:3 Available memory of 1048576 is smaller than requested bytes of 4194304", "onnxruntime-limit request=4 available=1"},
		{"RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4194304 bytes.\nBufferAssignment stats:\n   parameter allocation:    2.00MiB\n   total allocation:    8.00MiB", "xla-request request=4 needed=8"},
		{"Resource exhausted: Out\nof memory while trying to allocate 4194304 bytes.", "xla-request request=4"},
		{"RESOURCE_EXHAUSTED: TPU TensorCore Hbm usage: 4.00G, SparseCore Hbm usage 16.00G, exceeding available bytes: 10.00G", "xla-compile capacity=10240 needed=20480"},
		{"RESOURCE_EXHAUSTED: Allocation (size=20971520) would exceed memory (size=10485760) :: #allocation3 [shape = 'u8[5,5]', space=hbm, size = 0xff]", "xla-buffer request=20 capacity=10"},
		{"The model's max seq len (8192) is larger than the maximum number of tokens that can be stored in KV cache. Try increasing", "vllm-length length_tokens=8192"},
		{"Ran out of memory in memory space hbm. Used 20.00G of 10.00G hbm. Exceeded", "xla-compile capacity=10240 needed=20480"},
		{"Error allocating device buffer: Attempting to allocate 2.00M. That was not possible. There are 1.00M free.; (0x0x0_HBM0)", "xla-buffer request=2 device_free=1"},
		{"OOM when allocating tensor with shape[1024,1024] and type float on /job:localhost/device:GPU:0 by allocator GPU_0_bfc", "tensorflow-tensor request=4"},
		{"failed to allocate 1.00GiB (1073741824 bytes) from device: CUDA_ERROR_OUT_OF_MEMORY: out of memory", "tensorflow-driver request=1024|driver request=1024"},
		{"allocating 100.00 MiB on device 1: cudaMalloc failed: out of memory\nggml_gallocr_reserve_n: failed to allocate CUDA1 buffer of size 104857616", "llama.cpp-compute request=100"},
		{"alloc_tensor_range: failed to allocate ROCm0 buffer of size 2097152\nllama_model_load: error loading model: unable to allocate ROCm0 buffer", "llama.cpp-weights request=2"},
		{"ggml_vulkan: Device memory allocation of size 2097152 failed.", "llama.cpp request=2"},
		{"Error: model requires more system memory (12.0 GiB) than is available (3.0 GiB)", "ollama-host needed=12288 available=3072"},
		{"[metal::malloc] Attempting to allocate 4194304 bytes which is greater than the maximum allowed buffer size of 2097152 bytes.", "mlx-buffer request=4 limit=2"},
		{"[METAL] Command buffer execution failed: Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)", "mlx-command"},
		{"ggml_metal_graph_compute: command buffer 0 failed\nerror: Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)", "llama.cpp-metal"},
		{"[9.1] Out of memory: Killed process 12 (trainer) total-vm:9000kB, anon-rss:2048kB, file-rss:1024kB, shmem-rss:1024kB, UID:0", "kernel-kill rss=4"},
		{"Killed process 12, UID 500, (trainer) total-vm:9000kB, anon-rss:2048kB, file-rss:1024kB", "kernel-kill rss=3"},
		{"memory: usage 2048kB, limit 4096kB, failcnt 3\nMemory cgroup out of memory: Killed process 12 (a b) total-vm:9000kB, anon-rss:2048kB, file-rss:0kB, shmem-rss:0kB", "cgroup-kill limit=4 rss=2"},
		{"    Last State: Terminated\n    Reason: OOMKilled\n    Exit Code: 137", "pod-killed|killed"},
		{"MemoryError: std::bad_alloc: out_of_memory: RMM failure at:/a/pool_memory_resource.hpp:1: Maximum pool size exceeded (failed to allocate 2.0 MiB): No room in arena.", "driver-pool-limit request=2"},
		{"MemoryError: std::bad_alloc: CUDA error at: /a/rmm/mr/device/cuda_memory_resource.hpp:6: cudaErrorMemoryAllocation out of memory", "driver|driver"},
		{"cupy.cuda.memory.OutOfMemoryError: out of memory to allocate 2097152 bytes (total 4194304 bytes)", "driver-pool request=2 active=4"},
		{"what():  [TM][ERROR] CUDA runtime error: out of memory /a/turbomind/utils/allocator.h:2", "driver"},
		{"src/storage/./pooled_storage_manager.h:1: cudaMalloc failed: out of memory", "driver"},
		{"Caused by: com.nvidia.spark.rapids.jni.GpuSplitAndRetryOOM: GPU OutOfMemory: could not split inputs and retry", "driver"},
		{"com.nvidia.spark.rapids.jni.CpuSplitAndRetryOOM: CPU OutOfMemory: could not split inputs and retry", "spill-refused"},
		{"Exception in thread \"main\" java.lang.OutOfMemoryError: Java heap space", "heap-limit"},
		{"FATAL ERROR: Reached heap limit Allocation failed - JavaScript heap out of memory", "heap-limit"},
		{"fatal error: runtime: out of memory", "host-memory"},
		{"Reason: Container killed by YARN for exceeding memory limits. 3.0 MB of 2.0 MB physical memory used.", "worker-limit limit=2"},
		{"distributed.nanny - WARNING - Worker tcp://127.0.0.1:9 (pid=9) exceeded 95% memory budget. Restarting...", "worker-limit"},
		{"box earlyoom[8]: mem avail:     5 of 3000 MiB ( 0.35%)\nbox earlyoom[8]: sending SIGTERM to process 9 uid 1000 \"python3\": oom_score 1282, VmRSS 2500 MiB, cmdline \"x\"", "monitor-kill capacity=3000 rss=2500"},
		{"bash: fork: retry: Cannot allocate memory", "fork-refused"},
		{"Out of memory on device. To view more detail about available memory on the GPU, use 'gpuDevice()'.", "driver"},
		{"c++: fatal error: Killed signal terminated program cc1plus\ncompilation terminated.", "killed"}, {"g++: internal compiler error: Killed (program cc1plus)", "killed"},
		{"lowmemorykiller: Kill 'com.example.llm' (12345), uid 10123, oom_score_adj 0 to free 2451232kB", "killed"},
		{"Memory limit of 512 MiB exceeded with 530 MiB used. Consider increasing the memory limit, see", "service-limit limit=512"},
		{"Code: 241. DB::Exception: Memory limit (total) exceeded: would use 9.00 GiB (attempt to allocate chunk of 4194304 bytes), maximum: 8.00 GiB. (MEMORY_LIMIT_EXCEEDED)", "service-limit request=4 limit=8192"},
		{"Thread 1: EXC_RESOURCE RESOURCE_TYPE_MEMORY (limit=2098 MB, unused=0x0)", "service-limit limit=2098"},
		{"heroku[worker.1]: Error R15 (Memory quota vastly exceeded)", "service-limit"}, {"Stopped reason: OutOfMemoryError: Container killed due to memory usage", "service-limit"},
		{"Expiring Daemon because JVM heap space is exhausted", "heap-limit"}, {"ERROR: LoadError: OutOfMemoryError()", "host-memory"}, {"virtual memory exhausted: Cannot allocate memory", "host-memory"},
		{"Fatal error: Out of video memory trying to allocate a rendering resource.", "unknown"},
		{"    pid = os.fork()\nOSError: [Errno 12] Cannot allocate memory", "fork-refused"},
		{"runtime: out of memory: cannot allocate 4194304-byte block (201326592 in use)\nfatal error: out of memory", "host-request request=4"},
		{"flux-shell[0]: ERROR: oom: Memory cgroup out of memory: killed 1 task on node7.", "cgroup-kill"},
		{"Error: Runtime exited with error: signal: killed\nREPORT Memory Size: 3008 MB Max Memory Used: 3008 MB", "killed limit=3008"},
		{"This could be caused by a segmentation fault while calling the function or by an excessive memory usage causing the Operating System to kill the worker.", "killed"},
		{"MXNetError: [1:2:3] src/storage/./pooled_storage_manager.h:161: cudaMalloc retry failed: out of memory", "driver"},
		{"std::runtime_error: [METAL] Command buffer execution failed: Insufficient Memory", "mlx-command"},
		{"error: Insufficient Memory (00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)\nggml_metal_graph_compute: command buffer 3 failed with status 5", "llama.cpp-metal"},
		{"[TensorRT] ERROR: Requested amount of memory (2097152 bytes) could not be allocated. There may not be enough free memory.", "tensorrt request=2"},
		{"=>> PBS: job killed: mem 4096kb exceeded limit 2048kb", "slurm limit=2"},
		{"Out of memory allocating 2,097,152 bytes (allocated so far: 4,194,304 bytes).", "driver-pool request=2 active=4"},
		{"Unable to allocate 2.00 MiB for array with form (512, 512)\nMemoryError: Unable to allocate 2.00 MiB for an array", "host-request request=2"},
		{"MemoryError: the table needs 2.0 MiB", "host-memory request=2"},
		{"Memory allocation error on worker 3: std::bad_alloc: cudaErrorMemoryAllocation: out of memory\n- Free memory: 4194304\n- Requested memory: 2097152", "driver request=2 device_free=4|driver request=2 device_free=4"},
		{"step 7\n已杀死", "killed"}, {"[rank3]: Killed", "killed"}, {`{"log":"Killed\n","stream":"stderr","time":"2026-01-02T03:04:05Z"}`, "killed"},
		{"2026-01-02T03:04:05.123456789Z Killed", "killed"}, {"2026-01-02T03:04:05.1Z stderr F Killed", "killed"}, {"[pod/a/b] 2026-01-02T03:04:05Z Killed", "killed"},
		{"app-1  | Killed", "killed"}, {"> 2026-01-02T03:04:05Z Killed", "killed"}, {`{"log":"2026-01-02T03:04:05Z **Killed**\n"}`, "killed"}, {`{"error": "step 300\nKilled\n"}`, "killed"}, {" 31%|███       | 331/1063 [01:06<03:59,  3.06it/s]Killed", "killed"}, {`{"time":"2026-01-02T03:04:05Z","message":"Killed"}`, "killed"},
		{"train.sh：行 3： 4711 已杀死               python train.py", "killed"},
		{"step 7\nProcessus arrêté", "killed"},
		{"RuntimeError: pool runs out of memory. Please set a smaller number for `--max-running-requests`.", "sglang-slots"},
		{"Ran out of memory in memory space sflag. Used 3.0K of 2.0K sflag.", "xla-scratch limit=0.00195312 needed=0.00292969"},
		{"ASSERT: ggml-backend.c:7: data != NULL && \"failed to allocate buffer\"", "llama.cpp"},
		{`{"message":"ggml_gallocr_reserve_n: failed to allocate CUDA1 buffer of size 2097152\n1.06.520.086 E graph_reserve: failed to allocate compute buffers"}`, "llama.cpp-compute request=2"},
		{"The node was low on resource: memory. Threshold quantity: 2Mi, available: 1024Ki. Container a was using 4096Ki, request is 1Gi, has larger consumption of memory.", "pod-evicted rss=4 available=1"},
		{"The node had condition: [MemoryPressure].", "pod-evicted"},
		{"Container [pid=1,containerID=c] is running 1B beyond the 'PHYSICAL' memory limit. Current usage: 2.1 MB of 2 MB physical memory used; 4 MB of 9 MB virtual memory used.", "worker-limit limit=2"},
		{"OSError: [WinError 1455] 页面文件太小，无法完成操作。", "windows-commit"}, {"RuntimeError: ページング ファイルが小さすぎるため、この操作を完了できません。", "windows-commit"},
		{"OSError: [WinError 8] 内存资源不足，无法处理此命令。", "windows-commit"}, {"OSError: [Errno 12] 无法分配内存", "host-memory"}, {"OSError: [Errno 12] Not enough space", "host-memory"},
		// In words that are not known.
		{"错误: 显存不足，无法加载模型", "unknown"}, {"[エラー] GPUメモリが不足しています。", "unknown"}, {"오류: GPU 메모리가 부족합니다.", "unknown"},
		{"RuntimeError：CUDA 内存不足。尝试分配 2.00 MiB（GPU 0；总容量 6.00 MiB；已分配 4.00 MiB；1.00 MiB 可用）", "unknown request=2 capacity=6 device_free=1 active=4"},
		{"details: Failed to cudaMalloc 2097152 bytes\nAborted", "unknown request=2"},
		{"Out of memory in cuStreamCreate(&cuda_stream_, CU_STREAM_NON_BLOCKING) (queue.cpp:21)", "unknown"}, {"Error: System is out of GPU and shared host memory", "unknown"},
		{`{"message":"cache size = 11.00 MiB\nupload: failed to allocate 3.00 MiB of pinned memory: invalid argument\nsize 5.0 MiB"}`, "unknown request=3"},
		{"[engine] FATAL: insufficient device memory: 4.0 MiB required, 2.0 MiB available", "unknown request=4 device_free=2"},
		{"ERROR plan exceeds the maximum buffer size: requested 4194304 bytes, but the max size of one is 2097152 bytes.Try a smaller batch", "unknown request=4 limit=2"},
		{"Error: failed to reserve 3.0 MiB of host memory (1.0 MiB remaining)", "unknown request=3 available=1"},
		{"fatal: cannot allocate a tensor of 4194304 bytes: 2097152 bytes free of 8388608 bytes total", "unknown request=4 capacity=8 device_free=2"},
		{"RangeError: Array buffer allocation failed", "unknown"},
		{"slurmstepd: error: Detected 3 oom_kill events in StepId=7.batch.", "slurm"},
		{"(pid=9, memory used=1.00GB) was running was 30.00GB / 32.00GB (0.9375), which exceeds the memory usage threshold of 0.9.", "ray capacity=32768 rss=1024 fraction=0.9"},
		{"RuntimeError: DataLoader worker (pid 9) is killed by signal: Bus error.", "shared-workers"},
		{"srun: error: node17: task 3: Bus error (core dumped)", "bus-error"}, {"srun: error: node17: tasks 0-3,5: Bus error", "bus-error"},
		{"./run.sh: line 3: 4711 Bus error               (core dumped) python train.py", "bus-error"},
		{"misc/shmutils.cc:71 NCCL WARN Error: failed to extend /dev/shm/nccl-abc to 4194304 bytes", "shared-nccl request=4"},
		{"DefaultCPUAllocator: not enough memory: you tried to allocate 4194304 bytes.", "host-request request=4"},
		{"numpy.core._exceptions.MemoryError: Unable to allocate 2.00 MiB for an array with shape (512, 512)", "host-request request=2"},
		{"terminate called after throwing an instance of 'std::bad_alloc'", "host-memory"},
		{"OSError: [WinError 1455] the text of another language", "windows-commit"},
		{"subprocess exits with return code = -9", "killed"},
		{"./run.sh: line 3: 4711 Killed   python train.py", "killed"},
		{"RuntimeError: cuda runtime error (2) : out of memory at THC.cu:9", "driver"},
		{"CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`", "driver-library"},
		{`RuntimeError: NVML_SUCCESS == r INTERNAL ASSERT FAILED at "CUDACachingAllocator.cpp":9`, "driver-nvml"},
		{"RuntimeError: level_zero backend failed with error: 39 (UR_RESULT_ERROR_OUT_OF_DEVICE_MEMORY)", "driver-xpu"},
		{"OutOfMemoryError: Out of memory allocating 2,097,152 bytes (allocated so far: 4,194,304 bytes, limit set to: 5,242,880 bytes).", "driver-pool request=2 active=4 limit=5"},
		{"Error out of memory at line 9 in file /src/csrc/pythonInterface.c", "driver-managed"},
		{"torch.OutOfMemoryError: Allocation on device", "torch-short"},
		{"RuntimeError: CUDA out of the memory. Tried to allocate 4.00 MiB", "torch-short request=4"},
		{"Cannot allocate 4.000000MB memory on GPU 0, available memory is only 2.000000MB.", "driver request=4 device_free=2"},
		{"Cannot allocate 4.000000MB GPU memory, available memory is 2.000000MB.", "driver request=4 device_free=2"},
		{"EnforceNotMet: enforce allocating <= available failed, 4194304 > 2097152", "driver request=4 device_free=2"},
		{"TotalUsedMemStatistics : 4194304 plus alloc size : 2097152 is more than total mem size : 5242880.", "driver request=2 capacity=5 active=4"},
		{"Device(id:0) memory isn't enough and alloc failed, kernel name: Conv2D-op1, alloc size: 2097152B.", "driver request=2"},
		{"Memory_Allocation_Failure(EL0004): Failed to allocate memory requested by X.\nCall rtMalloc fail, type = 2, size:2097152, device_id:0", "driver request=2"},
		{"arena.cc:9] cudaHostAlloc failed, ret[2], out of memory", "driver-pinned"},
		{"python3 invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0\n dump_stack+0x6d/0x8b\n mem_cgroup_out_of_memory+0xbb/0xd0", "cgroup-kill"},
		{"[worker-0] terminated with exit code (137). Reason [Error]. Message: .", "killed"},
		{`{"terminated": {"exitCode": 137, "reason": "Error"}}`, "killed"},
		{`{"log":"\"terminated\": {\"exitCode\": 137}\n"}`, "killed"},
		{"Jan  2 03:04:05 gpu-01 train[42]: step 5\nJan  2 03:04:05 gpu-01 train[42]: Killed", "killed"},
		{"(raylet) memory_monitor.cc:7: Node memory usage above threshold, used: 9437184, total: 10485760, usage fraction: 0.9, threshold: 0.85", "ray capacity=10 fraction=0.85"},
		{"mkl_malloc: failed to allocate memory", "unknown"},
		{"ggml_gallocr_reserve_n: failed to allocate CPU buffer of size 10485760\ngraph_reserve: failed to allocate compute buffers", "llama.cpp-host request=10"},
		{" 4: 0x7f v8::internal::V8::FatalProcessOutOfMemory(v8::internal::Isolate*, char const*, bool) [/lib/libnode.so.64]", "heap-limit"},
		{"ERROR: Out of GPU memory trying to allocate 2.000 MiB\nEffective GPU memory usage: 99.00% (7.000 MiB/8.000 MiB)\nMemory pool usage: 5.000 MiB (6.000 MiB reserved)", "driver request=2 capacity=8 reserved=6 active=5"},
		{"pycuda._driver.MemoryError: cuMemAlloc failed: out of memory", "driver|driver"},
		{"syncedmem.cpp:7] Check failed: error == cudaSuccess (2 vs. 0)  out of memory", "driver"},
		{"storage.cc:1: Check failed: e == cudaSuccess: CUDA: out of memory", "driver"},
		{"FATAL ERROR :: MODULE:PT_DEVMEM Allocation failed for size::2097152 (2)MB", "driver request=2"},
		{"InternalError: Check failed: Vulkan Error, code=-2: VK_ERROR_OUT_OF_DEVICE_MEMORY", "driver-vulkan"},
		{"terminate called: vk::Device::allocateMemory: ErrorOutOfDeviceMemory", "driver-vulkan"},
		{"failed to allocate 2.00M (2097152 bytes) from device: HIP_ERROR_OutOfMemory", "tensorflow-driver request=2"},
		{"ERROR: safeRuntime.cpp (25) - Cuda Error in allocate: 2 (out of memory)", "tensorrt"},
		{"RuntimeError: \n[TensorRT-LLM][ERROR] CUDA runtime error in ::cudaMalloc(ptr, n): out of memory (a.h:9)\n1 0x7cb3 void check()", "tensorrt-llm"},
		{"INTERNAL: Failed to allocate 2097152 bytes for new constant", "xla-request request=2"},
		{"Ran out of memory in memory space vmem. Used 32.00M of 16.00M vmem. Exceeded", "xla-scratch limit=16 needed=32"},
		{"0.01.181.838 E ggml_gallocr_reserve_n_impl: failed to allocate CUDA1 buffer of size 2097152\n0.01.181.839 E graph_reserve: failed to allocate compute buffers", "llama.cpp-compute request=2"},
		{"ggml_sycl_malloc_device: can't malloc 2097152 Bytes memory on device", "llama.cpp request=2"},
		{"MTLCommandBufferErrorDomain Code=8 \"Insufficient Memory (IOAF code 8)\"", "mlx-command"},
		{"kernel: oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=" + strings.Repeat("c", 200) + ",task_memcg=/a,task=trainer,pid=12,uid=0", "cgroup-kill"},
		{"kernel: trainer invoked oom-killer: order=0\nkernel: memory: usage 2048kB, limit 4096kB, failcnt 3", "cgroup-kill limit=4"},
		{"Last State: Terminated\nReason: OOMKilled\nLimits:\ncpu: 2\nmemory: 4Mi\nnvidia.com/gpu: 1\nRequests:\ncpu: 1\nmemory: 2Mi", "pod-killed limit=4"},
		{"Warning SystemOOM kubelet System OOM encountered, victim process: python3, pid: 9", "kernel-kill"},
		{"RayOutOfMemoryError: More than 95% of the memory on node box is used (11.0 / 12.0 GB). The top 5 memory consumers are:", "ray capacity=12288"},
		{"Job has gone over memory limit of 2 megabytes. Peak usage: 3 megabytes.", "worker-limit limit=2 rss=3"},
		{"Error: cannot allocate vector of size 2.0 Mb", "host-request request=2"},
		{"pyarrow.lib.ArrowMemoryError: malloc of size 2097152 failed", "host-request request=2"},
		{"Fail to alloc memory of 2097152 size, error code is 12.", "host-request request=2"},
		{"error: (-4:Insufficient memory) Failed to allocate 2097152 bytes in function 'OutOfMemoryError'", "host-request request=2"},
		{"RuntimeError: unable to mmap 2097152 bytes from file </models/a.safetensors>: Cannot allocate memory (12)", "host-request request=2"},
		{"RuntimeError: unable to mmap 2097152 bytes from file </torch_1_2_3>: Cannot allocate memory (12)", "shared-file request=2"},
		{"[enforce fail at CPUAllocator.cpp:9] posix_memalign(&data, gAlignment, nbytes) == 0. 12 vs 0", "host-memory"},
		{"[7] [ERROR] Worker (pid:51) was sent SIGKILL! Perhaps out of memory?", "killed"},
		{"2026-01-02T03:04:05.1Z stderr F The model's max seq len (8192) is larger than the maximum number of tokens that can be stored in KV cache (\n2026-01-02T03:04:05.2Z stderr F 5120).",
			"vllm-length max_length_tokens=5120 length_tokens=8192"},
		{`{"log":"max seq len (8192) is larger than the maximum number of tokens that can be stored in KV cache (\n","stream":"stderr"}` + "\n" + `{"log":"5120).\n","stream":"stderr"}`,
			"vllm-length max_length_tokens=5120 length_tokens=8192"},
		{"[myengine] FATAL: not enough device memory for the plan", "unknown"},
		{"ValueError: req_to_token_pool memory leak detected!available_size=60, total_size=64", "sglang-lost lost_slots=4 slots=64"},
		{"pool memory leak detected! swa_available_size=8, swa_evictable_size=1, swa_protected_size=0, swa_token_to_kv_pool.size=10", "sglang-lost lost_slots=1 slots=10"},
		{"ValueError: pool memory leak detected! [full] total=911, available=76, evictable=835, protected=0, session_held=0, uncached=0\n[swa] total=91, available=20, evictable=67, protected=0", "sglang-lost lost_slots=4 slots=91"},
		{"UserWarning: Warning: available_size=352, max_total_num_token=423\nKV cache pool leak detected!", "sglang-lost lost_slots=71 slots=423"},
		{"INFO Starting to load model small\nModel loading took 9.0 GiB memory and 3.1 seconds", "start-up needed=9216"},
		{"INFO Starting to load model small\nGPU KV cache size: 4,096 tokens", ""},
		{"INFO Starting to load model small\nTraceback (most recent call last):", ""},
	} {
		if got := strings.Join(stated(t, c.text+"\n"), "|"); got != c.want {
			t.Errorf("%s:\n got %s\nwant %s", c.text, got, c.want)
		}
	}
}

// TestNoFailure reads what resembles a failure and is not one.
func TestNoFailure(t *testing.T) {
	for _, text := range []string{
		"CUDA graphs can take additional 1~3 GiB memory per GPU. If you are running out of memory, consider decreasing `gpu_memory_utilization` or enforcing eager mode.",
		"Available KV cache memory: 1.25 GiB\nGPU KV cache size: 4,096 tokens",
		"Allocator (GPU_0_bfc) ran out of memory trying to allocate 1.50GiB. The caller indicates that this is not a failure, but may mean that there could be performance gains if more memory is available.",
		"Allocator (GPU_0_bfc) ran out of memory trying to allocate 2.25GiB with freed_by_count=0. The caller indicates that this is not a failure, but this may mean that there could be performance gains if more memory were available.",
		"MemoryError: Cannot allocate write+execute memory for ffi.callback().",
		"pinned_memory_manager.cc:1] failed to allocate pinned system memory, falling back to non-pinned system memory",
		"OSError: [Errno 28] No space left on device: '/home/me/.cache/model'",
		"RuntimeError: CUDA error: too many resources requested for launch",
		"out of resource: shared memory, Required: 99328, Hardware limit: 98304. Reducing block sizes may help.",
		"KV cache pool is full. Retract requests. #retracted_reqs: 3",
		"No valid triton configs. OutOfMemoryError: out of resource: triton_mm Required: 294912 Hardware limit:232448 Reducing block sizes or `num_stages` may help.\nIgnoring this choice.",
		"distributed.worker.memory - WARNING - Worker is at 81% memory usage. Pausing worker.  Process memory: 1.9 GiB -- Worker memory limit: 2.33 GiB",
		"earlyoom v1.7\nsending SIGTERM when mem <= 10.00% and swap <= 10.00%,\nmem avail: 15342 of 15881 MiB (96.61%)",
		"systemd[1]: Started systemd-oomd.service - Userspace Out-Of-Memory (OOM) Killer.",
		"The node was low on resource: ephemeral-storage. Threshold quantity: 2146223340, available: 1883424Ki. Container a was using 10304Ki, request is 10Mi.",
		"Pod The node had condition: [DiskPressure].",
		"如果显存不足，可以减小 batch_size。", "提示：为避免显存不足，建议开启梯度检查点。", "メモリ不足の場合は --lowvram を付けて起動してください。",
		"2026-01-02T03:04:05Z session Killed by user request, restarting", `{"message":"Killed process list updated"}`,
		"UserWarning: find_executable_batch_size: Decreasing batch size to: 8.",
		"Sequence group 7 is preempted by PreemptionMode.RECOMPUTE mode because there is not enough KV cache space.",
		"[W] Requested amount of GPU memory (1048576 bytes) could not be allocated. There may not be enough free memory for allocation to succeed.\n[W] Skipping tactic 3 due to insufficient memory on requested size of 1048576 detected for tactic 4.",
		"CUDA error: an illegal memory access was encountered",
		`"OOMKilled": false, "Dead": false`,
		"WARNING: memory allocation failed; attempting to free up memory...", "Allocation of 4194304 exceeds 10% of free system memory.",
		"job 7 exceeded MEM usage soft limit", "ERROR: [TRT]: 2: [resizePhysical::145] Error Code 2: OutOfMemory (no further information)\nSkipping tactic 3 due to insufficient memory",
		"If the allocation fails, an error says: out of memory", "error: the request exceeds the maximum length",
		"ggml_cuda_host_malloc: warning: failed to allocate 12.00 MiB of pinned memory: out of memory",
		"ggml_cuda_host_malloc: failed to allocate 12.00 MiB of pinned memory: out of memory\nmain: server is listening on http://127.0.0.1:8080",
		"ggml_cuda_host_malloc: failed to allocate 12.00 MiB of pinned memory: invalid argument", // it goes on with other memory
		"E0812 05:45:01.3 1 memory_manager.cc:1] failed to allocate pinned system memory: CUDA driver version is insufficient for CUDA runtime version",
		"OOMKilled (exit code 137) means that a container exceeded its limit, recorded as Reason: OOMKilled.",
		"CUDA_ERROR_OUT_OF_MEMORY means the runtime could not allocate GPU memory.\nWhy it happens\nThe dreaded CUDA out of memory error",
		"ggml_vulkan: Failed to allocate pinned memory.\nmain: server is listening on http://127.0.0.1:8080",
		"ggml_vulkan: Failed to allocate pinned memory.\nggml_vulkan: vk::Device::allocateMemory: ErrorOutOfDeviceMemory\nload_tensors: Vulkan0 model buffer size = 12.00 MiB",
		"ggml_cuda_host_malloc: failed to allocate 1900,00 MiB of pinned memory: invalid argument", // in a locale with commas
		"api: [WARNING] Unable to shutdown process 26 via Signals.SIGTERM, forcefully exiting via Signals.SIGKILL",
		"More hints on what to do with CUDA Out of memory errors. Catches an out-of-memory error in the wrapper.",
		"Report when any process was killed by OOM killer in the job.", "If a container has an OOM, its last state shows the Reason as `OOMKilled`.",
		"except torch.cuda.OutOfMemoryError:", "6 steps without a leak; OOM errors caught: 1",
		"    if 'CUDA out of memory' in str(e): retry()",
		"job 9 finished with exit code 0; 3 subprocesses killed by the user's request",
	} {
		if got := stated(t, text+"\n"); got != nil {
			t.Errorf("%s: %s", text, got)
		}
	}
}

// TestStatementsAreFoundAnywhere puts a message behind prefixes, into colors and
// JSON, and into lines that were broken anywhere.
func TestStatementsAreFoundAnywhere(t *testing.T) {
	const message = "max seq len (4096), (2.50 GiB KV cache is needed, which is larger than the available KV cache memory (1.25 GiB). Based on the available memory, the estimated maximum model length is 2032."
	const want = "vllm-length needed=2560 available=1280 max_length_tokens=2032 length_tokens=4096"
	for at := 1; at < len(message); at++ {
		line := "loading\n" + message[:at] + "\n" + message[at:] + "\n"
		if got := stated(t, line); !slices.Equal(got, []string{want}) {
			t.Fatalf("broken at %d: %s", at, got)
		}
		if at > 20 {
			prefix := "(EngineCore pid=12) ERROR 01-02 03:04:05 [core.py:9] "
			if got := stated(t, prefix+message[:at]+"\n"+prefix+message[at:]+"\n"); !slices.Equal(got, []string{want}) {
				t.Fatalf("with a prefix, broken at %d: %s", at, got)
			}
		}
	}
	for _, line := range []string{
		"\x1b[1;31m" + message + "\x1b[0m", `{"log":"ValueError: ` + message + `\n","stream":"stderr"}`, "> " + message, "| " + message + " |",
		strings.Repeat("x", 3*text.LongestLine) + message,
	} {
		if got := stated(t, line); !slices.Equal(got, []string{want}) {
			t.Errorf("%.80s: %s", line, got)
		}
	}
}

// TestLastStatementCounts reads the last of many, and how many there were.
func TestLastStatementCounts(t *testing.T) {
	var b bytes.Buffer
	for i := range 1000 {
		fmt.Fprintf(&b, "DefaultCPUAllocator: can't allocate memory: you tried to allocate %d bytes.\n%s", (i+1)<<20, strings.Repeat("step\n", 9))
	}
	found, err := Scan(&b)
	if err != nil || len(found.Failures) != 1 {
		t.Fatal(err, found.Failures)
	}
	if f := found.Failures[0]; f.Figures[failure.Request] != 1000<<20 || f.Count != 1000 || f.Line != 9991 {
		t.Errorf("%+v", f)
	}
}

// TestChunksOfADump adds the free chunks of TensorFlow's pool.
func TestChunksOfADump(t *testing.T) {
	const dump = "W bfc_allocator.cc:1] Allocator (GPU_0_bfc) ran out of memory trying to allocate 3.00MiB (rounded to 3145728)requested by op x\n" +
		"I bfc_allocator.cc:2] InUse at 7f00 of size 1048576 next 1\nI bfc_allocator.cc:2] Free  at 7f10 of size 2097152 next 2\nI bfc_allocator.cc:2] Free  at 7f20 of size 1572864 next 3\n"
	found, err := Scan(strings.NewReader(dump))
	if err != nil || len(found.Failures) != 1 {
		t.Fatal(err, found.Failures)
	}
	if f := found.Failures[0]; f.Figures["pool_free_bytes"] != 3670016 || f.Figures[failure.Largest] != 2097152 || f.Figures[failure.Request] != 3145728 {
		t.Errorf("%+v", f)
	}
}

// TestTasksOfTheKernel sums its table by name.
func TestTasksOfTheKernel(t *testing.T) {
	const report = "[5.1] python invoked oom-killer: gfp_mask=0xcc0\n[5.1] [  pid  ]   uid  tgid total_vm      rss pgtables_bytes swapents oom_score_adj name\n" +
		"[5.1] [     10]     0    10     9000      256    45056        0             0 python\n[5.1] [     11]     0    11     9000      512    45056        0             0 python\n" +
		"[5.1] [     12]     0    12     9000      100    45056        0             0 sshd\n[5.1] Out of memory: Killed process 11 (python) total-vm:36000kB, anon-rss:2048kB, file-rss:0kB, shmem-rss:0kB\n"
	found, err := Scan(strings.NewReader(report))
	if err != nil || len(found.Failures) != 1 {
		t.Fatal(err, found.Failures)
	}
	if got := found.Failures[0].Words["others"]; got != "python 2 3072\nsshd 1 400" {
		t.Errorf("%q", got)
	}
}

func FuzzFamilies(f *testing.F) {
	for _, seed := range []string{
		"Free memory on device (1/2 GiB) on startup is less than desired GPU memory utilization (0.9, 1.8 GiB)", "invoked oom-killer:\n[ pid ] uid tgid total_vm rss\n[ 1] 0 1 2 3 4 5 6 x\nKilled process 1 (x) total-vm:1kB, anon-rss:1kB",
		"ran out of memory trying to allocate 1.00GiB (rounded to 9)\nFree at 0 of size 99999999999999999999", "OOM when allocating tensor with shape[1,99999999999,99999999999] and type double on x by allocator cpu",
		"failed to allocate CUDA0 buffer of size 12", "OOMKilled\nLimits: memory: 2Gi\nRequests", "Out\nof memory while trying to allocate 1.5GiB", "\x1b[1mMemoryError\x1b[0m",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		found, err := Scan(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range found.Failures {
			if f.Kind == "" || f.Line < 1 || f.Line > found.Lines || f.Count < 1 {
				t.Errorf("%+v of %d lines", f, found.Lines)
			}
		}
	})
}

// BenchmarkLogs reads logs of several sorts.
func BenchmarkLogs(b *testing.B) {
	for _, c := range []struct{ name, line string }{
		{"training", "2026-01-02 03:04:05,678 INFO trainer.py:99 step 1234/99999 loss 2.345 lr 1.0e-4 grad_norm 0.98 tokens/s 12345 memory 61.2GiB\n"},
		{"engine", "(EngineCore pid=9) INFO 02-03 04:05:06 [loggers.py:1] Engine 000: Avg prompt throughput: 99.0 tokens/s, Running: 3 reqs, GPU KV cache usage: 12.3%\n"},
		{"numbers", strings.Repeat("0.123,", 30) + "\n"},
		{"messages", message26 + "\n"},
		{"failures", "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n"},
		{"kernel", "[ 812.5] [  13004]     0 13004    28110    25900    24472     1428         0   262144        0             0 python3\n"},
		{"short", "a\n"},
	} {
		b.Run(c.name, func(b *testing.B) {
			text := []byte(strings.Repeat(c.line, (8<<20)/len(c.line)))
			b.SetBytes(int64(len(text)))
			for b.Loop() {
				if _, err := Scan(bytes.NewReader(text)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestKillsInLogs reads kills of which the lines come twice, numbered by their task,
// or behind a progress bar.
func TestKillsInLogs(t *testing.T) {
	const kill = "[7.1] oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,task_memcg=/a,task=train,pid=77,uid=0\n" +
		"[7.2] Out of memory: Killed process 77 (train) total-vm:9000kB, anon-rss:2048kB, file-rss:1024kB, shmem-rss:1024kB, UID:0\n" +
		"[7.3] oom_reaper: reaped process 77 (train), now anon-rss:0kB, file-rss:0kB, shmem-rss:0kB\n" +
		"[9.1] sshd invoked oom-killer: gfp_mask=0x0, order=0, oom_score_adj=0\n"
	const want = "kernel-kill rss=4"
	for name, text := range map[string]string{"twice": interleaved(prefixed("[rank0]: ", kill), prefixed("[rank1]: ", kill)), "after many": strings.Repeat("[1.1] sshd invoked oom-killer: order=0\n", 90) + kill} {
		if got := stated(t, text); !slices.Equal(got, []string{want}) {
			t.Errorf("%s: %s", name, got)
		}
	}
	found, err := Scan(strings.NewReader(strings.ReplaceAll(kill, "(train)", "((resolved))")))
	if err != nil || len(found.Failures) != 1 || found.Failures[0].Words["victim"] != "(resolved)" {
		t.Errorf("%v %+v", err, found.Failures)
	}
	const buffer = "ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 150994944"
	for _, prefix := range []string{"0: ", "\r 12%|███▏      | 12/100 [00:12<01:30,  9.8it/s]", "[31m"} {
		text := prefixed(prefix, buffer+"\nllama_init: failed to allocate compute buffers")
		if got := stated(t, text); !slices.Equal(got, []string{"llama.cpp-compute request=144"}) {
			t.Errorf("%q: %s", prefix, got)
		}
	}
}

// TestNamesOfMachines reads errors in unknown wording behind the names of machines and
// programs, which say nothing of the memory.
func TestNamesOfMachines(t *testing.T) {
	for _, prefix := range []string{"", "Jan  2 03:04:05 gpu-01 cuda-job[42]: "} {
		got, err := Scan(strings.NewReader(prefix + "start\n" + prefix + "mkl_malloc: failed to allocate memory\n"))
		if err != nil || len(got.Failures) != 1 || !got.Failures[0].Host || got.Failures[0].Source != failure.SourceCPU {
			t.Errorf("%q: %+v, %v", prefix, got.Failures, err)
		}
	}
}
