package snapshots

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strandline/finding"
	"strandline/internal/test/live"
	"strandline/stack"
	"strandline/torch/snapshot"
)

// costKinds are the kinds of finding that report what a single cause costs.
var costKinds = []finding.Kind{
	finding.Spike, finding.Copies, finding.AutocastCache, finding.Waiting, finding.PrivatePools, finding.Rounding, finding.Pinned,
}

// costsOf are the findings of these kinds.
func costsOf(a Answer) (out []finding.Finding) {
	for _, f := range a.Findings {
		if slices.Contains(costKinds, f.Kind) {
			out = append(out, f)
		}
	}
	return out
}

// TestCosts checks recordings against what their programs, which are beside them,
// are known to do. Every other kind must be silent.
func TestCosts(t *testing.T) {
	const mib = int64(1 << 20)
	for _, c := range []struct {
		file  string
		want  string                        // kinds and severities
		site  string                        // of the first
		check func(e finding.Evidence) bool // nil if not checked
	}{
		// 24 batches of 256 MiB are freed, and none comes back.
		{"testdata/waiting.pickle", "waiting warning", "costs.py:20 empty", func(e finding.Evidence) bool {
			w := e.(*finding.WaitingEvidence)
			return w.PeakWaitingBytes == 24*256*mib && w.WaitingBytes == 24*256*mib && w.WaitingCount == 24 &&
				w.PeakBytes == (2048+24*256+1)*mib && w.PeakWithoutBytes == (2048+256+1)*mib // 1 of the result
		}},
		{"testdata/waited.pickle", "", "", nil},
		{"../../torch/snapshot/testdata/w07_streams_pools.default.pending.pickle", "waiting info", "w07_streams_pools.py:16 side_stream_copy",
			func(e finding.Evidence) bool {
				w := e.(*finding.WaitingEvidence)
				return w.WaitingCount == 12 && w.WaitingBytes == 6*3*mib+15000+6*300_000+15000
			}},
		{"testdata/tiny.pickle.gz", "rounding info", "costs.py:48 tiny", func(e finding.Evidence) bool {
			r := e.(*finding.RoundingEvidence)
			return r.TinyCount == 2200 && r.TinyLostBytes == 2200*508 && r.LostBytes == 2200*508 && r.UnsplitBytes == 0
		}},
		{"testdata/unsplit.pickle", "rounding info", "costs.py:20 empty", func(e finding.Evidence) bool {
			r := e.(*finding.RoundingEvidence)
			return r.UnsplitBytes == 60*(mib-4096) && r.LostBytes == 60*(mib-4096) && r.TinyCount == 0
		}},
		{"testdata/divisions.pickle", "rounding info", "costs.py:20 empty", func(e finding.Evidence) bool {
			return e.(*finding.RoundingEvidence).LostBytes == (31+62+114+238)*mib
		}},
		{"../../examples/graphs/captured.pickle", "private-pools warning", "", func(e finding.Evidence) bool {
			return e.(*finding.PrivatePoolsEvidence).SharableBytes == (962+482+242)*mib
		}},
		{"testdata/shared.pickle", "private-pools info", "", func(e finding.Evidence) bool {
			return e.(*finding.PrivatePoolsEvidence).SharableBytes == 0
		}},
		{"../../examples/logits/step-3.pickle.gz", "copies info, spike info", "logits.py:44 loss_of", func(e finding.Evidence) bool {
			x := e.(*finding.CopiesEvidence)
			return x.SourceBytes == 2048*128256*2 && x.CopiesBytes == 2*2047*128256*4
		}},
		{"testdata/honest.pickle.gz", "spike info", "honest.py:25 forward", nil},
	} {
		found := costsOf(judge(t, c.file))
		var got []string
		for _, f := range found {
			got = append(got, fmt.Sprint(f.Kind, " ", f.Severity))
			if f.Basis == "" || f.Confidence <= 0 || len(f.Remedies) == 0 && f.Kind != finding.Rounding {
				t.Errorf("%s: %s: basis %q, confidence %v, %d remedies", c.file, f.Kind, f.Basis, f.Confidence, len(f.Remedies))
			}
		}
		slices.Sort(got)
		if text := strings.Join(got, ", "); text != c.want {
			t.Errorf("%s: %q, want %q", c.file, text, c.want)
			continue
		}
		if len(found) == 0 {
			continue
		}
		if first := found[0]; c.site != "" && (first.Site == nil || short(stack.Site(*first.Site)) != c.site) {
			t.Errorf("%s: the site is %v, want %s", c.file, first.Site, c.site)
		}
		if c.check != nil && !c.check(found[0].Evidence) {
			t.Errorf("%s: %+v", c.file, found[0].Evidence)
		}
	}
}

// TestDivisionsRemedy looks for the setting without the option that costs.
func TestDivisionsRemedy(t *testing.T) {
	f := costsOf(judge(t, "testdata/divisions.pickle"))[0]
	if want := "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"; len(f.Remedies) != 1 || f.Remedies[0].Setting != want {
		t.Errorf("remedies %+v, want the setting %s", f.Remedies, want)
	}
	if got := divisionsOption.ReplaceAllString("max_split_size_mb:64,roundup_power2_divisions:[256:1,512:2,>:8],x:1", ""); got != "max_split_size_mb:64,x:1" {
		t.Errorf("without its list of divisions the setting is %q", got)
	}
}

