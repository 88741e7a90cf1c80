package snapshots

import (
	"fmt"
	"slices"
	"strings"

	"strandline/finding"
	"strandline/judge/shortage"
	"strandline/torch/digest"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
	"strandline/units"
)

// addFree states where in the segments there was free memory.
func addFree(f *finding.Finding, e *finding.OOMEvidence, s *failedRequest, o *digest.OOM) {
	pools, kinds, free := []finding.OOMPool{}, kindsOf(o), int64(0)
	for _, p := range o.Pools {
		pool := finding.OOMPool{
			Stream: p.Stream, Type: p.Type, Expandable: p.Expandable, Segments: p.Segments,
			ReservedBytes: p.Reserved, ActiveBytes: p.Active, FreeBytes: p.Free, LargestFreeBytes: p.LargestGap,
		}
		if p.Recorded {
			name := p.Pool.String()
			pool.Pool = &name
		}
		pools = append(pools, pool)
		free += p.Free
	}
	if free == 0 {
		return
	}
	e.Pools = pools
	text := units.Bytes(free) + " was free in segments"
	if hole := o.Hole(); hole > 0 {
		text += "; the largest piece that the request could use has " + units.Bytes(hole)
	} else {
		text += ", and none of it where the request could use it"
	}
	if kinds[0].free < free {
		text += ": " + holes(kinds)
	}
	f.Detail = append(f.Detail, text)
	if o.Pool == nil && slices.ContainsFunc(o.Pools, func(p timeline.PoolSum) bool { return p.Pool.Private() }) {
		f.Detail = append(f.Detail, "the request's pool is not recorded before PyTorch 2.12; it is assumed to be the default one")
	}
	if s.cause() == shortage.Fragmented || o.Free.Stranded >= o.Request {
		e.Pins, e.SparsePins, e.PinnedBy = pinned(f, &o.Free)
	}
}

// A kind is a set of segments that serve the same requests: memory of another stream,
// pool or size class cannot serve a request.
type kind struct {
	name          string
	free, largest int64
}

// kindsOf sums the free memory of each kind of segment, that of the request first.
func kindsOf(o *digest.OOM) []kind {
	recorded := slices.ContainsFunc(o.Pools, func(p timeline.PoolSum) bool { return p.Recorded })
	name := func(class string, stream uint64, pool snapshot.Pool, known bool) string {
		text := plain(class) + " segments"
		switch {
		case pool.Private():
			text += " of pool " + pool.String()
		case recorded && !known:
			text += " of a pool that is not recorded"
		}
		if stream != 0 {
			text += fmt.Sprintf(" of stream 0x%x", stream)
		}
		return text
	}
	own := snapshot.Pool{}
	if o.Pool != nil {
		own = *o.Pool
	}
	out := []kind{{name: name(timeline.SizeClass(o.Request), o.Stream, own, true)}}
	for _, p := range o.Pools {
		label := name(p.Type, p.Stream, p.Pool, p.Recorded)
		i := slices.IndexFunc(out, func(k kind) bool { return k.name == label })
		if i < 0 {
			i, out = len(out), append(out, kind{name: label})
		}
		out[i].free += p.Free
		out[i].largest = max(out[i].largest, p.LargestGap)
	}
	return out
}

// holes lists the free memory of each kind of segment.
func holes(kinds []kind) string {
	const maxKinds = 6
	var parts []string
	for i, k := range kinds {
		switch {
		case i == 0 && k.free == 0:
			parts = append(parts, k.name+", the kind that the request uses, have none")
		case i == 0:
			parts = append(parts, fmt.Sprintf("%s, the kind that the request uses, have %s, the largest piece %s", k.name, units.Bytes(k.free), units.Bytes(k.largest)))
		case k.free > 0:
			parts = append(parts, fmt.Sprintf("%s have %s, the largest piece %s", k.name, units.Bytes(k.free), units.Bytes(k.largest)))
		}
	}
	if n := len(parts) - maxKinds; n > 0 {
		parts = append(parts[:maxKinds], fmt.Sprintf("%d more kinds of segments have the rest", n))
	}
	return strings.Join(parts, "; ")
}
