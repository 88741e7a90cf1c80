package snapshots

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"strandline/finding"
	"strandline/internal/shell"
	"strandline/judge/shortage"
	"strandline/judge/texts"
	"strandline/torch/compare"
	"strandline/torch/digest"
	"strandline/torch/purpose"
	"strandline/torch/replay"
	"strandline/units"
)

// outOfMemory explains the last failure that a process's files record on a device.
func outOfMemory(on *subject) []finding.Finding {
	b, p, device, leaks, known := on.book, on.process, on.device, on.leaks, on.options
	o, file := on.failure, on.failedIn
	shared := sharedDevice(p, device)
	if known.Capacity == nil && shared.Capacity > 0 {
		known.Capacity = &shared.Capacity
	}
	s := failureOf(o, known)
	times := file.Device(device).OOMs
	e := &finding.OOMEvidence{
		Event: &o.Event, EventsOfKind: &times, File: file.Name, Exact: &o.Exact,
		RequestedBytes: &o.Requested, AllocationsAfter: &o.After,
	}
	f := finding.Finding{
		Kind: finding.OutOfMemory, Severity: finding.Problem, Confidence: 1, Basis: "the allocator recorded it",
		Device: &device, Process: p.Name,
		Site: siteOf(b.Stacks.Site(o.Stack)), Stack: framesOf(b.Stacks.Short(o.Stack)),
		Evidence: e,
	}
	if o.Known.State && o.Known.Request {
		e.LargestFreeBytes = finding.Int(o.Hole())
	}
	s.takeSize(&f, e, o, device, known.Texts)
	s.checkCapacity(&f)
	s.evidence(e)
	f.Title = s.title()
	each := "each step"
	if len(p.Files) > 1 {
		each = "from file to file"
	}
	if why := reason(&f, e, s, &o.Memory, leaks, each); why != "" {
		f.Title = fmt.Sprintf("memory ran out: a request of %s failed with %s reserved; %s", shortage.Amount(s.request), s.shareOfDevice(o.Reserved), why)
		f.Detail = append(f.Detail, "the request "+s.explain())
	}
	if s.cause() == "" {
		f.Confidence, f.Basis = 0.5, "the allocator recorded it; the figures that would explain it are missing or contradictory"
	} else if s.cause() == shortage.OthersHold {
		f.Confidence = shortage.OutsideConfidence(*s.outside(), s.own() != nil)
	} else if !o.Exact && s.cause() == shortage.Fragmented { // what was free is an upper bound
		f.Confidence, f.Basis = 0.9, "the allocator recorded it; the blocks of that moment are reconstructed from later events"
	}
	addUses(&f, e, &o.Memory, leaks)
	e.UnknownBytes = addSites(&f, o.Sites)
	addState(&f, e, s, o, times)
	addOthers(&f, e, shared.Others)
	s.briefly(&f, o, file.Name)
	if e.LeakedBytes > 0 && len(f.Remedies) > 0 { // the leak is the reason
		f.Brief.Title = fmt.Sprintf("a leak of %s; %s requested", units.Bytes(e.LeakedBytes), shortage.Amount(s.request))
	}
	f.Remedies = append(f.Remedies, oomRemedies(s, o, file.Device(device).Trial)...)
	f.Remedies = append(f.Remedies, s.remediesAgainstOthers()...)
	if file.Name != "-" {
		f.Remedies = append(f.Remedies, finding.Remedy{Kind: "code", Text: "list everything that was in memory then",
			Setting: fmt.Sprintf("strandline inspect %s --at %d --device %d", shell.File(file.Name), o.Event, device)})
	}
	return []finding.Finding{f}
}

// sharedDevice is what the recorder noted of a device on which memory ran out.
func sharedDevice(p *compare.Process, device int) compare.Shared {
	if p.About == nil {
		return compare.Shared{}
	}
	return p.About.Failed[device]
}

// addOthers states which other processes held memory on the device.
func addOthers(f *finding.Finding, e *finding.OOMEvidence, others []compare.Holding) {
	const maxNamed = 5
	var named []string
	for i, o := range others {
		e.OtherProcesses = append(e.OtherProcesses, finding.OOMProcess{Process: o.Process, Bytes: o.Bytes})
		if i < maxNamed {
			named = append(named, fmt.Sprintf("%s with %s", o.Process, units.Bytes(o.Bytes)))
		}
	}
	if n := len(others) - maxNamed; n > 0 {
		named = append(named, fmt.Sprintf("%s more", units.Count(int64(n))))
	}
	if len(named) > 0 {
		f.Detail = append(f.Detail, "other processes were on the device: "+strings.Join(named, ", "))
	}
}

