package torch

import (
	"fmt"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strandline/finding"
	"strandline/logs"
	"strandline/torch/compare"
	"strandline/torch/digest"
)

// judgeText answers for texts of one process.
func judgeText(t testing.TB, texts ...string) Answer {
	t.Helper()
	var files []*digest.File
	for i, text := range texts {
		said, err := logs.Scan(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, &digest.File{Name: fmt.Sprintf("%d.log", i), Text: &said})
	}
	return Files(digest.NewBook(), []*compare.Process{compare.NewProcess("", files)}, Options{})
}

// printed makes tables of what was allocated in MiB, one a number, with as many
// allocations as steps if count is true; reserved is what the highest needed.
func printed(count bool, allocated ...int64) string {
	var b strings.Builder
	most := int64(0)
	for i, n := range allocated {
		most = max(most, n)
		many := 100
		if count {
			many += i
		}
		fmt.Fprintf(&b, "| PyTorch CUDA memory summary, device ID 0 |\n| CUDA OOMs: 0 | cudaMalloc retries: 0 |\n"+
			"| Allocated memory | %d MiB | %d MiB | %d GiB | 0 B |\n| Active memory | %d MiB | %d MiB | 0 B | 0 B |\n"+
			"| GPU reserved memory | %d MiB | %d MiB | %d GiB | 0 B |\n| Non-releasable memory | 0 B | 0 B | 0 B | 0 B |\n| Allocations | %d | %d | %d | 0 |\n",
			n, most, i, n, most, most, most, i, many, many, many)
	}
	return b.String()
}

// said is the answer in short: the verdict, and of each finding its kind and the
// first letter of its severity; usage is left out.
func said(a Answer) string {
	out := string(a.Verdict)
	for _, f := range a.Findings {
		if f.Kind != finding.Usage {
			out += fmt.Sprintf(" %s:%.1s", f.Kind, f.Severity)
		}
	}
	return out
}

