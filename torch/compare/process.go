// Package compare relates snapshots to each other: those of one process over time, of
// many processes, or of two runs of different code.
//
// It compares digests, of package digest, rather than the files. An allocation is the
// same in two files if it has the same address and size and was made at the same
// moment, or, where that moment was not recorded, if nothing contradicts it: an
// address alone does not identify an allocation.
package compare

import (
	"cmp"
	"slices"
	"sort"

	"strandline/internal/sorts"
	"strandline/torch/digest"
)

// A Process is the files of one process, oldest first.
type Process struct {
	Name  string // "" if there is one process only
	Files []*digest.File
	About *About // nil unless the recorder noted it
}

// About is what the recorder of a process noted of it.
type About struct {
	PID     int
	Rank    *int // nil if it has none
	Role    string
	Command string
	// Failed are the devices on which memory ran out, by index.
	Failed map[int]Shared
	Held   map[*digest.File]*Held // by snapshot, of those for which it was looked into
	Host   map[*digest.File]int64 // bytes of main memory in use, by snapshot, where that is known
	Steps  map[*digest.File]int   // that had ended, by snapshot, of a process whose steps were counted
	Exit   *digest.File           // the snapshot at the exit, when functions have returned; nil if there is none
	// Beside is what others than this process hold of its devices at its newest snapshot.
	Beside map[int]Beside
	// Again is how to record it again where this recording does not suffice.
	Again string
	// Outside reports whether it was recorded from outside, while it ran.
	Outside bool
}

// OnHost reports whether the process was recorded and used no device.
func (p *Process) OnHost() bool {
	return p.About != nil && len(p.About.Host) > 0 && !slices.ContainsFunc(p.Files, func(f *digest.File) bool { return !f.Empty() })
}

// Shared is what is known of a device when memory ran out: its size in bytes, and who
// otherwise held memory of it, the most first.
type Shared struct {
	Capacity int64
	Others   []Holding
}

// Beside is what is known of a device that a process shares: the bytes in use by all of
// them, 0 if unknown, and those in use by processes whose snapshots were given; and the
// processes whose snapshots were not given, the one of the most first.
type Beside struct {
	Used, Dumped int64
	Others       []Holding
}

// A Holding is what a process holds of a device.
type Holding struct {
	Process string
	Bytes   int64
}

// NewProcess sorts the digests by the ends of their histories, otherwise by
// the numbers in their names.
func NewProcess(name string, files []*digest.File) *Process {
	p := &Process{Name: name, Files: append([]*digest.File(nil), files...)}
	sort.SliceStable(p.Files, func(i, j int) bool { return Natural(p.Files[i].Name, p.Files[j].Name) })
	// Those with a history take the places that they have, in its order.
	var places []int
	for i, f := range p.Files {
		if f.End() > 0 && f.Partial == nil { // a history that was cut ends too early
			places = append(places, i)
		}
	}
	timed := make([]*digest.File, len(places))
	for k, i := range places {
		timed[k] = p.Files[i]
	}
	sort.SliceStable(timed, func(i, j int) bool {
		if a, b := timed[i].End(), timed[j].End(); a != b {
			return a < b
		}
		return timed[i].Events() < timed[j].Events()
	})
	for k, i := range places {
		p.Files[i] = timed[k]
	}
	if len(places) == 0 { // no times (PyTorch 2.0, 2.1): a history only grows
		sort.SliceStable(p.Files, func(i, j int) bool { return p.Files[i].Events() < p.Files[j].Events() })
	}
	return p
}

// Newest is the last file.
func (p *Process) Newest() *digest.File { return p.Files[len(p.Files)-1] }

// Whole is the process without the files that were read in part: what is
// missing in them would look freed. It is the process itself if no file is whole.
func (p *Process) Whole() *Process {
	out := &Process{Name: p.Name, About: p.About}
	for _, f := range p.Files {
		if f.Partial == nil {
			out.Files = append(out.Files, f)
		}
	}
	if len(out.Files) == 0 {
		return p
	}
	return out
}

// DeviceIndices are the devices of all files.
func (p *Process) DeviceIndices() (out []int) {
	seen := map[int]bool{}
	for _, f := range p.Files {
		for i := range f.Devices {
			if k := f.Devices[i].Index; !seen[k] {
				seen[k] = true
				out = append(out, k)
			}
		}
	}
	sorts.By(out, func(a, b int) int { return cmp.Compare(uint(a), uint(b)) })
	return out
}
