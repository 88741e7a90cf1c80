package snapshots

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"strandline/finding"
	"strandline/internal/shell"
	"strandline/judge/shortage"
	"strandline/torch/compare"
	"strandline/torch/digest"
	"strandline/torch/timeline"
	"strandline/units"
)

// certain is the confidence from which fragmentation at the peak is a problem.
const certain = 0.9

// fragmentation finds reserved memory that is far above what is active. It distinguishes
// the cache left by a high peak, which empty_cache returns, from memory in pieces, which
// it cannot return.
func fragmentation(s *subject) []finding.Finding {
	p, device, d := s.process, s.device, s.newest
	free := d.Space.Releasable + d.Space.Stranded
	grows := reservedGrows(p, device)
	// Free memory in private pools has its own finding.
	overhead := d.Space.Overhead-privateFree(d) >= shortage.MinOverhead && float64(d.Space.Overhead) >= shortage.MinOverheadShare*float64(d.PeakReserved)
	much := free > 0 && float64(free) >= shortage.MinFreeShare*float64(d.Reserved)
	savable := !grows && !overhead && savedBySetting(d)
	if !much && !grows && !overhead && !savable {
		return nil
	}
	e := &finding.FragmentationEvidence{
		ReleasableBytes: d.Space.Releasable, StrandedBytes: d.Space.Stranded, ReservedBytes: d.Reserved,
		TakenThoughFreeBytes: d.Space.Taken, OverheadBytes: d.Space.Overhead, PeakReservedBytes: d.PeakReserved,
	}
	f := finding.Finding{
		Kind: finding.Fragmentation, Severity: finding.Info, Confidence: 1, Device: &device, Process: p.Name,
		Title: fmt.Sprintf("%s of %s reserved is free: empty_cache() would return %s, %s is stranded next to active blocks",
			units.Bytes(free), units.Bytes(d.Reserved), units.Bytes(d.Space.Releasable), units.Bytes(d.Space.Stranded)),
		Basis: "the state of the segments and the history of driver calls", Evidence: e,
	}
	if d.Space.Taken > 0 {
		f.Detail = append(f.Detail, fmt.Sprintf("%s was taken from the driver although as much was free, in pieces; active memory does not explain %s",
			units.Bytes(d.Space.Taken), units.Bytes(d.Space.Overhead)))
	}
	now := f.Title
	if free == 0 {
		now = units.Bytes(d.Reserved) + " is reserved, and none of it is free"
	}
	switch {
	case savable:
		e.SavedBytes = d.Trial.Saves()
		f.Title = fmt.Sprintf("expandable segments would lower the peak of reserved memory from %s to %s", units.Bytes(d.Trial.Own), units.Bytes(d.Trial.Peak))
		f.Detail = append([]string{"now " + now}, f.Detail...)
		f.Basis = "the history, simulated with the setting"
	case grows:
		f.Severity = finding.Problem
		f.Confidence = 1 - math.Pow(0.5, float64(len(p.Files)-1))
		f.Basis = fmt.Sprintf("reserved memory rose from file to file in %d files, while the peak of requested memory did not", len(p.Files))
		f.Title = "reserved memory grows while active memory does not: " + f.Title
	case overhead:
		f.Severity = finding.Warning
		f.Title = fmt.Sprintf("%s of the %s reserved at the peak is fragmentation: the active memory did not need it",
			units.Bytes(d.Space.Overhead), units.Bytes(d.PeakReserved))
		f.Detail = append([]string{"now " + now}, f.Detail...)
		f.Confidence = min(1, float64(d.Space.Overhead)/float64(d.PeakReserved)/shortage.MinOverheadShare/2)
		f.Basis = fmt.Sprintf("%s of the peak of reserved memory; %s is where this warning begins",
			units.Percent(float64(d.Space.Overhead)/float64(d.PeakReserved)), units.Percent(shortage.MinOverheadShare))
		if f.Confidence >= certain {
			f.Severity = finding.Problem
		}
	}
	briefFragmentation(&f, s, grows, overhead, savable)
	e.Pins, e.SparsePins, e.PinnedBy = pinned(&f, &d.Space.Free)
	addGap(&f, d)
	f.Remedies = fragmentationRemedies(d)
	if savable {
		f.Remedies = slices.Concat(expandable(d.Conf, d.Trial), f.Remedies)
	}
	if grows || overhead {
		f.Remedies = slices.Insert(f.Remedies, min(1, len(f.Remedies)), returning(s)...)
	}
	return []finding.Finding{f}
}

