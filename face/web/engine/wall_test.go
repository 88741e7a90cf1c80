package engine

import (
	"context"
	"encoding/json"
	"slices"
	"testing"

	"strandline/face/api/page"
	"strandline/input"
)

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
	ask := func() (doc page.Wall) {
		if a := p.Ask(ctx, "wall", nil); a.Status != 200 || json.Unmarshal(a.Body, &doc) != nil {
			t.Fatalf("status %d: %s", a.Status, a.Body)
		}
		return doc
	}
	if doc := ask(); len(doc.Rows) != 0 {
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
	for _, row := range ask().Rows {
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
		files, err := input.OpenPaths(c.paths, input.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer files.Close()
		ctx := context.Background()
		p, err := Open(ctx, files, Options{})
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Load(ctx); err != nil {
			t.Fatal(err)
		}
		var doc page.Wall
		if a := p.Ask(ctx, "wall", nil); a.Status != 200 || json.Unmarshal(a.Body, &doc) != nil {
			t.Fatalf("status %d: %s", a.Status, a.Body)
		}
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
