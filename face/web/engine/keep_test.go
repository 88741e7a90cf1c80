package engine

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"testing"
	"time"

	"strandline/input"
)

// TestKeep checks that a page of more files reads only those that the page before it lacks.
func TestKeep(t *testing.T) {
	opened := map[string]int{}
	changed := map[string]time.Time{}
	source := func(name string) input.Source {
		data, err := os.ReadFile("../../../examples/image-leak/" + name)
		if err != nil {
			t.Fatal(err)
		}
		return input.Source{Path: name, Changed: changed[name], Size: int64(len(data)), Named: true, Open: func() (io.ReadCloser, error) {
			opened[name]++
			return io.NopCloser(bytes.NewReader(data)), nil
		}}
	}
	page := func(names ...string) *Page {
		var sources []input.Source
		for _, name := range names {
			sources = append(sources, source(name))
		}
		p, err := Open(t.Context(), input.Of(sources, input.Options{}), Options{})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	first := page("step-2.pickle", "step-3.pickle")
	if err := first.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	for known, want := range map[int]int{0: 1, 1: 0, 2: 0} {
		clear(opened)
		p := page("step-2.pickle", "step-3.pickle", "step-4.pickle")
		clear(opened)
		p.Keep(first, known)
		if err := p.Load(t.Context()); err != nil {
			t.Fatal(err)
		}
		read := opened["step-2.pickle"]
		if (read > 0) != (want > 0) || opened["step-4.pickle"] == 0 {
			t.Errorf("of %d files that are known: opened %v", known, opened)
		}
		doc, err := p.Asker.(*Engine).Findings()
		if err != nil || doc.Card.Word != "LEAK" || len(p.Asker.(*Engine).files[0].devices) == 0 {
			t.Errorf("of %d files that are known: %+v, %v", known, doc.Card, err)
		}
	}
	changed["step-2.pickle"] = time.Unix(1, 0)
	p := page("step-2.pickle", "step-3.pickle")
	clear(opened)
	p.Keep(first, 2)
	if err := p.Load(t.Context()); err != nil || opened["step-2.pickle"] == 0 || opened["step-3.pickle"] > 0 {
		t.Errorf("of a file that was written anew: opened %v, %v", opened, err)
	}
}

// TestOtherKinds does not show a table beside snapshots, which is not judged with them, as one without findings.
func TestOtherKinds(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"step-2.pickle", "step-3.pickle", "step-4.pickle"} {
		data, err := os.ReadFile("../../../examples/image-leak/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "levels.csv"), []byte("time,bytes\n1,5\n2,6\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	files, err := input.OpenPaths([]string{dir}, input.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer files.Close()
	p, err := Open(t.Context(), files, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	e := p.Asker.(*Engine)
	if len(e.others) != 1 || filepath.Base(e.others[0].Path) != "levels.csv" || e.others[0].Why != ErrOtherKind.Error() {
		t.Errorf("skipped %+v", e.others)
	}
	for _, f := range e.files {
		if (f.state == skipped) != (filepath.Base(f.Path) == "levels.csv") {
			t.Errorf("%s is %v", f.Path, f.state)
		}
	}
}
