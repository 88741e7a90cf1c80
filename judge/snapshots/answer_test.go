package snapshots

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"sort"
	"strings"
	"testing"

	"strandline/finding"
	"strandline/internal/test/live"
	"strandline/torch/compare"
	"strandline/torch/digest"
	"strandline/torch/snapshot"
)

// judge answers for files as the command does.
func judge(t testing.TB, paths ...string) Answer {
	t.Helper()
	book, digests := digest.NewBook(), map[string]*digest.File{}
	for _, p := range paths {
		s, err := snapshot.Open(p, snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		digests[p] = book.Digest(s)
	}
	names, files := compare.Group(paths, nil)
	var processes []*compare.Process
	for _, n := range names {
		var list []*digest.File
		for _, p := range files[n] {
			list = append(list, digests[p])
		}
		processes = append(processes, compare.NewProcess(n, list))
	}
	return Files(book, processes, Options{})
}

// leaks are the places that problems name, as "file:line count bytes".
func leaks(a Answer) []string {
	var out []string
	for _, f := range a.Findings {
		if f.Severity != finding.Problem || f.Kind != finding.Leak && f.Kind != finding.AutogradGraph {
			continue
		}
		places := f.Sites
		if places == nil {
			places = []finding.Place{{Site: *f.Site, Bytes: *f.Bytes, Count: *f.Count}}
		}
		for _, p := range places {
			out = append(out, fmt.Sprintf("%s:%d %d %d", filepath.Base(p.File), p.Line, p.Count, p.Bytes))
		}
	}
	sort.Strings(out)
	return out
}

func example(t testing.TB, pattern string) []string {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("../..", "examples", pattern))
	if err != nil || len(paths) == 0 {
		t.Fatalf("no example %s: %v", pattern, err)
	}
	return paths
}

func TestExamples(t *testing.T) {
	for _, c := range []struct {
		files   string
		verdict finding.Verdict
		kind    finding.Kind
		leaks   []string
	}{
		{"image-leak/*.pickle", finding.Leaking, finding.Leak, []string{"w02_image_leak.py:39 48 214477260", "w02_image_leak.py:44 24 14450688"}},
		{"image-leak/step-4.pickle", finding.Leaking, finding.Leak, []string{"w02_image_leak.py:39 48 214477260", "w02_image_leak.py:44 24 14450688"}},
		{"image-leak/step-[23].pickle", finding.Leaking, finding.Leak, []string{"w02_image_leak.py:39 36 152163792", "w02_image_leak.py:44 18 10838016"}},
		{"autograd-graph/*.pickle", finding.Leaking, finding.AutogradGraph, []string{
			"w04_graph_leak.py:30 60 983040", "w04_graph_leak.py:41 60 491520", "w04_graph_leak.py:42 60 15360", "w04_graph_leak.py:43 120 123120"}},
		{"cache/*.pickle.gz", finding.OK, "", nil},
		{"cache/step-10.pickle.gz", finding.OK, "", nil},
		{"ranks/*.pickle", finding.Leaking, finding.Leak, []string{"w16_ranks.py:39 12 97776"}},
		{"ranks/rank1*.pickle", finding.OK, "", nil},
	} {
		a := judge(t, example(t, c.files)...)
		if a.Verdict != c.verdict || fmt.Sprint(leaks(a)) != fmt.Sprint(c.leaks) {
			t.Errorf("%s: %s %v, want %s %v", c.files, a.Verdict, leaks(a), c.verdict, c.leaks)
		}
		for _, f := range a.Findings {
			if f.Severity == finding.Problem && (f.Kind != c.kind || len(f.Stack) == 0 || len(f.Remedies) == 0 || f.Basis == "") {
				t.Errorf("%s: a %s with %d frames, %d remedies, basis %q", c.files, f.Kind, len(f.Stack), len(f.Remedies), f.Basis)
			}
		}
	}
}

func TestLeakingRankIsNamed(t *testing.T) {
	for _, f := range judge(t, example(t, "ranks/*.pickle")...).Findings {
		if f.Severity == finding.Problem && f.Process != "rank2" {
			t.Errorf("a leak is blamed on %q", f.Process)
		}
	}
}

// oracle is what the recorder of a corpus file knew.
type oracle struct {
	Expect struct {
		Leaks []struct {
			File  string
			Line  int64
			Total []int64 // tensors, bytes
		}
	}
}

// TestCorpus judges every run of a folder of recorded snapshots with oracles,
// all files together and the last one alone if nothing leaks.
func TestCorpus(t *testing.T) {
	dir := live.Given(t, "STRANDLINE_CORPUS")
	groups := map[string][]string{}
	paths, _ := filepath.Glob(filepath.Join(dir, "torch", "*.pickle"))
	for _, p := range paths {
		parts := strings.Split(filepath.Base(p), ".")
		key := parts[0] + "." + parts[1]
		if strings.HasPrefix(key, "w16") {
			key += "." + parts[2]
		}
		groups[key] = append(groups[key], p)
	}
	if len(groups) == 0 {
		t.Fatalf("no snapshots below %s", dir)
	}
	for key, paths := range groups {
		if strings.HasPrefix(key, "w11") || strings.HasPrefix(key, "w20_driver_growth.full") {
			continue // random calls; another kind of failure
		}
		t.Run(key, func(t *testing.T) {
			newest := compareOrder(t, paths)
			text, err := os.ReadFile(strings.TrimSuffix(newest, "pickle") + "json")
			if err != nil {
				t.Fatal(err)
			}
			var o oracle
			if err := json.Unmarshal(text, &o); err != nil {
				t.Fatal(err)
			}
			var want []string
			for _, l := range o.Expect.Leaks {
				want = append(want, fmt.Sprintf("%s:%d %d %d", filepath.Base(l.File), l.Line, l.Total[0], l.Total[1]))
			}
			sort.Strings(want)
			if got := leaks(judge(t, paths...)); fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("leaks %v, want %v", got, want)
			}
			if want == nil {
				if got := leaks(judge(t, newest)); len(got) > 0 {
					t.Errorf("the newest file alone: leaks %v", got)
				}
			}
		})
	}
}

// compareOrder is the newest of a run's files.
func compareOrder(t *testing.T, paths []string) string {
	book := digest.NewBook()
	var digests []*digest.File
	for _, p := range paths {
		s, err := snapshot.Open(p, snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		digests = append(digests, book.Digest(s))
	}
	return compare.NewProcess("", digests).Newest().Name
}

func BenchmarkFiles(b *testing.B) {
	paths := example(b, "image-leak/*.pickle")
	for b.Loop() {
		judge(b, paths...)
	}
}
