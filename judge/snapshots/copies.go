package snapshots

import (
	"fmt"
	"math"

	"strandline/finding"
	"strandline/torch/purpose"
	"strandline/units"
)

// copies finds a tensor that is in the peak together with plain copies of it. It is a
// note at most: no file records what an operation read.
func copies(s *subject) (out []finding.Finding) {
	b, p, device, d := s.book, s.process, s.device, s.newest
	peak := &d.Purpose.Peak
	for i := range d.Purpose.Families {
		x := &d.Purpose.Families[i]
		if severityOf(x.CopyBytes(), peak.Bytes) == "" {
			continue
		}
		first := &x.Copies[0]
		f := finding.Finding{
			Kind: finding.Copies, Severity: finding.Info, Confidence: copiesConfidence(x), Device: &device, Process: p.Name,
			Title: copiesTitle(x, peak.Bytes), Site: siteOf(first.Site), Stack: framesOf(b.Stacks.Short(first.Stack)),
			Bytes: finding.Int(x.CopyBytes()), Count: finding.Int(int64(len(x.Copies))),
			Basis: "C++ frames show operations that copy, and only one tensor had the right size to be their source. Each repetition in the history adds to the confidence",
			Evidence: &finding.CopiesEvidence{
				Event: peak.Event, PeakBytes: peak.Bytes, Source: siteOf(x.Site), SourceBytes: x.Bytes,
				CopiesBytes: x.CopyBytes(), Copies: copiesOf(x),
			},
			Remedies: copiesRemedies(x),
		}
		f.Brief = finding.Brief{
			Title: fmt.Sprintf("%s of the peak in %s of a tensor of %s", units.Bytes(x.CopyBytes()), units.Counted(int64(len(x.Copies)), "copy", "copies"), units.Bytes(x.Bytes)),
			Next:  inspecting(p.Newest().Name, peak.Event, device),
		}
		out = append(out, f)
	}
	return out
}

// copiesConfidence is the confidence that the copies are of that tensor: a single match
// of sizes may be chance.
func copiesConfidence(x *purpose.Family) float64 {
	const once, maxConfidence = 0.6, 0.9
	times := math.MaxInt
	for i := range x.Copies {
		times = min(times, x.Copies[i].Times)
	}
	return min(maxConfidence, 1-(1-once)*math.Pow(0.5, float64(times-1)))
}

func copiesTitle(x *purpose.Family, peak int64) string {
	source := fmt.Sprintf("the %s allocated at %s", units.Bytes(x.Bytes), short(x.Site))
	if len(x.Copies) == 1 {
		return fmt.Sprintf("%s of the peak of %s, allocated at %s, seems to be a copy of %s, also kept",
			units.Bytes(x.CopyBytes()), units.Bytes(peak), short(x.Copies[0].Site), source)
	}
	return fmt.Sprintf("%s of the peak of %s seems to be %d copies of one tensor, of %s. They are allocated at %s",
		units.Bytes(x.CopyBytes()), units.Bytes(peak), len(x.Copies), source, places(x.Copies))
}

func places(copies []purpose.Copy) (text string) {
	const maxPlaces = 3
	seen := map[string]bool{}
	for i := range copies {
		name := short(copies[i].Site)
		if seen[name] {
			continue
		}
		if seen[name] = true; len(seen) > maxPlaces {
			return text + ", …"
		}
		if text != "" {
			text += ", "
		}
		text += name
	}
	return text
}

func copiesOf(x *purpose.Family) (out []finding.Copy) {
	for i := range x.Copies {
		c := &x.Copies[i]
		out = append(out, finding.Copy{Site: siteOf(c.Site), Operator: c.Op, Bytes: c.Bytes, Times: c.Times})
	}
	return out
}

func copiesRemedies(x *purpose.Family) []finding.Remedy {
	if len(x.Copies) > 1 {
		return []finding.Remedy{finding.CodeChange("make the copy once and pass it on")}
	}
	if x.Copies[0].Op == "_to_copy" {
		return []finding.Remedy{finding.CodeChange("convert in chunks, or as late as possible").
			Because("dropping the original first (x = x.float(), with no other reference to it) helps unless the backward pass needs it")}
	}
	return []finding.Remedy{finding.CodeChange("create the tensor in the layout in which it is needed, so that contiguous() and clone() have nothing to copy")}
}
