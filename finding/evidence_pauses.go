package finding

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

func (*ResidueEvidence) evidence() {}
func (*ResumeEvidence) evidence()  {}
