package texts

import (
	"fmt"
	"slices"
	"strings"

	"strandline/finding"
	"strandline/judge/shortage"
	"strandline/logs/failure"
	"strandline/plan/engine"
	"strandline/units"
)

// dumpAtFailure shows how to get a snapshot of the moment when memory runs out.
const dumpAtFailure = `torch.cuda.memory._record_memory_history(max_entries=1_000_000)  # first thing
torch._C._cuda_attach_out_of_memory_observer(
    lambda *_: torch.cuda.memory._dump_snapshot("oom.pickle"))`

// dumpWhere does the same where no observer is called: on Intel's devices, and for memory
// that does not come from PyTorch's allocator.
const dumpWhere = `MODULE._record_memory_history(max_entries=1_000_000)  # first thing
try:
    ...  # the program
except RuntimeError:
    MODULE._dump_snapshot("oom.pickle")
    raise`

// remedies are what helps against a failure that PyTorch's message states: first the
// options of the program that ran.
func (t *Statement) remedies(a *account) []finding.Remedy {
	var out []finding.Remedy
	switch a.cause() {
	case shortage.OthersHold, shortage.Limit, shortage.Refused:
	default:
		if a.Wording != failure.Absurd {
			out = t.ofEngine(a)
		}
	}
	if against := t.against(a); a.huge() || a.inPieces() {
		out = append(against, out...)
	} else {
		out = append(out, against...)
	}
	out = append(out, remediesAgainstOthers(a)...)
	return append(out, learnMore(a.OOM)...)
}

// against are the remedies for a cause. The release of PyTorch is known only as far as
// the wording shows it.
func (t *Statement) against(a *account) []finding.Remedy {
	switch {
	case a.Wording == failure.Absurd:
		return []finding.Remedy{wronglyComputed}
	case a.Wording == failure.Silent:
		return shortage.NeedLess()
	case a.Bare():
		return forBackend(a.Backend, leaveRoom())
	case a.Wording == failure.Metal:
		return metal(a)
	case a.Block != nil:
		return oneBlock(a)
	}
	if a.lent() && t.pausedPool(a) {
		return append([]finding.Remedy{finding.CodeChange("let the engine sleep before the trainer's step, with its weights (sleep level 2), and call torch.cuda.empty_cache() in the trainer")}, shortage.NeedLess()...)
	}
	switch a.cause() {
	case shortage.Limit:
		if a.refusedWhole() {
			return t.refusalRemedies(a)
		}
		return forBackend(a.Backend, shortage.RaiseLimit())
	case shortage.OthersHold:
		return forBackend(a.Backend, shortage.FindOthers(a.holdsRest()))
	case shortage.Refused:
		return t.refusalRemedies(a)
	case shortage.Fragmented:
		return t.fragmentationRemedies(a)
	case "":
		switch {
		case a.oneTooLarge():
			return t.refusalRemedies(a)
		case a.shared():
			return t.refusalRemedies(a)
		case Contradictory(a.OOM):
			return append([]finding.Remedy{finding.CodeChange("give one message alone, as PyTorch printed it; nothing is concluded from contradictory figures")}, shortage.NeedLess()...)
		case a.huge():
			return shortage.NeedLess()
		case a.Missing() > 0 && !withoutFree(a.OOM) && a.Wording != failure.Async:
			return append([]finding.Remedy{finding.CodeChange("give the whole message: the missing figures show the cause")}, shortage.NeedLess()...)
		}
	}
	return shortage.NeedLess()
}

// metal are the remedies on Apple's GPUs, where memory outside PyTorch counts too.
func metal(a *account) []finding.Remedy {
	raise := finding.SettingChange("PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0", "lift the limit; the system then swaps, and may stop responding")
	if a.Others != nil && a.Reserved != nil && *a.Others > *a.Reserved {
		return append([]finding.Remedy{finding.CodeChange(fmt.Sprintf("look for %s outside PyTorch's cache: other libraries (MLX, Core ML, an old torchaudio), or a PyTorch release that leaks. Close other programs on the GPU", units.Bytes(*a.Others)))}, append(shortage.NeedLess(), raise)...)
	}
	return append(shortage.NeedLess(), raise)
}

// oneBlock are the remedies if one block is larger than the platform grants.
func oneBlock(a *account) []finding.Remedy {
	return []finding.Remedy{
		finding.CodeChange(fmt.Sprintf("make the tensor in pieces below %s: a tiled VAE, attention in chunks, a smaller batch or image. The device itself need not be full", units.Bytes(*a.Block))),
		finding.SettingChange("UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS=1", "allow single allocations above 4 GiB, where the releases of the driver and of PyTorch support it"),
	}
}

