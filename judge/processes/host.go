package processes

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"strandline/finding"
	"strandline/host/calls/event"
	"strandline/host/calls/ledger"
	"strandline/host/code/symbolize"
	"strandline/host/proc/footprint"
	"strandline/host/proc/hooks"
	"strandline/host/store/recording"
	"strandline/internal/lazyregexp"
	"strandline/internal/sorts"
	"strandline/units"
)

// The smallest growth that makes a finding: bytes, and the share of the process's growth.
const (
	minHostBytes = 1 << 20
	hostShare    = 0.05
	// unexplained is the share of explained growth below which a finding states so.
	unexplained = 0.8
	// minCheckpoints is the number of checkpoints below which none states so: a program
	// that is starting reads its files.
	minCheckpoints = 4
)

// Host judges what a trace of a process found, together with looks at it from outside, if
// there were any. The parameter known lists the libraries in the process that hook memory
// functions.
func Host(s *ledger.Sums, looks *footprint.Growth, known []hooks.Library) []finding.Finding {
	h := host{sums: s, looks: looks}
	h.locate()
	h.findBuffers()
	groups := map[string][]*ledger.Use{}
	var order []string
	for i := range s.Uses {
		u := &s.Uses[i]
		kind := h.kindOf(u)
		key := string(kind)
		if loaded(kind, u) {
			key += " loaded"
		}
		if h.buffers[u] {
			key += fmt.Sprint(" buffer ", i)
		}
		if where := callPath(u.Frames); kindOf(kind).byPlace && where != "" {
			key += fmt.Sprint(where, HostSite(u.Frames))
		} else if kindOf(kind).byPlace {
			key += fmt.Sprint(i)
		}
		if groups[key] == nil {
			order = append(order, key)
		}
		groups[key] = append(groups[key], u)
	}
	var out []finding.Finding
	for _, key := range order {
		if f, ok := h.growing(groups[key], known); ok {
			out = append(out, f)
		}
	}
	out = withThreads(out)
	sorts.StableBy(out, func(a, b finding.Finding) int {
		return cmp.Or(cmp.Compare(b.Severity.Rank(), a.Severity.Rank()), cmp.Compare(*b.Bytes, *a.Bytes))
	})
	unmade, rest := h.unattributed(out)
	explained := looks != nil && (rest < minClassBytes || float64(rest) <= (1-unexplained)*float64(looks.RSS))
	if f, ok := unexplainedGrowth(s); ok && !explained {
		f.Detail = append(f.Detail, h.kinds()...)
		unmade = append(unmade, f)
	}
	return append(out, unmade...)
}

