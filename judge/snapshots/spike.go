package snapshots

import (
	"fmt"

	"strandline/finding"
	"strandline/stack"
	"strandline/torch/digest"
	"strandline/torch/purpose"
	"strandline/torch/timeline"
	"strandline/units"
)

// spikeShare is how much lower the peak must be without the short-lived memory of one
// place. Every program has a line that makes 5 % of its peak; a single line that makes a
// tenth is the place to begin.
const spikeShare = 0.10

// spike finds the place whose activations and temporaries make the peak: they come and go
// within a step, and without them the peak would be clearly lower. It is a note: nothing
// is wrong with it.
func spike(s *subject) []finding.Finding {
	b, p, device, d := s.book, s.process, s.device, s.newest
	peak := &d.Purpose.Peak
	if len(d.Purpose.Reliefs) == 0 {
		return nil
	}
	r := &d.Purpose.Reliefs[0]
	saved := peak.Bytes - r.Without
	if severityOf(saved, peak.Bytes) == "" || share(saved, peak.Bytes) < spikeShare {
		return nil
	}
	f := finding.Finding{
		Kind: finding.Spike, Severity: finding.Info, Confidence: 1 - share(peak.By[purpose.Unknown], peak.Bytes),
		Device: &device, Process: p.Name, Site: siteOf(r.Site), Stack: framesOf(b.Stacks.Short(r.Stack)),
		Bytes: finding.Int(r.Bytes), Count: finding.Int(int64(r.Count)),
		Title: fmt.Sprintf("without the %s in %s at %s, freed before the step ends, the peak of %s would be %s",
			units.Bytes(r.Bytes), units.Plural(int64(r.Count), "allocation"), short(r.Site), units.Bytes(peak.Bytes), units.Bytes(r.Without)),
		Basis: "the history, replayed without the memory that this place allocates and frees within a step",
		Evidence: &finding.SpikeEvidence{
			Event: peak.Event, PeakBytes: peak.Bytes, PeakWithoutBytes: r.Without, NextPeakEvent: eventAt(r.Event),
			PlaceBytes: r.Bytes, KeptForBackwardBytes: r.Kept, EchoBytes: r.Echo, PassingBytes: passing(peak), Reliefs: reliefsOf(d.Purpose.Reliefs),
		},
	}
	f.Brief.Title = fmt.Sprintf("%s of the peak: without it %s instead of %s", units.Bytes(r.Bytes), units.Bytes(r.Without), units.Bytes(peak.Bytes))
	f.Brief.Next = inspecting(p.Newest().Name, peak.Event, device)
	addSpike(&f, d)
	f.Remedies = spikeRemedies(b.Stacks.Stack(r.Stack), r)
	return []finding.Finding{f}
}

// passing is what activations and temporaries hold at a moment.
func passing(m *purpose.Moment) int64 { return m.By[purpose.Activations] + m.By[purpose.Temporaries] }

// addSpike states what share of the peak comes and goes with each step, what
// limits next, and which other places to look at.
func addSpike(f *finding.Finding, d *digest.Device) {
	peak := &d.Purpose.Peak
	f.Detail = append(f.Detail, fmt.Sprintf("activations and temporaries are %s of the peak, %s",
		units.Percent(share(passing(peak), peak.Bytes)), units.Bytes(passing(peak))))
	first := &d.Purpose.Reliefs[0]
	if first.Echo > 0 {
		f.Detail = append(f.Detail, fmt.Sprintf("the backward pass holds %s more in allocations of half, equal or twice the size, which shrink with these", units.Bytes(first.Echo)))
	}
	if first.Event != peak.Event && first.Event != timeline.Never {
		f.Detail = append(f.Detail, fmt.Sprintf("the peak would then be at event %s; if only part of this can be avoided, less is saved", units.Count(int64(first.Event))))
	}
	const others = 2
	for i := 1; i < len(d.Purpose.Reliefs) && i <= others; i++ {
		r := &d.Purpose.Reliefs[i]
		if share(peak.Bytes-r.Without, peak.Bytes) >= noteShare {
			f.Detail = append(f.Detail, fmt.Sprintf("without the %s of %s the peak would be %s", units.Bytes(r.Bytes), short(r.Site), units.Bytes(r.Without)))
		}
	}
}

func reliefsOf(reliefs []purpose.Relief) (out []finding.Relief) {
	for i := range reliefs {
		r := &reliefs[i]
		out = append(out, finding.Relief{
			Site: siteOf(r.Site), Bytes: r.Bytes, Count: r.Count, KeptForBackwardBytes: r.Kept,
			EchoBytes: r.Echo, PeakWithoutBytes: r.Without, NextPeakEvent: eventAt(r.Event),
		})
	}
	return out
}

// spikeRemedies are what to do about a place: autocast's casts and an optimizer's
// temporaries have settings of their own, a loss can be computed in chunks, what many
// layers keep can be recomputed, and the rest need not be held all at once.
func spikeRemedies(frames []stack.Frame, r *purpose.Relief) []finding.Remedy {
	const layers = 4 // with this many allocations or more, no single tensor is the cause
	switch {
	case 2*r.Cast > r.Bytes:
		return castRemedies(r.Kept, r.Bytes, "")
	case stack.InForeach(frames):
		return []finding.Remedy{finding.SettingChange("foreach=False",
			"let the optimizer update one tensor after another").
			Because("with foreach, PyTorch's default, its temporaries are as large as all parameters; fused=True, where supported, needs none")}
	case stack.InSingle(frames):
		return []finding.Remedy{finding.SettingChange("fused=True", "let the optimizer update without temporaries, where it supports that")}
	case stack.InUpdate(frames):
		return []finding.Remedy{finding.CodeChange("update in place: mul_, add_, addcdiv_, torch._foreach_… for small tensors").
			Because("each operation that creates a new tensor holds another copy")}
	case stack.InLoss(frames):
		return []finding.Remedy{finding.CodeChange("compute the loss in chunks of tokens, each inside torch.utils.checkpoint, or by Liger's fused linear cross-entropy").
			Because("logits and their copies are then never held whole; torch.nn.functional.linear_cross_entropy does so since PyTorch 2.13")}
	case 2*r.Kept > r.Bytes && r.Count >= layers:
		return []finding.Remedy{finding.CodeChange("put torch.utils.checkpoint around the layers").
			Because("these are kept for the backward pass, and are then recomputed instead. A smaller micro-batch with gradient accumulation needs proportionally less")}
	case 2*r.Kept > r.Bytes:
		return []finding.Remedy{finding.CodeChange("compute it in chunks, each inside torch.utils.checkpoint; if these are logits, the loss with them").
			Because("it is kept for the backward pass")}
	}
	return []finding.Remedy{finding.CodeChange("compute it in chunks, write into a buffer (out=), or del used tensors before the next large one")}
}
