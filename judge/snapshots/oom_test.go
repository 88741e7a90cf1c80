package snapshots

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strandline/finding"
	"strandline/judge/shortage"
	"strandline/judge/texts"
	"strandline/judge/verdict"
	"strandline/logs"
	"strandline/stack"
	"strandline/torch/compare"
	"strandline/torch/digest"
	"strandline/torch/purpose"
	"strandline/torch/replay"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
	"strandline/units"
)

func size(n int64) *int64 { return &n }

func TestCause(t *testing.T) {
	const GiB = 1 << 30
	for _, c := range []struct {
		name             string
		s                failedRequest
		cause            string
		outside, missing int64
	}{
		{"a limit", failedRequest{request: size(GiB), driver: size(GiB), free: size(2 * GiB), reserved: size(3 * GiB), active: size(3 * GiB)}, shortage.Limit, 0, GiB},
		{"room for the request, but not for its segment", failedRequest{request: size(2 << 20), driver: size(20 << 20), free: size(10 << 20), reserved: size(GiB), active: size(GiB)}, shortage.Fragmented, 0, 2 << 20},
		{"in pieces", failedRequest{request: size(3 * GiB), driver: size(3 * GiB), free: size(GiB), reserved: size(8 * GiB), active: size(5 * GiB)}, shortage.Fragmented, 0, 3 * GiB},
		{"exactly enough", failedRequest{request: size(4 * GiB), driver: size(4 * GiB), free: size(GiB), reserved: size(8 * GiB), active: size(5 * GiB)}, shortage.Fragmented, 0, 4 * GiB},
		{"a byte more", failedRequest{request: size(4*GiB + 1), driver: size(5 * GiB), free: size(GiB), reserved: size(8 * GiB), active: size(5 * GiB)}, shortage.TooBig, 0, 1},
		{"too big for the device", failedRequest{request: size(6 * GiB), driver: size(6 * GiB), free: size(GiB), reserved: size(8 * GiB), active: size(5 * GiB), capacity: size(10 * GiB)}, shortage.TooBig, GiB, 2 * GiB},
		{"held by others", failedRequest{request: size(5 * GiB), driver: size(5 * GiB), free: size(GiB), reserved: size(8 * GiB), active: size(5 * GiB), capacity: size(20 * GiB)}, shortage.OthersHold, 11 * GiB, GiB},
		{"no more than a context is outside", failedRequest{request: size(4*GiB + 300<<20), driver: size(4*GiB + 300<<20), free: size(GiB), reserved: size(8 * GiB), active: size(5 * GiB), capacity: size(9*GiB + 520<<20)}, shortage.TooBig, 520 << 20, 300 << 20},
		{"cut off", failedRequest{request: size(GiB), driver: size(GiB), free: size(1)}, "", 0, 0},
		{"cut off, larger than the device", failedRequest{request: size(9 * GiB), active: size(0), capacity: size(8 * GiB)}, shortage.TooBig, 0, 0},
		{"cut off, larger than the device, use unknown", failedRequest{request: size(9 * GiB), capacity: size(8 * GiB)}, shortage.TooBig, 0, 0},
		{"the request is unknown", failedRequest{free: size(GiB), reserved: size(GiB), active: size(GiB)}, "", 0, 0},
	} {
		if got := c.s.cause(); got != c.cause {
			t.Errorf("%s: %q, want %q", c.name, got, c.cause)
		}
		if n := c.s.outside(); c.outside > 0 && (n == nil || *n != c.outside) || c.s.capacity == nil && n != nil {
			t.Errorf("%s: outside %v, want %d", c.name, n, c.outside)
		}
		if c.missing > 0 && c.s.missing() != c.missing {
			t.Errorf("%s: %d bytes are missing, want %d", c.name, c.s.missing(), c.missing)
		}
		if title := c.s.title(); !strings.HasPrefix(title, "memory ran out") {
			t.Errorf("%s: %s", c.name, title)
		}
	}
}

