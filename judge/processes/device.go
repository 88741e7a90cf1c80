package processes

import (
	"fmt"

	"strandline/finding"
	"strandline/host/store/recording"
	"strandline/units"
)

// The smallest sums of a device that are reported, in bytes.
const (
	minSumBytes    = 64 << 20
	minUnseenBytes = 256 << 20 // the code of kernels alone can take some 100 MiB
)

// devices judges the accounts of the devices' memory: whether the parts are plausible,
// and whether memory was added that no call explains. The findings are about a process.
func devices(devices []recording.GPUDevice, process string) (out []finding.Finding) {
	for i := range devices {
		d := &devices[i]
		if f, ok := wrongSum(d); ok {
			out = append(out, f)
		}
		if f, ok := unseenMemory(d); ok {
			out = append(out, f)
		}
	}
	for i := range out {
		out[i].Process = process
	}
	return out
}

// sumOfPart is how many bytes one part adds up to.
func sumOfPart(d *recording.GPUDevice, part recording.Part) (n int64) {
	for _, p := range d.Parts {
		if p.Part == part {
			n += p.Bytes
		}
	}
	return n
}

// wrongSum reports whether the snapshot and the calls disagree, or the two together and
// the driver's count.
func wrongSum(d *recording.GPUDevice) (f finding.Finding, ok bool) {
	torch, traced := sumOfPart(d, recording.PartPyTorch), sumOfPart(d, recording.PartTraced)
	minBytes := max(minSumBytes, (torch+traced)/50)
	f = finding.Finding{
		Kind: finding.DriverSum, Severity: finding.Warning, Confidence: 1,
		Evidence: &finding.DriverSumEvidence{PyTorchBytes: torch, TracedBytes: traced, BeyondBytes: d.Beyond, AbsentBytes: d.Absent},
	}
	switch {
	case d.Beyond >= minBytes:
		f.Bytes = finding.Int(d.Beyond)
		f.Title = fmt.Sprintf("PyTorch's reserved memory and the rest add up to %s more than the driver counts", units.Bytes(d.Beyond))
		f.Detail = []string{"the snapshot is from another moment or another process, or memory shared by several processes is counted for each"}
	case d.Absent >= minBytes:
		f.Bytes = finding.Int(d.Absent)
		f.Title = fmt.Sprintf("PyTorch's allocator took %s from the driver that is in no segment of the snapshot", units.Bytes(d.Absent))
		f.Detail = []string{"it is newer than the snapshot, of another process, or returned by a call that was not seen"}
	default:
		return f, false
	}
	f.Remedies = []finding.Remedy{finding.CodeChange("write the snapshot at the end of the trace, one from each traced process")}
	return f, true
}

// unseenMemory reports memory that the driver counts for the processes beyond what they
// had when the trace began, and that no call took.
func unseenMemory(d *recording.GPUDevice) (f finding.Finding, ok bool) {
	n := sumOfPart(d, recording.PartUnseen)
	if n < minUnseenBytes {
		return f, false
	}
	return finding.Finding{
		Kind: finding.DriverUnseen, Severity: finding.Warning, Confidence: 0.5, Bytes: finding.Int(n),
		Basis:    "the driver's count when the trace began and at its end",
		Title:    fmt.Sprintf("the driver counts %s more for the processes than when the trace began, and no watched call took it", units.Bytes(n)),
		Detail:   []string{"possible: loaded kernels and their stacks, CUDA graphs, or freed memory in a cudaMallocAsync pool"},
		Evidence: &finding.DriverUnseenEvidence{UnseenBytes: n},
		Remedies: []finding.Remedy{finding.CodeChange("trace again for longer: if it keeps growing, look for code that captures graphs or loads kernels at each step")},
	}, true
}
