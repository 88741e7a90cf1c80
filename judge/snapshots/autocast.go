package snapshots

import (
	"fmt"

	"strandline/finding"
	"strandline/torch/purpose"
	"strandline/units"
)

// autocast reports what autocast's cache of weights holds in the peak.
func autocast(s *subject) []finding.Finding {
	b, p, device, d := s.book, s.process, s.device, s.newest
	c, peak := d.Purpose.Casts, &d.Purpose.Peak
	if c == nil || severityOf(c.Bytes, peak.Bytes) == "" {
		return nil
	}
	return []finding.Finding{{
		Kind: finding.AutocastCache, Severity: finding.Info, Confidence: 1 - share(peak.By[purpose.Unknown], peak.Bytes),
		Device: &device, Process: p.Name, Site: siteOf(c.Site), Stack: framesOf(b.Stacks.Stack(c.Stack)),
		Bytes: finding.Int(c.Bytes), Count: finding.Int(int64(c.Count)),
		Title: fmt.Sprintf("%s of the peak of %s is autocast's cache: lower-precision weights that stay until its block ends, in %s",
			units.Bytes(c.Bytes), units.Bytes(peak.Bytes), units.Plural(int64(c.Count), "allocation")),
		Basis: "leaving the autocast block frees them, or C++ frames show a cast from a tensor twice as large. The share of the peak whose purpose is known",
		Brief: finding.Brief{Title: fmt.Sprintf("%s of the peak is autocast's cache of weights: without it %s", units.Bytes(c.Bytes), units.Bytes(c.Without))},
		Evidence: &finding.AutocastEvidence{
			Event: peak.Event, PeakBytes: peak.Bytes, CacheBytes: c.Bytes, KeptForBackwardBytes: c.Kept, PeakWithoutBytes: c.Without,
		},
		Remedies: castRemedies(c.Kept, c.Bytes, fmt.Sprintf("; without these copies the peak would be %s, replayed on this history", units.Bytes(c.Without))),
	}}
}

// castRemedies are what to do about copies of weights in a lower type. The copies that a
// backward pass needs stay even with cache_enabled=False.
func castRemedies(kept, bytes int64, effect string) []finding.Remedy {
	if 2*kept > bytes {
		return []finding.Remedy{finding.CodeChange("keep the weights in bfloat16, and only the optimizer's copy in float32" + effect).
			Because("the backward pass needs these copies, so that autocast's cache_enabled=False would not free them")}
	}
	return []finding.Remedy{{
		Kind: "code", Setting: `torch.autocast("cuda", torch.bfloat16, cache_enabled=False)`,
		Text:   "turn the cache off, or load the weights in the type in which they are used: model.to(torch.bfloat16)" + effect,
		Detail: "without the cache, each copy is freed at once, and made again at the next use",
	}}
}