// fragmentationRemedies are the remedies against fragmentation that the platform and the
// release have.
func (t *Statement) fragmentationRemedies(a *account) []finding.Remedy {
	less := shortage.NeedLess()
	split := finding.SettingChange("PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128", "keep large free blocks whole")
	newer := finding.CodeChange("better, with PyTorch 2.1 or newer: expandable_segments:True, which lets free pieces serve requests of any size")
	switch {
	case a.Private != nil && *a.room()-*a.Private < *a.request:
		return append([]finding.Remedy{finding.CodeChange("capture fewer or smaller CUDA graphs, or let them share a pool: torch.cuda.graph_pool_handle()").
			Because("free memory in private pools serves only allocations in the same pool. Graphs that never run at once can share one. Allocate less under torch.cuda.use_mem_pool")}, less...)
	case a.Backend == "XPU":
		return []finding.Remedy{finding.CodeChange("use few sizes: pad batches to a few lengths, or run the longest first. Call torch.xpu.empty_cache() between phases to return free segments")}
	case a.Backend == "HIP":
		newer.Text = "newer releases of PyTorch also have expandable_segments:True on ROCm"
		return forBackend(a.Backend, append([]finding.Remedy{split, newer}, less...))
	case a.Wording == failure.Old && a.Backend != "NPU" && t.Hints[failure.HintSplit] == 0 && a.Whole:
		return append([]finding.Remedy{finding.CodeChange("use a newer PyTorch, or few sizes: batches padded to a few lengths").
			Because("this release has no setting against it; run an evaluation under torch.no_grad(), and keep less of each step"), sinceTen(split), newer}, less...)
	case a.Wording == failure.Old && a.Backend != "NPU":
		return append([]finding.Remedy{split, newer}, less...)
	case t.onWindows(a):
		return append([]finding.Remedy{split}, less...)
	}
	return forBackend(a.Backend, append([]finding.Remedy{shortage.Expandable(expandable)}, less...))
}

// sinceTen is max_split_size_mb where the release does not have it yet.
func sinceTen(split finding.Remedy) finding.Remedy {
	split.Text += " (since PyTorch 1.10)"
	return split
}

// onWindows reports whether the program ran on Windows: where the text shows it, or a whole
// message of a release that lists the processes of the device elsewhere lists none.
func (t *Statement) onWindows(a *account) bool {
	return t.Hints[failure.HintWindows] > 0 || t.Hints[failure.HintUnix] == 0 &&
		a.Wording == failure.Native && a.Backend == "CUDA" && a.complete() && a.InUse == nil && len(a.Processes) == 0
}

// refusalRemedies are the remedies if the driver refused although it states that there
// was room.
func (t *Statement) refusalRemedies(a *account) []finding.Remedy {
	if a.oneTooLarge() {
		return append([]finding.Remedy{finding.SettingChange("UR_L0_ENABLE_RELAXED_ALLOCATION_LIMITS=1",
			"allow one allocation of 4 GiB or more, which Intel's drivers refuse by default. Or make the tensor in pieces below 4 GiB")}, shortage.NeedLess()...)
	}
	look := "look at the other limits: host memory, commit limit (page file, .wslconfig, ulimit -v, vm.overcommit_memory), a driver quota (MIG, vGPU)"
	if a.Backend == "HIP" {
		look = "look at the other limits: GTT pages on an APU (ttm.pages_limit, amdgpu.gttsize), the commit limit on Windows (a larger page file)"
	}
	out := []finding.Remedy{finding.CodeChange(look)}
	out = append(out, forBackend(a.Backend, []finding.Remedy{finding.SettingChange(shortage.ListProcesses, "look for other processes on the device, which may have freed memory right after the failure")})...)
	return append(out, shortage.NeedLess()...)
}

// ofEngine are the options of the program that ran, if the text names it.
func (t *Statement) ofEngine(a *account) []finding.Remedy {
	for _, one := range []struct {
		hint failure.Hint
		name string
	}{{failure.HintSGLang, engine.SGLang}, {failure.HintVLLM, engine.VLLM}, {failure.HintLMDeploy, engine.LMDeploy}, {failure.HintTGI, engine.TGI}} {
		if t.Hints[one.hint] > 0 {
			return []finding.Remedy{relief(engine.Named(one.name), a)}
		}
	}
	switch {
	case t.Hints[failure.HintComfyUI] > 0:
		return []finding.Remedy{finding.SettingChange("--lowvram", "let ComfyUI keep less on the device (--novram keeps least). A smaller resolution or fewer frames, a tiled VAE, or a model in fp8 or GGUF")}
	case t.Hints[failure.HintDeepSpeed] > 0:
		return []finding.Remedy{finding.SettingChange(`"train_micro_batch_size_per_gpu": 1`, "a smaller micro batch, with gradient_accumulation_steps for the same total; ZeRO stage 3 and offload_optimizer keep less on the device")}
	case t.Hints[failure.HintTrainer] > 0:
		return []finding.Remedy{finding.SettingChange("--per_device_train_batch_size 1 --gradient_accumulation_steps 8 --gradient_checkpointing", "a smaller micro batch with the same total, and recomputed activations")}
	}
	return nil
}

