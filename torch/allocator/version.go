package allocator

import (
	"fmt"
	"slices"
	"strings"
)

// A Version is a release of PyTorch: major*100 + minor, so that 206 is 2.6 and
// 210 is 2.10. Zero is unknown.
type Version int

// Newest is the last release whose rules are known here; an unknown one is
// taken to be it.
const Newest Version = 215

// orNewest is the release whose rules hold.
func (v Version) orNewest() Version {
	if v <= 0 || v > Newest {
		return Newest
	}
	return v
}

// Recordings of PyTorch that the allocator was checked against: those from tested to
// latest under every setting (bench/pytorch), older ones, which people published, under
// few others than the defaults. Snapshots of 2.5 to 2.7 cannot be distinguished.
const (
	oldest Version = 200
	tested Version = 206
	latest Version = 215
)

// Unverified returns what of a release's allocator, under settings, was read from
// its source alone: no recording was there to hold it against.
func (v Version) Unverified(set *Settings, privatePools bool) (out []string) {
	if set.Ascend {
		return []string{"the rules of torch_npu's allocator are unverified: they are read from its source alone"}
	}
	switch {
	case v <= 0:
		out = append(out, fmt.Sprintf("the rules of PyTorch %s: the file does not name its release", Newest))
	case v > Newest:
		out = append(out, fmt.Sprintf("the rules of PyTorch %s, the last one known, for %s", Newest, v))
	case v < oldest || v > latest:
		out = append(out, fmt.Sprintf("the rules of PyTorch %s are unverified: they are read from its source alone", v))
	}
	if rules := v.Untested(set, privatePools); len(rules) > 0 {
		out = append(out, UntestedNote(rules))
	}
	return out
}

// Untested are the rules that settings use and that were checked against recordings
// of another release alone.
func (v Version) Untested(set *Settings, privatePools bool) (rules []string) {
	if v >= tested-1 && v <= latest {
		return nil
	}
	for _, rule := range []struct {
		name string
		used bool
	}{
		{"expandable_segments", set.Expandable && v > 0},
		{"garbage_collection_threshold", set.GCThreshold > 0},
		{"max_non_split_rounding_mb", set.MaxNonSplitRounding != set.LargeSegment},
		{"max_split_size_mb", set.MaxSplitSize != Unlimited},
		{"roundup_power2_divisions", slices.Max(set.RoundupDivisions[:]) > 1},
		{"private pools", privatePools},
	} {
		if rule.used {
			rules = append(rules, rule.name)
		}
	}
	return rules
}

// UntestedNote states that rules are untested.
func UntestedNote(rules []string) string {
	return fmt.Sprintf("unverified but for PyTorch %s to %s: %s", tested, latest, strings.Join(rules, ", "))
}

// poolsRetry reports whether a request to a MemPool has all other memory released
// before it fails. Up to 2.12 none to a private pool has, as a graph may be
// captured into it; since then PyTorch distinguishes captures from MemPools.
func (v Version) poolsRetry() bool { return v.orNewest() >= 213 }

// births are what decides between free blocks of equal size.
type births uint8

const (
	noBirths      births = iota // their addresses
	blockBirths                 // the order in which PyTorch made its blocks
	segmentBirths               // the order in which memory was taken, then their addresses
)

// births is the rule of a release: 2.12 counts blocks, those since then segments.
func (v Version) births() births {
	switch v = v.orNewest(); {
	case v < 212:
		return noBirths
	case v == 212:
		return blockBirths
	}
	return segmentBirths
}

// BearsSegments and BearsBlocks report what the order of births is of, by which a release
// decides between free blocks of equal size.
func (v Version) BearsSegments() bool { return v.births() == segmentBirths }
func (v Version) BearsBlocks() bool   { return v.births() == blockBirths }

func (v Version) String() string {
	if v <= 0 {
		return "unknown"
	}
	return fmt.Sprintf("%d.%d", v/100, v%100)
}
