package engine

import (
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"strandline/face/api/page"
	"strandline/finding"
	"strandline/input"
	"strandline/internal/test/synth"
	"strandline/judge/diagnosis"
	"strandline/judge/snapshots"
	"strandline/torch/compare"
	"strandline/torch/digest"
	"strandline/torch/snapshot"
	"strandline/torch/tile"
	"strandline/torch/timeline"
)

func source(path string) Source {
	return Source{Path: path, Named: true, Read: func(context.Context, *diagnosis.Session, func(int64)) (*snapshot.Snapshot, []input.Input, error) {
		s, err := snapshot.Open(path, snapshot.Options{})
		return s, nil, err
	}}
}

// made makes an engine of sources that are not files.
func made(sources ...Source) *Engine { return New(input.Of(nil, input.Options{}), sources) }

func load(t *testing.T, sources ...Source) *Engine {
	t.Helper()
	e := made(sources...)
	if err := e.Load(context.Background()); err != nil {
		t.Fatal(err)
	}
	return e
}

func example(t *testing.T, pattern string) *Engine {
	t.Helper()
	files, err := filepath.Glob("../../../examples/" + pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("%s: %v", pattern, err)
	}
	var sources []Source
	for _, f := range files {
		sources = append(sources, source(f))
	}
	return load(t, sources...)
}

// ask asks "name?params" and checks the status.
func ask(t *testing.T, e *Engine, what string, want int) []byte {
	t.Helper()
	name, params, _ := strings.Cut(what, "?")
	q, err := url.ParseQuery(params)
	if err != nil {
		t.Fatal(err)
	}
	a := e.Ask(context.Background(), name, q)
	if a.Status != want {
		t.Fatalf("%s: status %d, %s", what, a.Status, a.Body)
	}
	return a.Body
}

// read asks and reads the answer into a document.
func read[T any](t *testing.T, e *Engine, what string) (doc T) {
	t.Helper()
	if err := json.Unmarshal(ask(t, e, what, 200), &doc); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return doc
}

// TestSameAsInspect checks that a device's figures are those of `inspect`.
func TestSameAsInspect(t *testing.T) {
	e := example(t, "image-leak/step-4.pickle")
	s, err := snapshot.Open("../../../examples/image-leak/step-4.pickle", snapshot.Options{})
	if err != nil {
		t.Fatal(err)
	}
	facts := timeline.FactsOf(s).Devices[0]
	d := read[page.Device](t, e, "device")
	if d.Peak.Bytes != *facts.PeakRequested || d.Peak.Event != *facts.PeakRequestedEvent || d.PeakReserved.Bytes != *facts.PeakReserved ||
		d.End.Requested != facts.RequestedBytes || d.End.Reserved != facts.ReservedBytes || d.Kept+d.Pending != facts.RequestedBytes || d.Events != *facts.Events {
		t.Errorf("device %+v, want %+v", d, facts)
	}
	last := read[page.State](t, e, fmt.Sprintf("state?k=%d", d.Events-1))
	if last.Reserved != facts.ReservedBytes || last.Allocated != facts.AllocatedBytes || last.Allocated+last.Pending != facts.ActiveBytes ||
		len(last.Segments) != facts.Segments || len(last.Blocks.Size) != facts.Blocks || !last.Exact {
		t.Errorf("state: reserved %d, allocated %d, %d segments; want %+v", last.Reserved, last.Allocated, len(last.Segments), facts)
	}
	at := read[page.At](t, e, "at?k=500&limit=3")
	if at.Requested != facts500(t, s) || at.Count != 33 || len(at.Rows) != 3 {
		t.Errorf("at: %+v", at)
	}
	sum := at.More.Bytes
	for _, r := range at.Rows {
		sum += r.Bytes
		if r.Kept+r.Freed+r.Pending != r.Bytes {
			t.Errorf("row %+v", r)
		}
	}
	if sum != at.Requested {
		t.Errorf("rows sum to %d, want %d", sum, at.Requested)
	}
}

func facts500(t *testing.T, s *snapshot.Snapshot) int64 {
	t.Helper()
	return timeline.FactsOf(s).Lines[0].RequestedAt(500)
}

