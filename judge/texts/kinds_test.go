package texts

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"strandline/finding"
	"strandline/judge/shortage"
	"strandline/logs"
	"strandline/logs/failure"
)

// TestEveryKindIsExplained judges a failure of each kind without any figure: it
// has a title, something to do first, and no figure that is not stated.
func TestEveryKindIsExplained(t *testing.T) {
	for kind := range kinds {
		for _, figures := range []map[failure.Figure]float64{{}, everyFigure()} {
			f := failure.Failure{Line: 3, Kind: kind, Source: failure.SourceProcess, Figures: figures, Words: map[string]string{}, Quote: "a line", Count: 1}
			s := Statement{Text: &logs.Text{Failures: []failure.Failure{f}}, File: "job.log"}
			found := s.Judge(Options{})
			if len(found) != 1 {
				t.Fatalf("%s: %d findings", kind, len(found))
			}
			text := found[0].Title + strings.Join(found[0].Detail, "")
			if found[0].Title == "" || len(found[0].Remedies) == 0 || found[0].Remedies[0].Text == "" || strings.Contains(text, "%!") || strings.Contains(text, "NaN") {
				t.Errorf("%s: %+v", kind, found[0])
			}
			if len(figures) > 0 && strings.Contains(found[0].Title, "unknown amount") {
				t.Errorf("%s: %s", kind, found[0].Title)
			}
			e, ok := found[0].Evidence.(*finding.OOMEvidence)
			if !ok { // memory did not run out
				continue
			}
			for name, field := range published(e) {
				if given := *field != nil; given != (len(figures) > 0) {
					t.Errorf("%s: %s is given: %v", kind, name, given)
				}
			}
		}
	}
}

// everyFigure states all that can be stated.
func everyFigure() map[failure.Figure]float64 {
	out := map[failure.Figure]float64{"used": 60 << 30, "percent": 50, "device": 1, "parameters": 1 << 30, "temporary": 1 << 30, "pool_free_bytes": 1 << 20, "pid": 7, failure.Lost: 1, failure.Slots: 4096}
	for name := range published(&finding.OOMEvidence{}) {
		out[name] = 8 << 30
	}
	for _, name := range []failure.Figure{failure.Length, failure.Tokens, failure.Largest} {
		out[name] = 4096
	}
	out[failure.MaxLength], out[failure.Fraction], out[failure.Least] = 2048, 0.8, 0.85
	return out
}