// TestPinned judges pinned host memory. No recording of it is at hand: this file
// is written after the notes on PyTorch 2.14's format, whose host_segments are
// segments of one block each, sized to a power of two.
func TestPinned(t *testing.T) {
	const mib = int64(1 << 20)
	for _, c := range []struct {
		requested []int64
		lost      int64 // 0 is silence
	}{
		{[]int64{65 * mib, 65 * mib, 100 * mib}, 63*mib + 63*mib + 28*mib},
		{[]int64{120 * mib, 250 * mib}, 0}, // little is lost
		{[]int64{33 * mib}, 0},             // a lot of a little
		{nil, 0},
	} {
		s := snapshot.New()
		id := s.Stacks.Intern([]stack.FrameID{s.Stacks.Frame(stack.Frame{File: "/home/user/load.py", Line: 7, Function: "pin"}, nil)})
		for i, n := range c.requested {
			size := mib
			for size < n {
				size *= 2
			}
			addr := uint64(0x7f0000000000) + uint64(i)<<32
			s.Segments = append(s.Segments, snapshot.Segment{
				Device: snapshot.Host, Addr: addr, TotalSize: size, AllocatedSize: size, ActiveSize: size, RequestedSize: n, Type: s.StringID("large"),
				Blocks: []snapshot.Block{{Addr: addr, Size: size, Requested: n, Stack: id, State: snapshot.Allocated}},
			})
		}
		var file bytes.Buffer
		if err := s.Write(&file); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(t.TempDir(), "host.pickle")
		if err := os.WriteFile(path, file.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
		found := costsOf(judge(t, path))
		if c.lost == 0 {
			if len(found) > 0 {
				t.Errorf("%v: %s", c.requested, found[0].Title)
			}
			continue
		}
		if len(found) != 1 || found[0].Kind != finding.Pinned || found[0].Evidence.(*finding.PinnedEvidence).LostBytes != c.lost || found[0].Site.Line != 7 {
			t.Errorf("%v: %+v, want %d bytes lost at line 7", c.requested, found, c.lost)
		}
	}
}

// costly are the recorded runs of a corpus in which something is to be found, with
// the kinds. The others must be silent.
var costly = map[string]string{
	"w02_image_leak.roundup4":    "rounding", // PYTORCH_CUDA_ALLOC_CONF=roundup_power2_divisions:4
	"w11_fuzz.roundup4":          "rounding",
	"w11_fuzz.roundup_list":      "rounding",
	"w07_streams_pools.default":  "private-pools waiting", // graphs, MemPool and record_stream
	"w11_fuzz.pools":             "private-pools",
	"w06_oom.default":            "spike", // one large batch
	"w06_oom.expandable":         "spike",
	"w06_oom.fraction":           "spike",
	"w12_llm.logits":             "spike", // log-probabilities of a large vocabulary
	"w12_llm.logits_expandable":  "spike",
	"w12_llm.none":               "spike",
	"w13_cache.random":           "spike", // models of a few MiB, of which one layer is most
	"w14_growing_work.chunks":    "spike",
	"w14_growing_work.default":   "spike",
	"w14_growing_work.workspace": "spike",
	"w18_fsdp.ddp":               "spike",
	"w18_train.checkpoint":       "spike",
	"w18_train.conv":             "spike",
	"w18_train.conv_cpp":         "spike",
	"w18_train.eval_average":     "spike",
}

// TestCorpusCosts judges every file of a folder of recorded snapshots.
func TestCorpusCosts(t *testing.T) {
	dir := live.Given(t, "STRANDLINE_CORPUS")
	paths, _ := filepath.Glob(filepath.Join(dir, "torch", "*.pickle"))
	if len(paths) == 0 {
		t.Fatalf("no snapshots below %s", dir)
	}
	got := map[string][]string{}
	for _, path := range paths {
		parts := strings.Split(filepath.Base(path), ".")
		run := parts[0] + "." + parts[1]
		for _, f := range costsOf(judge(t, path)) {
			if f.Severity != finding.Info {
				t.Errorf("%s: a %s in a small run: %s", filepath.Base(path), f.Severity, f.Title)
			}
			if !slices.Contains(got[run], string(f.Kind)) {
				got[run] = append(got[run], string(f.Kind))
			}
		}
	}
	for run, kinds := range got {
		slices.Sort(kinds)
		if text := strings.Join(kinds, " "); text != costly[run] {
			t.Errorf("%s: %q, want %q", run, text, costly[run])
		}
	}
	for run, want := range costly {
		if want != "" && got[run] == nil {
			t.Errorf("%s: nothing, want %q", run, want)
		}
	}
}

func TestSeverityOf(t *testing.T) {
	for _, c := range []struct {
		bytes, all int64
		want       finding.Severity
	}{
		{0, 0, ""}, {1 << 30, 0, ""}, {1 << 19, 1 << 20, ""}, {1 << 20, 1 << 20, finding.Info}, {59 << 20, 1000 << 20, ""},
		{60 << 20, 1000 << 20, finding.Info}, {511 << 20, 600 << 20, finding.Info}, {512 << 20, 600 << 20, finding.Warning},
		{512 << 20, 4 << 30, finding.Info}, {-1, 1, ""},
	} {
		if got := severityOf(c.bytes, c.all); got != c.want {
			t.Errorf("%d of %d: %q, want %q", c.bytes, c.all, got, c.want)
		}
	}
}
