package host

import (
	"fmt"

	"strandline/finding"
	"strandline/host/recording"
	"strandline/units"
)

// What is worth telling of a device's sums, bytes.
const (
	sumWorth    = 64 << 20
	unseenWorth = 256 << 20 // kernels' code alone can be some 100 MiB
)

// Devices judges the accounts of devices' memory: whether the parts can be what
// they are said to be, and whether memory came that no call explains.
func Devices(devices []recording.GPUDevice) (out []finding.Finding) {
	for i := range devices {
		d := &devices[i]
		if f, ok := wrongSum(d); ok {
			out = append(out, f)
		}
		if f, ok := cameUnseen(d); ok {
			out = append(out, f)
		}
	}
	return out
}

// sumOfPart is how much of a kind there is.
func sumOfPart(d *recording.GPUDevice, part recording.Part) (n int64) {
	for _, p := range d.Parts {
		if p.Part == part {
			n += p.Bytes
		}
	}
	return n
}

// wrongSum says where the snapshot and the calls, or these and the driver's count,
// disagree.
func wrongSum(d *recording.GPUDevice) (f finding.Finding, ok bool) {
	torch, traced := sumOfPart(d, recording.PartPyTorch), sumOfPart(d, recording.PartTraced)
	worth := max(sumWorth, (torch+traced)/50)
	f = finding.Finding{
		Kind: finding.DriverSum, Severity: finding.Warning, Confidence: 1,
		Evidence: &finding.DriverSumEvidence{PyTorchBytes: torch, TracedBytes: traced, BeyondBytes: d.Beyond, AbsentBytes: d.Absent},
	}
	switch {
	case d.Beyond >= worth:
		f.Bytes = finding.Int(d.Beyond)
		f.Title = fmt.Sprintf("what PyTorch has reserved and what was taken beside it are %s more than the driver counts", units.Bytes(d.Beyond))
		f.Detail = []string{"the snapshot is of another moment or of another process, or memory that several processes share is counted for each"}
	case d.Absent >= worth:
		f.Bytes = finding.Int(d.Absent)
		f.Title = fmt.Sprintf("PyTorch's allocator took %s from the driver that are in no segment of the snapshot", units.Bytes(d.Absent))
		f.Detail = []string{"they were taken after the snapshot was written, the snapshot is of another process, or what gave them back was not seen"}
	default:
		return f, false
	}
	f.Remedies = []finding.Remedy{finding.CodeChange("write the snapshot at the end of the trace, from the process that is traced, one for each process")}
	return f, true
}

// cameUnseen tells of memory that the driver counts for the processes more than
// when the trace began, and that no call took.
func cameUnseen(d *recording.GPUDevice) (f finding.Finding, ok bool) {
	n := sumOfPart(d, recording.PartUnseen)
	if n < unseenWorth {
		return f, false
	}
	return finding.Finding{
		Kind: finding.DriverUnseen, Severity: finding.Warning, Confidence: 0.5, Bytes: finding.Int(n),
		Basis:    "the driver's count when the trace began and at its end",
		Title:    fmt.Sprintf("the driver counts %s more for the processes than when the trace began, which no call took that is watched", units.Bytes(n)),
		Detail:   []string{"it can be the code of kernels that were loaded, memory inside of CUDA graphs, the stacks of kernels, or freed memory that a pool of cudaMallocAsync keeps"},
		Evidence: &finding.DriverUnseenEvidence{UnseenBytes: n},
		Remedies: []finding.Remedy{finding.CodeChange("trace again for longer: if it grows on, look at what captures graphs or loads kernels anew at each step")},
	}, true
}