// savedBySetting reports whether a setting would take so much off the peak of a run that it is
// worth a note, though nothing is wrong.
func savedBySetting(d *digest.Device) bool {
	const minShare = 1.0 / 4
	t := d.Trial
	return t != nil && t.Exact && !t.RanOut && !t.RunsOut && d.Space.Overhead < shortage.MinOverhead && float64(t.Saves()) >= minShare*float64(t.Own)
}

// briefFragmentation fills in what the first screen states of it.
func briefFragmentation(f *finding.Finding, s *subject, grows, overhead, savable bool) {
	d := s.newest
	free := d.Space.Releasable + d.Space.Stranded
	now := &finding.Account{Bytes: d.Reserved, Name: "reserved"}
	now.Add(d.Reserved-free, "used")
	now.Add(d.Space.Releasable, "released by empty_cache()")
	now.Add(d.Space.Stranded, "stranded")
	b := &f.Brief
	if name := s.process.Newest().Name; name != "-" {
		b.Next = "strandline simulate " + shell.File(name) + " --search" + onDevice(s.device)
	}
	switch b.Account = now; {
	case savable:
		b.Title = f.Title
	case grows:
		b.Title = fmt.Sprintf("reserved memory grows, active memory does not: %s of %s is free", units.Bytes(free), units.Bytes(d.Reserved))
	case overhead:
		b.Title = fmt.Sprintf("%s of the %s reserved at the peak is free, in pieces", units.Bytes(d.Space.Overhead), units.Bytes(d.PeakReserved))
		b.Account = &finding.Account{Bytes: d.PeakReserved, Name: "peak"}
		b.Account.Add(d.PeakReserved-d.Space.Overhead, "needed by active memory")
		b.Account.Add(d.Space.Overhead, "in free pieces")
	default:
		b.Title = fmt.Sprintf("%s of %s reserved is free, %s of it stranded", units.Bytes(free), units.Bytes(d.Reserved), units.Bytes(d.Space.Stranded))
	}
}

// addGap states how much of what the finding states remains, if the simulated setting saves
// less than half of it.
func addGap(f *finding.Finding, d *digest.Device) {
	stated, what := d.Space.Stranded, "stranded now"
	if f.Severity == finding.Warning {
		stated, what = d.Space.Overhead, "fragmentation at the peak"
	}
	t := d.Trial
	if t == nil || t.RanOut && !t.RunsOut || stated < shortage.MinOverhead || 2*t.Saves() >= stated {
		return
	}
	text := fmt.Sprintf("of the %s that are %s, expandable segments, simulated on this history, would take %s off the peak: "+
		"the rest may lie in pools and streams of their own, between blocks of one page, or in rounding",
		units.Bytes(stated), what, units.Bytes(max(0, t.Saves())))
	if n := privateFree(d); n > 0 {
		text += fmt.Sprintf("; %s is free in private pools", units.Bytes(n))
	}
	f.Detail = append(f.Detail, text)
}

// reservedGrows reports whether reserved memory rises from file to file while the peak of
// requested memory stays the same.
func reservedGrows(p *compare.Process, device int) bool {
	const minFiles, clearly, flat = 3, 1.2, 1.05
	if len(p.Files) < minFiles {
		return false
	}
	for j := 1; j < len(p.Files); j++ {
		if p.Files[j].Device(device).Reserved <= p.Files[j-1].Device(device).Reserved {
			return false
		}
	}
	first, last := p.Files[0].Device(device), p.Newest().Device(device)
	return float64(last.Reserved) > clearly*float64(first.Reserved) &&
		float64(last.PeakRequested) <= flat*float64(first.PeakRequested)
}

