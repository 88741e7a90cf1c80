package snapshots

import (
	"slices"
	"testing"

	"strandline/finding"
	"strandline/torch/compare"
	"strandline/torch/digest"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// TestTrendOfWhatStays draws no fall of a line that leaks and also makes what its
// step frees, where some checkpoints are in the middle of a step.
func TestTrendOfWhatStays(t *testing.T) {
	f := judge(t, "testdata/w17_accumulate.scalar.iter60.pickle.gz").Findings[0]
	n := len(f.Trend)
	if f.Site.Line != 82 || !slices.IsSorted(f.Trend) || f.Trend[0] >= f.Trend[n-1] || f.Trend[n-1] != *f.Bytes {
		t.Errorf("%s: %v", f.Title, f.Trend)
	}
}

// TestOnce names what came at once beside what grows.
func TestOnce(t *testing.T) {
	for _, c := range []struct {
		bytes []int64
		want  string
	}{
		{[]int64{0, 33_554_432, 33_560_000, 33_570_000, 33_580_000}, ", 32 MiB of it at once"},
		{[]int64{0, 1000, 2000, 3000, 4000}, ""},
		{[]int64{0, 1000, 1000}, ""},
		{nil, ""},
	} {
		if got := singleStep(c.bytes); got != c.want {
			t.Errorf("%v: %q, want %q", c.bytes, got, c.want)
		}
	}
}

// TestLate says of the memory that only the newest file shows that it was made once, unless
// several steps since the file before made it.
func TestLate(t *testing.T) {
	s, err := snapshot.Open("testdata/steps/adam.tenth.pickle.gz", snapshot.Options{}) // 40 steps
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		steps   int // of the newest file
		verdict finding.Verdict
		want    string
	}{
		{14, finding.OK, "steps.py:23 extra grew from 8 MiB to 16 MiB, which is not judged a leak: it was allocated once and stayed, as warm-up and deliberate copies do"},
		{40, finding.Unknown, "maybe a leak: 4 allocations at steps.py:23 extra are kept and never freed: 32 MiB, +8 MiB from file to file, 24 MiB of it at once"},
	} {
		book := digest.NewBook()
		ends := book.Digest(s).Device(0).Steps.Ends
		var files []*digest.File
		for _, steps := range []int{2, 3, 4, c.steps} {
			part, err := timeline.Cut(s, 0, 0, ends[steps-1]+1)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, book.Digest(part))
		}
		a := Files(book, []*compare.Process{compare.NewProcess("", files)}, Options{})
		var got []string
		for _, f := range a.Findings {
			if f.Kind == finding.Leak || f.Kind == finding.Growth {
				got = append(got, f.Title)
			}
		}
		if a.Verdict != c.verdict || !slices.Equal(got, []string{c.want}) || a.Judged[0].Inside {
			t.Errorf("%d steps: %s, %q; want %s, %q", c.steps, a.Verdict, got, c.verdict, c.want)
		}
	}
}
