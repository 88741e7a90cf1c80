package handovers

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"strandline/finding"
	"strandline/internal/sorts"
	"strandline/units"
)

// minReported is too little to report.
const minReported = 64 << 20

// judge finds what stays behind that need not, and what grows.
func (c *Check) judge(times map[string][]span) {
	c.growth(times)
	if b := c.Behind; b != nil {
		// What the trainer's cache has is seen as the next tags come back.
		most := &b.Least
		for _, m := range times[strings.Join(b.Active, "\x00")] {
			if m.last.Cache != nil && (most.Cache == nil || *m.last.Cache > *most.Cache) {
				most = &m.last
			}
		}
		c.reportKept(most.Cache, "is in PyTorch's cache, unused by any tensor, when memory is taken again",
			finding.CodeChange("before the resume: `torch.cuda.empty_cache()`"))
		c.reportKept(b.Least.Pools, "is in pools of CUDA graphs or of the program, in no region, and is not released",
			finding.CodeChange("capture graphs within `torch_memory_saver.cuda_graph(…, tag=…)`, with the library preloaded; SGLang: `SGLANG_MEMORY_SAVER_CUDA_GRAPH=true`"))
	}
	sorts.StableBy(c.Findings, func(a, b finding.Finding) int { return b.Severity.Rank() - a.Severity.Rank() })
}

// reportKept is memory that stays on the device and could leave it.
func (c *Check) reportKept(n *int64, what string, remedy finding.Remedy) {
	if n == nil || *n < minReported {
		return
	}
	c.Findings = append(c.Findings, finding.Finding{
		Kind: finding.Residue, Severity: finding.Warning, Confidence: 1, Device: &c.Device, Process: c.process(), Bytes: n,
		Title: fmt.Sprintf("%s of device %d %s", units.Bytes(*n), c.Device, what),
		Basis: "the segments of PyTorch's allocator, noted at the hand-over", Remedies: []finding.Remedy{remedy},
	})
}

func (c *Check) process() string { return fmt.Sprintf("process %d", c.PID) }

// The bounds of growth that is reported: the fewest cycles, and the fewest bytes of each.
const (
	minTimes  = 4
	minGrowth = 1 << 20
)

// growth finds what each cycle leaves behind: of the times in which the same tags are
// active, the one in which it is seen best.
func (c *Check) growth(times map[string][]span) {
	var best []span
	for _, key := range slices.Sorted(maps.Keys(times)) {
		if s := times[key]; grows(s) && (best == nil || total(s[0].first.Tags) < total(best[0].first.Tags)) {
			best = s
		}
	}
	if best == nil {
		return
	}
	best = best[1:] // what is made once is made in the first
	first, last := &best[0].first, &best[len(best)-1].first
	grown := last.taken() - first.taken()
	var owners []string
	for _, o := range ownersOf(first, last) {
		owners = append(owners, fmt.Sprintf("%s of it: %s", units.Bytes(o.bytes), o.name))
	}
	basis := "the driver's count at the same place of each cycle, less PyTorch's cache where that was noted"
	if c.ByCalls {
		basis = "memory that driver calls took and did not return, at the same place of each cycle"
	}
	f := finding.Finding{
		Kind: finding.Leak, Severity: finding.Problem, Confidence: 0.9, Device: &c.Device, Process: c.process(), Bytes: &grown,
		Title: fmt.Sprintf("each cycle leaves more on device %d: %s in %d cycles", c.Device, units.Bytes(grown), len(best)-1),
		Basis: basis, Detail: owners,
		Remedies: []finding.Remedy{finding.CodeChange("who takes it from the driver: `strandline trace --gpu` over some cycles; which tensors: `strandline record`")},
	}
	c.Findings = append(c.Findings, f)
}

func total(tags map[string]int64) (n int64) {
	for _, size := range tags {
		n += size
	}
	return n
}

// grows reports whether most cycles leave more than the one before. The first is left out,
// as what is made once is made there.
func grows(s []span) bool {
	if len(s) < minTimes+1 {
		return false
	}
	s = s[1:]
	more := 0
	for i := range s[1:] {
		switch d := s[i+1].first.taken() - s[i].first.taken(); {
		case d >= minGrowth:
			more++
		case d < 0:
			more--
		}
	}
	return 4*more >= 3*(len(s)-1)
}

// taken is what is used of the device, without PyTorch's cache where that is known: a
// tensor may be in a part of it that the driver gave long before.
func (s *Split) taken() int64 {
	if s.Cache == nil {
		return s.Used
	}
	return s.Used - *s.Cache
}

type owner struct {
	name  string
	bytes int64
}

// ownersOf are those whose memory grew, the most first: three at most.
func ownersOf(first, last *Split) (out []owner) {
	add := func(name string, n int64) {
		if n >= minGrowth {
			out = append(out, owner{name, n})
		}
	}
	both := func(name string, a, b *int64) {
		if a != nil && b != nil {
			add(name, *b-*a)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(last.Tags)) {
		add("of tag "+name, last.Tags[name]-first.Tags[name])
	}
	both("tensors in no region", first.Tensors, last.Tensors)
	both("pools of CUDA graphs, or of the program's own", first.Pools, last.Pools)
	switch {
	case first.Libraries != nil && last.Libraries != nil:
		for _, l := range last.Libraries {
			before := slices.IndexFunc(first.Libraries, func(b Library) bool { return b.Name == l.Name })
			if before >= 0 {
				l.Bytes -= first.Libraries[before].Bytes
			}
			add(l.Name+"'s", l.Bytes)
		}
		add("in no call that was traced: contexts, other processes", last.Unnamed()-first.Unnamed())
	case last.Tensors == nil:
		add("in no region", last.Rest-first.Rest)
	default:
		add("others': libraries, contexts, other processes", last.Rest-first.Rest)
	}
	sorts.StableBy(out, func(a, b owner) int { return cmp.Compare(b.bytes, a.bytes) })
	const maxOwners = 3
	return out[:min(maxOwners, len(out))]
}