// pinned states what keeps stranded memory from being returned: the few blocks in segments
// that are mostly free, if most of the stranded memory is there. It returns the pins of
// all segments, the pins of those that are mostly free, and the places that made the pins
// of all segments.
func pinned(f *finding.Finding, free *timeline.Free) (all, sparse *finding.Pins, by []finding.PinSite) {
	if len(free.Pins.Sites) == 0 {
		return nil, nil, nil
	}
	pins, where := &free.Pins, "stranded: %s in %s"
	if len(free.Sparse.Sites) > 0 && 2*free.Sparse.Stranded >= free.Pins.Stranded {
		pins, where = &free.Sparse, "stranded: %s in %s that are at least half free"
	}
	f.Detail = append(f.Detail, fmt.Sprintf(where+", pinned by %s of %s in all, %s allocated at %s",
		units.Bytes(pins.Stranded), units.Plural(int64(pins.Segments), "segment"), units.Plural(int64(pins.Blocks), "block"), units.Bytes(pins.Bytes),
		partOf(pins.Sites[0].Count, pins.Blocks), short(pins.Sites[0].Site)))
	return pinsOf(&free.Pins), pinsOf(&free.Sparse), pinSites(free.Pins.Sites)
}

// partOf states how many of the whole are meant.
func partOf(part, whole int) string {
	switch {
	case whole == 1:
		return "which was"
	case part == whole:
		return "all of them"
	}
	return units.Count(int64(part)) + " of them"
}

func pinsOf(p *timeline.Pins) *finding.Pins {
	return &finding.Pins{Segments: p.Segments, StrandedBytes: p.Stranded, Blocks: p.Blocks, Bytes: p.Bytes}
}

// pinSites are the places that made most of some pins, for machines.
func pinSites(sites []timeline.SiteSum) (out []finding.PinSite) {
	const maxSites = 10
	for i, p := range sites {
		if i == maxSites {
			break
		}
		out = append(out, finding.PinSite{Site: siteOf(p.Site), Count: p.Count, Bytes: p.Bytes})
	}
	return out
}

// returning are the remedies that leave the allocator's settings as they are: unused memory is
// returned at the ends of steps, where that gives something on this history, and an engine that
// shares the device leaves more of it.
func returning(s *subject) (out []finding.Remedy) {
	d := s.newest
	if r := d.Reclaim; r != nil {
		how := "simulated on this history"
		if !r.Exact {
			how = "simulated approximately"
		}
		var gives []string
		saves := r.Own - r.Peak
		if saves >= shortage.MinOverhead {
			gives = append(gives, fmt.Sprintf("the run peaks at %s reserved instead of %s", units.Bytes(r.Peak), units.Bytes(r.Own)))
		}
		if r.Returned >= shortage.MinOverhead {
			gives = append(gives, fmt.Sprintf("a call returns %s", units.Bytes(r.Returned)))
		}
		if len(gives) > 0 {
			remedy := shortage.Reclaim(s.reclaiming(r.Policy), fmt.Sprintf("%s, %s", how, strings.Join(gives, ", and ")))
			remedy.Effect = &finding.Effect{PeakReserved: r.Peak, Saves: saves, Exact: r.Exact}
			out = append(out, remedy)
		}
	}
	if about := s.process.About; about != nil && len(about.Beside[s.device].Others) > 0 && d.Space.Overhead >= shortage.MinOverhead {
		out = append(out, shortage.LowerFraction(d.Space.Overhead))
	}
	return out
}

// reclaiming is the command that records the program and returns unused memory by a policy.
func (s *subject) reclaiming(policy string) string {
	command := "python TRAIN.py"
	if again, ok := strings.CutPrefix(s.recordAgain(), "strandline record "); ok {
		line, _, _ := strings.Cut(again, "\n")
		_, command, _ = strings.Cut(line, "-- ")
	}
	return "strandline record --reclaim " + policy + " -- " + command
}

func fragmentationRemedies(d *digest.Device) (out []finding.Remedy) {
	stranded := d.Space.Stranded > d.Space.Releasable
	if !d.Expandable && (stranded && d.Space.Stranded >= shortage.MinOverhead || d.Space.Overhead >= shortage.MinOverhead) {
		out = append(out, expandable(d.Conf, d.Trial)...)
	}
	switch {
	case stranded:
		out = append(out, finding.CodeChange("allocate long-lived tensors before short-lived ones, so that they do not lie between temporaries"))
	case d.Space.Releasable > 0:
		out = append(out, finding.CodeChange("call torch.cuda.empty_cache() after the phase with the high peak, if other processes need the memory").
			Because("this process would reuse it anyway"))
	}
	return out
}
