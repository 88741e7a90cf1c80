package tables

import (
	"fmt"

	"strandline/finding"
	"strandline/internal/lazyregexp"
	"strandline/judge/shortage"
	"strandline/profiles"
	"strandline/trend"
	"strandline/units"
)

// reservedName and allocatedName are names of columns of PyTorch's allocator.
var (
	reservedName  = lazyregexp.New(`(?i)\breserved\b|_reserved|reserved_`)
	allocatedName = lazyregexp.New(`(?i)\ballocated\b|_allocated|allocated_`)
)

// cacheGrows adds to a finding that reserved memory grows what gives it back, where the table
// shows that allocated memory does not grow: the cache is the difference, which bounds what
// any remedy gives.
func cacheGrows(f *finding.Finding, c *profiles.Column, all []profiles.Column) {
	if !reservedName.MatchString(c.Name) || f.Severity != finding.Problem {
		return
	}
	for i := range all {
		a := &all[i]
		if !allocatedName.MatchString(a.Name) || a.Process != c.Process {
			continue
		}
		v := trend.JudgeLevels(a.Times, a.Bytes)
		unused := int64(c.Bytes[len(c.Bytes)-1] - a.Bytes[len(a.Bytes)-1])
		if v.Leaks() || v.Shape == trend.Unknown || unused < minGrowth {
			return
		}
		size := units.Bytes(unused)
		f.Detail = append(f.Detail, fmt.Sprintf("%s does not grow: the growth is PyTorch's cache, %s at the end", a.Name, size))
		f.Brief.Fact = fmt.Sprintf("%s of it is PyTorch's cache: allocated memory does not grow", size)
		f.Remedies = append([]finding.Remedy{
			finding.SettingChange("PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", "enable expandable segments").
				Because("segments then shrink page by page, so fewer pieces stay unused"),
			shortage.Reclaim("strandline record --reclaim every=100steps -- python TRAIN.py", "that gives back at most "+size),
			shortage.LowerFraction(unused),
		}, f.Remedies...)
		return
	}
}
