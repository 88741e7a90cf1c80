package processes

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"strandline/finding"
	"strandline/internal/lazyregexp"
	"strandline/units"
)

// sumsUp matches a statement of Python that puts something into a variable which keeps its
// former value: `x += y`, `x = x + y`, `x.append(y)`.
var sumsUp = lazyregexp.New(`^\s*((?:self\.)?[A-Za-z_]\w*(?:\.\w+)*(?:\[[^\]=]*\])?)(?:\s*[-+*/]=[^=]|\s*=\s*([A-Za-z_][\w.]*)\s*[-+*/]|\.append\()`)

// Keeper is the variable that a statement of Python adds to; empty if it adds to none.
func Keeper(statement string) string {
	m := sumsUp.FindStringSubmatch(statement)
	if m == nil || m[2] != "" && m[2] != m[1] {
		return ""
	}
	return m[1]
}

// NameKeeper names the variable that keeps autograd's graph, by the statement at the site of
// a finding.
func NameKeeper(f *finding.Finding, statement string) {
	name := Keeper(statement)
	if f.Kind != finding.AutogradGraph || f.Site == nil || name == "" {
		return
	}
	at := fmt.Sprintf("%s:%d", filepath.Base(f.Site.File), f.Site.Line)
	i := slices.IndexFunc(f.Remedies, func(r finding.Remedy) bool { return r.Text == graphRemedies[0].Text })
	if i >= 0 {
		f.Remedies[i] = finding.CodeChange(fmt.Sprintf("`%s` keeps each step's graph (%s): call .detach() on the tensors that it takes, or on itself", name, at))
	}
}

// A Container is one that a name of a Python program leads to, and how many objects it held at
// each look at it.
type Container struct {
	Path, Kind string
	Library    bool // the names are a library's
	Counts     []int64
	Graph      bool // it holds a tensor with a graph
}

// Grew is by how many objects a container grew, if it did from look to look; otherwise 0. The
// last look may add nothing: it can come when the program has ended its work.
func (c *Container) Grew() int64 {
	const minLooks, minGrown, times = 3, 100, 1.25
	counts := c.Counts
	if n := len(counts); n > 1 && counts[n-1] == counts[n-2] {
		counts = counts[:n-1]
	}
	n := len(counts)
	if n < minLooks {
		return 0
	}
	for i := range n - 1 {
		if counts[i+1] <= counts[i] {
			return 0
		}
	}
	first, last := counts[0], counts[n-1]
	if last-first < minGrown || float64(last) < times*float64(first) {
		return 0
	}
	return last - first
}

// Containers are what was counted of a program.
type Containers interface {
	Each(f func(path, kind string, library bool, counts []int64, graph bool))
}

// Growing are the containers that grew from look to look, those that grew most first. What a
// library keeps for each object that the program keeps grows along with it.
func Growing(all Containers) (out []Container) {
	all.Each(func(path, kind string, library bool, counts []int64, graph bool) {
		if c := (Container{path, kind, library, counts, graph}); c.Grew() > 0 {
			out = append(out, c)
		}
	})
	weight := func(c Container) int64 {
		if c.Library {
			return c.Grew()
		}
		return 2 * c.Grew()
	}
	slices.SortFunc(out, func(a, b Container) int {
		return cmp.Or(cmp.Compare(weight(b), weight(a)), cmp.Compare(a.Path, b.Path))
	})
	return out
}

// NameContainers names the containers that keep what grows, by those that grew meanwhile. They
// say who keeps objects of Python and what these own on the heap.
func NameContainers(f *finding.Finding, growing []Container) {
	keeps := f.Kind == finding.PythonObjects || f.Kind == finding.HeapLeak || f.Kind == finding.AutogradGraph || f.Kind == finding.Leak
	if !keeps || f.Severity == finding.Info || len(growing) == 0 {
		return
	}
	const maxNamed = 3
	for i, c := range growing[:min(maxNamed, len(growing))] {
		text := fmt.Sprintf("`%s`, a %s, went from %s to %s objects", c.Path, c.Kind, units.Count(c.Counts[0]), units.Count(c.Counts[len(c.Counts)-1]))
		f.Detail = append(f.Detail, text)
		if i == 0 {
			f.Brief.Fact = cmp.Or(f.Brief.Fact, fmt.Sprintf("kept by `%s`, a %s: %s → %s objects", c.Path, c.Kind, units.Count(c.Counts[0]), units.Count(c.Counts[len(c.Counts)-1])))
			remedy := finding.CodeChange(fmt.Sprintf("remove objects from `%s` that are no longer needed: %s", c.Path, text))
			if f.Kind == finding.AutogradGraph {
				remedy = finding.CodeChange(fmt.Sprintf("call .detach() or .item() on the tensors that `%s` takes: %s", c.Path, text))
			}
			first := 0
			if len(f.Remedies) > 0 && tooEarly(f.Remedies[0]) {
				first = 1
			}
			f.Remedies = slices.Insert(f.Remedies, first, remedy)
		}
	}
}
