package record

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestManifestIsBounded reads manifests of many notes and of many values in few bytes.
func TestManifestIsBounded(t *testing.T) {
	dir := t.TempDir()
	write := func(format string, args ...any) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, ManifestName), fmt.Appendf(nil, format, args...), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	notes := make([]string, 100_000)
	for i := range notes {
		notes[i] = fmt.Sprintf(`{"pid":%d,"command":"python a.py","why":"x %d"}`, i/2, i/2) // each twice
	}
	write(`{"notes":[%s]}`, strings.Join(notes, ","))
	m, err := ReadManifest(dir)
	if err != nil || len(m.Notes) != maxNotes+1 || m.Notes[1].PID != 1 || m.Notes[maxNotes].Why != "98,000 more notes of the recording" {
		t.Errorf("%d notes, %v", len(m.Notes), err)
	}
	write(`{"notes":[{"why":"%s"}]}`, strings.Repeat("ä", 1<<20))
	if m, err := ReadManifest(dir); err != nil || len(m.Notes) != 1 || len(m.Notes[0].Why) > maxText+len("…") || !utf8.ValidString(m.Notes[0].Why) {
		t.Errorf("%d bytes, %v", len(m.Notes[0].Why), err)
	}
	write(`{"processes":[%s{}]}`, strings.Repeat("{},", 1_000_000))
	if m, err := ReadManifest(dir); err == nil {
		t.Errorf("%d processes of %d bytes", len(m.Processes), 3_000_000)
	}
}

func TestDumpOfAFile(t *testing.T) {
	m := &Manifest{Processes: []Process{{PID: 1, Dumps: []Dump{{File: "a"}, {File: "b"}}}, {PID: 2, Dumps: []Dump{{File: "b"}, {File: "c"}}}}}
	for name, pid := range map[string]int{"a": 1, "b": 1, "c": 2, "d": 0} {
		p, d := m.Dump(name)
		if (p == nil) != (pid == 0) || p != nil && (p.PID != pid || d.File != name) {
			t.Errorf("%s: %+v, %+v", name, p, d)
		}
	}
}

// TestClock counts what others have of the processor as no time, up to some seconds.
func TestClock(t *testing.T) {
	t.Parallel()
	code := `
import types
from strandline import _clock
wall = own = 100.0
_clock.time = types.SimpleNamespace(monotonic=lambda: wall, thread_time=lambda: own)
assert _clock.start() == 100
for wall, own, now in [(101, 101, 101), (102, 101.5, 101.5), (103, 101.5, 101.5), (106, 103, 103), (109, 103.5, 106)]:
    assert _clock.now() == now, (wall, own, _clock.now())
print("in time")
`
	program{code: code}.run(t).silent(t, 0, "in time\n")
}