// growing judges the uses of one class, or of one place.
func (h host) growing(uses []*ledger.Use, known []hooks.Library) (f finding.Finding, ok bool) {
	g := h.growthOf(uses)
	if !g.notable(h.sums.Growth) || h.outgrew(g) {
		return f, false
	}
	nodes := g.graph(h.looks)
	top := g.uses[0]
	e := &finding.CallGrowthEvidence{
		ResidentBytes: g.resident, MappedBytes: g.mapped, RSSGrowthBytes: g.of, LargestBytes: top.Size, Calls: top.Calls,
		StackComplete: top.Complete, HeapEnlarged: enlarges(top), AssumedBytes: top.Inferred, Stacks: growingStacks(g.uses, g.from),
	}
	f = finding.Finding{
		Kind: g.kind, Severity: finding.Warning, Confidence: g.confidence, Basis: g.verdict.Basis(),
		Bytes: finding.Int(g.resident), Count: finding.Int(g.count), Trend: g.all.Bytes,
		Stack: HostFrames(top.Frames), Site: HostSite(top.Frames),
		Evidence: e, Process: processOf(h.sums.Processes, sharesOf(g.uses)),
	}
	loading := h.loading(g.kind, g.uses, g.resident)
	if g.kind == finding.Regrown {
		f.Trend = pieceSizes(top.Population, len(top.Shares))
	} else {
		loading = cmp.Or(loading, g.recent(h.sums.Checkpoints), g.pauses(h.sums.Checkpoints), g.slows(h.sums.Checkpoints), g.uncollected(), g.waves(h))
	}
	leaks := knownLeaks(known, top)
	if len(leaks) > 0 {
		loading, f.Brief.Fact = "", leaks[0] // it is known what is kept
	}
	switch {
	case g.buffer:
		f.Severity = finding.Info
	case g.shape == settled:
		f.Severity = finding.Info
		f.Basis = "nearly all of the rest was allocated by then; it was watched until " + units.Duration(time.Duration(h.sums.Checkpoints[len(h.sums.Checkpoints)-1]))
		if g.kind == finding.ArenaRetention && h.retained(g.resident) {
			f.Severity = finding.Warning
		}
	case g.kind == finding.FileMapping && !(loaded(g.kind, top) && g.count >= minLoaded):
		f.Severity = finding.Info // the kernel takes it back when memory is short
	case g.confidence >= g.problemConfidence() && loading == "" && g.large():
		f.Severity = finding.Problem
	}
	f.Title = hostTitle(g)
	f.Brief.Title = hostBrief(g, f.Severity)
	f.Detail = append(g.detail(h.sums.Checkpoints), h.java(g.kind)...)
	if nodes > 0 {
		f.Detail = append(f.Detail, fmt.Sprintf("the heap holds %s of the graph more than when the trace began", units.Plural(nodes, "node")))
	}
	f.Basis = cmp.Or(g.basis(), f.Basis)
	if g.until > 0 && !g.buffer {
		e.SettledSeconds = g.until.Seconds()
	}
	if g.shape == grows && !burst(g.course(g.all)[g.from:]) {
		pace, text := h.pace(g.resident, g.from)
		e.RatePerSecond, e.LimitBytes, e.SecondsToLimit = pace.rate, pace.limit, pace.seconds
		if text != "" {
			f.Detail = append(f.Detail, text)
		}
	}
	if g.shape == grows && g.until > 0 {
		e.EarlyBytes = &g.early
		f.Detail = append(f.Detail, earlier(g.early, g.until))
	}
	if f.Severity == finding.Warning && g.shape == grows {
		f.Remedies = []finding.Remedy{h.longer()}
		if loading != "" {
			f.Detail = append(f.Detail, loading)
		}
	}
	f.Detail = append(leaks, f.Detail...)
	if g.shape == grows || f.Severity == finding.Warning {
		f.Remedies = append(f.Remedies, hostRemedies(g.kind, top, known)...)
	}
	f.Remedies = append(f.Remedies, primitiveCache(g.uses)...)
	for _, u := range g.uses {
		if site := HostSite(u.Frames); site != nil && len(g.uses) > 1 {
			f.Sites = append(f.Sites, finding.Place{Site: *site, Bytes: g.residentBytes(u), Count: g.part(u.Count, u)})
		}
	}
	return f, true
}

// The remedies of growth of which it is too early to see whether it continues.
var (
	traceLonger = finding.CodeChange("trace it for longer: it is too early to see whether it continues")
	runLonger   = finding.CodeChange("let it do more work before it ends: it is too early to see whether the growth continues")
)

// longer is what would show whether growth continues: more time, or more work of a process that ended.
func (h host) longer() finding.Remedy {
	if h.sums.Ended {
		return runLonger
	}
	return traceLonger
}

// Doubt makes a problem a warning, for a reason why its growth may end by itself.
func Doubt(f *finding.Finding, why string, s *ledger.Sums) {
	f.Severity, f.Remedies = finding.Warning, []finding.Remedy{host{sums: s}.longer()}
	f.Detail = append(f.Detail, why)
}

func tooEarly(r finding.Remedy) bool { return r == traceLonger || r == runLonger }

// earlier states what a warm-up made.
func earlier(bytes int64, until time.Duration) string {
	return fmt.Sprintf("%s more of the same kind came faster in the first %s of the trace, and is not counted", units.Bytes(bytes), units.Duration(until))
}

// hostBrief is the short title of growth; "" if nothing is to be done about it.
func hostBrief(g *hostGrowth, s finding.Severity) string {
	switch {
	case g.kind == finding.Regrown:
		return g.regrownTitle()
	case s != finding.Info:
		return units.Bytes(g.resident) + " kept: " + kindOf(g.kind).title(g)
	}
	return ""
}

