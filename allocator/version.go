package allocator

import (
	"fmt"
	"strings"
)

// A Version is a release of PyTorch: major*100 + minor, so that 206 is 2.6 and
// 210 is 2.10. Zero is unknown.
type Version int

// newest is the last release whose settings are known here; an unknown one is
// taken to be it.
const newest Version = 214

// orNewest is the release whose rules hold.
func (v Version) orNewest() Version {
	if v <= 0 || v > newest {
		return newest
	}
	return v
}

// Recordings of PyTorch that the allocator was held against: those of tested
// under every setting, those from oldest to latest that people published.
// Snapshots of 2.5 to 2.7 cannot be told apart.
const (
	oldest Version = 200
	tested Version = 206
	latest Version = 210
)

// Unverified says what of a release's allocator, under settings, was read from
// its source alone: no recording was there to hold it against.
func (v Version) Unverified(set *Settings, privatePools bool) (out []string) {
	switch {
	case v <= 0:
		out = append(out, fmt.Sprintf("the rules of PyTorch %s: the file does not tell its release", newest))
	case v > newest:
		out = append(out, fmt.Sprintf("the rules of PyTorch %s, the last one known, for %s", newest, v))
	case v < oldest || v > latest:
		out = append(out, fmt.Sprintf("the rules of PyTorch %s are unverified: they are read from its source alone", v))
	}
	if v >= tested-1 && v <= tested+1 {
		return out
	}
	var rules []string
	if set.MaxSplitSize != Unlimited {
		rules = append(rules, "max_split_size_mb")
	}
	if set.GCThreshold > 0 {
		rules = append(rules, "garbage_collection_threshold")
	}
	if privatePools {
		rules = append(rules, "private pools")
	}
	if len(rules) > 0 {
		out = append(out, fmt.Sprintf("unverified but for PyTorch %s: %s", tested, strings.Join(rules, ", ")))
	}
	return out
}

// poolsRetry tells whether a request to a MemPool has all other memory released
// before it fails. Up to 2.12 none to a private pool has, as a graph may be
// captured into it; since then PyTorch tells captures from MemPools.
func (v Version) poolsRetry() bool { return v.orNewest() >= 213 }

func (v Version) String() string {
	if v <= 0 {
		return "unknown"
	}
	return fmt.Sprintf("%d.%d", v/100, v%100)
}
