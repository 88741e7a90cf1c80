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