// TestFirstRemedy judges whole texts: cause, whose memory, and what helps first.
//
// long: one row a text
func TestFirstRemedy(t *testing.T) {
	const native = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate "
	for _, c := range []struct{ name, text, of, source, cause, first, never string }{
		{"too much of the device asked for", "ValueError: Free memory on device cuda:0 (12.0/24.0 GiB) on startup is less than desired GPU memory utilization (0.9, 21.6 GiB).",
			"device", "vllm", shortage.Startup, `--gpu-memory-utilization 0\.50`, ""},
		{"whisper.cpp has no layers to leave out", "whisper_model_load: n_langs = 99\nGGML_ASSERT: ggml-backend.c:12: data != NULL && \"failed to allocate buffer\"",
			"device", "llama.cpp", "", `smaller model`, `ngl`},
		{"too many tokens at once", "Error: Warmup(Generation(\"Not enough memory to handle 9000 total tokens with 4 prefill tokens. You need to decrease `--max-batch-total-tokens` or `--max-batch-prefill-tokens`\"))",
			"device", "tgi", shortage.Startup, `--max-batch-total-tokens 4500`, ""},
		{"no room for a few tokens", "Server error: Not enough memory to handle 128 prefill tokens. You need to decrease `--max-batch-prefill-tokens`",
			"device", "tgi", shortage.Startup, "--quantize", "prefill-tokens"},
		{"killed by systemd-oomd for pressure", "Dec 18 19:34:56 node7 systemd-oomd[840]: Killed /user.slice/user-1001.slice/train.scope due to memory pressure for /user.slice/user-1001.slice being 51.07% > 50.00% for > 20s with reclaim activity\n" +
			"Dec 18 19:34:56 node7 systemd[1837]: train.scope: systemd-oomd killed 12 process(es) in this unit.", "host", "kernel", shortage.Limit, "more RAM", "expandable"},
		{"killed by systemd-oomd for swap", "systemd-oomd[840]: Killed /system.slice/train.service due to memory used (33285996544) / total (33540276224) and swap used (2040000000) / total (2147479552) being more than 90.00%",
			"host", "kernel", shortage.Limit, "more RAM", "expandable"},
		{"killed by oomd", "<3>[1813654.116643] oomd kill: 81.28 80.05 42.78 workload.slice/train.scope 64424509440 ruleset:[protect] detectorgroup:[pressure] killer:kill_by_memory_size_or_growth v2",
			"host", "kernel", "", "more RAM", "expandable"},
		{"killed by a detector of oomd", "oomd[69346]: [../src/oomd/plugins/KillMemoryGrowth-inl.h:168] Picked \"user.slice/train.scope\" (2040MB) based on size > 10% of total 6989MB\noomd[69346]: [../src/oomd/plugins/BaseKillPlugin.cpp:141] Killed 2: 1377(python) 1401(python)",
			"host", "kernel", "", "more RAM", "expandable"},
		{"a worker of PaddlePaddle", "DataLoader process (pid 3063) exited is killed by signal: Killed.", "host", "process", "", "journalctl|num_workers", "expandable"},
		{"Numba's driver", "numba.cuda.cudadrv.driver.CudaAPIError: [2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY", "device", "cuda-driver", "", "nvidia-smi", "CUDA.reclaim"},
		{"Julia's own words", "ERROR: Out of GPU memory trying to allocate 1.500 GiB\nEffective GPU memory usage: 99.43% (7.738 GiB/7.782 GiB)\nMemory pool usage: 6.953 GiB (7.000 GiB reserved)", "device", "cuda-driver", shortage.TooBig, "CUDA.reclaim", ""},
		{"a request that is refused at once", "torch.OutOfMemoryError: CUDA out of memory. Allocation was preemptively rejected because it would exceed per_process_memory_fraction limit. Requested size: 1.46 GiB", "device", "pytorch", "", "throw_on_cudamalloc_oom:False", "expandable"},
		{"a driver of OpenCL", "LightGBMError: Out of device memory: CL_MEM_OBJECT_ALLOCATION_FAILURE", "device", "cuda-driver", "", "a smaller batch", "UR_L0|xpu-smi"},
		{"little that was refused", "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 191. MiB for an array with shape (5000, 5000) and data type float64", "host", "cpu-allocator", shortage.TooBig, "more RAM", ""},
		{"much that was refused", "numpy._core._exceptions._ArrayMemoryError: Unable to allocate 58.0 GiB for an array with shape (176351, 176460) and data type uint16", "host", "cpu-allocator", shortage.TooBig, "one allocation smaller", ""},
		{"a process that Python could not start", "    self.pid = _posixsubprocess.fork_exec(\nOSError: [Errno 12] Cannot allocate memory", "host", "process", "", "more RAM", "one allocation"},
		{"a function of AWS Lambda", "Error: Runtime exited with error: signal: killed\nREPORT Memory Size: 3008 MB Max Memory Used: 3008 MB", "host", "process", shortage.Limit, "function's memory", ""},
		{"a job of LSF", "TERM_MEMLIMIT: job killed after reaching LSF memory usage limit.", "host", "slurm", shortage.Limit, "#BSUB", "SBATCH"},
		{"a job of PBS", "=>> PBS: job killed: mem 4096kb exceeded limit 2048kb", "host", "slurm", shortage.Limit, "#PBS", "SBATCH"},
		{"video memory", "Fatal error: Out of video memory trying to allocate a rendering resource.", "device", "cuda-driver", "", "allocate less", ""},
		{"nearly all held by others", "ValueError: Free memory on device cuda:0 (2.0/24.0 GiB) on startup is less than desired GPU memory utilization (0.9, 21.6 GiB).",
			"device", "vllm", shortage.Startup, `nvidia-smi`, ""},
		{"a length that fits", "max seq len (4096), (2.50 GiB KV cache is needed, which is larger than the available KV cache memory (1.25 GiB). Based on the available memory, the estimated maximum model length is 2032.",
			"device", "vllm", shortage.Startup, `--max-model-len 2032`, ""},
		{"a length by proportion", "max seq len (4096), (2.50 GiB KV cache is needed, which is larger than the available KV cache memory (1.25 GiB)",
			"device", "vllm", shortage.Startup, `--max-model-len 2048`, ""},
		{"SGLang's least fraction", "Load weight end. avail mem=10.00 GB, mem usage=60.00 GB.\nValueError: Loaded weights leave no GPU memory for the KV cache under --mem-fraction-static=0.7. Rai",
			"device", "sglang", shortage.Startup, `--mem-fraction-static 0\.87`, ""},
		{"refused", native + "86.00 MiB. GPU 0 has a total capacity of 8.00 GiB of which 264.00 MiB is free. Of the allocated memory 7.00 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated.",
			"device", "pytorch", shortage.Refused, `look at the other limits`, `fraction|expandable`},
		{"full, with rounding left over", native + "20.00 MiB. GPU 0 has a total capacity of 16.00 GiB of which 8.00 MiB is free. Of the allocated memory 15.20 GiB is allocated by PyTorch, and 160.00 MiB is reserved by PyTorch but unallocated.",
			"device", "pytorch", shortage.TooBig, `allocate less`, `expandable|fraction`},
		{"in pieces", native + "1.00 GiB. GPU 0 has a total capacity of 16.00 GiB of which 8.00 MiB is free. Process 9 has 15.99 GiB memory in use. Of the allocated memory 12.00 GiB is allocated by PyTorch, and 3.50 GiB is reserved by PyTorch but unallocated.",
			"device", "pytorch", shortage.Fragmented, `expandable_segments`, ""},
		{"in pieces, under a path of Linux", "File \"/srv/train.py\"\n" + native + "1.00 GiB. GPU 0 has a total capacity of 16.00 GiB of which 8.00 MiB is free. Of the allocated memory 12.00 GiB is allocated by PyTorch, and 3.50 GiB is reserved by PyTorch but unallocated.",
			"device", "pytorch", shortage.Fragmented, `expandable_segments`, ""},
		{"in pieces, with no process listed, as on Windows", native + "1.00 GiB. GPU 0 has a total capacity of 16.00 GiB of which 8.00 MiB is free. Of the allocated memory 12.00 GiB is allocated by PyTorch, and 3.50 GiB is reserved by PyTorch but unallocated.",
			"device", "pytorch", shortage.Fragmented, `max_split_size_mb`, "expandable"},
		{"in pieces on Windows", `File "C:\Users\me\train.py"` + "\n" + native + "1.00 GiB. GPU 0 has a total capacity of 16.00 GiB of which 8.00 MiB is free. Of the allocated memory 12.00 GiB is allocated by PyTorch, and 3.50 GiB is reserved by PyTorch but unallocated.",
			"device", "pytorch", shortage.Fragmented, `max_split_size_mb`, ""},
		{"this process alone", native + "1.00 GiB. GPU 0 has a total capacity of 16.00 GiB of which 512.00 MiB is free. Process 12 has 15.48 GiB memory in use. Of the allocated memory 14.00 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated.",
			"device", "pytorch", shortage.TooBig, `allocate less`, `nvidia-smi`},
		{"another process", native + "1.00 GiB. GPU 0 has a total capacity of 16.00 GiB of which 512.00 MiB is free. Process 12 has 9.48 GiB memory in use. Process 13 has 6.00 GiB memory in use. Of the allocated memory 5.00 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated.",
			"device", "pytorch", shortage.OthersHold, `nvidia-smi`, ""},
		{"others on Ascend", "RuntimeError: NPU out of memory. Tried to allocate 100.00 MiB (NPU 0; 60.00 GiB total capacity; 2.00 GiB already allocated; 2.00 GiB current active; 4.00 MiB free; 8.00 GiB reserved in total by PyTorch)",
			"device", "pytorch", shortage.OthersHold, `npu-smi`, `nvidia`},
		{"one allocation on an Intel GPU", "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 5.00 GiB. GPU 0 has a total capacity of 16.00 GiB of which 15.00 GiB is free. Of the allocated memory 1.00 GiB is allocated by PyTorch, and 1.00 MiB is reserved by PyTorch but unallocated.",
			"device", "pytorch", shortage.Refused, `RELAXED_ALLOCATION`, `nvidia`},
		{"one allocation on an Intel GPU that states nothing free", "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 16.00 GiB. Of the allocated memory 0 bytes is allocated by PyTorch, and 0 bytes is reserved by PyTorch but unallocated. Please use `empty_cache` to release all unoccupied cached memory.",
			"device", "pytorch", shortage.Limit, `RELAXED_ALLOCATION`, `nvidia`},
		{"one allocation on an Intel GPU, cut off", "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 6.00 GiB. GPU 0 has a total capacity of 11.33 GiB. Of the allocated memory 1.00 GiB is allocated by PyTorch, and 4.00 MiB is reserved by PyTorch but unallocated. Please use `empty_cac",
			"device", "pytorch", shortage.Limit, `RELAXED_ALLOCATION`, `nvidia`},
		{"one allocation on an Intel GPU that PyTorch has filled", "torch.OutOfMemoryError: XPU out of memory. Tried to allocate 6.00 GiB. GPU 0 has a total capacity of 11.33 GiB. Of the allocated memory 9.00 GiB is allocated by PyTorch, and 4.00 MiB is reserved by PyTorch but unallocated.",
			"device", "pytorch", shortage.TooBig, `RELAXED_ALLOCATION|smaller`, `nvidia`},
		{"a container that hides its processes", "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 640.00 MiB. GPU 0 has a total capacity of 23.64 GiB of which 512.38 MiB is free. Including non-PyTorch memory, this process has 0 bytes memory in use. Of the allocated memory 22.40 GiB is allocated by PyTorch, and 96.00 MiB is reserved by PyTorch but unallocated.",
			"device", "pytorch", shortage.TooBig, `smaller`, `nvidia|expandable`},
		{"a container that hides others, too", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 96.00 MiB. GPU 0 has a total capacity of 79.10 GiB of which 20.81 MiB is free. Process 71 has 0 bytes memory in use. Including non-PyTorch memory, this process has 0 bytes memory in use. Of the allocated memory 8.00 GiB is allocated by PyTorch, and 64.00 MiB is reserved by PyTorch but unallocated.",
			"device", "pytorch", shortage.OthersHold, `nvidia-smi`, `expandable`},
		{"a third of the device in pieces, under a trainer", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total capacity of 23.64 GiB of which 800.00 MiB is free. Process 9 has 22.80 GiB memory in use. Of the allocated memory 13.00 GiB is allocated by PyTorch, and 9.30 GiB is reserved by PyTorch but unallocated.\n  File \"/a/transformers/trainer.py\", line 9, in train",
			"device", "pytorch", shortage.Fragmented, `expandable_segments`, `nvidia`},
		{"more than any share of a device", "(EngineCore_DP0 pid=7) torch.OutOfMemoryError: HIP out of memory. Tried to allocate 128.00 GiB",
			"device", "pytorch", "", `at once`, `utilization|whole message`},
		{"hardly more free than asked for", "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 24.00 MiB. GPU 0 has a total capacity of 23.64 GiB of which 50.06 MiB is free. Including non-PyTorch memory, this process has 23.58 GiB memory in use. Of the allocated memory 22.90 GiB is allocated by PyTorch, and 120.00 MiB is reserved by PyTorch but unallocated.",
			"device", "pytorch", shortage.TooBig, `smaller`, `commit|expandable`},
		{"another process that holds enough, beside much of this one's own", "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.20 GiB. GPU 0 has a total capacity of 15.77 GiB of which 960.00 MiB is free. Process 12 has 500.00 MiB memory in use. Including non-PyTorch memory, this process has 14.34 GiB memory in use. Of the allocated memory 13.20 GiB is allocated by PyTorch, and 400.00 MiB is reserved by PyTorch but unallocated.",
			"device", "pytorch", shortage.OthersHold, `nvidia-smi`, `expandable`},
		{"lmdeploy with a model of 40B", "to load the 40B model, I get RuntimeError: [TM][ERROR] CUDA runtime error: out of memory /lmdeploy/src/turbomind/utils/memory_utils.cu:32",
			"device", "cuda-driver", "", `nvidia-smi|cache-max-entry`, `expandable`},
		{"torch_memory_saver", "[torch_memory_saver.cpp] CUresult error  result=2 file=csrc/torch_memory_saver.cpp func=cu_mem_create line=103",
			"device", "cuda-driver", "", `release its memory`, `expandable`},
		{"FlashInfer's workspace in SGLang", "[2025-01-02 TP0] File \"/sglang/srt/managers/scheduler.py\"\nRuntimeError: Failed to allocate memory for batch_prefill_tmp_v with size 629145600 and alignment 16 in AlignedAllocator",
			"device", "sglang", shortage.Limit, `SGLANG_FLASHINFER_WORKSPACE_SIZE=2147483648`, `fraction|nvidia`},
		{"FlashInfer's workspace in vLLM", "VLLM_ATTENTION_BACKEND=FLASHINFER\nallocator.h:49: Buffer overflow when allocating memory for batch_prefill_tmp_v with size 314572800 and alignment 16, but only 268435456 bytes available in AlignedAllocator. Increase the workspace buffer size.",
			"device", "vllm", shortage.Limit, `VLLM_FLASHINFER_WORKSPACE_BUFFER_SIZE=1073741824`, `utilization|nvidia`},
		{"cudaMallocAsync on a device that others hold", "Allocation on device 0 would exceed allowed memory. (out of memory)\nCurrently allocated     : 5.20 GiB\nRequested               : 256.00 MiB\nDevice limit            : 23.69 GiB\nFree (according to CUDA): 3.06 MiB\nPyTorch limit (set by user-supplied memory fraction)\n                        : 17179869184.00 GiB",
			"device", "pytorch", shortage.OthersHold, `nvidia-smi`, `expandable`},
		{"a message in lower case", "cuda out of memory. tried to allocate 40.00 mib (gpu 0; 8.00 gib total capacity; 7.00 gib already allocated; 0 bytes free; 7.25 gib reserved in total by pytorch)",
			"device", "pytorch", shortage.TooBig, `smaller`, `nvidia|expandable`},
		{"a trial that vLLM ran, beside PyTorch's message", "RuntimeError: CUDA out of memory occurred when warming up sampler with 128 dummy requests.\ntorch.OutOfMemoryError: CUDA out of memory.\nTried to allocate 200.00 MiB. GPU 0 has a total capacity of 10.57 GiB of which 99.12 MiB is free.\nProcess 9 has 10.46 GiB memory in use.\nOf the allocated memory 9.90 GiB is allocated by PyTorch,\nand 26.00 MiB is reserved by PyTorch but unallocated.",
			"device", "pytorch", shortage.TooBig, `gpu-memory-utilization`, `nvidia|expandable`},
		{"vLLM on the processor", "ValueError: No available memory for the cache blocks. Try increasing `VLLM_CPU_KVCACHE_SPACE` when initializing the engine.",
			"host", "vllm", shortage.Startup, `VLLM_CPU_KVCACHE_SPACE`, `nvidia|gpu`},
		{"TGI's trial in PyTorch's words", `Error: Backend(Warmup(Generation("CUDA out of memory. Tried to allocate 1.50 GiB. GPU 0 has a total capacity of 21.99 GiB of which 1.18 GiB is free. Process 77 has 20.81 GiB memory in use. Of the allocated memory 20.20 GiB is allocated by PyTorch, and 90.00 MiB is reserved by PyTorch but unallocated.")))`,
			"device", "pytorch", shortage.TooBig, `max-batch-prefill-tokens`, `nvidia|expandable`},
		{"a component of TensorRT-LLM", "[TRT-LLM] [RANK 0] [E] Failed to initialize executor on rank 0: Executor creation failed due to insufficient GPU memory.\n\nThe following component could not be created: KV cache\nTotal GPU memory (GiB): 79.18\nFree GPU memory before component creation attempt (GiB): 12.40\n",
			"device", "tensorrt", shortage.Startup, `free_gpu_memory_fraction`, `expandable`},
		{"waking up, as an answer over HTTP tells it", `err="HTTP POST returned unexpected status 500; responseBody={\"error\":{\"message\":\"Call to wake_up method failed: CUDA Error: out of memory at <path>:171\"}}"`,
			"device", "vllm", "", `release its memory`, `expandable`},
		{"an allocation on Windows", "RuntimeError: [enforce fail at C:\\work\\c10\\core\\impl\\alloc_cpu.cpp:81] data. DefaultCPUAllocator: not enough memory: you tried to allocate 131072000 bytes.",
			"host", "cpu-allocator", shortage.TooBig, `page file`, `nvidia|expandable`},
		{"a host that was full before a kill", "[INFO] [utils.py:840:see_memory_usage] CPU Virtual Memory:  used = 59.12 GB, percent = 94.3%\nand more\nand more\nand more\n[ERROR] [launch.py:321:sigkill_handler] ['python', 'train.py'] exits with return code = -9",
			"host", "process", shortage.TooBig, `dmesg`, `nvidia|expandable`},
		{"others on another maker's device", "RuntimeError: MLU out of memory. Tried to allocate 100.00 MiB (MLU 0; 60.00 GiB total capacity; 2.00 GiB already allocated; 4.00 MiB free; 8.00 GiB reserved in total by PyTorch)",
			"device", "pytorch", shortage.OthersHold, `cnmon`, `nvidia`},
		{"Ascend's runtime", "Memory_Allocation_Failure(EL0004): Failed to allocate memory requested by X.", "device", "cuda-driver", "", `npu-smi`, `nvidia`},
		{"another program's Vulkan", "Vulkan Error, code=-2: VK_ERROR_OUT_OF_DEVICE_MEMORY", "device", "cuda-driver", "", `fewer layers`, `nvidia|PYTORCH`},
		{"a kernel of a TPU", "Ran out of memory in memory space vmem. Used 32.00M of 16.00M vmem.", "device", "xla", shortage.Limit, `blocks`, `nvidia|batch`},
		{"a checkpoint that is mapped", "RuntimeError: unable to mmap 9937152000 bytes from file </models/a.safetensors>: Cannot allocate memory (12)", "host", "process", shortage.TooBig, `smaller`, `nvidia|shm`},
		{"an engine's own option", "INFO vllm/worker.py\n" + native + "1.00 GiB. GPU 0 has a total capacity of 16.00 GiB of which 512.00 MiB is free. Of the allocated memory 15.00 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated.",
			"device", "pytorch", shortage.TooBig, `--gpu-memory-utilization`, `expandable`},
		{"killed after an error that was caught", native + "1.00 GiB. GPU 0 has a total capacity of 16.00 GiB of which 512.00 MiB is free. Of the allocated memory 15.00 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated.\nOut of memory: Killed process 9 (python) total-vm:90000000kB, anon-rss:80000000kB, file-rss:0kB, shmem-rss:0kB",
			"host", "kernel", shortage.TooBig, `more RAM`, `nvidia|batch`},
		{"killed with little of a full machine", "Out of memory: Killed process 9 (lmcache) total-vm:81306880kB, anon-rss:1058560kB, file-rss:0kB, shmem-rss:0kB", "host", "kernel", shortage.TooBig, `largest row of the kernel's table`, `nvidia|batch`},
		{"one buffer on Apple's GPU", "RuntimeError: Invalid buffer size: 40.00 GiB", "device", "pytorch", shortage.Limit, `smaller`, `nvidia`},
		{"the event of Windows", "Windows successfully diagnosed a low virtual memory condition. The following programs consumed the most virtual memory: a.exe (16632) consumed 61427650560 bytes, and b.exe (5316) consumed 237326336 bytes.", "host", "windows", shortage.Limit, `commit less`, `nvidia`},
		{"a GPU in WSL", "[ 1201.4] misc dxg: dxgk: dxgkio_make_resident: Ioctl failed: -12", "device", "cuda-driver", "", `less`, ``},
		{"a builder on a Jetson", "NvMapMemAllocInternalTagged: 1075072515 error 12\n[ERROR] [TensorRT] CUDA error 2 for 622329856-byte allocation.", "device", "tensorrt", "", `less|tegrastats`, `nvidia`},
		{"an allocator that is broken", "RuntimeError: !handles_.at(i) INTERNAL ASSERT FAILED at CUDACachingAllocator.cpp:467", "device", "pytorch", "", `restart`, `nvidia`},
		{"a shape that no device holds", "E1 gpu_cudamallocasync_allocator.cc:361] gpu_async_1 cuMemAllocAsync failed to allocate 1225195446464 bytes: RESOURCE_EXHAUSTED: : CUDA_ERROR_OUT_OF_MEMORY: out of memory", "device", "cuda-driver", shortage.TooBig, `shapes`, `nvidia`},
		{"an error that others end for", native + "1.00 GiB. GPU 0 has a total capacity of 16.00 GiB of which 512.00 MiB is free. Of the allocated memory 15.00 GiB is allocated by PyTorch, and 100.00 MiB is reserved by PyTorch but unallocated.\nexitcode: -9",
			"device", "pytorch", shortage.TooBig, `allocate less`, ""},
		{"a limit of Slurm's", "slurmstepd: error: Detected 1 oom_kill event in StepId=9.0. Some of the step tasks have been OOM Killed.", "host", "slurm", shortage.Limit, `--mem`, `nvidia|expandable`},
		{"bus error", "srun: error: node17: task 3: Bus error (core dumped)", "host", "process", "", `--shm-size`, `nvidia|expandable`},
		{"shared memory", "RuntimeError: DataLoader worker (pid 9) is killed by signal: Bus error.", "host", "process", shortage.Limit, `--shm-size`, `nvidia|expandable`},
		{"little asked of a GPU that others hold", "RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4194304 bytes.", "device", "xla", "", `nvidia-smi`, ""},
		{"a program larger than the chip", "Ran out of memory in memory space hbm. Used 20.00G of 10.00G hbm.", "device", "xla", shortage.TooBig, `smaller`, `nvidia`},
		{"free chunks of TensorFlow's", "ran out of memory trying to allocate 3.00MiB (rounded to 3145728)\nFree  at 7f10 of size 2097152 next 2\nFree  at 7f20 of size 2097152 next 3\n", "device", "tensorflow", shortage.Fragmented, `cuda_malloc_async`, ""},
		{"weights of llama.cpp", "alloc_tensor_range: failed to allocate CUDA0 buffer of size 2097152\nllama_model_load: error loading model: unable to allocate CUDA0 buffer", "device", "llama.cpp", shortage.TooBig, `-ngl`, ""},
		{"compute buffers of Ollama", "time=2025-08-22T17:36:22 level=INFO source=server.go:438 msg=\"starting llama server\" cmd=\"/usr/local/bin/ollama runner --ollama-engine --model /m\"\nggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 2097152", "device", "llama.cpp", shortage.TooBig, `num_gpu`, `-ub|-ngl`},
		{"Ollama on Windows", "msg=\"starting llama server\" cmd=\"C:\\\\Users\\\\x\\\\ollama.exe runner --model C:\\\\m\"\nggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 2097152", "device", "llama.cpp", shortage.TooBig, `num_gpu`, `-ub|-ngl`},
		{"Ollama in Compose", "ollama-1  | loading\nollama-1  | ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 2097152", "device", "llama.cpp", shortage.TooBig, `num_gpu`, `-ub|-ngl`},
		{"another service in Compose", "chat-1  | loading\nchat-1  | ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 2097152", "device", "llama.cpp", shortage.TooBig, `-ub`, ""},
		{"a model in a folder of an engine's name", "llama_model_load: error loading model /srv/vllm/ollama/a.gguf: not enough memory on the GPU", "device", "llama.cpp", "", `allocate less`, `gpu-memory|num_gpu`},
		{"code in a folder of an engine's name", "ERROR /srv/vllm/worker.py:3] not enough memory on the GPU", "device", "vllm", "", `less|gpu-memory`, ""},
		{"a program in a folder of an engine's name", "[engine] FATAL: not enough device memory for /opt/ollama/plan", "device", "cuda-driver", "", `less`, `num_gpu`},
		{"a pool of Ollama's, no Jetson", "level=INFO source=device.go:234 msg=\"compute graph\" device=CUDA0 size=\"1.2 GiB\"\nCUDA error: out of memory\n  current device: 0, in function alloc at //ml/backend/ggml/ggml/src/ggml-cuda/ggml-cuda.cu:446", "device", "llama.cpp", "", `num_gpu`, `-ngl|Jetson|tegrastats`},
		{"compute buffers of llama.cpp", "ggml_gallocr_reserve_n: failed to allocate CUDA0 buffer of size 2097152", "device", "llama.cpp", shortage.TooBig, `-ub`, ""},
		{"a node that was full", "The node was low on resource: memory. Container a was using 4096Ki, which exceeds its request of 0.", "host", "kubernetes", "", `requests.memory`, `nvidia|batch`},
		{"a node below its threshold", "The node was low on resource: memory. Threshold quantity: 100Mi, available: 90Mi.", "host", "kubernetes", shortage.Limit, `requests.memory`, `nvidia|batch`},
		{"Julia, in PyTorch's words", "ERROR: LoadError: CUDA error: out of memory (code #2, ERROR_OUT_OF_MEMORY)\n @ CUDA ~/.julia/packages/CUDA/D/lib/cudadrv/error.jl:91", "device", "cuda-driver", "", `CUDA.reclaim`, `PyTorch|torch`},
		{"a database", "Error: Out of Memory Error: could not allocate block of 262144 bytes", "host", "process", shortage.TooBig, `smaller`, `nvidia|GPU`},
		{"Chinese", "2024-03-01 09:00:00 ERROR 加载数据集失败：内存不足，需要 32 GB", "host", "process", shortage.TooBig, `smaller`, `nvidia|GPU`},
		{"an unknown program", "[engine] FATAL: not enough device memory for the plan", "device", "cuda-driver", "", `less`, `nvidia|expandable`},
	} {
		f := alone(t, c.text+"\n", Options{})
		e := f.Evidence.(*finding.OOMEvidence)
		first := f.Remedies[0].Text + "\n" + f.Remedies[0].Setting
		if e.Of != c.of || e.Source != c.source || e.Cause != c.cause {
			t.Errorf("%s: of %v, by %v, %q", c.name, e.Of, e.Source, e.Cause)
		}
		if !regexp.MustCompile(c.first).MatchString(first) || c.never != "" && regexp.MustCompile(c.never).MatchString(first) {
			t.Errorf("%s: first to do: %s", c.name, first)
		}
		if f.Severity != finding.Problem || f.Confidence <= 0 || f.Confidence > 1 {
			t.Errorf("%s: %s, %v", c.name, f.Severity, f.Confidence)
		}
	}
}

