package torch

import (
	"fmt"

	"strandline/finding"
	"strandline/units"
)

// Sizes spread evenly between two powers of two lose a quarter of their blocks:
// what loses so much is a note, if it is much for a host.
const (
	pinnedShare = 0.25
	pinnedLeast = 64 << 20
)

// pinnedRounding finds pinned host memory whose blocks are clearly larger than what was
// asked for: every request is rounded up to a power of two.
func pinnedRounding(s *subject) []finding.Finding {
	p, m := s.process, s.pinned
	if share(m.Lost(), m.Active) < pinnedShare || m.Lost() < pinnedLeast {
		return nil
	}
	e := &finding.PinnedEvidence{
		LostBytes: m.Lost(), ActiveBytes: m.Active, RequestedBytes: m.Requested, ReservedBytes: m.Held, FreeBytes: m.Free,
	}
	f := finding.Finding{
		Kind: finding.Pinned, Severity: finding.Info, Confidence: 1, Process: p.Name,
		Title: fmt.Sprintf("%s of %s pinned host memory in use was not asked for: requests are rounded up to a power of two",
			units.Bytes(m.Lost()), units.Bytes(m.Active)) + mostly(m.Sites),
		Basis: "the size of each block and of its request", Evidence: e,
		Remedies: []finding.Remedy{
			finding.CodeChange("pin buffers of a power of two bytes, or one large buffer and views of it"),
			finding.SettingChange("PYTORCH_CUDA_ALLOC_CONF=pinned_max_round_threshold_mb:64",
				"let larger requests be pinned as they are, at the price of fewer that can be used again (PyTorch 2.12 on)"),
		},
	}
	e.UnknownBytes = addSums(&f, m.Sites)
	return []finding.Finding{f}
}