// TestBlocks measures memory in blocks of the allocator, whose sizes a replay
// shows: what is drawn equals the contents of the segments, at any event.
func TestBlocks(t *testing.T) {
	for _, file := range []string{"image-leak/step-4.pickle", "out-of-memory/oom.pickle", "cache/step-10.pickle.gz"} {
		e := example(t, file)
		d := read[page.Device](t, e, "device?u=allocated")
		facts := read[timeline.Facts](t, e, "file").Devices[0]
		if d.End.Live != facts.ActiveBytes || d.Kept+d.Pending != facts.ActiveBytes || d.End.Requested != facts.RequestedBytes || d.Peak.Bytes < *facts.PeakRequested {
			t.Errorf("%s: device %+v, want %+v", file, d, facts)
		}
		for k := -1; k < d.Events; k += 1 + d.Events/50 {
			s := read[page.State](t, e, fmt.Sprintf("state?k=%d", k))
			at := read[page.At](t, e, fmt.Sprintf("at?u=allocated&k=%d", k))
			if !s.Exact || s.Allocated+s.Pending != at.Live || s.Reserved != at.Reserved || at.Requested > at.Live {
				t.Errorf("%s, event %d: blocks of %d bytes, %d drawn; exact: %t", file, k, s.Allocated+s.Pending, at.Live, s.Exact)
			}
		}
		ask(t, e, "tile?u=allocated&L=2&i=0&y=16", 200)
		a := read[page.Alloc](t, e, "alloc?i=3")
		if a.Block == nil || *a.Block < a.Bytes {
			t.Errorf("%s: allocation %+v", file, a)
		}
		if blocks := read[page.Session](t, e, "session").Files[0].Blocks; blocks != ready {
			t.Errorf("%s: blocks are %s", file, blocks)
		}
	}
}

// TestReserved measures what the driver gave: the bands sum to what is reserved, and the rows
// to what each line took, as the allocator's state has it.
func TestReserved(t *testing.T) {
	for _, file := range []string{"image-leak/step-4.pickle", "out-of-memory/oom.pickle", "varied-lengths/expandable.pickle.gz"} {
		e := example(t, file)
		d := read[page.Device](t, e, "device?u=reserved")
		if d.End.Live != d.End.Reserved || d.Kept != d.End.Reserved || d.Peak.Bytes != d.PeakReserved.Bytes || slices.Contains(d.Groupings, tile.ByPurpose) {
			t.Errorf("%s: device %+v", file, d)
		}
		groups := read[page.Bands](t, e, "bands?u=reserved").Groups
		for k := -1; k < d.Events; k += 1 + d.Events/20 {
			want := map[string]int64{}
			for _, x := range read[page.State](t, e, fmt.Sprintf("state?k=%d", k)).Takers {
				if x.Site != nil {
					want[fmt.Sprintf("%s:%d", x.Site.File, x.Site.Line)] += x.Bytes
				}
			}
			at := read[page.At](t, e, fmt.Sprintf("at?u=reserved&k=%d", k))
			if at.Live != at.Reserved {
				t.Errorf("%s, event %d: %d bytes drawn, %d reserved", file, k, at.Live, at.Reserved)
			}
			got := map[string]int64{}
			for _, r := range at.Rows {
				if g := groups[r.Group]; g.Line != nil {
					got[fmt.Sprintf("%s:%d", *g.File, *g.Line)] += r.Bytes
				}
			}
			if !maps.Equal(got, want) {
				t.Errorf("%s, event %d: %v, want %v", file, k, got, want)
			}
		}
		hit := read[page.Hit](t, e, fmt.Sprintf("hit?u=reserved&k=%d&y=0", d.Events-1))
		a := read[page.Alloc](t, e, fmt.Sprintf("alloc?u=reserved&i=%d", *hit.Alloc))
		if a.Bytes != hit.Bytes || a.Block != nil || a.Purpose != "" || !strings.HasPrefix(*read[page.Event](t, e, fmt.Sprintf("event?k=%d", a.Birth)).Action, "segment_") {
			t.Errorf("%s: %+v of the hit %+v", file, a, hit)
		}
		ask(t, e, "bands?u=reserved&g=purpose", 400)
	}
}

