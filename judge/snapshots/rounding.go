package snapshots

import (
	"fmt"

	"strandline/finding"
	"strandline/internal/lazyregexp"
	"strandline/torch/replay"
	"strandline/units"
)

// divisionsOption is the setting that rounds requests up to parts of a power of
// two, with one number or a list of them.
var divisionsOption = lazyregexp.New(`roundup_power2_divisions\s*:\s*(\[[^\]]*\]|[^,]*),?`)

// rounding finds blocks that are clearly larger than what was requested, as they are at
// the end of the newest file.
func rounding(s *subject) []finding.Finding {
	p, device, d := s.process, s.device, s.newest
	r := &d.Rounding
	severity := severityOf(r.Lost(), r.Active)
	if severity == "" {
		return nil
	}
	e := &finding.RoundingEvidence{
		LostBytes: r.Lost(), ActiveBytes: r.Active, RequestedBytes: r.Requested,
		TinyLostBytes: r.Tiny, TinyCount: r.TinyCount, UnsplitBytes: r.Unsplit,
	}
	f := finding.Finding{
		Kind: finding.Rounding, Severity: severity, Confidence: 1, Device: &device, Process: p.Name,
		Title: fmt.Sprintf("%s of the %s active was not requested: blocks are larger than requests", units.Bytes(r.Lost()), units.Bytes(r.Active)) +
			mostly(r.Sites),
		Basis: "the size of each block and of its request", Evidence: e,
	}
	f.Brief.Title = fmt.Sprintf("rounding: %s of the %s active was not requested", units.Bytes(r.Lost()), units.Bytes(r.Active))
	e.UnknownBytes = addSums(&f, r.Sites)
	divisions := divisionsOption.MatchString(d.Conf)
	if r.Tiny > 0 {
		f.Detail = append(f.Detail, fmt.Sprintf("%s of less than 512 bytes, the smallest block size, cost %s", units.Plural(int64(r.TinyCount), "request"), units.Bytes(r.Tiny)))
	}
	if r.Unsplit > 0 {
		why := "remainders of up to 1 MiB that the allocator did not split off"
		if divisions {
			why = "roundup_power2_divisions, and remainders that the allocator did not split off"
		}
		f.Detail = append(f.Detail, units.Bytes(r.Unsplit)+" is "+why)
	}
	switch {
	case 2*r.Tiny > r.Lost():
		f.Remedies = append(f.Remedies, finding.CodeChange("keep many small values in one tensor (torch.stack), or as numbers on the host (.item(), .tolist())"))
	case divisions:
		f.Remedies = append(f.Remedies, finding.SettingChange("PYTORCH_CUDA_ALLOC_CONF="+replay.WithExpandable(divisionsOption.ReplaceAllString(d.Conf, "")),
			"drop roundup_power2_divisions, or give it a larger number, which rounds less").
			Because("expandable_segments avoids fragmentation without rounding (since PyTorch 2.1)"))
	case 2*r.Unsplit > r.Lost() && !d.Expandable:
		f.Remedies = append(f.Remedies, expandable(d.Conf, d.Trial)...)
	}
	return []finding.Finding{f}
}
