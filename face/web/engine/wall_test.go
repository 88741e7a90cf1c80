package engine

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"

	"strandline/face/api/page"
	"strandline/input"
)

func wallOf(t *testing.T, p *Page) (doc page.Wall) {
	t.Helper()
	if a := p.Ask(t.Context(), "wall", nil); a.Status != 200 || json.Unmarshal(a.Body, &doc) != nil {
		t.Fatalf("status %d: %s", a.Status, a.Body)
	}
	return doc
}

// TestWall asks for the overview of the steps of a process, with a log.
func TestWall(t *testing.T) {
	files, err := input.OpenPaths([]string{"../../../examples/image-leak", "../../../examples/out-of-memory"}, input.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	ctx := context.Background()
	p, err := Open(ctx, files, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if doc := wallOf(t, p); len(doc.Rows) != 0 {
		t.Errorf("%d rows before a file was read", len(doc.Rows))
	}
	if err := p.Load(ctx); err != nil {
		t.Fatal(err)
	}
	e := p.Asker.(*Engine)
	findings, err := e.Findings()
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, row := range wallOf(t, p).Rows {
		if row.D != nil && (slices.Max(row.Course) != 1000 || len(row.Course) > wallColumns || row.Peak < row.End) {
			t.Errorf("file %d: peak %d, end %d, course %v", row.F, row.Peak, row.End, row.Course)
		}
		if row.Finding == nil {
			continue
		}
		found++
		if w := findings.Findings[*row.Finding].Where; w == nil || w.F != row.F {
			t.Errorf("the finding of file %d is %q", row.F, findings.Findings[*row.Finding].Title)
		}
	}
	if found == 0 || found > len(findings.Findings) {
		t.Errorf("%d rows have findings", found)
	}
}

// TestWallBySteps holds that one step of all ranks stands in one column, where all have steps.
func TestWallBySteps(t *testing.T) {
	for _, c := range []struct {
		paths  []string
		byStep bool
	}{
		{[]string{"../../../examples/ranks"}, true},
		{[]string{"../../../examples/ranks", "../../../examples/out-of-memory"}, false},
	} {
		p := loadedPage(t, Options{}, c.paths...)
		doc := wallOf(t, p)
		if doc.ByStep != c.byStep {
			t.Fatalf("%v: by step %v", c.paths, doc.ByStep)
		}
		columns := map[int]bool{}
		for _, row := range doc.Rows {
			columns[len(row.Course)] = true
			if c.byStep && slices.Max(row.Course) != 1000 {
				t.Errorf("the highest of file %d is not in its course: %v", row.F, row.Course)
			}
		}
		if c.byStep && len(columns) != 1 {
			t.Errorf("rows of %v columns", columns)
		}
	}
}

// TestWallOfTexts holds that each finding of a text is on its row, beside snapshots and alone, and that
// the card has the verdict of diagnose.
func TestWallOfTexts(t *testing.T) {
	const examples = "../../../examples/"
	for _, c := range []struct {
		paths []string
		word  string
		title string
		kinds map[string]string // of the finding on the row of each file
	}{
		{[]string{"image-leak/step-4.pickle", "out-of-memory/job.log"}, "OOM", "fragmentation: 1.5 GiB requested", map[string]string{"step-4.pickle": "leak", "job.log": "oom"}},
		{[]string{"reports"}, "LEAK", "mem: +2.27 KiB a step, now 886 MiB", map[string]string{"loop.log": "leak", "pmap.txt": "mmap-leak", "stacks.txt": "mmap-leak"}},
		{[]string{"setting"}, "OK", "no leak in 2 files of 2 processes", map[string]string{"default.log": "usage", "expandable.log": "usage"}},
		{[]string{"pausable/untidy.pausable", "out-of-memory/job.log"}, "OOM", "fragmentation: 1.5 GiB requested", map[string]string{"untidy.pausable": "leak", "job.log": "oom"}},
		{[]string{"change"}, "UNKNOWN", "2 files from 2 runs, judged separately", map[string]string{"after.pickle.gz": "spike", "before.pickle.gz": "spike"}},
	} {
		paths := make([]string, len(c.paths))
		for i, path := range c.paths {
			paths[i] = examples + path
		}
		p := loadedPage(t, Options{}, paths...)
		e := p.Asker.(*Engine)
		found, err := e.Findings()
		if err != nil {
			t.Fatal(err)
		}
		if found.Card.Word != c.word || found.Card.Title != c.title {
			t.Errorf("%v: %s %s", c.paths, found.Card.Word, found.Card.Title)
		}
		doc := wallOf(t, p)
		got := map[string]string{}
		for _, row := range doc.Rows {
			if row.Finding != nil {
				got[e.files[row.F].name()] = string(found.Findings[*row.Finding].Kind)
			}
		}
		if !maps.Equal(got, c.kinds) {
			t.Errorf("%v: rows have %v, want %v", c.paths, got, c.kinds)
		}
	}
}