// TestSameAsDiagnose checks for the findings of `diagnose`, each with its place in the
// page.
func TestSameAsDiagnose(t *testing.T) {
	e := example(t, "image-leak/*.pickle")
	book := digest.NewBook()
	var digests []*digest.File
	for _, f := range e.files {
		s, _, err := f.Read(context.Background(), nil, func(int64) {})
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, book.Digest(s))
	}
	processes := []*compare.Process{compare.NewProcess("", digests)}
	want := snapshots.Files(book, processes, snapshots.Options{})
	got := read[page.Findings](t, e, "findings")
	if got.Verdict != want.Verdict || len(got.Findings) != len(want.Findings) {
		t.Fatalf("verdict %s of %d findings, want %s of %d", got.Verdict, len(got.Findings), want.Verdict, len(want.Findings))
	}
	for i, f := range got.Findings {
		if f.Title != want.Findings[i].Title || f.Where.F != 2 {
			t.Errorf("finding %d: %q in file %d, want %q in file 2", i, f.Title, f.Where.F, want.Findings[i].Title)
		}
	}
	bands := read[page.Bands](t, e, "bands?f=2")
	key := got.Findings[0].Where.Keys[0]
	i := slices.IndexFunc(bands.Groups, func(g page.Group) bool { return g.Key == key })
	if i < 0 || bands.Groups[i].Label != "w02_image_leak.py:39 normalise" || bands.Groups[i].Kept != *got.Findings[0].Bytes {
		t.Errorf("the leak is at %s, which is group %d of %+v", key, i, bands.Groups)
	}
	if len(bands.Lanes) == 0 || bands.Lanes[0].Group != i {
		t.Errorf("%d growth lanes", len(bands.Lanes))
	}
	rows := read[page.Comparison](t, e, "compare")
	if len(rows.Groups) != 1 || len(rows.Groups[0].Files) != 3 || rows.Groups[0].Sites[0].Key != key {
		t.Errorf("compare: %+v", rows)
	}
	alive := rows.Groups[0].Survivors[0]
	for i, f := range rows.Groups[0].Files {
		if end := read[page.Device](t, e, fmt.Sprintf("device?f=%d", f.F)).Kept; alive.Bytes[i][i] != end {
			t.Errorf("of file %d %d bytes live, want %d", i, alive.Bytes[i][i], end)
		}
		for j := i + 1; j < len(alive.Bytes); j++ {
			// What lives at the mark, and is kept, are the survivors.
			at := read[page.At](t, e, fmt.Sprintf("at?f=%d&k=%d", rows.Groups[0].Files[j].F, *alive.Event[i][j]-1))
			kept := int64(0)
			for _, r := range at.Rows {
				kept += r.Kept
			}
			if kept != alive.Bytes[i][j] || kept == 0 {
				t.Errorf("%d bytes of file %d live in file %d, want %d", alive.Bytes[i][j], i, j, kept)
			}
		}
	}
	for r, row := range processes[0].Rows(book) {
		if s := rows.Groups[0].Sites[r]; !slices.Equal(s.Bytes, row.Bytes) || s.PerStep != row.PerStep() || s.Survivors != row.Survivors {
			t.Errorf("row %d: %+v, want %+v", r, s, row)
		}
	}
}

// TestProcesses distinguishes ranks and puts their files in order.
func TestProcesses(t *testing.T) {
	e := example(t, "ranks/rank[01]-*.pickle")
	doc := read[page.Session](t, e, "session")
	if len(doc.Files) != 6 || doc.Files[4].Process == nil || *doc.Files[4].Process != "rank1" || doc.Title != "rank0-step-2.pickle and 5 more" {
		t.Errorf("session %+v", doc)
	}
	if !slices.Equal(doc.Order, []int{0, 1, 2, 3, 4, 5}) || doc.Findings != ready {
		t.Errorf("order %v, findings %s", doc.Order, doc.Findings)
	}
	if n := len(read[page.Comparison](t, e, "compare").Groups); n != 2 {
		t.Errorf("%d processes are compared, want 2", n)
	}
}

// TestColorsStay gives a key of a file the same color whatever else is open, and the same
// in all files of one program.
func TestColorsStay(t *testing.T) {
	slots := func(e *Engine, f int) map[string]int {
		out, used := map[string]int{}, map[int]bool{}
		for _, g := range read[page.Bands](t, e, fmt.Sprintf("bands?f=%d", f)).Groups {
			if g.Slot != neutral && used[g.Slot] {
				t.Errorf("file %d: two groups have slot %d", f, g.Slot)
			}
			out[g.Key], used[g.Slot] = g.Slot, true
		}
		return out
	}
	names := []string{"varied-lengths/default.pickle.gz", "image-leak/step-2.pickle", "image-leak/step-4.pickle", "peak/step-2.pickle"}
	var sources []Source
	for _, f := range names {
		sources = append(sources, source("../../../examples/"+f))
	}
	e := load(t, sources...)
	for f, name := range names {
		if have, want := slots(e, f), slots(example(t, name), 0); !maps.Equal(have, want) {
			t.Errorf("%s has the slots %v beside others, and %v alone", name, have, want)
		}
	}
	if a, b := slots(e, 1), slots(e, 2); !maps.Equal(a, b) {
		t.Errorf("two steps of a program have the slots %v and %v", a, b)
	}
}

