package snapshots

import (
	"fmt"

	"strandline/finding"
	"strandline/units"
)

// usage states what is in memory if a file has no history of a device.
func usage(s *subject) []finding.Finding {
	p, d, leaks := s.process, s.newest, s.leaks
	m := &d.Purpose.End
	if m.Bytes == 0 {
		return nil
	}
	h := holdingsOf(m, leakingSites(leaks), true)
	held, sums := h.uses(), h.sums()
	f := finding.Finding{
		Kind: finding.Usage, Severity: finding.Info, Confidence: knownShare(held), Device: &d.Index, Process: p.Name,
		Title:    fmt.Sprintf("%s is live: %s", units.Bytes(m.Bytes), madeOf(held)),
		Basis:    "the share whose purpose is known from the stacks of the blocks",
		Evidence: &finding.UsageEvidence{ByPurpose: sums.ByPurpose, Bytes: sums.Bytes, LeakedBytes: sums.LeakedBytes, Sites: h.places()},
		Detail:   append([]string{"the file has no history: it shows neither the peak nor the memory that is soon freed"}, heaviest(held)...),
	}
	f.Brief = finding.Brief{Title: units.Bytes(m.Bytes) + " live", Account: accountOf("live", held)}
	return []finding.Finding{f}
}