// takeSize takes the size of the device from a text that describes the same failure.
func (s *failedRequest) takeSize(f *finding.Finding, e *finding.OOMEvidence, o *digest.OOM, device int, stated []*texts.Statement) {
	for _, t := range stated {
		m, count := messagesOf(t, o, f.Process, device)
		if m == nil {
			continue
		}
		e.MessageFile, e.Line = t.File, m.Line
		of := ""
		if count > 1 {
			of = fmt.Sprintf(", the last of %s,", units.Count(int64(count)))
		}
		f.Detail = append(f.Detail, fmt.Sprintf("the message on line %s of %s%s describes the same failure", units.Count(m.Line), t.File, of))
		s.process = m.InUse
		switch {
		case m.Total == nil:
		case s.capacity != nil && !roughlyEqual(*s.capacity, *m.Total):
			f.Detail = append(f.Detail, fmt.Sprintf("the message names a device of %s: the %s given with --capacity are not used", units.Bytes(*m.Total), units.Bytes(*s.capacity)))
			fallthrough
		case s.capacity == nil:
			s.capacity = m.Total
		}
	}
}

// addState states what was free, where it was, and how sure that is.
func addState(f *finding.Finding, e *finding.OOMEvidence, s *failedRequest, o *digest.OOM, times int) {
	say := func(format string, args ...any) { f.Detail = append(f.Detail, fmt.Sprintf(format, args...)) }
	least := ""
	if !o.Exact {
		least = "at least "
	}
	if o.Known.State {
		say("at event %s, %s was reserved and %s%s of it active; the driver had %s free",
			units.Count(int64(o.Event)), units.Bytes(o.Reserved), least, units.Bytes(o.Active), shortage.Amount(s.free))
		addFree(f, e, s, o)
	} else {
		say("it is event %s; the driver had %s free; how much was reserved is not in the file", units.Count(int64(o.Event)), shortage.Amount(s.free))
	}
	if n := s.outside(); n != nil && s.cause() != shortage.OthersHold {
		say("%s of the device's %s was held outside PyTorch's allocator: %s", units.Bytes(*n), units.Bytes(*s.capacity), s.holders())
	}
	if s.capacity == nil && s.cause() == shortage.TooBig {
		say("a snapshot does not record the size of the device. With --capacity 80GiB, strandline also checks whether others held too much of it")
	}
	if times > 1 {
		say("it is the last of %s in this history", units.Plural(int64(times), "failure"))
	}
	if o.After > 0 {
		say("the program caught the error and went on: allocations after it: %s", units.Count(int64(o.After)))
	}
	if !o.Exact {
		say("the file was dumped later, so block sizes at the failure are only bounds. A dump at the failure itself is exact")
	}
}

// addUses states what the memory was for.
func addUses(f *finding.Finding, e *finding.OOMEvidence, m *purpose.Moment, leaks []finding.Finding) {
	if m.Bytes == 0 {
		return
	}
	h := holdingsOf(m, leakingSites(leaks), false)
	e.ByPurpose, e.Inferred = h.sums().ByPurpose, inferredEvidence(m)
	held := h.uses()
	f.Detail = append(f.Detail, "what filled the memory: "+madeOf(held))
	f.Detail = append(f.Detail, heaviest(held)...)
	f.Detail = append(f.Detail, inferredOf(m)...)
}

// reason names the leak that made memory run out: without what it held, the request would
// have been met. It returns "" if there is none. The parameter each is the interval over
// which the leak's growth was measured, such as a step.
func reason(f *finding.Finding, e *finding.OOMEvidence, s *failedRequest, m *purpose.Moment, growth []finding.Finding, each string) string {
	var held, count, perStep int64
	var places []finding.Place
	for i := range growth {
		if growth[i].Severity != finding.Problem {
			continue
		}
		leaked := placesOf(&growth[i], m)
		if n := growth[i].BytesPerStep; n != nil && len(leaked) > 0 {
			perStep += *n
		}
		for _, p := range leaked {
			held, count = held+p.Bytes, count+p.Count
		}
		places = append(places, leaked...)
	}
	if held == 0 {
		return ""
	}
	e.LeakedBytes, e.Leaks = held, places
	heaviest := slices.MaxFunc(places, func(a, b finding.Place) int { return cmp.Compare(a.Bytes, b.Bytes) })
	what := fmt.Sprintf("%s is %s at %s, never freed", units.Bytes(held), units.Plural(count, "allocation"), base(heaviest.Site))
	if n := len(places) - 1; n > 0 {
		what = fmt.Sprintf("%s is %s at %s and %s, never freed", units.Bytes(held), units.Plural(count, "allocation"), base(heaviest.Site), units.Plural(int64(n), "other place"))
	}
	if perStep > 0 {
		what += fmt.Sprintf(", %s more %s", units.Bytes(perStep), each)
	}
	if s.room() == nil || s.request == nil {
		f.Detail = append(f.Detail, what)
		return ""
	}
	if held < s.missing() {
		f.Detail = append(f.Detail, what+"; without them, the request would not have been met either")
		return ""
	}
	f.Remedies = append(f.Remedies, finding.CodeChange(fmt.Sprintf(
		"first fix the leak at %s:%d: without it the request would have been met", heaviest.File, heaviest.Line)))
	return what + ": that is the reason"
}

