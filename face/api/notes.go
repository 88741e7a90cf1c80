package api

import (
	"slices"

	"strandline/finding"
)

// perProcess are the kinds of notes on a single process of which there can be one
// for each of many.
var perProcess = map[finding.Kind]bool{
	finding.Peak: true, finding.Spike: true, finding.Copies: true, finding.AutocastCache: true, finding.Waiting: true,
	finding.PrivatePools: true, finding.Rounding: true, finding.Pinned: true,
}

// heldBytes is how much such a note is about, 0 for other findings.
func heldBytes(e finding.Evidence) int64 {
	switch e := e.(type) {
	case *finding.PeakEvidence:
		return e.Bytes
	case *finding.SpikeEvidence:
		return e.PlaceBytes
	case *finding.CopiesEvidence:
		return e.CopiesBytes
	case *finding.AutocastEvidence:
		return e.CacheBytes
	case *finding.WaitingEvidence:
		return e.PeakWaitingBytes
	case *finding.PrivatePoolsEvidence:
		return e.PrivateReservedBytes
	case *finding.RoundingEvidence:
		return e.LostBytes
	case *finding.PinnedEvidence:
		return e.LostBytes
	}
	return 0
}

// PerProcess reports whether a kind of note is on a single process, of which there can be one for
// each of many.
func PerProcess(kind finding.Kind) bool { return perProcess[kind] }

// Dwarfed reports whether a note is about one of several processes while a note of the
// same kind about another process is about more memory: only the largest is printed.
func Dwarfed(findings []finding.Finding, i int) bool {
	f := &findings[i]
	if !perProcess[f.Kind] || f.Severity != finding.Info {
		return false
	}
	for k := range findings {
		g := &findings[k]
		a, b := heldBytes(f.Evidence), heldBytes(g.Evidence)
		if g.Kind == f.Kind && g.Process != f.Process && (b > a || b == a && k < i) {
			return true
		}
	}
	return false
}

// Asking are the findings that ask for something. What is not recorded is none of them by itself.
func Asking(findings []finding.Finding) (list []*finding.Finding) {
	for i := range findings {
		if f := &findings[i]; f.Severity != finding.Info && (f.Kind != finding.History || len(list) > 0) {
			list = append(list, f)
		}
	}
	return list
}

// Savings are the notes that a first screen shows where nothing asks for something: those that
// could save memory.
func Savings(findings []finding.Finding) (list []*finding.Finding) {
	for i := range findings {
		f := &findings[i]
		held := perProcess[f.Kind] && f.Kind != finding.Peak && !Dwarfed(findings, i)
		e, _ := f.Evidence.(*finding.FragmentationEvidence)
		if held || e != nil && e.SavedBytes > 0 || f.Kind == finding.Growth {
			list = append(list, f)
		}
	}
	return list
}

// PeakOf is the note on the peak, or on what is live, of the process with the largest; nil
// if there is none.
func PeakOf(findings []finding.Finding) *finding.Finding {
	for i := range findings {
		if f := &findings[i]; f.Kind == finding.Peak && !Dwarfed(findings, i) || f.Kind == finding.Usage {
			return f
		}
	}
	return nil
}

// HistoryOf is the first note on what the recording does not show; nil if there is none.
func HistoryOf(findings []finding.Finding) *finding.Finding {
	if i := slices.IndexFunc(findings, func(f finding.Finding) bool { return f.Kind == finding.History }); i >= 0 {
		return &findings[i]
	}
	return nil
}
