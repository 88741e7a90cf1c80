package host

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"strandline/finding"
	"strandline/host/event"
	"strandline/host/gpudriver"
	"strandline/host/ledger"
	"strandline/host/symbolize"
	"strandline/judge/trend"
	"strandline/units"
)

// driverWorth is the least memory from the driver that is worth a finding, bytes.
const driverWorth = 1 << 20

// Driver judges what processes took from the driver of a GPU: each place and
// owner by itself. What grows does not stand in PyTorch's statistics unless it is
// PyTorch's.
func Driver(s *gpudriver.Sums) (out []finding.Finding) {
	places := map[driverPlace][]*gpudriver.Use{}
	var order []driverPlace
	for i := range s.Uses {
		u := &s.Uses[i]
		p := driverPlace{owner: u.Owner, memory: u.Memory}
		if site := DriverSite(u.Frames); site != nil {
			p.site = *site
		}
		if places[p] == nil {
			order = append(order, p)
		}
		places[p] = append(places[p], u)
	}
	for _, p := range order {
		if f, ok := driverGrows(places[p], s.Checkpoints); ok {
			out = append(out, f)
		}
	}
	return out
}

type driverPlace struct {
	owner  string
	memory event.DriverMemory
	site   finding.Site
}

// driverGrows judges the uses of one place, of which the first holds the most.
func driverGrows(uses []*gpudriver.Use, marks int) (f finding.Finding, ok bool) {
	all := trend.NewPopulation(marks)
	var live, pieces, calls, assumed int64
	var stacks []*ledger.Use
	for _, u := range uses {
		stacks = append(stacks, &u.Use)
		all.Merge(u.Population)
		live, pieces, calls, assumed = live+u.Live, pieces+u.Count, calls+u.Calls, assumed+u.Inferred
	}
	u := uses[0]
	if live < driverWorth || u.Memory == event.Foreign {
		return f, false
	}
	v := trend.Judge(all, trend.Past{})
	if v.Class != trend.Leak || v.Confidence < 0.2 {
		return f, false
	}
	f = finding.Finding{
		Kind: finding.DriverLeak, Severity: finding.Warning, Confidence: v.Confidence, Basis: v.Basis(),
		Bytes: finding.Int(live), Count: finding.Int(pieces), Trend: all.Bytes,
		Stack: hostFrames(u.Frames), Site: DriverSite(u.Frames),
		Evidence: &finding.DriverLeakEvidence{
			Owner: u.Owner, Memory: u.Memory.String(), Function: u.Op.String(), Calls: calls,
			StackComplete: u.Complete, AssumedBytes: assumed, Stacks: growingStacks(stacks, 0),
		},
		Detail: hostDetail(finding.DriverLeak, &u.Use),
	}
	if v.Confidence >= 0.5 {
		f.Severity = finding.Problem
	}
	f.Title = fmt.Sprintf("%s took %s of %s from the driver in %s and gave nothing back", u.Owner, units.Bytes(live), memoryName(u.Memory), units.Plural(pieces, "piece"))
	if where := through(nearest(caller(u.Frames))); where != "" {
		f.Title += "; asked for here: " + where
	}
	f.Remedies = driverRemedies(u)
	return f, true
}

func memoryName(m event.DriverMemory) string {
	switch m {
	case event.Managed:
		return "managed memory"
	case event.Pinned:
		return "pinned host memory"
	}
	return "device memory"
}

// DriverSite is the place that asks the driver for memory.
func DriverSite(frames []symbolize.Frame) *finding.Site { return HostSite(caller(frames)) }

// caller are the frames without those of the driver and of CUDA's runtime, and of
// how Python calls C, which are the same in every stack.
func caller(frames []symbolize.Frame) []symbolize.Frame {
	return slices.DeleteFunc(slices.Clone(frames), func(f symbolize.Frame) bool {
		object := filepath.Base(f.Object)
		return gpudriver.OfCUDA(object) || python.MatchString(object) || callsC.MatchString(object)
	})
}

var callsC = regexp.MustCompile(`^(libffi|_ctypes)`)

// nearest are the lines of Python and the first functions of native code, without
// their parameters: of C++ these fill a screen.
func nearest(frames []symbolize.Frame) (out []symbolize.Frame) {
	const few = 2
	native := 0
	for _, f := range frames {
		if f.Object != "" {
			if native++; native > few {
				continue
			}
			f.Function, _, _ = strings.Cut(f.Function, "(")
		}
		out = append(out, f)
	}
	return out
}

func driverRemedies(u *gpudriver.Use) []finding.Remedy {
	switch {
	case (u.Owner == gpudriver.OwnerPyTorch || u.Owner == gpudriver.OwnerTorch) && u.Memory == event.Pinned:
		return classRemedies(finding.Pinned)
	case u.Owner == gpudriver.OwnerPyTorch:
		return []finding.Remedy{finding.CodeChange("what PyTorch reserves grows: record a snapshot (torch.cuda.memory._record_memory_history, _dump_snapshot) and give it to `strandline diagnose`, which names the tensors")}
	case u.Owner == "NCCL":
		return []finding.Remedy{finding.CodeChange("make process groups once and destroy those that are done (torch.distributed.destroy_process_group): each has buffers of its own on the device"),
			finding.SettingChange("NCCL_BUFFSIZE=2097152", "smaller buffers for each channel")}
	case u.Owner == "cuBLAS":
		return []finding.Remedy{finding.CodeChange("make handles once: each handle and stream has a workspace; torch._C._cuda_clearCublasWorkspaces() gives PyTorch's back"),
			finding.SettingChange("CUBLAS_WORKSPACE_CONFIG=:4096:2", "smaller workspaces")}
	case u.Owner == "cuDNN":
		return []finding.Remedy{finding.CodeChange("make handles and plans once, and destroy those that are done")}
	case u.Owner == gpudriver.OwnerGraphs:
		return []finding.Remedy{finding.CodeChange("capture fewer graphs (fewer batch sizes), and drop those that are not replayed")}
	}
	free := "the function of the driver that frees it"
	if f, ok := givesBack[u.Op.String()]; ok {
		free = f
	}
	return []finding.Remedy{finding.CodeChange(fmt.Sprintf("free what is taken here (%s), or reuse it: PyTorch neither knows nor counts it, and torch.cuda.empty_cache() does not return it", free))}
}

// givesBack is how a program frees what it took by a function, as programs see it.
var givesBack = map[string]string{
	"cuMemAlloc_v2": "cudaFree or cuMemFree", "cuMemAllocPitch_v2": "cudaFree or cuMemFree", "cuMemAllocManaged": "cudaFree or cuMemFree",
	"cuMemAllocAsync": "cudaFreeAsync or cuMemFreeAsync", "cuMemAllocFromPoolAsync": "cudaFreeAsync or cuMemFreeAsync",
	"cuMemCreate": "cuMemUnmap and cuMemRelease", "cuMemHostAlloc": "cudaFreeHost or cuMemFreeHost", "cuMemAllocHost_v2": "cudaFreeHost or cuMemFreeHost",
	"cuMemHostRegister_v2": "cudaHostUnregister or cuMemHostUnregister",
	"cuArrayCreate_v2":     "cudaFreeArray or cuArrayDestroy", "cuArray3DCreate_v2": "cudaFreeArray or cuArrayDestroy",
}