// TestRemediesAgainstOthers looks for advice on memory held outside, whatever the cause.
func TestRemediesAgainstOthers(t *testing.T) {
	const GiB = 1 << 30
	for _, c := range []struct {
		name string
		s    failedRequest
		want string // a word of it
	}{
		{"in pieces, and others hold more", failedRequest{request: size(3 * GiB), driver: size(3 * GiB), free: size(GiB), reserved: size(8 * GiB), active: size(5 * GiB), capacity: size(20 * GiB)}, "nvidia-smi"},
		{"others hold less than was asked for", failedRequest{request: size(3 * GiB), driver: size(3 * GiB), free: size(GiB), reserved: size(8 * GiB), active: size(5 * GiB), capacity: size(11 * GiB)}, ""},
		{"the cause already", failedRequest{request: size(5 * GiB), driver: size(5 * GiB), free: size(GiB), reserved: size(8 * GiB), active: size(5 * GiB), capacity: size(20 * GiB)}, ""},
		{"little active, and no size", failedRequest{request: size(3 * GiB), driver: size(3 * GiB), free: size(GiB), reserved: size(GiB), active: size(GiB / 2)}, "--capacity"},
		{"much active, and no size", failedRequest{request: size(3 * GiB), driver: size(3 * GiB), free: size(GiB), reserved: size(8 * GiB), active: size(7 * GiB)}, ""},
		{"a limit", failedRequest{request: size(GiB), driver: size(GiB), free: size(2 * GiB), reserved: size(3 * GiB), active: size(GiB)}, ""},
	} {
		var settings []string
		for _, r := range c.s.remediesAgainstOthers() {
			settings = append(settings, r.Setting)
		}
		if text := strings.Join(settings, "; "); c.want == "" != (text == "") || !strings.Contains(text, c.want) {
			t.Errorf("%s: %q, want %q", c.name, text, c.want)
		}
	}
}