// TestLastFailureDecides gives several failures in any order of strength.
func TestLastFailureDecides(t *testing.T) {
	line := func(n int64, kind failure.Kind, weak bool) failure.Failure {
		return failure.Failure{Line: n, Kind: kind, Source: failure.SourceKernel, Host: true, Weak: weak, Figures: map[failure.Figure]float64{}, Words: map[string]string{}, Count: 1}
	}
	for _, c := range []struct {
		failures []failure.Failure
		hints    map[failure.Hint]int64
		want     failure.Kind
	}{
		{[]failure.Failure{line(1, failure.KernelKill, false), line(9, failure.CgroupKill, false)}, nil, failure.CgroupKill},
		{[]failure.Failure{line(1, failure.KernelKill, false), line(900, failure.ProcessKilled, true)}, nil, failure.KernelKill},
		{[]failure.Failure{device(line(1, failure.VLLMCache, false)), line(5, failure.ProcessKilled, true)}, nil, failure.VLLMCache},
		{[]failure.Failure{device(line(1, failure.VLLMCache, false)), line(500, failure.ProcessKilled, true)}, nil, failure.ProcessKilled},
		{[]failure.Failure{device(line(1, failure.VLLMCache, false)), line(500, failure.ProcessKilled, true)}, map[failure.Hint]int64{failure.HintShutdown: 300}, failure.VLLMCache},
	} {
		s := Statement{Text: &logs.Text{Failures: c.failures, Hints: c.hints}}
		found := s.Judge(Options{})
		if len(found) != 1 || found[0].Evidence.(*finding.OOMEvidence).Statement != string(c.want) {
			t.Errorf("%v: %+v", c.failures, found)
		}
	}
}

func device(f failure.Failure) failure.Failure {
	f.Host, f.Source = false, failure.SourceVLLM
	return f
}

// TestNoAdviceTwice looks for remedies that repeat each other.
func TestNoAdviceTwice(t *testing.T) {
	for kind := range kinds {
		f := failure.Failure{Line: 3, Kind: kind, Figures: everyFigure(), Words: map[string]string{}, Count: 1}
		s := Statement{Text: &logs.Text{Failures: []failure.Failure{f}}}
		var seen []string
		for _, r := range s.Judge(Options{})[0].Remedies {
			if slices.Contains(seen, r.Text+r.Setting) {
				t.Errorf("%s: twice: %s %s", kind, r.Text, r.Setting)
			}
			seen = append(seen, r.Text+r.Setting)
		}
	}
}
