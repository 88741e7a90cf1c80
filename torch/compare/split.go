package compare

import (
	"path/filepath"
	"slices"

	"strandline/torch/digest"
)

// together is the share of blocks that two files must have in common to be of one
// process. Within a process nearly all blocks that live at the start of a file's
// history lived at the end of the file before; the weights at least do, where the
// program worked on between the recordings. In files of unrelated runs none do.
const together = 0.25

// A Kinship is how many blocks two files of one process would have in common, and
// how many they have.
type Kinship struct {
	Common, Expected int
	// Unknown is true where the files cannot show whether they belong together.
	Unknown bool
}

// same reports whether the files may be of one process.
func (k Kinship) same() bool {
	return k.Unknown || float64(k.Common) >= together*float64(k.Expected) && k.Common > 0
}

// KinshipOf compares a file with an older one: on all devices that hold memory in
// both.
func KinshipOf(old, cur *digest.File) Kinship {
	sum := Kinship{Unknown: true}
	shared := false
	for i := range cur.Devices {
		c := &cur.Devices[i]
		o := old.Device(c.Index)
		if len(o.Live) == 0 && o.Events == 0 || len(c.Live) == 0 && c.Events == 0 {
			continue
		}
		shared = true
		if k := kinship(o, c); !k.Unknown {
			sum = Kinship{Common: sum.Common + k.Common, Expected: sum.Expected + k.Expected}
		}
	}
	if !shared && len(old.Devices) > 0 && len(cur.Devices) > 0 && !old.Empty() && !cur.Empty() {
		return Kinship{} // of different devices
	}
	return sum
}

// kinship compares a device's part of a file with that of an older one.
func kinship(old, cur *digest.Device) Kinship {
	older := cur.Older
	switch timed := old.HasTime && cur.HasTime && old.Events > 0 && cur.Events > 0; {
	case timed && cur.Start == old.Start && cur.First == old.First: // one history that grew
		return Kinship{Common: 1, Expected: 1}
	case timed && cur.Complete && old.Complete && cur.Start <= old.End: // two beginnings
		return Kinship{Expected: max(1, len(old.Live))}
	case timed && cur.Start <= old.End: // the history reaches back into the older one
		older = slices.DeleteFunc(slices.Clone(cur.Live), func(l digest.Live) bool { return l.Born > old.End })
	case cur.Events == 0:
		older = cur.Live
	case !timed && old.Events > 0 && cur.First == old.First: // one history that grew, without times
		return Kinship{Common: 1, Expected: 1}
	}
	expected := min(len(older), len(old.Live))
	if cur.Complete && cur.Events > 0 && len(older) == 0 {
		expected = len(old.Live) // it begins with an empty device
	}
	if expected == 0 {
		return Kinship{Unknown: true}
	}
	return Kinship{Common: inBoth(old.Live, older), Expected: expected}
}

// inBoth counts the blocks that are in both lists, which are sorted by address,
// and may be the same.
func inBoth(old, cur []digest.Live) (n int) {
	k := 0
	for _, l := range cur {
		for k < len(old) && old[k].Addr < l.Addr {
			k++
		}
		if k < len(old) && old[k].Addr == l.Addr && old[k].Bytes == l.Bytes && (old[k].Born < 0 || l.Born < 0 || old[k].Born == l.Born) {
			n++
		}
	}
	return n
}

// Split sorts the files of a process that are of several runs, as unrelated files
// in one folder are, by run; each is named by its files. A process whose files
// belong together is returned unchanged. Files that were read in part stay with those before
// them; those that hold nothing can be of any run.
func (p *Process) Split() []*Process {
	if p.About != nil { // known to be one
		return []*Process{p}
	}
	var runs, empty []*Process
	for _, f := range p.Files {
		r := p.runOf(runs, f)
		switch {
		case f.Empty():
			empty = append(empty, &Process{Files: []*digest.File{f}})
		case r != nil:
			r.Files = append(r.Files, f)
		default:
			runs = append(runs, &Process{Files: []*digest.File{f}})
		}
	}
	if len(runs) <= 1 {
		return []*Process{p}
	}
	runs = append(runs, empty...)
	for _, r := range runs {
		r.Name = runName(r.Files)
		if p.Name != "" {
			r.Name = p.Name + ": " + r.Name
		}
	}
	return runs
}

// runOf is the run to which a file belongs, the newest first; nil if to none.
func (p *Process) runOf(runs []*Process, f *digest.File) *Process {
	for _, r := range slices.Backward(runs) {
		if f.Partial != nil || r.Newest().Partial != nil || KinshipOf(r.Newest(), f).same() {
			return r
		}
	}
	return nil
}

// runName names a run by its first and last file.
func runName(files []*digest.File) string {
	first, last := filepath.Base(files[0].Name), filepath.Base(files[len(files)-1].Name)
	if len(files) == 1 {
		return first
	}
	return first + " to " + last
}
