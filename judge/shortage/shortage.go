// Package shortage holds what failed requests for memory have in common, whether their
// figures come from a snapshot or a message: the causes, the words for them, and the
// advice that does not depend on where the figures come from. The cause itself is judged
// by judge/snapshots and judge/texts, each with its own arithmetic: the figures in a message
// are rounded, can be missing or contradict each other, and count different things for
// each backend.
package shortage

import (
	"fmt"

	"strandline/finding"
	"strandline/units"
)

// The causes of a failure.
const (
	Limit      = "limit"      // a setting keeps PyTorch from memory that is available, or a stated limit is exceeded
	Fragmented = "fragmented" // enough was free, in pieces
	TooBig     = "too-big"    // it did not fit
	OthersHold = "outside"    // it would have fitted, if not for what others hold
	Refused    = "refused"    // the driver refused although it states that there was room
	Startup    = "startup"    // the budget of an engine does not fit at start-up
)

// ContextAllowance is what a PyTorch process takes on a device in addition to its
// segments, in bytes: the CUDA context and loaded kernels, some hundred MiB.
const ContextAllowance = 640 << 20

// OutsideConfidence is how certain it is that memory held outside PyTorch is what a request
// lacked: the context of a program with many libraries takes two or three times what is
// usual. It is known if the text states what the process itself holds.
func OutsideConfidence(outside int64, known bool) float64 {
	const maxConfidence, minConfidence, each = 0.95, 0.5, 0.25
	if known {
		return maxConfidence
	}
	return min(maxConfidence, max(minConfidence, minConfidence+each*float64(outside-ContextAllowance)/ContextAllowance))
}

// The thresholds of fragmentation. PyTorch's own advice ("if reserved memory is >>
// allocated memory") begins to be useful when a third is free. Recorded trainers of
// realistic size waste less than a quarter of the peak with expandable segments and more
// than half without; a third lies between. Below 512 MiB no setting repays a person's
// time.
const (
	MinFreeShare     = 1.0 / 3
	MinOverheadShare = 1.0 / 3
	MinOverhead      = 512 << 20 // bytes
)

// Expandable is the remedy that settings with expandable segments are against fragmentation.
func Expandable(settings string) finding.Remedy {
	return finding.SettingChange("PYTORCH_CUDA_ALLOC_CONF="+settings,
		"enable expandable segments").Because("segments then grow and shrink page by page, so free pieces can serve requests of any size (since PyTorch 2.1)")
}

// Reclaim is the remedy that a recorder returns unused memory to the driver, by a command and
// what that gives.
func Reclaim(command, gives string) finding.Remedy {
	return finding.SettingChange(command, "return it regularly: "+gives)
}

// LowerFraction is the remedy that an engine leaves so many bytes of the device to others.
func LowerFraction(size int64) finding.Remedy {
	return finding.CodeChange("give the engine a smaller static fraction (mem_fraction_static, gpu_memory_utilization), lower by " + units.Bytes(size) + ": that much stays free for others")
}

// Room returns everything a request could have used, had it been in one piece: what
// the driver and the segments have free. It is nil if a figure is unknown.
func Room(free, reserved, active *int64) *int64 {
	if free == nil || reserved == nil || active == nil {
		return nil
	}
	return finding.Int(*free + *reserved - *active)
}

// Known is a number of bytes, 0 if it is unknown.
func Known(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// Amount returns in words a number of bytes that can be unknown.
func Amount(n *int64) string {
	if n == nil {
		return "an unknown amount"
	}
	return units.Bytes(*n)
}

// Holders states who holds the memory of a device that is outside PyTorch; own is how much
// of it this process holds, nil if unknown.
func Holders(own, outside *int64) string {
	if own == nil {
		return "the context, other libraries, other processes"
	}
	return fmt.Sprintf("%s by this process (its context, other libraries), %s by others", units.Bytes(*own), units.Bytes(*outside-*own))
}

// WrongCapacity states that a device cannot have the given size.
func WrongCapacity(capacity, reserved, free int64) string {
	return fmt.Sprintf("the device cannot have %s: PyTorch had reserved %s and %s more was free; the size given is not used",
		units.Bytes(capacity), units.Bytes(reserved), units.Bytes(free))
}

// ListProcesses is the command that shows who holds memory on the device.
const ListProcesses = "nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv"

// listers are such commands of other makers' devices, by PyTorch's name of the backend.
var listers = []struct{ backend, maker, command string }{
	{"HIP", "AMD", "rocm-smi --showpids"}, {"XPU", "Intel", "xpu-smi ps"}, {"NPU", "Huawei", "npu-smi info"}, {"HPU", "Habana", "hl-smi"},
	{"MLU", "Cambricon", "cnmon"}, {"MUSA", "Moore Threads", "mthreads-gmi"}, {"GCU", "Enflame", "efsmi"}, {"PPU", "T-Head", "ppu-smi"},
}

// ListerOf is the command for the devices of a backend or a maker, false if it is none of
// the known ones, as NVIDIA.
func ListerOf(name string) (command string, ok bool) {
	for _, l := range listers {
		if name == l.backend || name == l.maker {
			return l.command, true
		}
	}
	return ListProcesses, false
}

// FindHolder is how to find who holds memory outside PyTorch; own is true if most of it
// is known to belong to this process.
func FindHolder(own bool) finding.Remedy {
	if own {
		return finding.CodeChange("look for a library in this process that allocates outside PyTorch: NCCL, cuDNN, an inference engine").
			Because("by the message's figures, most of the memory outside PyTorch is this process's own")
	}
	return finding.SettingChange(ListProcesses,
		"look for other processes on the device").Because("if there are none, a library in this process allocates outside PyTorch (NCCL, cuDNN, an inference engine)")
}

// FindOthers is what to do against memory that is held outside PyTorch; own is as for [FindHolder].
func FindOthers(own bool) []finding.Remedy {
	leave := "leave room for the others: end stale processes, use a separate device, or make the library's workspace smaller"
	if own {
		leave = "leave room for the library, or shrink its workspace: NCCL by fewer channels (NCCL_MAX_NCHANNELS) or NCCL_BUFFSIZE"
	}
	return append([]finding.Remedy{FindHolder(own), finding.CodeChange(leave)}, NeedLess()...)
}

// littleUsed is the share, of what PyTorch had or was free, below which little was
// active.
const littleUsed = 0.5

// GiveCapacity is the advice if little of what PyTorch had or could have had was active,
// and the size of the device is unknown.
func GiveCapacity(free, reserved, active int64) (r finding.Remedy, ok bool) {
	if float64(active) >= littleUsed*float64(free+reserved) {
		return r, false
	}
	return finding.Remedy{Kind: "code", Setting: "strandline diagnose --capacity 80GiB FILE",
		Text: "give the size of the device, to learn whether others hold the rest", Detail: "little of the memory that PyTorch had or could have had was active"}, true
}

// NeedLess is what helps if a program needs more than there is.
func NeedLess() []finding.Remedy {
	return []finding.Remedy{finding.CodeChange("allocate less at once: a smaller batch, shorter sequences, activation checkpointing, the loss in chunks").
		Because("or keep less: parameters and optimizer state sharded, in fewer bits or on the host")}
}

// RaiseLimit is what helps if a limit stopped a request.
func RaiseLimit() []finding.Remedy {
	return []finding.Remedy{finding.SettingChange("torch.cuda.set_per_process_memory_fraction(1.0)",
		"raise the limit, or remove the call to set_per_process_memory_fraction").Because("since PyTorch 2.10 it is also per_process_memory_fraction in PYTORCH_CUDA_ALLOC_CONF")}
}