// missing is how much more would have had to be free for the request.
func (s *failedRequest) missing() int64 {
	if room := s.room(); *room < *s.request {
		return *s.request - *room
	}
	return *s.request // in one piece
}

// placesOf are the places of a leak, with what they held of it at a moment.
func placesOf(leak *finding.Finding, m *purpose.Moment) (out []finding.Place) {
	for _, site := range sitesOf(leak) {
		place := finding.Place{Site: site}
		for _, x := range m.Places {
			if finding.Site(x.Site) == site && x.Kept && canLeak(&x) {
				place.Bytes += x.Bytes
				place.Count += int64(x.Count)
			}
		}
		if place.Count > 0 {
			out = append(out, place)
		}
	}
	return out
}

// oomRemedies are what to do about a cause. A setting that meets the request, simulated
// on this history, comes first.
func oomRemedies(s *failedRequest, o *digest.OOM, trial *replay.Trial) []finding.Remedy {
	general, cause := s.general(o), s.cause()
	met := trial != nil && trial.RanOut && !trial.RunsOut
	if o.Expandable || !met && cause != shortage.Fragmented {
		return general
	}
	switch r := expandable(o.Conf, trial); {
	case r == nil:
		return append([]finding.Remedy{finding.CodeChange("try other settings: `strandline simulate --search`; expandable segments, simulated, would not have met the request")}, general...)
	case cause == shortage.Fragmented && putsOff(trial, o.Request):
		return append(r, general...)
	case cause == shortage.Fragmented:
		return r
	case putsOff(trial, o.Request):
		return append(general, r...)
	default:
		return append(r, general...)
	}
}

// general are the remedies that no simulation has tried.
func (s *failedRequest) general(o *digest.OOM) []finding.Remedy {
	switch cause := s.cause(); {
	case cause == shortage.Limit:
		return shortage.RaiseLimit()
	case cause == shortage.OthersHold:
		return shortage.FindOthers(s.mostlyOwn())
	case cause == shortage.Fragmented && o.Expandable:
		return []finding.Remedy{finding.CodeChange("allocate the largest tensors first, and let streams and graphs share a pool").
			Because("segments are expandable already: the free memory belongs to other streams or pools, or lies between blocks of one segment")}
	}
	return shortage.NeedLess()
}

// putsOff reports whether a setting meets the request that failed, but not another of its
// size. Then remedies that help for longer come first.
func putsOff(t *replay.Trial, request int64) bool {
	return t != nil && t.Left != nil && *t.Left < request
}

// expandable is the setting against fragmentation, added to the settings already made,
// with its effect if it was simulated; nil if it did not help.
func expandable(conf string, t *replay.Trial) []finding.Remedy {
	r := shortage.Expandable(replay.WithExpandable(conf))
	if t == nil {
		return []finding.Remedy{r}
	}
	const minShare = 0.01 // of the peak
	saves := t.Saves()
	if t.RunsOut || !t.RanOut && float64(saves) < minShare*float64(t.Own) {
		return nil
	}
	r.Effect = &finding.Effect{PeakReserved: t.Peak, Saves: saves, RunsOut: t.RunsOut, Exact: t.Exact, Left: t.Left}
	how := "simulated on this history"
	if !t.Exact {
		how = "simulated approximately"
	}
	switch {
	case t.RanOut && t.Left != nil:
		r.Text += fmt.Sprintf(": %s, the failed request is met with %s to spare", how, units.Bytes(*t.Left))
		r.Detail += "; the events after it are not recorded"
	case t.RanOut:
		r.Text += fmt.Sprintf(": %s, the failed request is met", how)
		r.Detail += "; the events after it are not recorded"
	default:
		r.Text += fmt.Sprintf(": %s, the run peaks at %s reserved instead of %s", how, units.Bytes(t.Peak), units.Bytes(t.Own))
	}
	return []finding.Remedy{r}
}

// remediesAgainstOthers are what to do whatever the cause: others may hold as much as was
// requested, or most of a device of unknown size.
func (s *failedRequest) remediesAgainstOthers() (out []finding.Remedy) {
	switch cause := s.cause(); {
	case cause == shortage.OthersHold || s.request == nil:
	case s.otherProcesses() >= *s.request:
		out = append(out, shortage.FindHolder(s.mostlyOwn()))
	case s.capacity == nil && cause != shortage.Limit && s.room() != nil:
		if r, ok := shortage.GiveCapacity(*s.free, *s.reserved, *s.active); ok {
			out = append(out, r)
		}
	}
	return out
}