func hostTitle(g *hostGrowth) string {
	if g.kind == finding.Regrown {
		return located(g.regrownTitle(), g.uses[0])
	}
	if g.buffer {
		return located(fmt.Sprintf("one buffer of %s is being filled: %s of it is in memory", units.Bytes(g.uses[0].Size), units.Bytes(g.resident)), g.uses[0])
	}
	title := "memory grew by " + units.Bytes(g.resident)
	most := g.shape == grows && g.of > 0 && g.of >= g.resident/2
	if most {
		title = "resident memory grew by " + units.Bytes(g.of)
	}
	switch {
	case g.shape == settled && g.rest >= minHostBytes:
		title += fmt.Sprintf(" in the first %s of the trace, and hardly since (%s)", units.Duration(g.until), units.Bytes(g.rest))
	case g.shape == settled:
		title += fmt.Sprintf(" in the first %s of the trace, and not since", units.Duration(g.until))
	case g.until > 0:
		title += fmt.Sprintf(" after the first %s of the trace", units.Duration(g.until))
	}
	if most {
		title += fmt.Sprintf("; %s of it is ", units.Percent(min(float64(g.resident)/float64(g.of), 1)))
	} else {
		title += ": "
	}
	return located(title+kindOf(g.kind).title(g), g.uses[0])
}

// located adds to a title where a use was allocated, or where the heap it is in was enlarged.
func located(title string, u *ledger.Use) string {
	switch where := callPath(u.Frames); {
	case where == "":
		return title
	case enlarges(u):
		return title + "; the heap was enlarged here: " + where
	default:
		return title + "; allocated here: " + where
	}
}

// enlarges reports whether calls enlarged malloc's heap, by brk or in an arena: what is
// allocated later, by any place, fills it.
func enlarges(u *ledger.Use) bool {
	return u.Kind == ledger.Heap || u.Op == event.Protect && !startsThread(u) && collectorOf(u) == nil
}

// startsThread reports whether calls made the stacks of threads.
func startsThread(u *ledger.Use) bool {
	for _, f := range u.Frames {
		if threads.MatchString(f.Function) || mallocs.MatchString(f.Function) {
			return threads.MatchString(f.Function)
		}
	}
	return false
}

func hostDetail(kind finding.Kind, u *ledger.Use) (out []string) {
	if !u.Complete && len(u.Frames) > 0 {
		out = append(out, "the stack is incomplete: its outermost frames are missing")
	}
	if u.Inferred > u.Live/2 {
		out = append(out, fmt.Sprintf("the stack was captured for some of these calls; %s is from others like them", units.Bytes(u.Inferred)))
	}
	if detail := kindOf(kind).detail; detail != nil {
		out = append(out, detail(u)...)
	}
	return out
}

func hostRemedies(kind finding.Kind, u *ledger.Use, known []hooks.Library) (out []finding.Remedy) {
	for _, k := range known {
		if !leaksHere(k, u) {
			continue
		}
		for _, text := range k.Remedies {
			out = append(out, finding.SettingChange(setting.FindString(text), text))
		}
	}
	switch k := kindOf(kind); {
	case k.remedies == nil:
		return append(out, finding.HostRemedies(kind)...)
	case len(out) > 0 && k.settings:
		return out
	default:
		return append(out, k.remedies(u)...)
	}
}

// knownLeaks states how libraries are known to leak as some calls do.
func knownLeaks(known []hooks.Library, u *ledger.Use) (out []string) {
	for _, k := range known {
		if leaksHere(k, u) {
			out = append(out, k.Leaks)
		}
	}
	return out
}

// leaksHere reports whether a stack belongs to a library that is known to leak by keeping
// something for each mapping that is unmapped. Its hooks alone are not evidence: they are
// in every stack of the process.
func leaksHere(k hooks.Library, u *ledger.Use) bool {
	return k.Leaks != "" && kindOfCall(u) == finding.MmapLeak && slices.ContainsFunc(u.Frames, func(f symbolize.Frame) bool {
		return sameFamily(f.Object, k.Object) && keepsUnmapped.MatchString(f.Function)
	})
}

var keepsUnmapped = lazyregexp.New(`munmap|_unmapped_`)