// TestAllocation follows one allocation from the picture to its birth and death.
func TestAllocation(t *testing.T) {
	e := example(t, "image-leak/step-4.pickle")
	a := read[page.Alloc](t, e, "alloc?k=504") // which frees what 500 makes
	if a.Birth != 500 || a.Freed == nil || *a.Freed != 504 || a.Fate != "freed" || len(a.Stack) == 0 || a.Pool == nil || *a.Pool != "default" {
		t.Fatalf("allocation %+v", a)
	}
	if same := read[page.Alloc](t, e, fmt.Sprintf("alloc?i=%d&g=function", a.Alloc)); same.Birth != a.Birth || same.Keys["function"] == "" {
		t.Errorf("allocation %+v", same)
	}
	event := read[page.Event](t, e, "event?k=500")
	if *event.Action != "alloc" || *event.Alloc != a.Alloc || *event.Bytes != a.Bytes || *event.Address != a.Address || *event.Time != *a.Born {
		t.Errorf("event %+v", event)
	}
	var below int64
	found := false
	for !found {
		h := read[page.Hit](t, e, fmt.Sprintf("hit?k=500&y=%d", below))
		if h.Alloc == nil {
			t.Fatal("the allocation is drawn nowhere")
		}
		found = *h.Alloc == a.Alloc
		below = h.Y0 + h.Bytes
	}
	if list := read[map[string][]page.Event](t, e, "events?from=498&to=505")["events"]; len(list) != 8 || list[2].Event != 500 {
		t.Errorf("events %+v", list)
	}
}

// TestState checks that the blocks that strand memory sum to the stranded total, at any event.
func TestState(t *testing.T) {
	e := example(t, "out-of-memory/oom.pickle")
	d := read[page.Device](t, e, "device")
	for _, k := range []int{-1, 0, d.Events / 2, d.Events - 1} {
		s := read[page.State](t, e, fmt.Sprintf("state?k=%d", k))
		var strands, sizes, free int64
		for _, x := range s.Strands {
			strands += x.Bytes
		}
		for i, n := range s.Blocks.Size {
			sizes += n
			if s.Blocks.State[i] == 'f' {
				free += n
			}
		}
		if strands != s.Stranded || s.Releasable+s.Stranded != s.Free || free != s.Free || sizes != s.Reserved || s.Allocated+s.Pending+s.Free != s.Reserved {
			t.Errorf("event %d: %d stranded, shared %d; releasable %d, free %d, blocks %d, reserved %d", k, s.Stranded, strands, s.Releasable, s.Free, sizes, s.Reserved)
		}
		if k >= 0 {
			if at := read[page.At](t, e, fmt.Sprintf("at?k=%d", k)); at.Reserved != s.Reserved || s.Allocated+s.Pending-s.Slack != at.Requested {
				t.Errorf("event %d: %d reserved, %d requested, want %d, %d", k, s.Reserved, s.Allocated+s.Pending-s.Slack, at.Reserved, at.Requested)
			}
		}
	}
	if n := len(d.Marks); n == 0 || d.Marks[0].Kind != "oom" {
		t.Errorf("marks %+v", d.Marks)
	}
	next := read[map[string]*int](t, e, "next?k=-1&to=oom")["event"]
	if next == nil || *next != d.Marks[0].Event {
		t.Errorf("the first OOM is at %v", next)
	}
}

// TestMarks checks that a run of releases is one mark, and a small one has none.
func TestMarks(t *testing.T) {
	s := snapshot.New()
	e := snapshot.Events{}
	add := func(a snapshot.Action, sizes ...int64) {
		for _, size := range sizes {
			e.Action, e.Size, e.Addr = append(e.Action, a), append(e.Size, size), append(e.Addr, 0)
			e.Stream, e.Stack = append(e.Stream, 0), append(e.Stack, 0)
		}
	}
	add(snapshot.SegmentAlloc, 10<<20, 20<<20, 20<<20)
	add(snapshot.SegmentFree, 10<<20, 20<<20)
	add(snapshot.OOM, 1<<30)
	add(snapshot.SegmentUnmap, 1<<10)
	add(snapshot.SnapshotTaken, 0)
	s.Traces = []snapshot.Trace{{Events: e}}
	doc := read[page.Device](t, load(t, Source{Read: func(context.Context, *diagnosis.Session, func(int64)) (*snapshot.Snapshot, []input.Input, error) {
		return s, nil, nil
	}}), "device")
	got := ""
	for _, m := range doc.Marks {
		got += fmt.Sprintf("%d %s %s; ", m.Event, m.Kind, m.Label)
	}
	if want := "4 release gave 30 MiB back to the driver; 5 oom out of memory: requested 1 GiB; 7 snapshot snapshot; "; got != want {
		t.Errorf("marks %q, want %q", got, want)
	}
}

