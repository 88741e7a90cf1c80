package finding

import "slices"

// ResidueEvidence is that of residue: what a process has of a device while its tags are
// paused.
type ResidueEvidence struct {
	HeldBytes    int64  `json:"held_bytes"`             // by tags, which the driver did not release
	OtherBytes   int64  `json:"other_bytes"`            // the context, libraries, graphs
	PausedBytes  int64  `json:"paused_bytes"`           // that were given back
	PyTorchBytes *int64 `json:"pytorch_bytes,omitzero"` // by PyTorch's allocator outside of regions
	UsedBytes    int64  `json:"used_bytes"`             // by the driver's count
}

// ResumeEvidence is that of resume-short.
type ResumeEvidence struct {
	AvailableBytes int64 `json:"available_bytes"`
	NeededBytes    int64 `json:"needed_bytes"`
}

// A Pool is memory of a device that a pause can leave.
type Pool string

const (
	TagPool    Pool = "tag"
	TensorPool Pool = "tensors in no region"
	CachePool  Pool = "PyTorch's cache"
	GraphPool  Pool = "CUDA graph pools"
	DriverPool Pool = "driver memory of libraries"
)

// StayEvidence is that of residue and leak: what processes keep while other memory is paused.
type StayEvidence struct {
	// Holders are those of Processes that are running, with the device of each.
	Holders []Holder `json:"-"`

	Cycles    int      `json:"cycles"` // in which it stays, or grows
	Paused    []string `json:"paused"` // the tags that are paused meanwhile
	Pool      Pool     `json:"pool"`
	Processes []string `json:"processes"` // that keep it, such as "rank 2"
	Tag       string   `json:"tag,omitempty"`
	Total     int      `json:"total_cycles"` // that were seen
}

// A Holder is a process that keeps memory, and the device as CUDA counts in it.
type Holder struct {
	Device int `json:"device"`
	PID    int `json:"pid"`
}

// Explains reports whether what stays in a pool of these is the memory that a process has of a device there.
func (e *StayEvidence) Explains(pid, device int, pools ...Pool) bool {
	return slices.Contains(e.Holders, Holder{Device: device, PID: pid}) && slices.Contains(pools, e.Pool)
}

func (*StayEvidence) evidence()    {}
func (*ResidueEvidence) evidence() {}
func (*ResumeEvidence) evidence()  {}
