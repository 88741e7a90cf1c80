package compare

import (
	"sort"
	"strconv"
	"strings"

	"strandline/stack"
	"strandline/torch/purpose"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// A Run is the memory that one run of a program held at its peak and at its end, by place.
type Run struct {
	Name            string
	Partial         bool
	Unknown         []string // as [snapshot.Snapshot.Unknown]
	Peak, End       int64    // requested bytes, of all devices; each device at its own peak
	Host            *Pinned
	AtPeak, Now     []placeSum
	PeakFor, EndFor purpose.Sums // by purpose
	// Reserved bytes, of all devices; each at its own peak.
	PeakReserved, EndReserved int64
	// NoHistory is true where the file holds no event: the peak is unknown, and
	// Peak and AtPeak mean nothing.
	NoHistory bool
}

// Pinned is the pinned host memory of a run, in requested bytes.
type Pinned struct{ Peak, End int64 }

// NewRun reduces a snapshot to its peak and its end.
func NewRun(s *snapshot.Snapshot) *Run {
	r := &Run{Name: s.Name, Partial: s.Partial != nil, Unknown: s.Unknown(), NoHistory: true}
	for _, d := range s.Devices() {
		t := timeline.New(s, d)
		if t.Trace.Len() > 0 {
			r.NoHistory = false
		}
		r.addSites(t)
		if d.Index == snapshot.Host {
			r.Host = &Pinned{t.PeakRequested.Bytes, t.EndRequested}
			continue
		}
		r.Peak += t.PeakRequested.Bytes
		r.End += t.EndRequested
		r.PeakReserved += t.PeakReserved.Bytes
		r.EndReserved += t.EndReserved
		memory := purpose.Of(t)
		r.PeakFor.Add(&memory.Peak.By)
		r.EndFor.Add(&memory.End.By)
	}
	return r
}

// addSites adds who held the memory of a device at its peak and at its end.
func (r *Run) addSites(t *timeline.Timeline) {
	for _, at := range []struct {
		event int
		sums  *[]placeSum
	}{{t.PeakRequested.Event, &r.AtPeak}, {t.Trace.Len() - 1, &r.Now}} {
		for _, s := range t.SitesAt(at.event) {
			*at.sums = append(*at.sums, placeSum{Place{s.Site, s.Missing, t.Device == snapshot.Host}, s.Bytes})
		}
	}
}

type placeSum struct {
	Place
	Bytes int64
}

// A Change is what a place held before and after a change of the code, in
// requested bytes.
type Change struct {
	Place                 // as in the newer run, if it is there
	PeakBefore, PeakAfter int64
	EndBefore, EndAfter   int64
}

// Runs matches two runs place by place, the largest change of the peak first, of
// the end where a peak is unknown.
// The code between them differs, and so do line numbers and folders: a place is
// matched by its function and the last two parts of its path.
func Runs(before, after *Run) []Change {
	changes := map[string]*Change{}
	at := func(s placeSum) *Change {
		k := looseKey(s.Site) + string(s.Missing) + strconv.FormatBool(s.Host)
		c := changes[k]
		if c == nil {
			c = &Change{Place: s.Place}
			changes[k] = c
		}
		return c
	}
	for _, s := range before.AtPeak {
		at(s).PeakBefore += s.Bytes
	}
	for _, s := range before.Now {
		at(s).EndBefore += s.Bytes
	}
	for _, s := range after.Now {
		c := at(s)
		c.EndAfter += s.Bytes
		c.Site = s.Site
	}
	for _, s := range after.AtPeak {
		c := at(s)
		c.PeakAfter += s.Bytes
		c.Site = s.Site
	}
	out := make([]Change, 0, len(changes))
	for _, c := range changes {
		out = append(out, *c)
	}
	sort.Slice(out, func(i, j int) bool {
		a, b := size(out[i].PeakAfter-out[i].PeakBefore), size(out[j].PeakAfter-out[j].PeakBefore)
		if a != b && !before.NoHistory && !after.NoHistory {
			return a > b
		}
		if a, b := size(out[i].EndAfter-out[i].EndBefore), size(out[j].EndAfter-out[j].EndBefore); a != b {
			return a > b
		}
		return out[i].String() < out[j].String()
	})
	return out
}

func looseKey(s stack.Site) string {
	parts := strings.Split(s.File, "/")
	return strings.Join(parts[max(0, len(parts)-2):], "/") + " " + s.Function
}

func size(n int64) int64 { return max(n, -n) }
