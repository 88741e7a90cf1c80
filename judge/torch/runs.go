package torch

import (
	"fmt"

	"strandline/finding"
	"strandline/torch/compare"
)

// otherRuns warns of files that are judged as one process and seem to be of
// several: a history that begins with an empty device, after another one ended.
func otherRuns(p *compare.Process, device int) []finding.Finding {
	for j := 1; j < len(p.Files); j++ {
		old, cur := p.Files[j-1].Device(device), p.Files[j].Device(device)
		if !cur.Complete || !cur.HasTime || cur.Events == 0 || old.End == 0 || cur.Start <= old.End {
			continue
		}
		return []finding.Finding{{
			Kind: finding.History, Severity: finding.Warning, Confidence: 1, Device: &device, Process: p.Name,
			Title: fmt.Sprintf("these files seem to be of two runs: the history of %s begins with an empty device after %s ended",
				plain(p.Files[j].Name), plain(p.Files[j-1].Name)),
			Basis:    "the times of the histories do not overlap, and the later one starts from nothing",
			Evidence: map[string]any{"end_time_us": old.End, "start_time_us": cur.Start},
			Remedies: []finding.Remedy{finding.CodeChange("diagnose each run by itself, or tell them apart with --group; compare --runs holds two runs against each other")},
		}}
	}
	return nil
}
