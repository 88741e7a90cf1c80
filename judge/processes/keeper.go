package processes

import (
	"fmt"
	"path/filepath"
	"slices"

	"strandline/finding"
	"strandline/internal/lazyregexp"
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