// answer judges a snapshot that ran out of memory, with texts beside it.
func answer(t *testing.T, name string, known Options, printed ...*logs.Process) (Answer, finding.Finding) {
	t.Helper()
	s, err := snapshot.Open(filepath.Join("testdata", name), snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	book := digest.NewBook()
	known.Texts = texts.Statements(printed)
	a := Files(book, []*compare.Process{compare.NewProcess("", []*digest.File{book.Digest(s)})}, known)
	a.Findings = append(a.Findings, texts.Judge(printed, known.Texts, texts.Options{Capacity: known.Capacity}).Findings...)
	a.Verdict = verdict.Of(a.Judged, a.Doubtful, a.Findings)
	if a.Verdict != finding.RanOut || len(a.Findings) == 0 || a.Findings[0].Kind != finding.OutOfMemory || a.Findings[0].Severity != finding.Problem {
		t.Fatalf("verdict %s with %d findings", a.Verdict, len(a.Findings))
	}
	return a, a.Findings[0]
}

// is reports whether a figure is known and is n.
func is(figure *int64, n int64) bool { return figure != nil && *figure == n }

// ofNoDevice reports whether nothing is known of the size of the device.
func ofNoDevice(e *finding.OOMEvidence) bool { return e.OutsideBytes == nil && e.CapacityBytes == nil }

func TestPostMortem(t *testing.T) {
	for _, c := range []struct {
		file     string
		capacity *int64
		cause    string
		setting  string
		evidence func(e *finding.OOMEvidence) bool
	}{
		{"../../../examples/out-of-memory/oom.pickle", nil, shortage.Fragmented, "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", func(e *finding.OOMEvidence) bool {
			return is(e.RequestBytes, 1610612736) && is(e.DeviceFreeBytes, 100663296) && is(e.ActiveBytes, 943718400) &&
				is(e.LargestFreeBytes, 157286400) && *e.Event == 144 && *e.Exact && e.OutsideBytes == nil
		}},
		{"w20_driver_growth.full.oom.pickle", nil, shortage.TooBig, "", ofNoDevice},
		{"w20_driver_growth.full.oom.pickle", size(2 << 30), shortage.OthersHold, "nvidia-smi --query-compute-apps=pid,process_name,used_memory --format=csv",
			func(e *finding.OOMEvidence) bool { return is(e.RequestBytes, 1<<30) && is(e.OutsideBytes, 1258291200) }},
		{"w20_driver_growth.full.oom.pickle", size(1 << 20), shortage.TooBig, "", ofNoDevice},
	} {
		_, f := answer(t, c.file, Options{Capacity: c.capacity})
		e := f.Evidence.(*finding.OOMEvidence)
		if e.Cause != c.cause || f.Remedies[0].Setting != c.setting {
			t.Errorf("%s: %v, to do: %q, want %s, %q", c.file, e.Cause, f.Remedies[0].Setting, c.cause, c.setting)
		}
		if !c.evidence(e) {
			t.Errorf("%s: %+v", c.file, e)
		}
		if f.Site == nil || len(f.Stack) == 0 || len(f.Sites) == 0 {
			t.Errorf("%s: no place of the request, or none of what filled the memory", c.file)
		}
	}
}

// textFile is a text with an error message.
func textFile(t *testing.T, name, text string) *logs.Process {
	t.Helper()
	found, err := logs.Scan(strings.NewReader(text))
	if err != nil || found.OOM.Count == 0 {
		t.Fatalf("no message in %q: %v", text, err)
	}
	return &logs.Process{Name: name, Files: []*logs.File{{Name: name, Text: &found}}}
}

const messageOfW20 = "CUDA out of memory. Tried to allocate 1024.00 MiB. GPU 0 has a total capacity of 2.00 GiB of which 782.00 MiB is free. Of the allocated memory 64.00 MiB is allocated by PyTorch, and 2.00 MiB is reserved by PyTorch but unallocated."

func TestMessageOfTheSameFailureGivesTheCapacity(t *testing.T) {
	a, f := answer(t, "w20_driver_growth.full.oom.pickle", Options{}, textFile(t, "job.log", messageOfW20))
	if e := f.Evidence.(*finding.OOMEvidence); e.Cause != shortage.OthersHold || e.MessageFile != "job.log" {
		t.Errorf("cause %v, message in %v", e.Cause, e.MessageFile)
	}
	if n := a.Problems(); n != 1 {
		t.Errorf("one failure makes %d problems", n)
	}
	a, f = answer(t, "w20_driver_growth.full.oom.pickle", Options{}, textFile(t, "job.log", strings.Replace(messageOfW20, "782.00", "5.00", 1)))
	if f.Evidence.(*finding.OOMEvidence).MessageFile != "" || a.Problems() != 2 {
		t.Errorf("a message of another failure: %v, %d problems", f.Evidence, a.Problems())
	}
}

func TestReason(t *testing.T) {
	leaky := stack.Site{File: "/app/train.py", Line: 131, Function: "step"}
	other := stack.Site{File: "/app/eval.py", Line: 7, Function: "log"}
	growth := []finding.Finding{
		{Kind: finding.Leak, Severity: finding.Problem, Site: siteOf(leaky), BytesPerStep: size(1 << 30)},
		{Kind: finding.Leak, Severity: finding.Warning, Site: siteOf(other)},
	}
	for _, c := range []struct {
		held   int64
		reason string
	}{
		{6 << 30, "6 GiB is 6 allocations at train.py:131, never freed, 1 GiB more each step: that is the reason"},
		{1 << 30, ""},
	} {
		m := &purpose.Moment{Places: []purpose.Place{
			{Purpose: purpose.Other, Site: leaky, Bytes: c.held, Count: 6, Kept: true},
			{Purpose: purpose.Activations, Site: leaky, Bytes: 9 << 30, Count: 1, Kept: true}, // of the pass under way
			{Purpose: purpose.Temporaries, Site: leaky, Bytes: 9 << 30, Count: 1},
			{Purpose: purpose.Other, Site: other, Bytes: 9 << 30, Count: 1, Kept: true},
		}}
		s := &failedRequest{request: size(4 << 30), driver: size(4 << 30), free: size(1 << 30), reserved: size(8 << 30), active: size(8 << 30)}
		var f finding.Finding
		var e finding.OOMEvidence
		if got := reason(&f, &e, s, m, growth, "each step"); got != c.reason {
			t.Errorf("%d bytes leaked, 3 GiB are missing: %q", c.held, got)
		}
		if e.LeakedBytes != c.held || c.reason == "" && len(f.Detail) == 0 {
			t.Errorf("%d bytes leaked: %v, %v", c.held, e.LeakedBytes, f.Detail)
		}
		if got := madeOf(holdingsOf(m, leakingSites(growth), false).uses()); !strings.HasSuffix(got, units.Bytes(c.held)+" leaked") {
			t.Errorf("it is made of %s", got)
		}
	}
}

func TestSettingsAreKept(t *testing.T) {
	for conf, want := range map[string]string{
		"": "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
		"garbage_collection_threshold:0.8, max_split_size_mb:128": "PYTORCH_CUDA_ALLOC_CONF=garbage_collection_threshold:0.8,expandable_segments:True",
		"expandable_segments:False":                               "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
	} {
		if got := expandable(conf, nil)[0].Setting; got != want {
			t.Errorf("%q: %s, want %s", conf, got, want)
		}
	}
}

// TestFileDumpedLater judges one failure by a file of that moment, by one of 140
// events later, and by both.
func TestFileDumpedLater(t *testing.T) {
	const at, later = "testdata/w11_fuzz.oom.at.pickle", "testdata/w11_fuzz.oom.later.pickle"
	const active, hole = 2926178304, 14498816
	for _, c := range []struct {
		files []string
		exact bool
		file  string
	}{
		{[]string{at}, true, at},
		{[]string{later}, false, later},
		{[]string{later, at}, true, at},
	} {
		a := judge(t, c.files...)
		f := a.Findings[0]
		e, ok := f.Evidence.(*finding.OOMEvidence)
		if !ok {
			t.Fatalf("%v: the first finding is of kind %s", c.files, f.Kind)
		}
		if *e.Exact != c.exact || e.File != c.file || (f.Confidence == 1) != c.exact {
			t.Errorf("%v: %s, confidence %v, %v", c.files, f.Kind, f.Confidence, e)
		}
		if e.Cause != shortage.Fragmented || !is(e.RequestedBytes, 2908581588) {
			t.Errorf("%v: %+v", c.files, e)
		}
		n, free := *e.ActiveBytes, *e.LargestFreeBytes
		if c.exact && n != active || !c.exact && (n > active || n < active-active/100) || free < hole {
			t.Errorf("%v: %d bytes active, a hole of %d; really %d and %d", c.files, n, free, active, hole)
		}
		if went := *e.AllocationsAfter == 8; went != (len(c.files) > 1 || !c.exact) {
			t.Errorf("%v: allocations after it: %v", c.files, *e.AllocationsAfter)
		}
	}
}

// TestFailureThatWasCaught judges a forward pass that was abandoned: what it had
// made was freed before the dump, and still is the activations of that moment.
func TestFailureThatWasCaught(t *testing.T) {
	_, f := answer(t, "caught.oom.later.pickle.gz", Options{})
	const activations, inUse = 318767108, 453066760
	e := f.Evidence.(*finding.OOMEvidence)
	var sum int64
	for _, n := range e.ByPurpose {
		sum += n
	}
	if e.ByPurpose["activations"] != activations || sum != inUse || !is(e.RequestedBytes, inUse) {
		t.Errorf("%v in use: %v", *e.RequestedBytes, e.ByPurpose)
	}
	text := strings.Join(f.Detail, "\n")
	for _, want := range []string{
		"what filled the memory: 304 MiB activations, 32 MiB parameters, 32 MiB optimizer state",
		"activations: 304 MiB at oom_retry.py:17 forward (7)",
		"large segments, the kind that the request uses, have 120 MiB, the largest piece 32 MiB; small segments have",
		"stranded: 106 MiB in 5 segments that are at least half free, pinned by 25 blocks of 64.1 MiB in all, 12 of them allocated at oom_retry.py:24 step",
	} {
		if !strings.Contains(text, want) {
			t.Errorf("missing: %s\n%s", want, text)
		}
	}
}

// TestFailureWithoutStacks judges a recording that has events and no stacks.
func TestFailureWithoutStacks(t *testing.T) {
	a, f := answer(t, "w06b_oom_fragmented.no_stacks.oom.pickle.gz", Options{})
	if text := strings.Join(f.Detail, "\n"); f.Site != nil || f.Sites != nil || !is(f.Evidence.(*finding.OOMEvidence).UnknownBytes, 900<<20) ||
		!strings.Contains(text, "what filled the memory: 900 MiB of unknown purpose") {
		t.Errorf("site %v, sites %v, %v\n%s", f.Site, f.Sites, f.Evidence, text)
	}
	for _, f := range a.Findings {
		if f.Title == "the place that allocated 900 MiB of 900 MiB is unknown: the recording has no stacks" {
			return
		}
	}
	t.Error("nothing says that the recording has no stacks")
}

func TestTrialDecidesOnTheSetting(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		name  string
		trial replay.Trial
		text  string // of the remedy, "" for none
	}{
		{"it fits", replay.Trial{Exact: true, Own: 4 * gib, Peak: 5 * gib, RanOut: true, Left: size(3 * gib)}, "the failed request is met with 3 GiB to spare"},
		{"it fits, without a bound", replay.Trial{Exact: true, Own: 4 * gib, Peak: 5 * gib, RanOut: true}, "the failed request is met"},
		{"it does not fit either", replay.Trial{Exact: true, Own: 4 * gib, Peak: 3 * gib, RanOut: true, RunsOut: true}, ""},
		{"it saves", replay.Trial{Exact: true, Own: 4 * gib, Peak: 3 * gib}, "peaks at 3 GiB reserved instead of 4 GiB"},
		{"it saves nothing", replay.Trial{Exact: true, Own: 4 * gib, Peak: 4*gib - 1<<20}, ""},
		{"the replay is not exact", replay.Trial{Own: 4 * gib, Peak: 3 * gib}, "simulated approximately"},
	} {
		got := expandable("", &c.trial)
		switch {
		case c.text == "" && got != nil:
			t.Errorf("%s: %v", c.name, got)
		case c.text != "" && (len(got) != 1 || !strings.Contains(got[0].Text, c.text)):
			t.Errorf("%s: %v, want %q", c.name, got, c.text)
		}
	}
}

