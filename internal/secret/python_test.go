package secret

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the Python module's tables")

// TestPythonTables compares the tables of the Python module with those of this package.
func TestPythonTables(t *testing.T) {
	const file = "../../record/python/strandline/_secret_tables.py"
	want := pythonTables()
	if *update {
		if err := os.WriteFile(file, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(file); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s differs: run the test with -update; %v", file, err)
	}
}

func pythonTables() []byte {
	var out bytes.Buffer
	line := func(format string, args ...any) { fmt.Fprintf(&out, format+"\n", args...) }
	line(`"""The tables of Go's internal/secret, written by its tests: do not edit."""`)
	line("\nfrom __future__ import annotations\n\nfrom typing import Dict, FrozenSet, NamedTuple, Tuple\n")
	line("LAST: Dict[str, str] = {")
	for _, name := range slices.Sorted(maps.Keys(last)) {
		line("    %q: %q,", name, last[name])
	}
	line("}\n\n\ndef _words(text: str) -> FrozenSet[str]:\n    return frozenset(text.split())\n\n")
	line("GLUED = tuple(%q.split())", strings.Join(glued, " "))
	for _, set := range []struct {
		name  string
		words map[string]bool
	}{
		{"QUALIFIERS", qualifiers}, {"KEYS", keys}, {"COLUMNS", columns}, {"TEXTS", texts}, {"ACCOUNTS", accounts}, {"SWITCHES", switches},
		{"PARAMETERS", parameters}, {"TYPES", types}, {"BARE", bare}, {"CONFIGURES", configures}, {"CHANGES", changes},
	} {
		line("%s = _words(%q)", set.name, strings.Join(slices.Sorted(maps.Keys(set.words)), " "))
	}
	line("FORMS: Tuple[Tuple[str, int, str], ...] = (")
	for _, f := range forms {
		line("    (%q, %d, %q),", f.prefix, f.min, f.also)
	}
	line(")\n\n\nclass Program(NamedTuple):\n    subcommand: str\n    value: str\n    separate: Tuple[str, ...]\n    attached: Tuple[str, ...]\n    clusters: str\n    first: int\n    pairs: bool\n    many: bool\n\n")
	line("PROGRAMS: Dict[str, Tuple[Program, ...]] = {")
	truth := map[bool]string{false: "False", true: "True"}
	for _, name := range slices.Sorted(maps.Keys(programsOf)) {
		line("    %q: (", name)
		for _, p := range programsOf[name] {
			line("        Program(%q, %q, tuple(%q.split()), tuple(%q.split()), %q, %d, %s, %s),", p.subcommand, p.value, p.separate, p.attached, p.clusters, p.from, truth[p.pairs], truth[p.many])
		}
		line("    ),")
	}
	line("}")
	return out.Bytes()
}
