package check

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"strandline/finding"
	"strandline/internal/test/live"
	"strandline/judge/gate"
)

var (
	reach = flag.Int("reach", 0, "judge so many runs of each leak, and thrice as many that do not leak, and print the table of docs/check.md")
	first = flag.Int("first", 0, "with -reach, the first run's number, so that the table can be measured in parts")
)

// shapes are what testdata/noisy.py does besides leaking.
var shapes = []string{"steady", "warm-up", "cache", "sawtooth"}

// TestReach runs programs of known truth, and counts how often they are called a leak.
// With -reach 100 it is the measurement that docs/check.md states, and takes half an
// hour; otherwise it is a run with a leak and one without.
func TestReach(t *testing.T) {
	live.Waits(t)
	live.Linux(t)
	python := live.Tool(t, "python3")
	if *reach == 0 {
		if got, _ := noisy(t, python, "steady", 1<<20, 2, 60); got != finding.Leaking {
			t.Errorf("a leak of 1 MiB a step: %s", got)
		}
		if got, _ := noisy(t, python, "sawtooth", 0, 4, 60); got == finding.Leaking {
			t.Errorf("a sawtooth: %s", got)
		}
		return
	}
	for _, leak := range []int{1 << 20, 256 << 10, 64 << 10, 0} {
		t.Run(strconv.Itoa(leak), func(t *testing.T) { reached(t, python, leak) })
	}
}

// reached runs programs that leak so many bytes a step, and prints how often they are
// called a leak and how often the line is named.
func reached(t *testing.T, python string, leak int) {
	runs := *reach
	if leak == 0 {
		runs *= 3
	}
	got, named, wrong := map[finding.Verdict]int{}, 0, 0
	for seed := *first; seed < *first+runs; seed++ {
		verdict, line := noisy(t, python, shapes[seed%len(shapes)], leak, 1000*leak+seed, 200)
		if got[verdict]++; verdict != finding.Leaking == (leak > 0) {
			fmt.Printf("%d bytes a step, run %d: %s\n", leak, seed, verdict)
		}
		switch line {
		case "":
		case leaks:
			named++
		default:
			wrong++
		}
	}
	fmt.Printf("%8d bytes a step: leak %d, ok %d, unknown %d of %d; line named %d, wrong %d\n", leak, got[finding.Leaking], got[finding.OK], got[finding.Unknown], runs, named, wrong)
	switch called := got[finding.Leaking]; {
	case leak == 0 && 100*called > runs:
		t.Errorf("%d of %d runs without a leak are called one", called, runs)
	case leak > 0 && 100*called < 95*runs:
		t.Errorf("%d of %d leaks of %d bytes a step are found", called, runs, leak)
	}
}

// leaks is the text of the line of testdata/noisy.py that leaks.
const leaks = "kept.append([bytearray(leak // pieces) for _ in range(pieces)])"

// noisy runs the program and returns the verdict, and the text of the line that is named
// for it, "" if none is.
func noisy(t *testing.T, python, shape string, leak, seed, steps int) (v finding.Verdict, line string) {
	t.Helper()
	program, err := filepath.Abs("testdata/noisy.py")
	if err != nil {
		t.Fatal(err)
	}
	out, err := os.Create(os.DevNull)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	r, err := Do(t.Context(), Options{
		Command: []string{python, program, shape, strconv.Itoa(leak), strconv.Itoa(seed), strconv.Itoa(steps)},
		Env:     append(os.Environ(), "PYTHONDONTWRITEBYTECODE=1"), Dir: filepath.Join(t.TempDir(), "recording"), Steps: "call", Only: "calls", Stdout: out,
		Lines: Limits{gate.Host: {}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if r.Error != nil || r.Status != 0 {
		t.Fatalf("status %d: %v", r.Status, r.Error)
	}
	doc := Judge(r, Limits{gate.Host: {}}, nil)
	source, err := os.ReadFile(program)
	if err != nil {
		t.Fatal(err)
	}
	for i := range doc.Findings {
		if at := doc.Findings[i].Site; at != nil {
			line = at.File
			if at.File == program {
				line = strings.TrimSpace(strings.Split(string(source), "\n")[at.Line-1])
			}
		}
	}
	return doc.Verdict, line
}
