package processes

import (
	"cmp"
	"fmt"

	"strandline/host/calls/ledger"
	"strandline/host/proc/footprint"
	"strandline/internal/sorts"
	"strandline/units"
)

// processOf names the process that holds most of some memory, and states how many others
// hold some of it.
func processOf(processes []ledger.Process, shares []ledger.Share) string {
	switch {
	case len(processes) == 1:
		return processName(processes, processes[0].PID)
	case len(processes) == 0 || len(shares) == 0:
		return ""
	}
	of, all := map[uint32]int64{}, int64(0)
	for _, s := range shares {
		of[s.PID] += s.Live
		all += s.Live
	}
	var pids []uint32
	for pid, live := range of {
		if 20*live >= all { // any process may hold less than this
			pids = append(pids, pid)
		}
	}
	if len(pids) == 0 {
		return fmt.Sprintf("%d processes", len(of))
	}
	sorts.By(pids, func(a, b uint32) int { return cmp.Or(cmp.Compare(of[b], of[a]), cmp.Compare(a, b)) })
	name := processName(processes, pids[0])
	if n := int64(len(pids) - 1); n > 0 {
		name += " and " + units.Plural(n, "other")
	}
	return name
}

func processName(processes []ledger.Process, pid uint32) string {
	name := fmt.Sprintf("pid %d", pid)
	for _, p := range processes {
		switch {
		case p.PID != pid || p.Name == "":
		case p.Role != "":
			name += " (" + p.Name + ", " + p.Role + ")"
		default:
			name += " (" + p.Name + ")"
		}
	}
	return name
}

func sharesOf(uses []*ledger.Use) (shares []ledger.Share) {
	for _, u := range uses {
		shares = append(shares, u.Shares...)
	}
	return shares
}

// looked names the process in which a class was seen from outside: the one that was
// looked at, except for parts that belong to another.
func (h host) looked(p footprint.Part) string {
	if p.Process > 0 {
		return processName(h.sums.Processes, uint32(p.Process))
	}
	return processName(h.sums.Processes, h.subject())
}

// grewMost names the process that grew most, and says how many others grew.
func largestGrowth(processes []ledger.Process) string {
	var shares []ledger.Share
	for _, p := range processes {
		shares = append(shares, ledger.Share{PID: p.PID, Live: max(p.Growth, 0)})
	}
	return processOf(processes, shares)
}

// subject returns the process that was looked at from outside: the first, unless another
// one accounts for most of the growth of all processes.
func (h host) subject() uint32 {
	switch {
	case h.looks != nil && h.looks.After != nil:
		return uint32(h.looks.After.PID)
	case len(h.sums.Processes) > 0:
		return h.sums.Processes[0].PID
	}
	return 0
}
