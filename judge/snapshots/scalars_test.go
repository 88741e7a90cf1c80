package snapshots

import (
	"path/filepath"
	"strings"
	"testing"

	"strandline/finding"
	"strandline/torch/compare"
	"strandline/torch/digest"
	"strandline/torch/snapshot"
)

// TestScalars judges the programs of testdata/scalars.py, which keep a scalar of each
// step: by a graph of autograd, or in a list.
func TestScalars(t *testing.T) {
	const loss = 30 // the line that computes it
	for _, c := range []struct {
		prog string
		kind finding.Kind
		line int64
	}{
		{"loss", finding.AutogradGraph, loss},
		{"power", finding.AutogradGraph, 44},
		{"norm", finding.AutogradGraph, 46},
		{"clone", finding.Leak, 48},
		{"accuracy", finding.Leak, 50},
		{"clipped", finding.Leak, 39},
		{"validation", finding.Leak, loss},
		{"average", finding.Leak, 55},
	} {
		a := judge(t, filepath.Join("testdata", "scalars", c.prog+".pickle.gz"))
		found := 0
		for _, f := range a.Findings {
			if f.Severity != finding.Problem {
				continue
			}
			found++
			if f.Kind != c.kind || f.Site.Line != c.line {
				t.Errorf("%s: %s of line %d, want %s of line %d: %s", c.prog, f.Kind, f.Site.Line, c.kind, c.line, f.Title)
			}
			if graph := strings.HasPrefix(f.Remedies[0].Text, "call .detach()"); graph != (c.kind == finding.AutogradGraph) {
				t.Errorf("%s: the first remedy is %q", c.prog, f.Remedies[0].Text)
			}
		}
		if found != 1 || a.Verdict != finding.Leaking {
			t.Errorf("%s: %d problems and %s, want one leak", c.prog, found, a.Verdict)
		}
	}
}

// TestScalarsHeld takes what the recorder found in place of what the memory suggests.
func TestScalarsHeld(t *testing.T) {
	for _, c := range []struct {
		prog string
		held compare.Held
		kind finding.Kind
	}{
		{"clone", compare.Held{Graphs: []compare.Holder{{Path: "meter.total", Nodes: 100, ChainLength: 50, Node: "AddBackward0"}}}, finding.AutogradGraph},
		{"power", compare.Held{Holders: []compare.Holder{{Path: "kept[...]"}}}, finding.Leak},
	} {
		s, err := snapshot.Open(filepath.Join("testdata", "scalars", c.prog+".pickle.gz"), snapshot.Options{})
		if err != nil {
			t.Fatal(err)
		}
		book := digest.NewBook()
		file := book.Digest(s)
		for _, l := range file.Device(0).Live {
			c.held.Sampled = append(c.held.Sampled, l.Addr)
		}
		for i := range c.held.Holders {
			c.held.Holders[i].Blocks = c.held.Sampled
		}
		p := compare.NewProcess("pid7", []*digest.File{file})
		p.About = &compare.About{PID: 7, Held: map[*digest.File]*compare.Held{file: &c.held}}
		found := false
		for _, f := range Files(book, []*compare.Process{p}, Options{}).Findings {
			if f.Severity == finding.Problem {
				found = found || f.Kind == c.kind
				if f.Kind != c.kind {
					t.Errorf("%s: %s, want %s: %s", c.prog, f.Kind, c.kind, f.Title)
				}
			}
		}
		if !found {
			t.Errorf("%s: no %s", c.prog, c.kind)
		}
	}
}
