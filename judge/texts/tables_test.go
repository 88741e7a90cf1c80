package texts

import (
	"fmt"
	"math"
	"math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"strandline/finding"
	"strandline/judge/verdict"
	"strandline/logs"
)

// A judgment is the answer for texts, with the verdict.
type judgment struct {
	Answer
	Verdict finding.Verdict
}

// judgeText answers for texts of one process.
func judgeText(t testing.TB, texts ...string) (a judgment) {
	t.Helper()
	p := &logs.Process{}
	for i, text := range texts {
		found, err := logs.Scan(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		p.Files = append(p.Files, &logs.File{Text: &found, Name: fmt.Sprintf("%d.log", i)})
	}
	capacity, processes := int64(10<<30), []*logs.Process{p}
	a.Answer = Judge(processes, Statements(processes), Options{Capacity: &capacity})
	a.Verdict = verdict.Of(a.Judged, false, a.Findings)
	return a
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

// summaryOf is the answer in short: the verdict, and of each finding its kind and the
// first letter of its severity; usage is left out.
func summaryOf(a judgment) string {
	out := string(a.Verdict)
	for _, f := range a.Findings {
		if f.Kind != finding.Usage {
			out += fmt.Sprintf(" %s:%.1s", f.Kind, f.Severity)
		}
	}
	return out
}

// TestTablesOverTime: many tables are judged as a level over time is.
func TestTablesOverTime(t *testing.T) {
	minute := func(i int) string { return fmt.Sprintf("2026-11-01 12:%02d:00 step %d\n", i, i) }
	r := rand.New(rand.NewSource(7))
	for _, c := range []struct {
		name, want, says string
		dated            bool
		level            func(i int) float64
	}{
		{"a leak", "leak leak:p", "will reach the capacity of 10 GiB", true, func(i int) float64 { return 3000 + 50*float64(i) }},
		{"a leak below noise", "leak leak:p", "will reach the capacity of 10 GiB", true, func(i int) float64 { return 3000 + 20*float64(i) + 300*r.Float64() }},
		{"a leak without times", "leak leak:p", "tables after the last sample", false, func(i int) float64 { return 3000 + 50*float64(i) }},
		{"a cache that fills", "ok growth:i", "and levels off at 6.8", true, func(i int) float64 { return 3000 + 4000*(1-math.Exp(-float64(i)/10)) }},
		{"released again and again", "ok growth:i", "down to the same level", true, func(i int) float64 { return 3000 + 100*float64(i%15) }},
	} {
		t.Run(c.name, func(t *testing.T) {
			var levels []int64
			for i := range 60 {
				levels = append(levels, int64(c.level(i)))
			}
			tables := strings.Split(printed(true, levels...), "| PyTorch CUDA")
			for i := range tables {
				if i > 0 && c.dated {
					tables[i-1] += minute(i - 1)
				}
			}
			a := judgeText(t, strings.Join(tables, "| PyTorch CUDA"))
			if got := summaryOf(a); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
			f := a.Findings[0]
			if all := f.Title + "\n" + strings.Join(f.Detail, "\n"); !strings.Contains(all, c.says) {
				t.Errorf("%q does not say %q", all, c.says)
			}
			e := f.Evidence.(*finding.TableEvidence).Levels
			if e == nil || (e.SecondsToLimit != nil) != (c.dated && f.Kind == finding.Leak) || (e.StepsToLimit != nil) != (!c.dated && f.Kind == finding.Leak) {
				t.Errorf("%+v", e)
			}
		})
	}
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
		if got := summaryOf(judgeText(t, c.text)); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
	}
}

// TestNoiseIsNoLeak makes totals that wander about a level: very few series may
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

// is reports whether a figure is known and is n.
func is(figure *int64, n int64) bool { return figure != nil && *figure == n }

// ofTable is a check of the evidence of tables.
func ofTable(check func(e *finding.TableEvidence) bool) func(e finding.Evidence) bool {
	return func(e finding.Evidence) bool {
		table, ok := e.(*finding.TableEvidence)
		return ok && check(table)
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
		evidence func(e finding.Evidence) bool // of the first finding; nil if not checked
	}{
		{"one", []string{read("small.txt")}, "unknown", "1 KiB of 2 MiB reserved is allocated",
			ofTable(func(e *finding.TableEvidence) bool {
				return is(e.AllocatedBytes, 1024) && is(e.ReservedBytes, 2<<20) && is(e.NonReleasableBytes, 2047<<10) && is(e.ReleasableBytes, 0) && is(e.Retries, 0) && e.Tables == 1
			})},
		{"two devices", []string{read("two-devices.txt")}, "unknown", "764 MiB of 766 MiB reserved is allocated; at the peak 764 MiB, of reserved memory 766 MiB", ofTable(func(e *finding.TableEvidence) bool { return e.Tables == 1 })},
		{"after and before", []string{read("after.txt"), read("before.txt")}, "unknown leak:w", "allocated memory grew by 1.48 GiB between two tables (1.log to 0.log)",
			ofTable(func(e *finding.TableEvidence) bool {
				return is(e.AllocatedGrowthBytes, 2284<<20-782353<<10) && is(e.ReservedGrowthBytes, 2286<<20-784384<<10) && is(e.AllocationsGrowth, 40) && e.FirstFile == "1.log" && e.File == "0.log"
			})},
		{"reserved grows", []string{read("cached.txt")}, "ok fragmentation:w", "reserved memory grew by 9.57 GiB over 8 tables (line 2 to line 212), allocated memory by 0 B: 10.4 GiB of 11.2 GiB reserved is a cache",
			ofTable(func(e *finding.TableEvidence) bool {
				return is(e.CachedGrowthBytes, 9800<<20) && is(e.PeakActiveBytes, 2624<<20) && is(e.OverheadBytes, 8862<<20)
			})},
		{"reserved grows, two tables", []string{firstAndLast(read("cached.txt"))}, "unknown fragmentation:w", "reserved memory grew by 9.57 GiB between two tables", nil},
		{"at the limit", []string{read("limit.txt")}, "oom oom:p retries:w", "memory ran out: a request of 2.93 GiB",
			func(e finding.Evidence) bool { return e.(*finding.OOMEvidence).Line == 91 }},
		{"at the limit, without the message", []string{without(read("limit.txt"), "Tried to allocate")}, "ok retries:w", "memory ran out 4 times, and the driver refused a segment 12 times over 5 tables", ofTable(func(e *finding.TableEvidence) bool { return is(e.Retries, 12) && is(e.OOMs, 4) })},
		{"the last is cut off", []string{read("before.txt") + read("after.txt") + read("after.txt")[:600]}, "unknown leak:w", "allocated memory grew by 1.48 GiB", ofTable(func(e *finding.TableEvidence) bool { return e.Tables == 2 })},
		{"rows are missing from all", []string{without(read("cached.txt"), "Allocated memory")}, "unknown", "11.2 GiB is reserved, at the peak 11.2 GiB; the row of allocated memory is missing", ofTable(func(e *finding.TableEvidence) bool { return e.Tables == 8 })},
		{"a row is missing", []string{without(read("two-devices.txt"), "reserved memory")}, "unknown", "764 MiB is allocated, at the peak 764 MiB; the row of reserved memory is missing", nil},
		{"nothing but an end", []string{strings.SplitN(read("small.txt"), "| Non-releasable memory", 2)[1]}, "unknown", "", nil},
	} {
		a := judgeText(t, c.texts...)
		if got := summaryOf(a); got != c.want {
			t.Errorf("%s: %s, want %s", c.name, got, c.want)
		}
		if c.title == "" {
			continue
		}
		f := a.Findings[0]
		if !strings.HasPrefix(f.Title, c.title) {
			t.Errorf("%s: %s, want %s", c.name, f.Title, c.title)
		}
		if c.evidence != nil && !c.evidence(f.Evidence) {
			t.Errorf("%s: %+v", c.name, f.Evidence)
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
	if got := summaryOf(a); got != "ok fragmentation:i" {
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
	type table = finding.TableEvidence
	for row, absent := range map[string]func(e *table) []*int64{
		"Allocated memory": func(e *table) []*int64 {
			return []*int64{e.AllocatedBytes, e.PeakAllocatedBytes, e.TotalAllocatedBytes, e.TotalFreedBytes}
		},
		"Active memory":         func(e *table) []*int64 { return []*int64{e.ActiveBytes, e.PeakActiveBytes, e.ReleasableBytes} },
		"Requested memory":      func(e *table) []*int64 { return []*int64{e.RequestedBytes} },
		"reserved memory":       func(e *table) []*int64 { return []*int64{e.ReservedBytes, e.PeakReservedBytes, e.ReleasableBytes} },
		"Non-releasable memory": func(e *table) []*int64 { return []*int64{e.NonReleasableBytes, e.ReleasableBytes} },
		"Allocations":           func(e *table) []*int64 { return []*int64{e.Allocations} },
		"OOMs":                  func(e *table) []*int64 { return []*int64{e.OOMs, e.Retries} },
	} {
		a := judgeText(t, without(string(text), row))
		if len(a.Findings) != 1 {
			t.Fatalf("without %s: %s", row, summaryOf(a))
		}
		for i, n := range absent(a.Findings[0].Evidence.(*table)) {
			if n != nil {
				t.Errorf("without %s: figure %d is %d", row, i, *n)
			}
		}
	}
}

// TestExpandableTables checks that the answer does not mention what empty_cache would return
// where no row counts the segments.
func TestExpandableTables(t *testing.T) {
	a := judgeText(t, strings.Replace(printed(true, 5000, 1000), "| Allocations", "| Allocations | 1 | 1 | 1 | 1 |\n| GPU reserved segments | 0 | 0 | 0 | 0 |\nx", 2))
	f := a.Findings[0]
	if f.Evidence.(*finding.TableEvidence).ReleasableBytes != nil || !strings.Contains(strings.Join(f.Detail, " "), "expandable") {
		t.Errorf("%+v, %v", f.Evidence, f.Detail)
	}
}
