package series

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"strandline/host/sampling/sample"
	"strandline/host/store/journal"
)

// bombHeader begins a made-up frame.
const bombHeader = `{"schema":"strandline.recording/3","of":"watch","run":1}`

// listing is a list of so many times an item.
func listing(item string, n int) string {
	return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
}

// TestReadIsBounded reads recordings of a few kilobytes that unfold to millions of things,
// and counts what comes of them.
func TestReadIsBounded(t *testing.T) {
	pids := make([]string, 3000)
	for i := range pids {
		pids[i] = fmt.Sprintf(`{"pid":%d}`, i+1)
	}
	all := "[" + strings.Join(pids, ",") + "]"
	still := func(n int) (out []string) {
		for i := range n {
			out = append(out, fmt.Sprintf(`{"at_seconds":%d}`, i/1000))
		}
		return out
	}
	for name, lines := range map[string][]string{
		"processes by samples":            append([]string{bombHeader, `{"processes":` + all + `}`}, still(100_000)...),
		"devices of a process by samples": append([]string{bombHeader, `{"processes":[{"pid":1,"devices":` + listing("{}", 3000) + `}]}`}, still(100_000)...),
		"groups by samples":               append([]string{bombHeader, `{"rest":{"devices":[],"groups":` + listing("{}", 3000) + `}}`}, still(100_000)...),
		"processes":                       {bombHeader, `{"processes":` + listing("{}", 5_000_000) + `}`},
		"lines":                           append([]string{bombHeader}, still(1_000_000)...),
		"a long line":                     {bombHeader, `{"note":"` + strings.Repeat("a", 100<<20) + `"}`},
	} {
		text := framed(t, lines...)
		samples, subjects := 0, 0
		_, err := Read(strings.NewReader(text), func(s *sample.Sample) error {
			samples++
			subjects += len(s.Processes) + len(s.Groups)
			for i := range s.Processes {
				subjects += len(s.Processes[i].Devices)
			}
			return nil
		})
		if samples > 200_000 || subjects > 1_500_000 {
			t.Errorf("%s: %d samples with %d processes and groups of %d bytes (%v)", name, samples, subjects, len(text), err)
		}
	}
}

// TestPassedOver checks that of samples that are passed over the last is given, and that
// it is reported; and that the kills behind it come after it.
func TestPassedOver(t *testing.T) {
	pids := make([]string, 2000)
	for i := range pids {
		pids[i] = fmt.Sprintf(`{"pid":%d,"name":"%d"}`, i+1, i*i)
	}
	lines := []string{bombHeader, `{"processes":[` + strings.Join(pids, ",") + `]}`}
	for i := range 5000 {
		lines = append(lines, fmt.Sprintf(`{"at_seconds":%d}`, i+1))
	}
	lines = append(lines, `{"at_seconds":6000,"over":[]}`)
	var last []float64
	partial, err := Read(strings.NewReader(framed(t, lines...)), func(s *sample.Sample) error {
		if s.Over == nil && len(s.Processes) != len(pids) {
			t.Fatalf("%d processes at %v", len(s.Processes), s.Seconds)
		}
		last = append(last, s.Seconds)
		return nil
	})
	if n := len(last); err != nil || n < 20 || n > 3000 || last[n-2] != 5000 || last[n-1] != 6000 || partial == nil || !strings.Contains(partial.Error(), "of 5001 samples") {
		t.Errorf("%d samples, %v, %v", n, partial, err)
	}
}

// TestNothingIsPassedOver reads what a watch of a busy machine writes: hundreds of
// processes, of which a few change from sample to sample.
func TestNothingIsPassedOver(t *testing.T) {
	path := file(t)
	w := open(t, path, 1<<30)
	s := made(0)
	s.Processes = nil
	for pid := range 400 {
		s.Processes = append(s.Processes, sample.Process{PID: pid + 1, Started: uint64(pid), Name: "worker", Command: fmt.Sprintf("/opt/worker --shard %d --of 400", pid), State: "sleeping", Host: &sample.Host{Anonymous: 1 << 28}, Devices: []sample.DeviceShare{}})
	}
	r := rand.New(rand.NewPCG(1, 2))
	const n = 1500
	for i := range n {
		s.Seconds = float64(i)
		for range 8 {
			h := *s.Processes[r.IntN(400)].Host
			h.Anonymous += r.Int64N(1<<20) << 12
			s.Processes[r.IntN(400)].Host = &h
		}
		if err := w.Add(s); err != nil {
			t.Fatal(err)
		}
	}
	w.Close()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	samples := 0
	partial, err := Read(bytes.NewReader(raw), func(*sample.Sample) error { samples++; return nil })
	if err != nil || partial != nil || samples != n {
		t.Errorf("%d samples of %d in %d bytes: %v, %v", samples, n, len(raw), partial, err)
	}
}

// TestFigures checks that figures that cannot be added are not taken.
func TestFigures(t *testing.T) {
	for _, line := range []string{
		`{"processes":[{"pid":1,"host":{"anonymous_bytes":9223372036854775807}}]}`,
		`{"processes":[{"pid":1,"devices":[{"used_bytes":-9223372036854775808}]}]}`,
		`{"rest":{"devices":[{"processes":[{"pid":1,"used_bytes":9223372036854775807}]}],"groups":[]}}`,
		`{"rest":{"devices":[],"groups":[{"used_bytes":9223372036854775807}]}}`,
		`{"rest":{"devices":[],"groups":[],"machine":{"total_bytes":9223372036854775807}}}`,
	} {
		samples := 0
		partial, err := Read(strings.NewReader(framed(t, bombHeader, `{"at_seconds":1}`, line, `{"at_seconds":3}`)), func(*sample.Sample) error { samples++; return nil })
		if err != nil || samples != 1 || !errors.Is(partial, errFigures) {
			t.Errorf("%s: %d samples, %v, %v", line, samples, partial, err)
		}
	}
}

// TestLongNames keeps the beginnings of long names.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("é", journal.MaxText)
	line := strings.ReplaceAll(`{"at_seconds":1,"processes":[{"pid":1,"name":"X","command":"X","group":"X","pausable":[{"tag":"X"}]}],"rest":{"devices":[{"name":"X"}],"groups":[{"name":"X"}]}}`, "X", long)
	samples := 0
	partial, err := Read(strings.NewReader(framed(t, bombHeader, line)), func(s *sample.Sample) error {
		samples++
		p := &s.Processes[0]
		for i, name := range []string{p.Name, p.Command, p.Group, p.Pausable[0].Tag, s.Devices[0].Name, s.Groups[0].Name} {
			if name != long[:journal.MaxText]+"…" {
				t.Errorf("of name %d, %d bytes are kept", i, len(name))
			}
		}
		return nil
	})
	if err != nil || partial != nil || samples != 1 {
		t.Errorf("%d samples, %v, %v", samples, partial, err)
	}
}
