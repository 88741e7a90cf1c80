package engine

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"testing"

	"strandline/face/api/page"
	"strandline/host/store/recording"
	"strandline/internal/test/live"
	"strandline/judge/processes"
)

const exampleRecording = "../../../examples/munmap-leak/server.trace"

// recorded makes an engine of the text of a recording, without its first line.
func recorded(t *testing.T, lines ...string) *Recording {
	t.Helper()
	text := `{"schema":"strandline.recording/1","pid":5,"name":"x","rung":"bpf","began_us":1}` + "\n" + strings.Join(lines, "\n") + "\n"
	run, err := recording.Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return newRecording("x.trace", run, processes.Recorded(run))
}

// answer returns what a recording answers, decoded.
func answer[T any](t *testing.T, r *Recording, name, query string) (doc T) {
	t.Helper()
	q, err := url.ParseQuery(query)
	if err != nil {
		t.Fatal(err)
	}
	a := r.Ask(context.Background(), name, q)
	if a.Status != 200 {
		t.Fatalf("%s?%s: status %d, %s", name, query, a.Status, a.Body)
	}
	if err := json.Unmarshal(a.Body, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// heldAt returns what is held in a column.
func heldAt(c *page.Course, column int) held {
	out := held{}
	for i, from := range c.At {
		if from <= column {
			out = held{c.Bytes[i], c.Count[i]}
		}
	}
	return out
}

func TestRecordingEndsAsJudged(t *testing.T) {
	f, err := os.Open(exampleRecording)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	run, err := recording.Read(f)
	if err != nil {
		t.Fatal(err)
	}
	samples := run.Samples
	r := newRecording(exampleRecording, run, processes.Recorded(run))
	doc, w := answer[page.Recording](t, r, "recording", ""), answer[page.Window](t, r, "window", "")
	if len(w.Moment) != len(samples)+1 {
		t.Errorf("%d moments for %d marks and a judgment", len(w.Moment), len(samples))
	}
	for c, m := range samples {
		var all float64
		for i := range w.Stacks {
			all += heldAt(&w.Stacks[i], c).bytes
		}
		if all != w.Live[c] || w.RSS[c] != m.RSS || w.Seconds[c] != m.Seconds {
			t.Errorf("column %d is %v of %v live, %d resident, of %+v", c, all, w.Live[c], w.RSS[c], m)
		}
		for _, h := range m.Stacks {
			i := slices.IndexFunc(doc.Stacks, func(s page.Stack) bool { return s.ID == h.ID })
			if got := heldAt(&w.Stacks[i], c); got != (held{float64(h.Bytes), float64(h.Count)}) {
				t.Errorf("column %d, stack %d: %v, recorded %v", c, h.ID, got, h)
			}
		}
	}
	last := len(w.Moment) - 1
	for _, s := range run.Document.Stacks {
		i := slices.IndexFunc(doc.Stacks, func(d page.Stack) bool { return d.ID == s.ID })
		if got := heldAt(&w.Stacks[i], last); s.ID > 0 && got != (held{float64(s.LiveBytes), float64(s.LiveCount)}) {
			t.Errorf("stack %d ends with %v, judged %+v", s.ID, got, s)
		}
	}
	// The finding has no numbers of stacks, as in all recordings older than these; its frames identify the stack.
	if len(doc.Findings) != 1 || !slices.Equal(doc.Findings[0].Stacks, []int{1}) {
		t.Fatalf("findings are of the wrong stacks: %+v", doc.Findings)
	}
	if s := doc.Stacks[0]; !s.Grows || !s.Complete || s.Label != "server.py:16 decode_step" || *s.First != samples[0].Seconds || *s.Last != run.Document.Duration {
		t.Errorf("got %+v", s)
	}
}

// TestRecordingJudgedBeforeItsEnd has a judgment between two marks: held memory is
// taken from the marks, and resident memory from the judgment.
func TestRecordingJudgedBeforeItsEnd(t *testing.T) {
	r := recorded(t, `{"stack":{"id":1,"call":"mmap","frames":[{"function":"f"}]}}`, `{"mark":{"at_seconds":1,"stacks":[{"id":1,"live_bytes":10,"live_count":1}]}}`,
		`{"document":{"duration_seconds":2,"stacks":[{"id":1,"live_bytes":12,"live_count":1,"resident_bytes":7,"calls":3,"call":"mmap","frames":[{"function":"f"}]},{"id":2,"live_bytes":5}],"findings":[]}}`,
		`{"mark":{"at_seconds":3,"stacks":[{"id":1,"live_bytes":20,"live_count":2}]}}`)
	doc, w := answer[page.Recording](t, r, "recording", ""), answer[page.Window](t, r, "window", "")
	if !slices.Equal(w.Live, []float64{10, 20}) || len(doc.Stacks) != 1 || *doc.Judged != 2 {
		t.Fatalf("held are %v of %d stacks, judged at %v", w.Live, len(doc.Stacks), *doc.Judged)
	}
	if s := doc.Stacks[0]; s.Resident == nil || *s.Resident != 7 || s.Calls != 3 {
		t.Errorf("the figures of the judgment are missing: %+v", s)
	}
}

// TestRecordingOfManyStacks checks that the small ones are summed, and one that a
// finding names is separate, however small.
func TestRecordingOfManyStacks(t *testing.T) {
	live.Sequential(t)
	var lines []string
	var first, second []string
	const n = 1000
	for id := 1; id <= n; id++ {
		lines = append(lines, fmt.Sprintf(`{"stack":{"id":%d,"call":"mmap","frames":[{"function":"f%d","object":"/lib/x.so"}]}}`, id, id))
		first = append(first, fmt.Sprintf(`{"id":%d,"live_bytes":%d,"live_count":1}`, id, id*10))
		if id%2 == 0 {
			second = append(second, fmt.Sprintf(`{"id":%d,"live_bytes":%d,"live_count":2}`, id, id*20))
		}
	}
	lines = append(lines, fmt.Sprintf(`{"mark":{"at_seconds":1,"stacks":[%s]}}`, strings.Join(first, ",")), fmt.Sprintf(`{"mark":{"at_seconds":2,"stacks":[%s]}}`, strings.Join(second, ",")),
		`{"document":{"duration_seconds":1.5,"stacks":[],"findings":[{"kind":"mmap-leak","severity":"problem","title":"x","evidence":{"stacks":[3]}}]}}`)
	r := recorded(t, lines...)
	doc, w := answer[page.Recording](t, r, "recording", ""), answer[page.Window](t, r, "window", "")
	if len(doc.Stacks) != maxStacks || doc.Others != n-maxStacks || len(w.Stacks) != maxStacks+1 || doc.Stacks[0].ID != n {
		t.Fatalf("%d stacks and %d others, the largest %d", len(doc.Stacks), doc.Others, doc.Stacks[0].ID)
	}
	if s := doc.Stacks[maxStacks-1]; s.ID != 3 || !s.Grows {
		t.Errorf("the stack of the finding is missing: %+v", s)
	}
	for c, want := range []float64{n * (n + 1) / 2 * 10, n*(n+1)/2*10 + n/2*(n/2+1)*10} {
		var all, pieces float64
		for i := range w.Stacks {
			all += heldAt(&w.Stacks[i], c).bytes
			pieces += heldAt(&w.Stacks[i], c).count
		}
		if all != want || w.Live[c] != want || pieces != float64(n+c*n/2) {
			t.Errorf("column %d: %v and %v bytes in %v pieces, want %v", c, all, w.Live[c], pieces, want)
		}
	}
}

// TestRecordingOfManyMoments checks for the ends, the highest totals and the highest
// resident memory in the overview, and all moments in a narrow window.
func TestRecordingOfManyMoments(t *testing.T) {
	live.Sequential(t)
	const n, mapped, resident = 50_000, 31_337, 777
	var lines []string
	for k := range n {
		rss, live := 100, 10+k%3
		if k == resident {
			rss = 5000
		}
		if k == mapped {
			live = 7000
		}
		lines = append(lines, fmt.Sprintf(`{"mark":{"at_seconds":%d,"rss_bytes":%d,"stacks":[{"id":0,"live_bytes":%d,"live_count":1}]}}`, k, rss, live))
	}
	r := recorded(t, lines...)
	w := answer[page.Window](t, r, "window", "")
	if len(w.Moment) > maxMoments || !slices.IsSorted(w.Moment) || w.Moment[0] != 0 {
		t.Fatalf("%d moments from %d", len(w.Moment), w.Moment[0])
	}
	for _, k := range []int{mapped, resident, len(r.moments) - 1} {
		if !slices.Contains(w.Moment, k) {
			t.Errorf("moment %d is left out", k)
		}
	}
	if slices.Max(w.Live) != 7000 || slices.Max(w.RSS) != 5000 {
		t.Errorf("the highest are %v and %v", slices.Max(w.Live), slices.Max(w.RSS))
	}
	near := answer[page.Window](t, r, "window", "from=31000&to=31999")
	if len(near.Moment) != 1000 || near.Live[mapped-31000] != 7000 || heldAt(&near.Stacks[0], mapped-31000).bytes != 7000 {
		t.Errorf("%d moments, %v", len(near.Moment), near.Live[mapped-31000])
	}
}

// TestRecordingOfAnotherMind reads what no trace writes.
func TestRecordingOfAnotherMind(t *testing.T) {
	live.Sequential(t)
	deep := `{"stack":{"id":9,"frames":[` + strings.Repeat(`{"function":"f"},`, 99_999) + `{}]}}`
	for name, lines := range map[string][]string{
		"nothing":            {},
		"a judgment":         {`{"document":{"stacks":[{"id":1,"live_bytes":5}]}}`},
		"an empty mark":      {`{"mark":{}}`},
		"unknown ids":        {`{"mark":{"stacks":[{"id":77,"live_bytes":5},{"id":-3,"live_bytes":5},{"id":77,"live_bytes":6}]}}`},
		"negative bytes":     {`{"mark":{"stacks":[{"id":1,"live_bytes":-5,"live_count":-9223372036854775808}]}}`},
		"endless bytes":      {`{"mark":{"stacks":[{"id":1,"live_bytes":9223372036854775807},{"id":2,"live_bytes":9223372036854775807}]}}`, `{"document":{"stacks":[{"id":1,"live_bytes":9223372036854775807},{"id":1,"live_bytes":9223372036854775807}]}}`},
		"time backwards":     {`{"mark":{"at_seconds":1e308}}`, `{"mark":{"at_seconds":-4}}`, `{"mark":{"at_seconds":3}}`},
		"deep frames":        {deep, `{"mark":{"stacks":[{"id":9,"live_bytes":1}]}}`},
		"strange characters": {"{\"stack\":{\"id\":1,\"frames\":[{\"function\":\"\\u001b[31m\\u202e\\u0000\",\"file\":\"\\n\"}]}}", `{"mark":{"stacks":[{"id":1,"live_bytes":1}]}}`},
		"a long name":        {`{"stack":{"id":1,"frames":[{"function":"` + strings.Repeat("ä", 99_999) + `"}]}}`, `{"mark":{"stacks":[{"id":1,"live_bytes":1}]}}`},
		"lying evidence":     {`{"document":{"findings":[{"severity":"problem","evidence":{"stacks":[1e300,"x",null,-7,{}]}},{"evidence":{"stacks":7}},{}]}}`},
		"no GPU stacks":      {`{"mark":{"gpu":[{"owner":"a","live_bytes":5}]}}`, `{"document":{"duration_seconds":9,"gpu":{}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			r := recorded(t, lines...)
			doc, w := answer[page.Recording](t, r, "recording", ""), answer[page.Window](t, r, "window", "")
			if len(w.Moment) != doc.Moments || len(w.Stacks) != len(doc.Stacks)+1 || len(w.Owners) != len(doc.Owners) {
				t.Errorf("%d of %d moments, %d of %d stacks", len(w.Moment), doc.Moments, len(w.Stacks), len(doc.Stacks))
			}
			if !slices.IsSorted(w.Seconds) || len(w.Seconds) > 0 && (w.Seconds[0] < 0 || slices.Max(w.Seconds) > longestTime) {
				t.Errorf("times are %v", w.Seconds)
			}
			for _, live := range w.Live {
				if live < 0 {
					t.Errorf("%v bytes are held", live)
				}
			}
			for _, s := range doc.Stacks {
				if len(s.Frames) > maxFrames || len(s.Label) > longestName+len("…") {
					t.Errorf("%d frames, a label of %d bytes", len(s.Frames), len(s.Label))
				}
			}
		})
	}
}

func TestRecordingNamesOwners(t *testing.T) {
	r := recorded(t, `{"mark":{"at_seconds":1,"gpu":[{"owner":"NCCL","memory":"device","live_bytes":64,"live_count":1}]}}`, `{"mark":{"at_seconds":2,"gpu":[{"owner":"cuBLAS","memory":"device","live_bytes":32,"live_count":2}]}}`,
		`{"document":{"duration_seconds":3,"stacks":[],"findings":[],"gpu":{"owners":[{"owner":"cuBLAS","memory":"device","live_bytes":40,"live_count":3}],"stacks":[{"id":4,"live_bytes":40,"owner":"cuBLAS","memory":"device","frames":[{"function":"cuMemAlloc_v2","object":"/usr/lib/libcuda.so.1"},{"function":"make","file":"/srv/a.py","line":7}]}]}}}`)
	doc, w := answer[page.Recording](t, r, "recording", ""), answer[page.Window](t, r, "window", "")
	want := map[string][]float64{"NCCL": {64, 64, 0}, "cuBLAS": {0, 32, 40}}
	for i, o := range doc.Owners {
		for c, v := range want[o.Owner] {
			if got := heldAt(&w.Owners[i], c).bytes; got != v {
				t.Errorf("%s holds %v in column %d, want %v", o.Owner, got, c, v)
			}
		}
		delete(want, o.Owner)
	}
	if len(want) > 0 || len(doc.GPU) != 1 || doc.GPU[0].Label != "a.py:7 make" {
		t.Errorf("owners %v are missing, stacks are %+v", want, doc.GPU)
	}
}

func TestRecordingRefuses(t *testing.T) {
	r := recorded(t, `{"mark":{}}`, `{"mark":{}}`)
	for question, status := range map[string]int{"recordings": 404, "window?from=2": 400, "window?from=1&to=0": 400, "window?to=-1": 400, "window?of=1": 400, "recording?x=1": 400} {
		name, query, _ := strings.Cut(question, "?")
		q, _ := url.ParseQuery(query)
		if a := r.Ask(context.Background(), name, q); a.Status != status {
			t.Errorf("%s: status %d, want %d", question, a.Status, status)
		}
	}
}