func TestFlame(t *testing.T) {
	e := example(t, "image-leak/step-4.pickle")
	d := read[page.Device](t, e, "device")
	for _, c := range []struct {
		what string
		want int64
	}{
		{fmt.Sprintf("flame?k=%d", d.Peak.Event), d.Peak.Bytes}, {"flame?kept=1", d.Kept},
		{"flame?from=0&to=700", read[page.Range](t, e, "range?from=0&to=700").Bytes},
	} {
		f := read[page.Flame](t, e, c.what)
		n := len(f.Nodes.Frame)
		if f.Bytes != c.want || f.Nodes.Bytes[0] != c.want || n < 5 || len(f.Nodes.Parent) != n || len(f.Nodes.Count) != n {
			t.Errorf("%s: %d bytes in %d nodes, want %d", c.what, f.Bytes, n, c.want)
		}
	}
}

// TestCSV checks that the table of the answer is complete.
func TestCSV(t *testing.T) {
	e := example(t, "image-leak/step-4.pickle")
	at := read[page.At](t, e, "at?k=500")
	rows, err := csv.NewReader(strings.NewReader(string(ask(t, e, "csv?table=at&k=500", 200)))).ReadAll()
	if err != nil || len(rows) != len(at.Rows)+1 {
		t.Fatalf("%v: %d rows, want %d", err, len(rows), len(at.Rows)+1)
	}
	for i, r := range at.Rows {
		if rows[i+1][4] != strconv.FormatInt(r.Bytes, 10) || rows[i+1][5] != strconv.Itoa(r.Count) {
			t.Errorf("row %d: %v, want %+v", i, rows[i+1], r)
		}
	}
	for _, what := range []string{"range&from=0&to=9", "diff&a=-1&b=600", "bands", "state&k=600"} {
		ask(t, e, "csv?table="+what, 200)
	}
}

func TestFind(t *testing.T) {
	e := example(t, "image-leak/step-4.pickle")
	keys := read[page.Keys](t, e, "find?q=normalise$").Keys
	for _, g := range read[page.Bands](t, e, "bands").Groups {
		if want := strings.HasSuffix(g.Label, " normalise"); want != slices.Contains(keys, g.Key) {
			t.Errorf("%s is among the matches: %t", g.Label, !want)
		}
	}
	if len(keys) == 0 {
		t.Error("nothing matches")
	}
	if keys := read[page.Keys](t, e, "find?g=stack&q=_call_impl").Keys; len(keys) < 2 {
		t.Errorf("keys %v", keys)
	}
	if text := string(ask(t, e, "find?q=(", 400)); !strings.Contains(text, "missing closing") {
		t.Error(text)
	}
}

// TestWrongQuestions checks that each is answered with one sentence.
func TestWrongQuestions(t *testing.T) {
	e := example(t, "image-leak/step-4.pickle")
	for what, want := range map[string]int{
		"nothing": 404, "device?f=7": 404, "device?f=-1": 404, "device?d=3": 404, "device?d=x": 400, "at": 400, "at?k=x": 400, "at?k=99999": 400,
		"at?k=-2": 400, "at?k=5&z=1": 400, "at?k=5&u=furlongs": 400, "bands?g=color": 400, "bands?g=annotation": 400, "range?from=9&to=3": 400,
		"tile?L=3&i=0": 400, "tile?L=99&i=0&y=3": 400, "tile?L=3&i=-1&y=3": 400, "tile?L=3&i=0&y=3&kind=cube": 400, "tile?L=3&i=0&y=3&x=miles": 400,
		"tile?L=3&i=0&y=3&solo=xyz": 400, "alloc": 400, "alloc?i=99999": 400, "alloc?k=-1": 404, "next?k=0&to=mars": 400, "csv?table=no": 400,
		"csv?table=state&k=99999": 400, "hit?k=0&y=-5": 400, "session?since=x": 400, "flame": 400,
	} {
		var doc map[string]string
		if err := json.Unmarshal(ask(t, e, what, want), &doc); err != nil || doc["error"] == "" {
			t.Errorf("%s: %v %v", what, err, doc)
		}
	}
	for _, what := range []string{"tile?L=52&i=0&y=48", "tile?L=0&i=2147483648&y=0", "tile?L=52&i=2147483648&y=0&kind=alloc&x=us", "events?from=-1&to=0"} {
		ask(t, e, what, 200)
	}
}

