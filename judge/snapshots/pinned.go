package snapshots

import (
	"fmt"

	"strandline/finding"
	"strandline/units"
)

// If sizes are spread evenly between two powers of two, a quarter of their blocks is lost
// to rounding. A loss of that share is a note, if it is a lot for a host.
const (
	pinnedShare = 0.25
	minPinned   = 64 << 20
)

// pinnedRounding finds pinned host memory whose blocks are clearly larger than what was
// requested: every request is rounded up to a power of two.
func pinnedRounding(s *subject) []finding.Finding {
	m := &s.newest.Rounding
	if share(m.Lost(), m.Active) < pinnedShare || m.Lost() < minPinned {
		return nil
	}
	e := &finding.PinnedEvidence{
		LostBytes: m.Lost(), ActiveBytes: m.Active, RequestedBytes: m.Requested, ReservedBytes: s.newest.Reserved, FreeBytes: s.newest.Space.Releasable + s.newest.Space.Stranded,
	}
	f := finding.Finding{
		Kind: finding.Pinned, Severity: finding.Info, Confidence: 1, Device: &s.device, Process: s.process.Name,
		Title: fmt.Sprintf("%s of %s active pinned host memory was not requested: requests are rounded up to a power of two",
			units.Bytes(m.Lost()), units.Bytes(m.Active)) + mostly(m.Sites),
		Basis: "the size of each block and of its request", Evidence: e,
		Remedies: []finding.Remedy{
			finding.CodeChange("pin buffers whose size is a power of two, or one large buffer and views of it"),
			finding.SettingChange("PYTORCH_CUDA_ALLOC_CONF=pinned_max_round_threshold_mb:64",
				"pin larger requests without rounding, at the price of less reuse (since PyTorch 2.13)"),
		},
	}
	f.Brief.Title = fmt.Sprintf("rounding: %s of %s pinned host memory was not requested", units.Bytes(m.Lost()), units.Bytes(m.Active))
	e.UnknownBytes = addSums(&f, m.Sites)
	return []finding.Finding{f}
}