func TestTablesOfAllocated(t *testing.T) {
	for _, c := range []struct {
		name string
		text string
		want string
	}{
		{"one", printed(true, 1000), "unknown"},
		{"two alike", printed(true, 1000, 1000), "unknown"},
		{"two, a little more", printed(true, 1000, 1040), "unknown growth:i"},
		{"two, clearly more", printed(true, 1000, 2000), "unknown leak:w"},
		{"two, less", printed(true, 2000, 1000), "unknown fragmentation:i"},
		{"three alike", printed(true, 1000, 1000, 1000), "ok"},
		{"three of a leak", printed(true, 1000, 1100, 1200), "unknown leak:w"},
		{"eight of a leak", printed(true, 1000, 1100, 1200, 1300, 1400, 1500, 1600, 1700), "leak leak:p"},
		{"a leak of uneven steps", printed(true, 1000, 1080, 1200, 1290, 1400, 1510, 1590, 1700), "leak leak:p"},
		{"a leak below waves", printed(true, 1000, 1160, 1200, 1350, 1400, 1550, 1620, 1700), "leak leak:p"},
		{"a leak of one unit a table", printed(true, 1000, 1001, 1002, 1003, 1004, 1005, 1006, 1007), "leak leak:p"},
		{"larger, not more", printed(false, 1000, 1100, 1200, 1300, 1400, 1500, 1600, 1700), "unknown leak:w"},
		{"warm-up", printed(true, 1000, 3000, 3000, 3000, 3000, 3000), "ok growth:i"},
		{"a cache that fills", printed(true, 1000, 1800, 2400, 2800, 3000, 3080, 3100, 3100, 3100, 3100), "ok growth:i"},
		{"waves", printed(true, 1000, 1900, 1100, 1700, 1050, 1950, 1000, 1800), "ok growth:i"},
		{"waves above a little growth", printed(true, 1000, 1900, 1010, 1700, 1020, 1950, 1030, 1040), "ok growth:i fragmentation:i"},
	} {
		if got := said(judgeText(t, c.text)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestNoiseIsNoLeak makes totals that wander about a level: hardly one series may
// be called a leak.
func TestNoiseIsNoLeak(t *testing.T) {
	rng := rand.New(rand.NewSource(1))
	const tries = 1000
	wrong := 0
	for range tries {
		totals := make([]int64, 3+rng.Intn(20))
		keep := rng.Float64() * 0.9 // of what it was away from the level
		away := 0.0
		for j := range totals {
			away = keep*away + 200*rng.NormFloat64()
			totals[j] = 5000 + int64(away)
		}
		if judgeText(t, printed(true, totals...)).Verdict == finding.Leaking {
			wrong++
		}
	}
	if wrong > tries/100 {
		t.Errorf("%d of %d are called leaks", wrong, tries)
	}
}

// TestRealTables judges what PyTorch printed.
func TestRealTables(t *testing.T) {
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join("../../logs/testdata", name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for _, c := range []struct {
		name     string
		texts    []string
		want     string
		title    string
		evidence map[string]any // of the first finding
	}{
		{"one", []string{read("small.txt")}, "unknown", "1 KiB of 2 MiB reserved is allocated",
			map[string]any{"allocated_bytes": int64(1024), "reserved_bytes": int64(2 << 20), "non_releasable_bytes": int64(2047 << 10), "releasable_bytes": int64(0), "retries": int64(0), "tables": 1}},
		{"two devices", []string{read("two-devices.txt")}, "unknown", "764 MiB of 766 MiB reserved is allocated; at the peak 764 MiB, of reserved memory 766 MiB", map[string]any{"tables": 1}},
		{"after and before", []string{read("after.txt"), read("before.txt")}, "unknown leak:w", "allocated memory grew by 1.48 GiB between two tables (1.log to 0.log)",
			map[string]any{"allocated_growth_bytes": int64(2284<<20 - 782353<<10), "reserved_growth_bytes": int64(2286<<20 - 784384<<10), "allocations_growth": int64(40), "first_file": "1.log", "file": "0.log"}},
		{"reserved grows", []string{read("cached.txt")}, "ok fragmentation:w", "reserved memory grew by 9.57 GiB over 8 tables (line 2 to line 212), allocated memory by 0 B: 10.4 GiB of 11.2 GiB reserved is a cache",
			map[string]any{"cached_growth_bytes": int64(9800 << 20), "peak_active_bytes": int64(2624 << 20), "overhead_bytes": int64(8862 << 20)}},
		{"reserved grows, two tables", []string{firstAndLast(read("cached.txt"))}, "unknown fragmentation:w", "reserved memory grew by 9.57 GiB between two tables", nil},
		{"at the limit", []string{read("limit.txt")}, "oom oom:p retries:w", "memory ran out: a request of 2.93 GiB", map[string]any{"line": int64(91)}},
		{"at the limit, without the message", []string{without(read("limit.txt"), "Tried to allocate")}, "ok retries:w", "memory ran out 4 times, and the driver refused a segment 12 times over 5 tables", map[string]any{"retries": int64(12), "ooms": int64(4)}},
		{"the last is cut off", []string{read("before.txt") + read("after.txt") + read("after.txt")[:600]}, "unknown leak:w", "allocated memory grew by 1.48 GiB", map[string]any{"tables": 2}},
		{"rows are missing from all", []string{without(read("cached.txt"), "Allocated memory")}, "unknown", "11.2 GiB is reserved, at the peak 11.2 GiB; the row of allocated memory is missing", map[string]any{"tables": 8}},
		{"a row is missing", []string{without(read("two-devices.txt"), "reserved memory")}, "unknown", "764 MiB is allocated, at the peak 764 MiB; the row of reserved memory is missing", nil},
		{"nothing but an end", []string{strings.SplitN(read("small.txt"), "| Non-releasable memory", 2)[1]}, "unknown", "", nil},
	} {
		a := judgeText(t, c.texts...)
		if got := said(a); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if c.title == "" {
			continue
		}
		f := a.Findings[0]
		if !strings.HasPrefix(f.Title, c.title) {
			t.Errorf("%s: %s, want %s", c.name, f.Title, c.title)
		}
		for name, want := range c.evidence {
			if got := f.Evidence[name]; got != want {
				t.Errorf("%s: %s is %v, want %v", c.name, name, got, want)
			}
		}
	}
}

// without takes out the lines that contain a text.
func without(text, word string) string {
	var out []string
	for _, line := range strings.SplitAfter(text, "\n") {
		if !strings.Contains(line, word) {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

// firstAndLast are the first and the last of several tables.
func firstAndLast(text string) string {
	parts := strings.SplitAfter(text, "epoch ")
	return parts[1] + parts[len(parts)-1]
}

// TestPiecesAtTheLimit advises to join pieces only where there are some.
func TestPiecesAtTheLimit(t *testing.T) {
	text, err := os.ReadFile("../../logs/testdata/limit.txt")
	if err != nil {
		t.Fatal(err)
	}
	tables := without(string(text), "Tried to allocate")
	const row = "| Active memory         | 614400 KiB |   1800 MiB "
	for in, advised := range map[string]bool{
		tables:                                 false,
		without(tables, "GPU reserved memory"): false,
		strings.ReplaceAll(tables, row, "| Active memory         | 514400 KiB |   1800 MiB "): true,
		strings.ReplaceAll(tables, row, "| Active memory         | 614400 KiB |   1400 MiB "): true,
	} {
		for _, f := range judgeText(t, in).Findings {
			joins := slices.ContainsFunc(f.Remedies, func(r finding.Remedy) bool { return strings.Contains(r.Setting, "expandable_segments") })
			if f.Kind == finding.Retries && joins != advised {
				t.Errorf("%v: %v", advised, f.Remedies)
			}
		}
	}
}

// TestCacheOfAPeak holds a cache that the peak of what was in use explains.
func TestCacheOfAPeak(t *testing.T) {
	a := judgeText(t, printed(true, 1000, 8000, 1000, 1000))
	if got := said(a); got != "ok fragmentation:i" {
		t.Error(got)
	}
}

// TestAbsentIsNotZero takes rows out, one after another: no finding may state what
// is not there.
func TestAbsentIsNotZero(t *testing.T) {
	text, err := os.ReadFile("../../logs/testdata/small.txt")
	if err != nil {
		t.Fatal(err)
	}
	for row, absent := range map[string][]string{
		"Allocated memory":      {"allocated_bytes", "peak_allocated_bytes", "total_allocated_bytes", "total_freed_bytes"},
		"Active memory":         {"active_bytes", "peak_active_bytes", "releasable_bytes"},
		"Requested memory":      {"requested_bytes"},
		"reserved memory":       {"reserved_bytes", "peak_reserved_bytes", "releasable_bytes"},
		"Non-releasable memory": {"non_releasable_bytes", "releasable_bytes"},
		"Allocations":           {"allocations"},
		"OOMs":                  {"ooms", "retries"},
	} {
		a := judgeText(t, without(string(text), row))
		if len(a.Findings) != 1 {
			t.Fatalf("without %s: %s", row, said(a))
		}
		for _, name := range absent {
			if n, ok := a.Findings[0].Evidence[name]; ok {
				t.Errorf("without %s: %s is %v", row, name, n)
			}
		}
		for name, n := range a.Findings[0].Evidence {
			if n == nil {
				t.Errorf("without %s: %s is nil", row, name)
			}
		}
	}
}

// TestExpandableTables holds that nothing is said of what empty_cache would return
// where no row counts the segments.
func TestExpandableTables(t *testing.T) {
	a := judgeText(t, strings.Replace(printed(true, 5000, 1000), "| Allocations", "| Allocations | 1 | 1 | 1 | 1 |\n| GPU reserved segments | 0 | 0 | 0 | 0 |\nx", 2))
	f := a.Findings[0]
	if _, ok := f.Evidence["releasable_bytes"]; ok || !strings.Contains(strings.Join(f.Detail, " "), "expandable") {
		t.Errorf("%v, %v", f.Evidence, f.Detail)
	}
}