// TestSettingThatPutsTheEndOff lists such a setting after what helps for longer, unless
// pieces are the cause: with it there is not room for another request of that size.
func TestSettingThatPutsTheEndOff(t *testing.T) {
	const gib = 1 << 30
	fragmented := &failedRequest{request: size(3 * gib), driver: size(3 * gib), free: size(gib), reserved: size(8 * gib), active: size(5 * gib)}
	tooBig := &failedRequest{request: size(5 * gib), driver: size(5 * gib), free: size(gib), reserved: size(8 * gib), active: size(5 * gib)}
	limited := &failedRequest{request: size(2 * gib), driver: size(2 * gib), free: size(4 * gib), reserved: size(8 * gib), active: size(5 * gib)}
	for _, c := range []struct {
		s     *failedRequest
		left  int64
		at    int // place of the setting
		count int
	}{
		{fragmented, 3 * gib, 0, 1}, {fragmented, 3*gib - 1, 0, 2}, {tooBig, 5 * gib, 0, 2}, {tooBig, 0, 1, 2},
		{limited, 2 * gib, 0, 2}, {limited, gib, 1, 2},
	} {
		trial := &replay.Trial{Exact: true, Own: 8 * gib, Peak: 8 * gib, RanOut: true, Left: &c.left}
		got := oomRemedies(c.s, &digest.OOM{Request: *c.s.request}, trial)
		if len(got) != c.count || got[c.at].Effect == nil || *got[c.at].Effect.Left != c.left {
			t.Errorf("%s, %d bytes left: %+v", c.s.cause(), c.left, got)
		}
	}
}

