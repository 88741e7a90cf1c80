package logs

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strandline/logs/table"
	"strandline/logs/text"
)

// table is a file of testdata: tables that PyTorch 2.6 printed.
func tableOf(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// seriesOf returns what a text holds: for each series its tables, and in MiB what
// the last of them states of allocated, requested, reserved and non-releasable
// memory, how many allocations there are, OOMs and retries; "-" is absent.
func seriesOf(t testing.TB, text string) string {
	t.Helper()
	found, err := Scan(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, s := range found.Series {
		device := "?"
		if s.Device != nil {
			device = fmt.Sprint(*s.Device)
		}
		m := s.Tables[len(s.Tables)-1]
		line := fmt.Sprintf("%s:%s %d×", s.Process, device, s.Count)
		for _, n := range []*int64{m.Allocated.Current, m.Requested.Current, m.Reserved.Current, m.NonReleasable.Current} {
			line += mib(n)
		}
		for _, n := range []*int64{m.Allocations.Current, m.OOMs, m.Retries} {
			if n == nil {
				line += " -"
			} else {
				line += fmt.Sprintf(" %d", *n)
			}
		}
		out = append(out, line)
	}
	if found.Mixed > 0 {
		out = append(out, fmt.Sprintf("mixed %d", found.Mixed))
	}
	return strings.Join(out, "; ")
}

func mib(n *int64) string {
	if n == nil {
		return " -"
	}
	return fmt.Sprintf(" %.4g", float64(*n)/(1<<20))
}

// without takes out the lines that contain a text.
func without(text string, words ...string) string {
	var out []string
	for _, line := range strings.SplitAfter(text, "\n") {
		keep := true
		for _, w := range words {
			keep = keep && !strings.Contains(line, w)
		}
		if keep {
			out = append(out, line)
		}
	}
	return strings.Join(out, "")
}

func TestScanTables(t *testing.T) {
	before, after, two := tableOf(t, "before.txt"), tableOf(t, "after.txt"), tableOf(t, "two-devices.txt")
	limit, cached := tableOf(t, "limit.txt"), tableOf(t, "cached.txt")
	const was, is = "764 764 766 1.983 4 0 0", "2284 2244 2286 1.983 44 0 0"
	old := strings.NewReplacer("KiB", "KB ", "MiB", "MB ", "     0 B  ", "    0 B   ").Replace(without(before, "Requested", "Oversize"))
	for _, c := range []struct{ name, text, want string }{
		{"one", before, ":0 1× " + was},
		{"two devices, one abbreviated", two, ":0 1× " + was + "; :1 1× 1300 1300 1300 0 1 0 0"},
		{"before and after", before + after, ":0 2× " + is},
		{"the other way round: another process", after + before, ":0 1× " + was},
		{"many, and an error message", limit, ":0 5× 600 600 600 0 1 5 15"},
		{"before PyTorch 2.0", old, ":0 1× 764 - 766 1.983 4 0 0"},
		{"another backend", strings.NewReplacer("CUDA", "NPU", "cudaMalloc", "npuMalloc", "GPU reserved", "NPU reserved").Replace(before), ":0 1× " + was},
		{"prefix on the first line", "2026-11-21 14:38:44,711 INFO " + before, ":0 1× " + was},
		{"prefix on each line", prefixed("2026-11-21 14:38:4%d INFO ", before), ":0 1× " + was},
		{"color", "\x1b[32m" + strings.ReplaceAll(before, "\n", "\x1b[0m\n\x1b[32m"), ":0 1× " + was},
		{"Windows", utf16le(strings.ReplaceAll(before, "\n", "\r\n")), ":0 1× " + was},
		{"inside JSON", jsonLine(before) + jsonLine(after), ":0 2× " + is},
		{"after a progress bar", " 12%|█▎        | 120/1000 [memory 12 GiB]\r" + before, ":0 1× " + was},
		{"ranks, line by line", interleaved(prefixed("[rank0]: ", before), prefixed("[rank3]: ", after)), "rank0:0 1× " + was + "; rank3:0 1× " + is},
		{"ranks of a launcher", prefixed("[default5]:", before), "default5:0 1× " + was},
		{"workers", prefixed("(Worker pid=7, ip=10.0.0.2) ", before), "Worker pid=7, ip=10.0.0.2:0 1× " + was},
		{"the rank on the first line", "rank 5 " + before[strings.Index(before, "|"):], "rank5:0 1× " + was},
		{"the rank on the line before", "INFO [rank=5] after step 12\n" + before[strings.Index(before, "|"):], "rank5:0 1× " + was},
		{"the same rank twice", prefixed("[rank0]: ", before+after), "rank0:0 2× " + is},
		{"two processes that nothing distinguishes, line by line", interleaved(before, after), "mixed 1"},
		{"cut off below", before[:strings.Index(before, "| Non-releasable memory")], ":0 1× 764 764 766 - - 0 0"},
		{"cut in a number", before[:strings.Index(before, "| Allocated memory")+45], ":0 1× 764 - - - - 0 0"},
		{"cut in the first number", before[:strings.Index(before, "| Allocated memory")+30], ""},
		{"cut off, and another", before[:strings.Index(before, "| Non-releasable memory")] + "restarted\n" + after, ":0 2× " + is},
		{"cut off above", before[strings.Index(before, "| Active memory"):], ":? 1× - 764 766 1.983 4 - -"},
		{"rows are missing", without(before, "Allocated memory", "Requested memory"), ":0 1× - - 766 1.983 4 0 0"},
		{"the title is missing", without(before, "summary"), ":? 1× " + was},
		{"the title of the second is missing", before + without(after, "summary"), ":0 1× " + was + "; :? 1× " + is},
		{"a title alone", before[:4*78], ""},
		{"a broken figure", strings.Replace(before, "782353 KiB |", "7823#3 KiB |", 1), ":0 1× - 764 766 1.983 4 0 0"},
		{"too large a figure", strings.Replace(before, "782353 KiB |", "99999999999999 PiB |", 1), ":0 1× - 764 766 1.983 4 0 0"},
		{"no unit", strings.Replace(before, "782353 KiB |", "782353     |", 1), ":0 1× - 764 766 1.983 4 0 0"},
		{"a broken line", strings.Replace(before, "782353 KiB |", "782\n353 KiB |", 1), ":0 1× " + was},
		{"a broken line of a rank", strings.Replace(prefixed("[rank0]: ", before), "782353 KiB |", "782\n[rank0]: 353 KiB |", 1), "rank0:0 1× " + was},
		{"a line that was overwritten", strings.Replace(before, "782353 KiB |", "782\nINFO step 353 KiB |", 1), ":0 1× - 764 766 1.983 4 0 0"},
		{"a row that is cut, before a rule", strings.Replace(before, "       4    |       4    |       5    |       1    |", "       4", 1), ":0 1× 764 764 766 1.983 - 0 0"},
		{"words that tables have", "INFO Allocated memory | 12 GiB\nAllocations: 5\n| Active memory |\n", ""},
		{"eight", cached, ":0 8× 864 864 1.149e+04 132 8 0 0"},
	} {
		if got := seriesOf(t, c.text); got != c.want {
			t.Errorf("%s:\n%s, want\n%s", c.name, got, c.want)
		}
	}
}

func jsonLine(text string) string {
	b, _ := json.Marshal(map[string]string{"message": text, "time": "2026-11-21T14:38:44Z"})
	return string(b) + "\n"
}

// TestGrain holds the promise of Grain: PyTorch prints sizes so, and none of the
// figures of the real tables has more digits.
func TestGrain(t *testing.T) {
	for _, c := range []struct{ bytes, want int64 }{
		{0, 1}, {786431, 1}, {786432, 1 << 10}, {786432<<10 - 1024, 1 << 10}, {786432 << 10, 1 << 20}, {12 << 40, 1 << 30},
	} {
		if got := table.Grain(c.bytes); got != c.want {
			t.Errorf("%d bytes are printed in units of %d, want %d", c.bytes, got, c.want)
		}
	}
	found, err := Scan(strings.NewReader(tableOf(t, "cached.txt")))
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range found.Series[0].Tables {
		for _, n := range []*int64{s.Allocated.Current, s.Allocated.Peak, s.Reserved.Current, s.Reserved.Gained, s.NonReleasable.Freed} {
			if *n%table.Grain(*n) != 0 {
				t.Errorf("line %d: %d bytes are not a multiple of %d", s.Line, *n, table.Grain(*n))
			}
		}
	}
}

// TestStampOfTable checks where the time of a table can be.
func TestStampOfTable(t *testing.T) {
	table := tableOf(t, "small.txt")
	for _, c := range []struct{ name, text, want string }{
		{"none", table, ""},
		{"on its first line", "2026-05-01 10:00:00 INFO " + table, "2026-05-01 10:00:00"},
		{"on each line", prefixed("2026-05-01 10:00:00 ", table), "2026-05-01 10:00:00"},
		{"on the line before", "2026-05-01 10:00:00 INFO step 12\n" + table, "2026-05-01 10:00:00"},
		{"some lines before", "2026-05-01 10:00:00 INFO step 12\n\nmemory:\n" + table, "2026-05-01 10:00:00"},
		{"far before", "2026-05-01 10:00:00 INFO step 12\n" + strings.Repeat("x\n", text.Before-1) + table, ""},
		{"inside JSON", jsonLine(table), ""}, // behind the table
	} {
		found, err := Scan(strings.NewReader(c.text))
		if err != nil || len(found.Series) != 1 {
			t.Fatalf("%s: %v, %d series", c.name, err, len(found.Series))
		}
		got := ""
		if s := found.Series[0].Tables[0].Stamp; s != nil {
			got = s.Text
		}
		if got != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

// TestLineOfTable looks where a table begins: at its first line, or what is left.
func TestLineOfTable(t *testing.T) {
	table := tableOf(t, "small.txt")
	for _, c := range []struct {
		text string
		want int64
	}{
		{table, 1}, {"x\n" + table, 2}, {table[78:], 1}, {"x\n" + table[strings.Index(table, "| Active"):], 2},
	} {
		found, err := Scan(strings.NewReader(c.text))
		if err != nil || len(found.Series) != 1 || found.Series[0].Tables[0].Line != c.want {
			t.Errorf("%.20q…: %v, %+v, want line %d", c.text, err, found.Series, c.want)
		}
	}
}

// TestManyTables makes a log of more tables than are kept.
func TestManyTables(t *testing.T) {
	template := tableOf(t, "small.txt")
	template = template[:strings.Index(template, "| Active memory")]
	var log strings.Builder
	const many = 1000
	for i := range many {
		log.WriteString(strings.Replace(template, "|   1024 B   |   1024 B   |   1536 B   |", fmt.Sprintf("| %7d B   |   1024 B   | %7d B   |", i, i), 1))
	}
	found, err := Scan(strings.NewReader(log.String()))
	if err != nil || len(found.Series) != 1 {
		t.Fatal(err, len(found.Series))
	}
	s := found.Series[0]
	first, last := *s.Tables[0].Allocated.Current, *s.Tables[len(s.Tables)-1].Allocated.Current
	if s.Count != many || len(s.Tables) > table.MaxTables+1 || len(s.Tables) < table.MaxTables/2 || first != 0 || last != many-1 {
		t.Errorf("%d tables, %d kept, from %d to %d", s.Count, len(s.Tables), first, last)
	}
	gap := *s.Tables[1].Allocated.Current
	for j := 1; j < len(s.Tables)-1; j++ {
		if d := *s.Tables[j].Allocated.Current - *s.Tables[j-1].Allocated.Current; d != gap {
			t.Errorf("table %d follows after %d, the second after %d", j, d, gap)
		}
	}
}

// TestManySources is hostile: each line is of another process, and begins a table.
func TestManySources(t *testing.T) {
	var log strings.Builder
	for i := range 20 * table.MaxSeries {
		fmt.Fprintf(&log, "[rank%d]: | PyTorch CUDA memory summary, device ID %d |\n[rank%d]: | Allocated memory | 12 B |\n", i, i, i)
	}
	found, err := Scan(strings.NewReader(log.String()))
	if err != nil || len(found.Series) != table.MaxSeries {
		t.Errorf("%v, %d series", err, len(found.Series))
	}
}
