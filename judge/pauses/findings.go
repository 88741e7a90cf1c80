package pauses

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"strandline/finding"
	"strandline/units"
)

// grouped makes one finding of what several processes of a job keep alike; each job has so many.
func grouped(all []stay, processes map[string]int) []finding.Finding {
	out := []finding.Finding{}
	for len(all) > 0 {
		first := all[0]
		alike := func(s stay) bool {
			return s.course.Job == first.course.Job && s.pool == first.pool && s.tag == first.tag && s.how == first.how && slices.Equal(s.paused, first.paused)
		}
		var group, rest []stay
		for _, s := range all {
			if alike(s) {
				group = append(group, s)
			} else {
				rest = append(rest, s)
			}
		}
		out, all = append(out, describe(group, processes[first.course.Job])), rest
	}
	slices.SortStableFunc(out, func(a, b finding.Finding) int {
		return cmp.Or(b.Severity.Rank()-a.Severity.Rank(), cmp.Compare(*b.Bytes, *a.Bytes))
	})
	return out
}

// describe is the finding of processes that keep the same, of so many in their job.
func describe(group []stay, processes int) finding.Finding {
	s := slices.MaxFunc(group, func(a, b stay) int { return cmp.Compare(a.bytes, b.bytes) })
	names := make([]string, len(group))
	var holders []finding.Holder
	for i := range group {
		c := group[i].course
		names[i] = c.Name
		if c.PID != 0 {
			if slices.Contains(names[:i], c.Name) {
				names[i] += fmt.Sprintf(" (process %d)", c.PID)
			}
			holders = append(holders, finding.Holder{Device: c.Device, PID: c.PID})
		}
	}
	owner, process := sideBySide(names)+": ", ""
	switch {
	case len(group) == 1:
		owner, process = "", names[0]
	case len(group) == processes && processes > 2:
		owner = "each process: "
	}
	what := string(s.pool)
	if s.pool == finding.TagPool {
		what = "tag " + s.tag
	}
	device := fmt.Sprintf("device %d", s.course.Device)
	if slices.ContainsFunc(group, func(o stay) bool { return o.course.Device != s.course.Device }) {
		device = "its device"
	}
	f := finding.Finding{
		Kind: finding.Residue, Severity: finding.Warning, Confidence: 0.9, Device: &s.course.Device, Process: process, Bytes: &s.bytes,
		Evidence: &finding.StayEvidence{Holders: holders, Cycles: s.cycles, Paused: s.paused, Pool: s.pool, Processes: names, Tag: s.tag, Total: s.of},
		Basis:    "the memory of each process at its pauses and resumes",
		Remedies: []finding.Remedy{s.remedy()},
	}
	phase := "while " + sideBySide(s.paused) + isPaused(len(s.paused))
	size := units.Bytes(s.bytes)
	switch s.how {
	case growing:
		f.Kind, f.Severity = finding.Leak, finding.Problem
		grows := "grows"
		if s.pool == finding.TensorPool || s.pool == finding.GraphPool {
			grows = "grow"
		}
		f.Trend = s.levels[1:]
		f.Title = fmt.Sprintf("%s%s %s by %s in the last %d of %d cycles on %s, %s", owner, what, grows, size, s.cycles, s.of, device, phase)
	case since:
		f.Title = fmt.Sprintf("%s%s of %s stays on %s since %d cycles, %s", owner, size, what, device, s.cycles, phase)
	case others:
		f.Title = fmt.Sprintf("%s%s of %s stays on %s %s; other processes do not keep it", owner, size, what, device, phase)
	case sometimes:
		f.Title = fmt.Sprintf("%s%s of %s stays on %s %s, in %d of %d cycles", owner, size, what, device, phase, s.cycles, s.of)
	default:
		f.Title = fmt.Sprintf("%s%s of %s stays on %s %s", owner, size, what, device, phase)
	}
	if s.pool == finding.TagPool && s.how != always && s.how != growing && !(s.how == sometimes && s.course.Sampled) {
		f.Severity, f.Confidence = finding.Problem, 0.95
	}
	return f
}

func isPaused(n int) string {
	if n == 1 {
		return " is paused"
	}
	return " are paused"
}

// sideBySide lists names; ranks lose the word but for the first.
func sideBySide(names []string) string {
	names = slices.Clone(names)
	for i := range names[1:] {
		names[i+1] = strings.TrimPrefix(names[i+1], "rank ")
	}
	if n := len(names); n > 1 {
		if strings.HasPrefix(names[0], "rank ") {
			names[0] = "ranks" + strings.TrimPrefix(names[0], "rank")
		}
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	}
	return names[0]
}

// remedy is what releases the memory.
func (s *stay) remedy() finding.Remedy {
	switch {
	case s.pool == finding.TagPool && s.how == growing:
		return finding.CodeChange(fmt.Sprintf("free the memory of tag %s before the next cycle allocates more in its region", s.tag))
	case s.pool == finding.TagPool:
		return finding.CodeChange(fmt.Sprintf("pause it with the others: `torch_memory_saver.pause(%q)`", s.tag))
	case s.pool == finding.CachePool:
		return finding.CodeChange("before the pause and before the resume: `torch.cuda.empty_cache()`")
	case s.pool == finding.GraphPool:
		return graphs()
	case s.pool == finding.DriverPool:
		return finding.CodeChange("find its allocations: `strandline trace --gpu`; NCCL's buffers go with its process groups (`torch.distributed.destroy_process_group`)")
	default:
		return finding.CodeChange("allocate it within `torch_memory_saver.region(tag)`, or free it before the pause; a recording shows which tensors they are")
	}
}
