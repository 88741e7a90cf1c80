package processes

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"strandline/finding"
	"strandline/host/calls/event"
	"strandline/host/calls/ledger"
	"strandline/host/code/symbolize"
	"strandline/host/gpu/gpudriver"
	"strandline/host/store/recording"
	"strandline/internal/lazyregexp"
	"strandline/trend"
	"strandline/units"
)

// The least memory from the driver, in bytes, that makes a finding if it goes on growing,
// and if it does not.
const (
	minDriverBytes        = 1 << 20
	minSettledDriverBytes = 16 << 20
)

// Driver judges what processes took from the driver of a GPU, each place and owner
// separately. What grows there is not in PyTorch's statistics unless PyTorch owns it.
// The devices are those that the processes use, as far as they are known.
func Driver(s *gpudriver.Sums, processes []ledger.Process, devices []recording.GPUDevice) (out []finding.Finding) {
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
		if f, ok := driverGrows(places[p], s, devices); ok {
			var shares []ledger.Share
			for _, u := range places[p] {
				shares = append(shares, u.Shares...)
			}
			f.Process = processOf(processes, shares)
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

// driverGrows judges the uses of one place; the first use holds the most.
func driverGrows(uses []*gpudriver.Use, sums *gpudriver.Sums, devices []recording.GPUDevice) (f finding.Finding, ok bool) {
	all := trend.NewPopulation(len(sums.Checkpoints))
	var live, pieces, calls, assumed int64
	var stacks []*ledger.Use
	for _, u := range uses {
		stacks = append(stacks, &u.Use)
		all.Merge(u.Population)
		live, pieces, calls, assumed = live+u.Live, pieces+u.Count, calls+u.Calls, assumed+u.Inferred
	}
	u := uses[0]
	if live < minDriverBytes || u.Memory == event.Foreign {
		return f, false
	}
	e := &finding.DriverLeakEvidence{
		Owner: u.Owner, Memory: u.Memory.String(), Function: u.Op.String(), Calls: calls,
		StackComplete: u.Complete, AssumedBytes: assumed, Stacks: growingStacks(stacks, 0),
	}
	f = finding.Finding{
		Kind: finding.DriverLeak, Bytes: finding.Int(live), Count: finding.Int(pieces), Trend: all.Bytes,
		Stack: HostFrames(u.Frames), Site: DriverSite(u.Frames), Evidence: e, Detail: hostDetail(finding.DriverLeak, &u.Use),
	}
	taken := fmt.Sprintf("%s took %s of %s from the driver", u.Owner, units.Bytes(live), memoryName(u.Memory))
	v := trend.Judge(all, trend.Past{})
	if v.Class == trend.Leak && v.Confidence >= 0.2 {
		f.Confidence, f.Basis = v.Confidence, v.Basis()
		f.Severity = finding.Warning
		if v.Confidence >= problemConfidence {
			f.Severity = finding.Problem
		}
		f.Title = fmt.Sprintf("%s in %s and returned nothing", taken, units.Plural(pieces, "piece"))
		f.Brief.Title = fmt.Sprintf("%s took %s of %s, returned nothing", u.Owner, units.Bytes(live), memoryName(u.Memory))
		if text := driverPace(e, all.Final, sums.Checkpoints, roomOf(devices, u.Memory)); text != "" {
			f.Detail = append(f.Detail, text)
		}
		f.Remedies = driverRemedies(u)
		if u.Owner == gpudriver.OwnerPyTorch && u.Memory == event.Device {
			cached(&f, live, sums.Tensors)
		}
	} else if !ended(&f, e, all, sums, taken) {
		return f, false
	}
	if where := callPath(nearest(caller(u.Frames))); where != "" {
		f.Title += "; requested here: " + where
	}
	return f, true
}

// cached takes back that PyTorch's segments are a leak if its tensors grew by less than
// half of what they did: the rest is a cache.
func cached(f *finding.Finding, live int64, tensors []int64) {
	const minLooks = 6
	half := len(tensors) / 2
	if len(tensors) < minLooks {
		return
	}
	kept := max(0, slices.Min(tensors[half:])-slices.Min(tensors[:half]))
	if 2*kept >= live {
		return
	}
	f.Severity = finding.Warning
	f.Title = fmt.Sprintf("PyTorch's cache grew: it took %s from the driver, and its tensors hold %s more", units.Bytes(live), units.Bytes(kept))
	f.Brief.Title = f.Title
	f.Basis = "PyTorch's own counters, read from outside"
	f.Remedies = finding.CacheRemedies()
}

// ended makes a finding of memory that was taken at first, or until shortly before the
// end of the trace, and not since; it reports whether there is enough of it to matter.
func ended(f *finding.Finding, e *finding.DriverLeakEvidence, all *trend.Population, sums *gpudriver.Sums, taken string) bool {
	last, end := len(all.Final)-1, reached(all.Final)
	held := int64(0)
	for i := range sums.Bytes {
		held += sums.Bytes[i]
	}
	if end == 0 || end == last || *f.Bytes < minSettledDriverBytes || float64(*f.Bytes) < settledShare*float64(held) {
		return false
	}
	until, quiet := sums.Checkpoints[end], sums.Checkpoints[last]-sums.Checkpoints[end]
	f.Title = fmt.Sprintf("%s in the first %s of the trace, and hardly anything since", taken, duration(until))
	if 4*end <= 3*last {
		f.Severity, f.Confidence = finding.Info, 1
		f.Basis = "nearly all of the rest was taken by then; it was watched until " + duration(sums.Checkpoints[last])
		e.SettledSeconds = seconds(until)
		return true
	}
	v := trend.Judge(all.Until(end+1), trend.Past{})
	if v.Class != trend.Leak || v.Confidence < 0.2 {
		return false
	}
	f.Severity, f.Confidence, f.Basis = finding.Warning, min(v.Confidence, undecided), v.Basis()
	f.Detail = append(f.Detail, pausedFor(quiet))
	f.Remedies = []finding.Remedy{traceLonger}
	return true
}

// driverPace puts into the evidence how fast a curve rose and, where it is known what
// remains of the device, how long that lasts at this rate and at that of the curve's
// second half. It returns the same in words.
func driverPace(e *finding.DriverLeakEvidence, curve []int64, marks []uint64, room *remains) string {
	if burst(curve) {
		return ""
	}
	if e.RatePerSecond = perSecond(curve, marks); e.RatePerSecond <= 0 {
		return ""
	}
	text := "it grows by " + units.Rate(e.RatePerSecond)
	if room == nil {
		return text
	}
	half := len(curve) / 2
	var lasts string
	e.LimitBytes = &room.limit
	e.SecondsToLimit, lasts = room.timeLeft(e.RatePerSecond, perSecond(curve[half:], marks[half:]))
	return text + "; at this rate, " + lasts
}

// roomOf is what remains of the device; nil if the memory is not of a device, or it is
// not known of which one.
func roomOf(devices []recording.GPUDevice, m event.DriverMemory) *remains {
	if m != event.Device || len(devices) != 1 || len(devices[0].Names) > 1 || devices[0].Used == nil || devices[0].Total == nil {
		return nil
	}
	d := &devices[0]
	return &remains{left: max(*d.Total-*d.Used, 0), limit: *d.Total, of: "of the device's " + units.Bytes(*d.Total)}
}

// perSecond is the rate, in the curve's unit per second, at which a curve rose.
func perSecond(curve []int64, marks []uint64) float64 {
	last := len(curve) - 1
	if last < 1 || marks[last] <= marks[0] {
		return 0
	}
	return float64(curve[last]-curve[0]) / seconds(marks[last]-marks[0])
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

// caller returns the frames without those of the driver, of CUDA's runtime and of
// Python's calls into C, which are the same in every stack.
func caller(frames []symbolize.Frame) []symbolize.Frame {
	return slices.DeleteFunc(slices.Clone(frames), func(f symbolize.Frame) bool {
		object := filepath.Base(f.Object)
		return gpudriver.OfCUDA(object) || python.MatchString(object) || callsC.MatchString(object)
	})
}

var callsC = lazyregexp.New(`^(libffi|_ctypes)`)

// nearest returns the lines of Python and the first functions of native code, without
// their parameters: in C++ these can fill a screen.
func nearest(frames []symbolize.Frame) (out []symbolize.Frame) {
	const maxFrames = 2
	native := 0
	for _, f := range frames {
		if f.Object != "" {
			if native++; native > maxFrames {
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
		return finding.HostRemedies(finding.Pinned)
	case u.Owner == gpudriver.OwnerPyTorch:
		return []finding.Remedy{finding.CodeChange("PyTorch's reserved memory grows: record a snapshot (torch.cuda.memory._record_memory_history, _dump_snapshot) and run `strandline diagnose` on it, which names the tensors")}
	case u.Owner == "NCCL":
		return []finding.Remedy{finding.CodeChange("create process groups once and destroy those that are done (torch.distributed.destroy_process_group): each has its own buffers on the device"),
			finding.SettingChange("NCCL_BUFFSIZE=2097152", "smaller buffers per channel")}
	case u.Owner == "cuBLAS":
		return []finding.Remedy{finding.CodeChange("create handles once: each handle and stream has a workspace; torch._C._cuda_clearCublasWorkspaces() returns PyTorch's"),
			finding.SettingChange("CUBLAS_WORKSPACE_CONFIG=:4096:2", "smaller workspaces")}
	case u.Owner == "cuDNN":
		return []finding.Remedy{finding.CodeChange("create handles and plans once, and destroy those that are done")}
	case u.Owner == gpudriver.OwnerGraphs:
		return []finding.Remedy{finding.CodeChange("capture fewer graphs (fewer batch sizes), and drop those that are not replayed")}
	}
	free := "the driver function that frees it"
	if f, ok := givesBack[u.Op.String()]; ok {
		free = f
	}
	return []finding.Remedy{finding.CodeChange(fmt.Sprintf("free the memory that is allocated here (%s), or reuse it", free)).
		Because("PyTorch does not know of it, and torch.cuda.empty_cache() does not return it")}
}

// givesBack is how a program frees what a function allocated, by function, as programs
// see it.
var givesBack = map[string]string{
	"cuMemAlloc_v2": "cudaFree or cuMemFree", "cuMemAllocPitch_v2": "cudaFree or cuMemFree", "cuMemAllocManaged": "cudaFree or cuMemFree",
	"cuMemAllocAsync": "cudaFreeAsync or cuMemFreeAsync", "cuMemAllocFromPoolAsync": "cudaFreeAsync or cuMemFreeAsync",
	"cuMemCreate": "cuMemUnmap and cuMemRelease", "cuMemHostAlloc": "cudaFreeHost or cuMemFreeHost", "cuMemAllocHost_v2": "cudaFreeHost or cuMemFreeHost",
	"cuMemHostRegister_v2": "cudaHostUnregister or cuMemHostUnregister",
	"cuArrayCreate_v2":     "cudaFreeArray or cuArrayDestroy", "cuArray3DCreate_v2": "cudaFreeArray or cuArrayDestroy",
}
