package api

import (
	"slices"

	"strandline/finding"
)

// heldBytes is how much a note is about, of those on a single process of which there can be one
// for each of many, by kind.
var heldBytes = map[finding.Kind]func(finding.Evidence) int64{
	finding.Peak:          held(func(e *finding.PeakEvidence) int64 { return e.Bytes }),
	finding.Spike:         held(func(e *finding.SpikeEvidence) int64 { return e.PlaceBytes }),
	finding.Copies:        held(func(e *finding.CopiesEvidence) int64 { return e.CopiesBytes }),
	finding.AutocastCache: held(func(e *finding.AutocastEvidence) int64 { return e.CacheBytes }),
	finding.Waiting:       held(func(e *finding.WaitingEvidence) int64 { return e.PeakWaitingBytes }),
	finding.PrivatePools:  held(func(e *finding.PrivatePoolsEvidence) int64 { return e.PrivateReservedBytes }),
	finding.Rounding:      held(func(e *finding.RoundingEvidence) int64 { return e.LostBytes }),
	finding.Pinned:        held(func(e *finding.PinnedEvidence) int64 { return e.LostBytes }),
}

// held is a figure of one type of evidence, 0 of others.
func held[E finding.Evidence](of func(E) int64) func(finding.Evidence) int64 {
	return func(e finding.Evidence) int64 {
		if e, ok := e.(E); ok {
			return of(e)
		}
		return 0
	}
}

// PerProcess reports whether a kind of note is on a single process, of which there can be one for
// each of many.
func PerProcess(kind finding.Kind) bool { return heldBytes[kind] != nil }

// Dwarfed reports whether a note is about one of several processes while a note of the
// same kind about another process is about more memory: only the largest is printed.
func Dwarfed(findings []finding.Finding, i int) bool {
	f := &findings[i]
	bytes := heldBytes[f.Kind]
	if bytes == nil || f.Severity != finding.Info {
		return false
	}
	for k := range findings {
		g := &findings[k]
		if g.Kind != f.Kind || g.Process == f.Process {
			continue
		}
		if a, b := bytes(f.Evidence), bytes(g.Evidence); b > a || b == a && k < i {
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
		saves := PerProcess(f.Kind) && f.Kind != finding.Peak && !Dwarfed(findings, i)
		e, _ := f.Evidence.(*finding.FragmentationEvidence)
		if saves || e != nil && e.SavedBytes > 0 || f.Kind == finding.Growth {
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