// TestProgress follows a session while a file is read, and asks too early.
func TestProgress(t *testing.T) {
	next := make(chan struct{})
	slow := Source{Path: "slow.pickle", Size: 100, Read: func(_ context.Context, _ *diagnosis.Session, progress func(int64)) (*snapshot.Snapshot, []input.Input, error) {
		progress(40)
		<-next
		return synth.Trace(500), nil, nil
	}}
	other := Source{Path: "notes.txt", Read: func(context.Context, *diagnosis.Session, func(int64)) (*snapshot.Snapshot, []input.Input, error) {
		return nil, nil, fmt.Errorf("notes.txt: %w", snapshot.ErrNotSnapshot)
	}}
	e := made(slow, other)
	var wait sync.WaitGroup
	wait.Go(func() {
		if err := e.Load(context.Background()); err != nil {
			t.Error(err)
		}
	})
	version := 0
	var doc page.Session
	news := func() {
		doc = read[page.Session](t, e, fmt.Sprintf("session?since=%d", version))
		version = doc.Version
	}
	for news(); doc.Files[0].Read != 40; {
		news()
	}
	if f := doc.Files[0]; f.State != reading || *f.Size != 100 || doc.Findings != waiting {
		t.Errorf("session %+v", doc)
	}
	for _, what := range []string{"device", "tile?L=0&i=0&y=0", "findings", "compare"} {
		ask(t, e, what, 409)
	}
	close(next)
	for doc.Findings != ready {
		news()
	}
	wait.Wait()
	if len(doc.Files) != 1 || doc.Files[0].State != ready || len(doc.Skipped) != 1 || doc.Skipped[0].Path != "notes.txt" {
		t.Errorf("session %+v", doc)
	}
}

func TestNothingToRead(t *testing.T) {
	broken := errors.New("broken")
	bad := Source{Path: "a", Named: true, Read: func(context.Context, *diagnosis.Session, func(int64)) (*snapshot.Snapshot, []input.Input, error) {
		return nil, nil, broken
	}}
	if err := made(bad).Load(context.Background()); !errors.Is(err, broken) {
		t.Errorf("one file: %v", err)
	}
	if err := made(bad, bad).Load(context.Background()); !errors.Is(err, ErrNothing) {
		t.Errorf("two files: %v", err)
	}
}

// TestLeakedIsAPurpose checks for what has leaked according to the finding of the peak.
func TestLeakedIsAPurpose(t *testing.T) {
	e := made(source("../../../examples/image-leak/step-4.pickle"))
	e.change(func() { e.files[0].content, e.files[0].state = newContent(open(t, e.files[0])), ready })
	ask(t, e, "at?k=2400&g=purpose", 409)
	e.judge(context.Background(), diagnosis.New(e.from, diagnosis.Options{}))
	findings, err := e.Findings()
	if err != nil {
		t.Fatal(err)
	}
	for i := range findings.Findings {
		peak, ok := findings.Findings[i].Evidence.(*finding.PeakEvidence)
		if !ok {
			continue
		}
		at := read[page.At](t, e, fmt.Sprintf("at?k=%d&g=purpose", *peak.Event))
		bands := read[page.Bands](t, e, "bands?g=purpose")
		got := map[string]int64{}
		for _, r := range at.Rows {
			got[bands.Groups[r.Group].Label] = r.Bytes
		}
		if got["leaked"] == 0 || got["leaked"] != peak.LeakedBytes || got["other"] != peak.ByPurpose["other"]-peak.LeakedBytes {
			t.Errorf("%v, want %d leaked of %v", got, peak.LeakedBytes, peak.ByPurpose)
		}
		return
	}
	t.Error("there is no finding of the peak")
}

func open(t *testing.T, f *file) *snapshot.Snapshot {
	t.Helper()
	s, _, err := f.Read(context.Background(), nil, func(int64) {})
	if err != nil {
		t.Fatal(err)
	}
	return s
}
