package engine

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"testing"
	"time"

	"strandline/face/api/page"
	"strandline/finding"
	"strandline/host/sampling/sample"
	"strandline/judge/samples"
)

func asks[T any](t *testing.T, w *Watch, name, query string) (doc T) {
	t.Helper()
	q, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	a := w.Ask(t.Context(), name, q)
	if a.Status != 200 {
		t.Fatalf("%s?%s: status %d, %s", name, query, a.Status, a.Body)
	}
	if err := json.Unmarshal(a.Body, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

const mib = 1 << 20

// node is a machine at a second: a process that leaks on a device and holds the same on the
// host, in a control group, beside memory that nobody owns.
func node(at int) *sample.Sample {
	used, allocated, cached, other := int64(3000*mib+at*4*mib), int64(2000*mib+at*4*mib), int64(700*mib), int64(300*mib)
	total, gone, free := int64(6144*mib), int64(200*mib), int64(0)
	all := used + gone + 100*mib
	free = total - all
	limit, counted := int64(8192*mib), int64(1500*mib)
	age := 1e5
	d := sample.Device{
		Index: 0, UUID: "GPU-0", Used: &all, Free: &free, Total: &total,
		Processes: []sample.Holding{{PID: 7, Used: &used, Owner: sample.Live}, {PID: 9, Used: &gone, Owner: sample.Gone}},
	}
	d.Account()
	return &sample.Sample{
		Time: time.Unix(1_800_000_000+int64(at), 0).UTC(), Seconds: 50 + float64(at),
		Processes: []sample.Process{{
			PID: 7, Started: 70, Age: &age, Name: "train", Command: "python train.py", State: "sleeping", Group: "/jobs/a",
			Host:    &sample.Host{Anonymous: 1000 * mib, File: 300 * mib, Shared: 200 * mib, Pinned: 50 * mib},
			Devices: []sample.DeviceShare{{Device: 0, Used: &used, Allocated: &allocated, Cached: &cached, Other: &other}},
		}},
		Devices: []sample.Device{d},
		Groups:  []sample.Group{{Name: "/jobs/a", Used: &counted, Limit: &limit}},
		Machine: &sample.Machine{Total: 64 << 30, Available: 60 << 30},
	}
}

// watched is an engine with the samples of so many seconds.
func watched(t *testing.T, n int) *Watch {
	t.Helper()
	w := NewWatch("node.strandline", false)
	for at := range n {
		if err := w.Take(node(at)); err != nil {
			t.Fatal(err)
		}
	}
	w.Rest()
	return w
}

// TestWatchAsJudged checks that the page has the findings of package judge/samples, and the
// curve of the worst.
func TestWatchAsJudged(t *testing.T) {
	const n = 60
	judge := samples.New()
	for at := range n {
		judge.Add(node(at))
	}
	want := judge.Findings()
	doc := asks[page.Watch](t, watched(t, n), "watch", "")
	if len(want) < 2 || len(doc.Findings) != len(want) || doc.Verdict != finding.Leaking || doc.Samples != n || doc.Seconds != n-1 || doc.Reading {
		t.Fatalf("%+v\nwant the findings %+v", doc, want)
	}
	for i := range want {
		a, _ := json.Marshal(doc.Findings[i].Finding)
		b, _ := json.Marshal(want[i])
		if string(a) != string(b) {
			t.Errorf("finding %d is %s, want %s", i, a, b)
		}
	}
	f := doc.Findings[0]
	e := want[0].Evidence.(*finding.LevelsEvidence)
	if f.Subject == nil || *f.Subject != "p7-70-device0" || !reflect.DeepEqual(f.Parts, []string{"allocated"}) || f.Fit == nil {
		t.Fatalf("%+v", f)
	}
	fit := f.Fit
	end := len(fit.Seconds) / 2
	if fit.Until != n-1 || fit.Seconds[end] != n-1 || fit.Seconds[0] != 0 {
		t.Errorf("the curve is from %v by %v, ends at %v", fit.Seconds[0], fit.Seconds[end], fit.Until)
	}
	if near := fit.Level[end] - float64(*e.LevelBytes); near > 8*mib || near < -8*mib {
		t.Errorf("the curve ends at %v, the level is %v", fit.Level[end], *e.LevelBytes)
	}
	last := len(fit.Seconds) - 1
	if fit.Seconds[last] < n-1+*e.SecondsToLimit[1] || fit.High[last] < float64(*e.LimitBytes) {
		t.Errorf("the curve goes to %v s and %v bytes; the limit of %v is reached in %v s", fit.Seconds[last], fit.High[last], *e.LimitBytes, *e.SecondsToLimit[1])
	}
}

func TestWatchSubjects(t *testing.T) {
	w := watched(t, 60)
	doc := asks[page.Watch](t, w, "watch", "")
	used := int64(3000*mib + 59*4*mib)
	for _, c := range []struct {
		key, kind, label string
		now              int64
		limit            int64
		parts            map[string]int64
	}{
		{"p7-70-host", "process", "7 train", 1500 * mib, 0, map[string]int64{"anonymous": 1000 * mib, "shared": 200 * mib, "file": 300 * mib, "pinned, of these": 50 * mib}},
		{"p7-70-device0", "process", "7 train", used, 0, map[string]int64{"allocated": used - 1000*mib, "cached": 700 * mib, "other": 300 * mib}},
		{"d0", "device", "device 0", used + 300*mib, 6144 * mib, map[string]int64{"7 train": used, "processes that have ended": 200 * mib, "not attributed to any process": 100 * mib}},
		{containerKey("group /jobs/a"), "container", "/jobs/a", 1500 * mib, 8192 * mib, map[string]int64{"7 train": 1500 * mib, "the control group's own count": 1500 * mib}},
		{"machine", "device", "memory of the machine", 4 << 30, 64 << 30, map[string]int64{"7 train": 1000 * mib, "everything else": 4<<30 - 1000*mib}},
	} {
		var s *page.Subject
		for i := range doc.Subjects {
			if doc.Subjects[i].Key == c.key {
				s = &doc.Subjects[i]
			}
		}
		if s == nil {
			t.Errorf("%s is not there", c.key)
			continue
		}
		var limit int64
		if s.Limit != nil {
			limit = *s.Limit
		}
		if s.Kind != c.kind || s.Label != c.label || s.Now != c.now || limit != c.limit || s.First != 0 || s.Last != 59 || s.Ended {
			t.Errorf("%+v, want %+v", s, c)
		}
		l := asks[page.Levels](t, w, "levels", "s="+c.key)
		k := len(l.At) - 1
		got := map[string]int64{}
		for i, p := range l.Parts {
			if l.Bytes[i][k] != nil {
				got[p.Name] = *l.Bytes[i][k]
			}
		}
		if !reflect.DeepEqual(got, c.parts) || l.Last[k] != c.now {
			t.Errorf("%s: %v, %d at the end, want %v, %d", c.key, got, l.Last[k], c.parts, c.now)
		}
	}
	for _, s := range doc.Subjects {
		if s.Key == "p7-70-device0" && fmt.Sprint(s.Split) != fmt.Sprint([]page.SplitPart{{Name: "allocated", Bytes: used - 1000*mib}, {Name: "cached", Bytes: 700 * mib}, {Name: "other", Bytes: 300 * mib}}) {
			t.Errorf("%s is split into %v", s.Key, s.Split)
		}
	}
	if d := doc.Subjects[0]; d.Severity == nil || *d.Severity != finding.Problem {
		t.Errorf("the first is %+v", d)
	}
}

// TestWatchThins checks that a long course keeps its highest and lowest totals and counts
// all samples, in a bounded number of columns.
func TestWatchThins(t *testing.T) {
	const n, spike, dip = 50_000, 23_456, 34_567
	w := NewWatch("x", false)
	for at := range n {
		anonymous := int64(1000 + at%97)
		switch at {
		case spike:
			anonymous = 1 << 40
		case dip:
			anonymous = 3
		}
		if err := w.Take(&sample.Sample{Seconds: float64(at), Processes: []sample.Process{{PID: 1, Host: &sample.Host{Anonymous: anonymous, File: 5}}}}); err != nil {
			t.Fatal(err)
		}
	}
	w.Rest()
	l := asks[page.Levels](t, w, "levels", "s=p1-0-host")
	if len(l.At) > maxLevels || len(l.At) < maxLevels/4 {
		t.Fatalf("%d columns", len(l.At))
	}
	samples, seen := 0, 0
	for c := range l.At {
		samples += l.Count[c]
		var sum int64
		for i := range l.Parts {
			sum += *l.Bytes[i][c]
		}
		if sum != l.Max[c] || l.Min[c] > l.Last[c] || l.Last[c] > l.Max[c] || l.At[c] < l.From[c] || l.At[c] > l.To[c] {
			t.Fatalf("column %d: parts of %d, %d to %d, %d at the end", c, sum, l.Min[c], l.Max[c], l.Last[c])
		}
		if l.Max[c] == 1<<40+5 && l.At[c] == spike || l.Min[c] == 8 && l.From[c] <= dip && dip <= l.To[c] {
			seen++
		}
	}
	if samples != n || seen != 2 {
		t.Errorf("%d samples, %d of the spike and the dip", samples, seen)
	}
	near := asks[page.Levels](t, w, "levels", "s=p1-0-host&from=23000&to=24000")
	for c := range near.At {
		if near.Count[c] != 1 {
			t.Fatalf("column %d of a window is %d samples", c, near.Count[c])
		}
	}
	if len(near.At) != 1002 {
		t.Errorf("%d columns from %v to %v", len(near.At), near.From[0], near.To[len(near.To)-1])
	}
}

// TestCourseIsBounded checks that a course keeps as many stretches as it may, also where
// that becomes fewer, and what was highest and lowest.
func TestCourseIsBounded(t *testing.T) {
	var c course
	part := c.part("x", "x", false)
	for n := range 20_000 {
		most := 1000
		if n >= 10_000 {
			most = 100
		}
		total := int64(1000 + n%97)
		if n == 1234 {
			total = 1 << 40
		}
		c.add(n+1, float64(n), false, total, []share{{part, total}}, most)
		if len(c.list) > most {
			t.Fatalf("%d stretches after %d samples", len(c.list), n+1)
		}
	}
	samples, high := 0, int64(0)
	for _, s := range c.list {
		samples, high = samples+s.samples, max(high, s.max)
	}
	if samples != 20_000 || high != 1<<40 || len(c.list) < 20 {
		t.Errorf("%d samples in %d stretches, %d at most", samples, len(c.list), high)
	}
}

// TestWatchGaps checks that what was not seen is not drawn: a process that is gone for a
// while, and the time between two watches.
func TestWatchGaps(t *testing.T) {
	w := NewWatch("x", false)
	for _, at := range []float64{0, 1, 2, 3, 4, 5, 100, 101} {
		s := &sample.Sample{Seconds: at, Processes: []sample.Process{{PID: 1, Host: &sample.Host{Anonymous: 7}}}}
		if at != 3 {
			s.Processes = append(s.Processes, sample.Process{PID: 2, Host: &sample.Host{Anonymous: 8}})
		}
		w.Take(s)
	}
	for key, want := range map[string]string{"p1-0-host": "[0 100] [5 101] [6 2]", "p2-0-host": "[0 4 100] [2 5 101] [3 2 2]"} {
		l := asks[page.Levels](t, w, "levels", "s="+key)
		if got := fmt.Sprint(l.From, l.To, l.Count); got != want {
			t.Errorf("%s: %s, want %s", key, got, want)
		}
	}
}

// TestWatchFollows checks that a question waits for more, and that all is read again after
// the recording was thinned.
func TestWatchFollows(t *testing.T) {
	w := NewWatch("x", true)
	first := asks[page.Watch](t, w, "watch", "")
	if !first.Reading || !first.Following || first.Samples != 0 || len(first.Subjects) != 0 || first.Verdict != finding.Unknown {
		t.Errorf("%+v", first)
	}
	answer := make(chan page.Watch)
	go func() { answer <- asks[page.Watch](t, w, "watch", fmt.Sprint("since=", first.Version)) }()
	w.Take(node(0))
	if got := <-answer; got.Version == first.Version {
		t.Errorf("%+v", got)
	}
	w.Unreadable(errors.New("frame 3: torn"))
	w.Rest()
	if got := asks[page.Watch](t, w, "watch", ""); got.Reading || got.Samples != 1 || got.Partial == nil || *got.Partial != "frame 3: torn" {
		t.Errorf("%+v", got)
	}
	w.Begin()
	if got := asks[page.Watch](t, w, "watch", ""); !got.Reading || got.Samples != 0 || got.Partial != nil || len(got.Subjects) != 0 {
		t.Errorf("%+v", got)
	}
}

// TestWatchLoad checks the load of an engine beside the subjects, and that what is not
// known is a gap.
func TestWatchLoad(t *testing.T) {
	w := NewWatch("x", false)
	if doc := asks[page.Watch](t, w, "watch", ""); doc.Load != nil {
		t.Errorf("without an engine: %+v", doc.Load)
	}
	for at := range 6 {
		s := node(at)
		running, waiting, ratio := int64(at), int64(2), 0.25
		s.Load = &sample.Load{Engine: "vllm", Running: &running, Waiting: &waiting, KVCache: &ratio}
		if at == 3 {
			s.Load = &sample.Load{Note: "no answer"}
		}
		w.Take(s)
	}
	doc := asks[page.Watch](t, w, "watch", "")
	if doc.Load == nil || doc.Load.Engine != "vllm" || doc.Load.Note != "" {
		t.Fatalf("%+v", doc.Load)
	}
	l := asks[page.Levels](t, w, "levels", "s="+doc.Load.Key)
	if got, want := fmt.Sprint(l.From, l.Max, l.Parts), "[0 1 2 4 5] [2 3 4 6 7] [{running requests false} {waiting requests false} {KV cache in use true}]"; got != want || *l.Bytes[2][4] != 250_000 {
		t.Errorf("%s, want %s", got, want)
	}
}

// TestWatchMappings checks that a mapping stays the same one while it grows in both
// directions and joins others.
func TestWatchMappings(t *testing.T) {
	w := NewWatch("x", false)
	look := func(at int, seconds float64, mappings ...sample.Mapping) {
		s := node(at)
		if seconds > 0 {
			s.Processes[0].Grown = &sample.Growth{Seconds: seconds, Classes: []sample.Class{}, Mappings: mappings}
		}
		w.Take(s)
	}
	heap := sample.Mapping{Start: 0x1000, End: 0x9000, Kind: "heap", Name: "[heap]", Resident: 100 * mib, Grown: 40 * mib}
	look(0, 0)
	look(1, 2, heap, sample.Mapping{Start: 0x70000, End: 0x80000, Kind: "anonymous", Resident: 50 * mib, Grown: 50 * mib})
	look(2, 2, heap)
	heap.End, heap.Resident = 0xa000, 130*mib
	look(3, 4, sample.Mapping{Start: 0x60000, End: 0x90000, Kind: "anonymous", Resident: 90 * mib, Grown: 90 * mib}, heap,
		sample.Mapping{Start: 0xf0000, End: 0xf1000, Kind: "memfd", Name: "/memfd:ring (deleted)", Resident: 10 * mib, Grown: 10 * mib})
	doc := asks[page.Watch](t, w, "watch", "")
	for _, s := range doc.Subjects {
		if (s.Mappings != nil) != (s.Key == "p7-70-host") {
			t.Errorf("%s: %v", s.Key, s.Mappings)
		}
	}
	l := asks[page.Levels](t, w, "levels", "s=p7-70-mappings")
	last := map[string]int64{}
	for i, p := range l.Parts {
		last[p.Name] = *l.Bytes[i][len(l.At)-1] / mib
	}
	want := map[string]int64{"1000 heap": 130, "70000 anonymous": 90, "f0000 memfd memfd:ring (deleted)": 10}
	if !reflect.DeepEqual(last, want) || fmt.Sprint(l.From) != "[1 3]" || l.Last[1] != 1500*mib {
		t.Errorf("%v at %v of %v, want %v", last, l.From, l.Last, want)
	}
}

func TestWatchRefuses(t *testing.T) {
	w := watched(t, 2)
	for _, c := range []struct {
		name, query string
		status      int
	}{
		{"window", "", 404}, {"watch", "x=1", 400}, {"watch", "since=y", 400}, {"levels", "", 404}, {"levels", "s=d0&from=9&to=3", 400}, {"levels", "s=d0&from=-1", 400},
	} {
		q, _ := url.ParseQuery(c.query)
		if a := w.Ask(t.Context(), c.name, q); a.Status != c.status {
			t.Errorf("%s?%s: %d, %s", c.name, c.query, a.Status, a.Body)
		}
	}
}

// TestWatchForgets checks that processes that have ended do not add up.
func TestWatchForgets(t *testing.T) {
	w := NewWatch("x", false)
	for at := range 3 * maxKept {
		w.Take(&sample.Sample{Seconds: float64(at), Processes: []sample.Process{{PID: at + 1, Host: &sample.Host{Anonymous: int64(at)}}}})
	}
	if n := len(w.subjects); n > 2*maxKept {
		t.Errorf("%d subjects are kept", n)
	}
	doc := asks[page.Watch](t, w, "watch", "")
	if len(doc.Subjects) != maxSubjects || doc.Others != len(w.subjects)-maxSubjects {
		t.Errorf("%d subjects, %d others", len(doc.Subjects), doc.Others)
	}
}

// TestWatchPaused checks that paused memory is beside what is used, and not in the stack,
// and that the tags are among the facts.
func TestWatchPaused(t *testing.T) {
	w := NewWatch("node.strandline", false)
	size := func(n int64) *int64 { n *= mib; return &n }
	for at := range 20 {
		s := node(at)
		p := &s.Processes[0]
		p.Pausable = []sample.Tag{{Tag: "kv cache", Bytes: 500 * mib, Held: 100 * mib, State: "partial", Backup: "pinned", BackupBytes: 50 * mib}}
		p.Devices = []sample.DeviceShare{{Device: 0, Used: size(900), Allocated: size(600), Cached: size(200), Other: size(500)}}
		if err := w.Take(s); err != nil {
			t.Fatal(err)
		}
	}
	w.Rest()
	doc := asks[page.Watch](t, w, "watch", "")
	for _, s := range doc.Subjects {
		if s.Key != "p7-70-device0" {
			continue
		}
		parts := map[string]int64{}
		for _, p := range s.Split {
			parts[p.Name] = p.Bytes
		}
		if !reflect.DeepEqual(parts, map[string]int64{"allocated": 200 * mib, "cached": 200 * mib, "other": 500 * mib}) || s.Now != 900*mib {
			t.Errorf("%d bytes, divided as %v", s.Now, parts)
		}
		if want := [2]string{"pausable kv cache", "100 MiB of 500 MiB held, partial, 50 MiB in a backup (pinned)"}; !slices.Contains(s.Facts, want) {
			t.Errorf("the facts are %v", s.Facts)
		}
		return
	}
	t.Error("there is no such process")
}
