package torch

import (
	"slices"
	"strings"

	"strandline/finding"
	"strandline/logs"
)

// dumpAtFailure is how to get a snapshot of the moment at which memory runs out.
const dumpAtFailure = `torch.cuda.memory._record_memory_history(max_entries=1_000_000)  # first thing
torch._C._cuda_attach_out_of_memory_observer(
    lambda *_: torch.cuda.memory._dump_snapshot("oom.pickle"))`

// dumpWhere is the same where no observer is called: on Intel's devices, and for
// what does not go through PyTorch's allocator.
const dumpWhere = `MODULE._record_memory_history(max_entries=1_000_000)  # first thing
try:
    ...  # the program
except RuntimeError:
    MODULE._dump_snapshot("oom.pickle")
    raise`

// saidRemedies are those for a cause. The release of PyTorch is not known, but
// for the wording.
func saidRemedies(s *shortage, o *logs.OOM) []finding.Remedy {
	switch {
	case o.Wording == logs.Absurd:
		return []finding.Remedy{finding.CodeChange("look at the line that failed: a negative or unset number of elements, or sizes that ranks exchanged in different order, often after another rank had failed")}
	case o.Wording == logs.Silent:
		return needLess()
	case o.Bare():
		return forBackend(o.Backend, leaveRoom())
	case o.Wording == logs.Metal:
		return append(needLess(), finding.SettingChange("PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0",
			"lift the limit; the system then swaps, and may stop responding"))
	}
	switch s.cause() {
	case causeLimit:
		return forBackend(o.Backend, raiseLimit())
	case causeOutside:
		return forBackend(o.Backend, s.findOthers())
	case causeFragmented:
		switch {
		case o.Private != nil && *s.room()-*o.Private < *s.request:
			return append([]finding.Remedy{finding.CodeChange("what is free in private pools serves only what is made in the same pool: capture fewer or smaller CUDA graphs, let those that never run at the same time share a pool (torch.cuda.graph_pool_handle()), and make less under torch.cuda.use_mem_pool")}, needLess()...)
		case o.Backend == "XPU":
			return []finding.Remedy{finding.CodeChange("use few sizes: pad batches to a few lengths, or run the longest first; torch.xpu.empty_cache() between phases gives back what is free in whole segments")}
		case o.Wording == logs.Old:
			return forBackend(o.Backend, []finding.Remedy{finding.SettingChange("PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128",
				"keep large free blocks whole; better: PyTorch 2.1 or newer, and expandable_segments:True")})
		}
		return forBackend(o.Backend, expandable("", nil))
	case "":
		switch {
		case contradictions(o) != nil:
			return append([]finding.Remedy{finding.CodeChange("give one message alone, as PyTorch printed it; if its figures are the same there, the driver lends memory of the host, and the program needs more than the device has")}, needLess()...)
		case o.Lacks() > 0 && !withoutFree(o):
			return append([]finding.Remedy{finding.CodeChange("give the whole message: with what is missing the cause is told, and whether a setting, another process or a smaller batch is what helps")}, needLess()...)
		}
	}
	return needLess()
}

// leaveRoom are the remedies where the driver has nothing left for others than
// PyTorch's allocator.
func leaveRoom() []finding.Remedy {
	return []finding.Remedy{
		finding.SettingChange("torch.cuda.set_per_process_memory_fraction(0.9)",
			"leave some memory to what does not go through PyTorch's cache; an inference engine has a setting for its share (gpu_memory_utilization, mem_fraction_static)"),
		finding.SettingChange(listProcesses, "look for other processes on the device"),
		finding.CodeChange("call torch.cuda.empty_cache() before the library starts, and let it start early: NCCL's buffers are made at the first collective; fewer channels (NCCL_MAX_NCHANNELS) or smaller buffers (NCCL_BUFFSIZE) make them smaller"),
	}
}

// forBackend names the tools of the device's maker.
func forBackend(backend string, remedies []finding.Remedy) []finding.Remedy {
	names := map[string]*strings.Replacer{
		"HIP": strings.NewReplacer(listProcesses, "rocm-smi --showpids", "PYTORCH_CUDA_", "PYTORCH_HIP_"),
		"XPU": strings.NewReplacer(listProcesses, "xpu-smi ps", "torch.cuda.", "torch.xpu."),
		"NPU": strings.NewReplacer(listProcesses, "npu-smi info", "PYTORCH_CUDA_", "PYTORCH_NPU_", "torch.cuda.", "torch.npu."),
	}[backend]
	if names != nil {
		for i := range remedies {
			remedies[i].Setting = names.Replace(remedies[i].Setting)
			remedies[i].Text = names.Replace(remedies[i].Text)
		}
	}
	return remedies
}

// besidesSaid is what to do whatever the cause.
func besidesSaid(s *shortage, o *logs.OOM) []finding.Remedy {
	if o.Wording == logs.Metal || o.Wording == logs.Absurd {
		return nil
	}
	return forBackend(o.Backend, s.besides())
}

// furtherSaid is how to learn more than the message says.
func furtherSaid(o *logs.OOM) []finding.Remedy {
	r := finding.Remedy{Kind: "code", Setting: dumpAtFailure,
		Text: "the message does not say who holds the memory; a snapshot of that moment does, and strandline diagnose reads it"}
	switch {
	case o.Wording == logs.Absurd || o.Wording == logs.Metal || !slices.Contains([]string{"", "CUDA", "Cuda", "HIP", "XPU"}, o.Backend):
		return nil
	case o.Wording == logs.Async:
		r.Kind, r.Setting = "setting", "PYTORCH_CUDA_ALLOC_CONF=backend:native"
		r.Text = "the message does not say who holds the memory, and this backend records no history; PyTorch's own, the default, does"
	case o.Backend == "XPU":
		r.Setting = strings.ReplaceAll(dumpWhere, "MODULE", "torch.xpu.memory")
		r.Text += " (PyTorch 2.11 on)"
	case o.Bare():
		r.Setting = strings.ReplaceAll(dumpWhere, "MODULE", "torch.cuda.memory")
		r.Text = "the message does not say what PyTorch itself holds; a snapshot of that moment does, and strandline diagnose reads it"
	}
	return []finding.Remedy{r}
}
