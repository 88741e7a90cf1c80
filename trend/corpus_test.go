package trend

import (
	"bufio"
	"compress/gzip"
	"encoding/csv"
	"encoding/json"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"strandline/internal/test/live"
)

type labeled struct {
	ID, Family, Label string
	Scored            bool
	Detectable        string
	T, V              []float64
	Q                 float64
}

func loadLabeled(t testing.TB, dir string) (out []labeled) {
	files, _ := filepath.Glob(filepath.Join(dir, "*.jsonl.gz"))
	for _, p := range files {
		f, err := os.Open(p)
		if err != nil {
			t.Fatal(err)
		}
		g, err := gzip.NewReader(f)
		if err != nil {
			t.Fatal(err)
		}
		sc := bufio.NewScanner(g)
		sc.Buffer(nil, 1<<26)
		for sc.Scan() {
			var s labeled
			if err := json.Unmarshal(sc.Bytes(), &s); err != nil {
				t.Fatal(err)
			}
			for i := range s.V {
				s.V[i] *= s.Q
			}
			out = append(out, s)
		}
	}
	lf, err := os.Open(filepath.Join(dir, "real", "LABELS.csv"))
	if err != nil {
		return
	}
	r := csv.NewReader(lf)
	rows, _ := r.ReadAll()
	col := map[string]int{}
	for i, h := range rows[0] {
		col[h] = i
	}
	for _, x := range rows[1:] {
		b, err := os.ReadFile(filepath.Join(dir, "real", x[0]+".csv"))
		if err != nil {
			continue
		}
		s := labeled{ID: x[0], Family: "real", Label: x[col["label"]], Scored: x[col["confidence"]] != "disputed" && x[col["label"]] != "unknown", Detectable: "yes"}
		for _, line := range strings.Split(string(b), "\n")[1:] {
			a, c, ok := strings.Cut(line, ",")
			if !ok {
				continue
			}
			tt, e1 := strconv.ParseFloat(a, 64)
			v, e2 := strconv.ParseFloat(strings.TrimSpace(c), 64)
			if e1 != nil || e2 != nil {
				continue
			}
			s.T, s.V = append(s.T, tt), append(s.V, v)
		}
		out = append(out, s)
	}
	return
}

// TestLabeled judges the series of the folder that STRANDLINE_SERIES names: lines of
// JSON (label, t, v, q) in *.jsonl.gz, and real/LABELS.csv with tables beside it. With
// -v it prints those that are judged wrongly.
func TestLabeled(t *testing.T) {
	dir := live.Given(t, "STRANDLINE_SERIES")
	var safe, wrong, leaks, found int
	for _, s := range loadLabeled(t, dir) {
		leak := s.Label == "growth" || s.Label == "sawtooth-growth"
		if s.Label == "unknown" || !s.Scored || leak && s.Detectable != "yes" {
			continue
		}
		c := JudgeLevels(s.T, s.V)
		if c.Leaks() != leak {
			t.Logf("%s: %s is called %s", s.ID, s.Label, c.Shape)
		}
		switch {
		case leak && c.Leaks():
			leaks, found = leaks+1, found+1
		case leak:
			leaks++
		case c.Leaks():
			safe, wrong = safe+1, wrong+1
		default:
			safe++
		}
	}
	t.Logf("%d of %d harmless series are called a leak, %d of %d leaks are found", wrong, safe, found, leaks)
	if 100*wrong > safe || 100*found < 95*leaks {
		t.Error("too many are judged wrongly")
	}
}
