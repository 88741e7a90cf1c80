package snapshots

import (
	"strandline/finding"
	"strandline/judge/shortage"
	"strandline/torch/timeline"
)

// What the detectors of single costs (waiting, private pools, rounding, copies) report
// must repay the time it takes to read. Whatever they do, recorded programs under the
// allocator's defaults lose up to 5.0 % to rounding (large ones 2.7 %), and prefetchers
// 4.7 % to batches in flight. What a setting or a mistake costs begins at 7 %, so a note
// begins in between, at 6 % of the memory. A warning begins at a fifth, which allows a
// batch that is a fifth larger, and at 512 MiB, below which no change of code pays, as
// with fragmentation.
const (
	noteShare  = 0.06
	minNote    = 1 << 20
	warnShare  = 0.20
	minWarning = shortage.MinOverhead
)

// severityOf is how much some bytes out of all of them matter; "" is not at all.
func severityOf(bytes, all int64) finding.Severity {
	switch s := share(bytes, all); {
	case s >= warnShare && bytes >= minWarning:
		return finding.Warning
	case s >= noteShare && bytes >= minNote:
		return finding.Info
	}
	return ""
}

// mostly is the end of a title: where most of the memory was allocated.
func mostly(sums []timeline.SiteSum) string {
	for _, s := range sums {
		if site := siteOf(s.Site); site != nil {
			return "; most of it was allocated at " + short(s.Site)
		}
	}
	return ""
}

// addSums lists the places that a finding is about, and makes the heaviest the finding's
// own. It returns the bytes without a known place, nil if there are none.
func addSums(f *finding.Finding, sums []timeline.SiteSum) (unknown *int64) {
	unknown = addSites(f, sums)
	if len(f.Sites) > 0 {
		f.Site = &f.Sites[0].Site
	}
	return unknown
}

// addSites lists places, for machines. It returns the bytes without a known place,
// nil if there are none.
func addSites(f *finding.Finding, sums []timeline.SiteSum) (unknown *int64) {
	for _, s := range sums {
		if site := siteOf(s.Site); site != nil {
			f.Sites = append(f.Sites, finding.Place{Site: *site, Bytes: s.Bytes, Count: int64(s.Count)})
		} else {
			unknown = finding.Int(s.Bytes)
		}
	}
	return unknown
}

// share is a part divided by its whole, 0 if the whole is 0.
func share(part, whole int64) float64 {
	if whole == 0 {
		return 0
	}
	return float64(part) / float64(whole)
}