// relief is the first change to make in an engine. A share is lowered by as much as was
// missing, from the lowest default, since the text does not state the release.
func relief(e *engine.Engine, a *account) finding.Remedy {
	const step, minShare = 0.05, 0.3
	set := e.Relief.Set
	if set == "" {
		set = e.Share.Set(fmt.Sprintf("%.2f", max(minShare, e.Share.Lowest()-max(step, a.short()))))
	}
	text := e.Relief.Text
	if e.Share != nil {
		text += "; " + e.Share.Words()
	}
	return finding.SettingChange(set, text)
}

// leaveRoom are the remedies if the driver has nothing left outside PyTorch's allocator.
func leaveRoom() []finding.Remedy {
	return []finding.Remedy{
		finding.SettingChange(shortage.ListProcesses, "look for other processes on the device").Because("if there are none, this program leaves no room outside PyTorch's cache"),
		finding.CodeChange("leave memory for allocations outside PyTorch's cache: a smaller batch").
			Because("an inference engine has a setting for its share (gpu_memory_utilization, mem_fraction_static), a program without one torch.cuda.set_per_process_memory_fraction(0.9)"),
		finding.CodeChange("call torch.cuda.empty_cache() before the library starts, and let it start early: NCCL's buffers are allocated at the first collective. Fewer channels (NCCL_MAX_NCHANNELS) or smaller buffers (NCCL_BUFFSIZE) make them smaller"),
	}
}

// forBackend puts a backend's names into remedies for CUDA: HIP uses the module
// torch.cuda, and XPU has no such variable.
func forBackend(backend string, remedies []finding.Remedy) []finding.Remedy {
	lister, known := shortage.ListerOf(backend)
	if !known {
		return remedies
	}
	pairs := []string{shortage.ListProcesses, lister}
	if backend != "XPU" {
		pairs = append(pairs, "PYTORCH_CUDA_", "PYTORCH_"+backend+"_")
	}
	if backend != "HIP" {
		pairs = append(pairs, "torch.cuda.", "torch."+strings.ToLower(backend)+".")
	}
	names := strings.NewReplacer(pairs...)
	for i := range remedies {
		remedies[i].Setting = names.Replace(remedies[i].Setting)
		remedies[i].Text = names.Replace(remedies[i].Text)
		remedies[i].Detail = names.Replace(remedies[i].Detail)
	}
	return remedies
}

// remediesAgainstOthers are what to do whatever the cause: others may hold as much as was
// requested, or most of a device of unknown size.
func remediesAgainstOthers(a *account) (out []finding.Remedy) {
	switch cause := a.cause(); {
	case a.Wording == failure.Metal || a.Wording == failure.Absurd || cause == shortage.OthersHold || cause == shortage.Refused || a.request == nil || a.lent():
	case a.others() >= *a.request:
		out = append(out, shortage.FindHolder(a.holdsRest()))
	case a.capacity == nil && cause != shortage.Limit && a.room() != nil:
		if r, ok := shortage.GiveCapacity(*a.free, *a.reserved, *a.active); ok {
			out = append(out, r)
		}
	}
	return forBackend(a.Backend, out)
}

// learnMore is how to learn more than the message states.
func learnMore(o *failure.OOM) []finding.Remedy {
	r := finding.Remedy{Kind: "code", Setting: dumpAtFailure,
		Text: "record a snapshot of that moment, which strandline diagnose reads", Detail: "the message does not name the holder of the memory"}
	switch {
	case o.Wording == failure.Absurd || o.Wording == failure.Metal || !slices.Contains([]string{"", "CUDA", "Cuda", "HIP", "XPU"}, o.Backend):
		return nil
	case o.Wording == failure.Async:
		r.Kind, r.Setting = "setting", "PYTORCH_CUDA_ALLOC_CONF=backend:native"
		r.Text, r.Detail = "use PyTorch's own backend, the default, which records a history", "the message does not name the holder of the memory"
	case o.Backend == "XPU":
		r.Setting = strings.ReplaceAll(dumpWhere, "MODULE", "torch.xpu.memory")
		r.Text += " (since PyTorch 2.11)"
	case o.Bare():
		r.Setting = strings.ReplaceAll(dumpWhere, "MODULE", "torch.cuda.memory")
		r.Detail = "the message does not report PyTorch's own share"
	}
	return []finding.Remedy{r}
}

// wronglyComputed is the remedy for a request that nothing can meet.
var wronglyComputed = finding.CodeChange("look at the line that failed: a negative or unset size, or sizes that ranks exchanged in different order").
	Because("often after another rank had failed")