var setting = lazyregexp.New(`\b[A-Z][A-Z0-9_]+=[^\s,;]+`)

// sameFamily reports whether libraries are parts of one family: libucm, libucs, libucp.
func sameFamily(a, b string) bool {
	a, b = filepath.Base(a), filepath.Base(b)
	return a != "." && (a == b || len(a) > 5 && len(b) > 5 && a[:5] == b[:5])
}

// unexplainedGrowth states which class of growth no call explains.
func unexplainedGrowth(s *ledger.Sums) (f finding.Finding, ok bool) {
	if s.Explained == nil || *s.Explained >= unexplained || s.Growth < 4*minHostBytes || len(s.Checkpoints) < minCheckpoints {
		return f, false
	}
	var kinds []string
	for _, k := range []struct {
		name  string
		bytes int64
	}{{"anonymous memory", s.Anon}, {"file memory", s.File}, {"shared memory", s.Shared}} {
		if k.bytes >= minHostBytes {
			kinds = append(kinds, units.Bytes(k.bytes)+" of "+k.name)
		}
	}
	f = finding.Finding{
		Kind: finding.Unexplained, Severity: finding.Warning, Confidence: 1 - *s.Explained,
		Title:   fmt.Sprintf("resident memory grew by %s, of which the observed calls explain %s", units.Bytes(s.Growth), units.Percent(*s.Explained)),
		Bytes:   finding.Int(int64(float64(s.Growth) * (1 - *s.Explained))),
		Process: largestGrowth(s.Processes),
		Evidence: &finding.UnexplainedEvidence{
			RSSGrowthBytes: s.Growth, OlderBytes: s.Older, UnnamedBytes: s.Unnamed, UnseenBytes: s.Unseen,
			AnonymousBytes: s.Anon, FileBytes: s.File, SharedBytes: s.Shared,
		},
	}
	if len(kinds) > 0 {
		f.Detail = append(f.Detail, "the growth is "+strings.Join(kinds, ", "))
	}
	if s.Older > s.Growth/5 && !s.Blind {
		f.Detail = append(f.Detail, units.Bytes(s.Older)+" became resident in mappings that existed before: a heap with room in it, or a mapping that is being filled")
	}
	if s.Unseen > s.Growth/5 {
		f.Detail = append(f.Detail, units.Bytes(s.Unseen)+" was mapped by calls that were not seen")
	}
	if s.Unnamed > s.Growth/5 {
		f.Detail = append(f.Detail, units.Bytes(s.Unnamed)+" was mapped by calls whose stack was not captured")
	}
	f.Remedies = []finding.Remedy{finding.CodeChange("trace for longer: growth is then mapped while it is watched")}
	if s.Blind {
		f.Title = fmt.Sprintf("resident memory grew by %s, and the cause was not seen: polling sees no calls", units.Bytes(s.Growth))
		f.Remedies = []finding.Remedy{finding.CodeChange("`strandline doctor` says how the calls can be watched as well")}
	}
	return f, true
}

// Undecided reports whether the findings of a trace leave open whether something leaks:
// memory grew, and either it is too early to see whether it continues, or the cause was
// not seen.
func Undecided(found []finding.Finding) bool {
	return slices.ContainsFunc(found, func(f finding.Finding) bool {
		return f.Severity == finding.Warning && (f.Kind == finding.Unexplained || slices.ContainsFunc(f.Remedies, tooEarly))
	})
}

// Recorded is the verdict on a recording whose findings are in a document, those of
// snapshots among them: out of memory is worse than a leak, and that is worse than
// fragmentation.
func Recorded(run *recording.Run) finding.Verdict {
	worst := finding.OK
	if len(run.Samples) < minRecorded || Undecided(run.Document.Findings) {
		worst = finding.Unknown
	}
	for i := range run.Document.Findings {
		switch f := &run.Document.Findings[i]; {
		case f.Severity != finding.Problem:
		case f.Kind == finding.OutOfMemory:
			return finding.RanOut
		case f.Kind != finding.Fragmentation:
			worst = finding.Leaking
		case worst != finding.Leaking:
			worst = finding.Fragmented
		}
	}
	return worst
}

// minRecorded is the number of checkpoints below which growth in a recording is not
// judged.
const minRecorded = 3
