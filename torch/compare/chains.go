package compare

import (
	"strandline/stack"
	"strandline/torch/digest"
	"strandline/torch/timeline"
	"strandline/trend"
)

// A Chain is one allocation followed through the files of a process.
type Chain struct {
	Stack stack.ID
	// Missing is why no line of own code is known of it, "" if one is.
	Missing timeline.Missing
	trend.Span
}

// Chains follows the allocations of a device through the files.
func (p *Process) Chains(device int) []Chain {
	var out []Chain
	var at []int // of the previous file's live allocations: index into out
	var prev *digest.Device
	for j, f := range p.Files {
		d := f.Device(device)
		chains := make([]int, len(d.Live))
		k := 0
		for i, l := range d.Live {
			chains[i] = -1
			if prev != nil { // both are sorted by address
				for k < len(prev.Live) && prev.Live[k].Addr < l.Addr {
					k++
				}
				if k < len(prev.Live) && prev.Live[k].Addr == l.Addr {
					if sameAlloc(prev, d, prev.Live[k], l) {
						chains[i] = at[k]
						c := &out[at[k]]
						c.Last = j
						if c.Stack <= stack.Empty && (l.Stack > stack.Empty || c.Missing == timeline.BeforeRecording) {
							c.Stack, c.Missing = l.Stack, l.Missing
						}
					}
				}
			}
			if chains[i] < 0 {
				chains[i] = len(out)
				out = append(out, Chain{l.Stack, l.Missing, trend.Span{First: j, Last: j, Bytes: l.Bytes}})
			}
		}
		prev, at = d, chains
	}
	return out
}

// Survivors are, of what lived on a device in each file, the bytes that still
// live in a later one: by file, then by later file.
func (p *Process) Survivors(device int) [][]int64 {
	out := make([][]int64, len(p.Files))
	for i := range out {
		out[i] = make([]int64, len(p.Files))
	}
	for _, c := range p.Chains(device) {
		for i := c.First; i <= c.Last; i++ {
			for j := i; j <= c.Last; j++ {
				out[i][j] += c.Bytes
			}
		}
	}
	return out
}

// sameAlloc reports whether two allocations at one address, of consecutive files,
// are one, as far as is known: they may be where no history covers the time between.
func sameAlloc(old, cur *digest.Device, a, b digest.Live) bool {
	if a.Bytes != b.Bytes || a.Stack > stack.Empty && b.Stack > stack.Empty && a.Stack != b.Stack {
		return false
	}
	timed := old.HasTime && cur.HasTime
	switch {
	case a.Born >= 0 && b.Born >= 0 && timed:
		return a.Born == b.Born
	case b.Born >= 0 && timed && old.End > 0:
		return b.Born <= old.End
	case b.Born < 0 && timed && cur.Events > 0 && old.Events > 0:
		if cur.Start <= old.End { // the history reaches back to the older file
			return true
		}
		// A recording that begins with an empty device is of another process.
		return !cur.Complete
	case a.Born >= 0 && b.Born >= 0:
		return a.Born == b.Born // counted events of one growing history
	}
	return true
}