// TestHoles names the request's own kind of segment first, each kind once, and a
// pool by no name if there is none.
func TestHoles(t *testing.T) {
	const mib = 1 << 20
	sum := func(class string, stream uint64, pool snapshot.Pool, recorded, expandable bool, free, gap int64) timeline.PoolSum {
		return timeline.PoolSum{Pool: pool, Recorded: recorded, Stream: stream, Type: class, Expandable: expandable, Free: free, LargestGap: gap}
	}
	deflt, graph := snapshot.Pool{}, snapshot.Pool{Graph: 1}
	for _, c := range []struct {
		name string
		o    digest.OOM
		text string
	}{
		{"nothing free", digest.OOM{Request: 4 * mib, Pools: []timeline.PoolSum{sum("large", 0, deflt, true, false, 0, 0)}}, ""},
		{"only its own", digest.OOM{Request: 4 * mib, Pools: []timeline.PoolSum{sum("large", 0, deflt, true, false, 6*mib, 2*mib)}},
			"6 MiB was free in segments; the largest piece that the request could use has 2 MiB"},
		{"none of its own", digest.OOM{Request: 4 * mib, Pools: []timeline.PoolSum{sum("small", 0, deflt, true, false, 2*mib, mib)}},
			"2 MiB was free in segments, and none of it where the request could use it: large segments, the kind that the request uses, have none; small segments have 2 MiB, the largest piece 1 MiB"},
		{"of another stream", digest.OOM{Request: 4 * mib, Stream: 0x70, Pools: []timeline.PoolSum{sum("large", 0, deflt, true, false, 8*mib, 8*mib), sum("large", 0x70, deflt, true, false, 2*mib, mib)}},
			"10 MiB was free in segments; the largest piece that the request could use has 1 MiB: large segments of stream 0x70, the kind that the request uses, have 2 MiB, the largest piece 1 MiB; large segments have 8 MiB, the largest piece 8 MiB"},
		{"of a pool", digest.OOM{Request: 4 * mib, Pool: &graph, Pools: []timeline.PoolSum{sum("large", 0, deflt, true, false, 8*mib, 8*mib), sum("large", 0, graph, true, false, 2*mib, mib)}},
			"large segments of pool (1,0), the kind that the request uses, have 2 MiB, the largest piece 1 MiB; large segments have 8 MiB"},
		{"of both sorts", digest.OOM{Request: 4 * mib, Pools: []timeline.PoolSum{
			sum("large", 0, deflt, true, false, 8*mib, mib), sum("large", 0, deflt, true, true, 4*mib, 3*mib), sum("small", 0, deflt, true, false, mib, mib)}},
			"large segments, the kind that the request uses, have 12 MiB, the largest piece 3 MiB; small segments have 1 MiB"},
		{"of a pool that is not recorded", digest.OOM{Request: 4 * mib, Pools: []timeline.PoolSum{sum("large", 0, deflt, true, false, 8*mib, mib), sum("large", 0, deflt, false, false, 4*mib, 3*mib)}},
			"large segments, the kind that the request uses, have 8 MiB, the largest piece 1 MiB; large segments of a pool that is not recorded have 4 MiB"},
		{"of a file without pools", digest.OOM{Request: 4 * mib, Pools: []timeline.PoolSum{sum("large", 0, deflt, false, false, 8*mib, mib), sum("small", 0, deflt, false, false, 4*mib, mib)}},
			"large segments, the kind that the request uses, have 8 MiB, the largest piece 1 MiB; small segments have 4 MiB"},
	} {
		var f finding.Finding
		var e finding.OOMEvidence
		addFree(&f, &e, &failedRequest{}, &c.o)
		if text := strings.Join(f.Detail, "\n"); !strings.Contains(text, c.text) || c.text == "" && text != "" {
			t.Errorf("%s: %s", c.name, text)
		}
		for i, p := range c.o.Pools {
			if e.Pools != nil && (e.Pools[i].Pool == nil) != !p.Recorded {
				t.Errorf("%s: pool %v", c.name, e.Pools[i].Pool)
			}
		}
	}
	var f finding.Finding
	addFree(&f, &finding.OOMEvidence{}, &failedRequest{}, &digest.OOM{Request: 4 * mib, Pools: []timeline.PoolSum{sum("large", 0, graph, true, false, 2*mib, mib)}})
	if text := strings.Join(f.Detail, "\n"); !strings.Contains(text, "the request's pool is not recorded") {
		t.Error(text)
	}
}

// TestOthersOnTheDevice names the other processes that the recorder saw.
func TestOthersOnTheDevice(t *testing.T) {
	s, err := snapshot.Open("../../examples/out-of-memory/oom.pickle", snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	book := digest.NewBook()
	p := compare.NewProcess("trainer", []*digest.File{book.Digest(s)})
	p.About = &compare.About{Failed: map[int]compare.Shared{0: {Capacity: 80 << 30, Others: []compare.Holding{{Process: "server", Bytes: 60 << 30}}}}}
	for _, f := range Files(book, []*compare.Process{p}, Options{}).Findings {
		e, ok := f.Evidence.(*finding.OOMEvidence)
		if !ok {
			continue
		}
		if e.CapacityBytes == nil || *e.CapacityBytes != 80<<30 || len(e.OtherProcesses) != 1 || e.OtherProcesses[0].Process != "server" {
			t.Errorf("evidence %+v", e)
		}
		if want := "other processes were on the device: server with 60 GiB"; !slices.Contains(f.Detail, want) {
			t.Errorf("detail %q, want %q in it", f.Detail, want)
		}
		return
	}
	t.Error("no finding of memory that ran out")
}
