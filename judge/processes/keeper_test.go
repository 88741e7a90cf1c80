package processes

import (
	"slices"
	"strings"
	"testing"

	"strandline/finding"
)

// TestKeeper checks which variable of a statement keeps what is added.
func TestKeeper(t *testing.T) {
	for statement, want := range map[string]string{
		"        total += noisy(device).requires_grad_()": "total", "val += 1": "val", "self.sum += loss": "self.sum", "running[k] += loss": "running[k]",
		"total = total + loss": "total", "losses.append(loss)": "losses", "self.meter.values.append(loss)": "self.meter.values", "x *= 2": "x",
		"loss = model(x)": "", "total = loss + other": "", "if a == b:": "", "f(x)": "", "return total": "", "": "", "a <= b": "", "x == y": "",
	} {
		if got := Keeper(statement); got != want {
			t.Errorf("%q: %q, want %q", statement, got, want)
		}
	}
	f := finding.Finding{Kind: finding.AutogradGraph, Site: &finding.Site{File: "/w/a.py", Line: 30}, Remedies: slices.Clone(graphRemedies)}
	NameKeeper(&f, "    total += loss")
	if !strings.Contains(f.Remedies[0].Text, "`total` keeps each step's graph (a.py:30): call .detach()") || len(f.Remedies) != len(graphRemedies) {
		t.Errorf("%+v", f.Remedies)
	}
}

type counted []Container

func (all counted) Each(f func(path, kind string, library bool, counts []int64, graph bool)) {
	for _, c := range all {
		f(c.Path, c.Kind, c.Library, c.Counts, c.Graph)
	}
}

// TestNameContainers names the containers that grew from look to look.
func TestNameContainers(t *testing.T) {
	growing := Growing(counted{
		{"constant", "list", false, []int64{5000, 5000, 5000}, false},
		{"sawtooth", "list", false, []int64{100, 5000, 4000, 6000}, false},
		{"twice", "dict", false, []int64{100, 9000}, false},
		{"slowly", "dict", false, []int64{9000, 9100, 9200}, false},
		{"less", "list", false, []int64{100, 200, 300}, false},
		{"filled", "list", false, []int64{100, 3000, 9000, 9000, 9000}, false},
		{"ended", "list", false, []int64{100, 200, 310, 310}, false},
		{"seen", "dict", false, []int64{3080, 20000, 51120}, false},
		{"_types", "dict", true, []int64{110, 210, 310}, false}, // a library's, beside less
	})
	if len(growing) != 4 || growing[0].Path != "seen" || growing[1].Path != "ended" || growing[2].Path != "less" {
		t.Fatalf("%+v", growing)
	}
	for _, c := range []struct {
		f    finding.Finding
		want string
	}{
		{finding.Finding{Kind: finding.PythonObjects, Severity: finding.Problem}, "remove objects from `seen` that are no longer needed"},
		{finding.Finding{Kind: finding.AutogradGraph, Severity: finding.Problem}, "call .detach() or .item() on the tensors that `seen` takes"},
		{finding.Finding{Kind: finding.PythonObjects, Severity: finding.Info}, ""},
		{finding.Finding{Kind: finding.MmapLeak, Severity: finding.Problem}, ""},
	} {
		f := c.f
		NameContainers(&f, growing)
		text := ""
		if len(f.Remedies) > 0 {
			text = f.Remedies[0].Text
		}
		if (text == "") != (c.want == "") || !strings.Contains(text, c.want) || c.want != "" && len(f.Detail) != 3 {
			t.Errorf("%v: %q, %q", c.f, text, f.Detail)
		}
	}
}
