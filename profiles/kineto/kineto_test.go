package kineto

import (
	"fmt"
	"strings"
	"testing"

	"strandline/profiles"
)

// memoryEvent is one as kineto writes it.
func memoryEvent(at float64, device, address, bytes, total int64) string {
	return fmt.Sprintf(`{"ph":"i","cat":"cpu_instant_event","s":"t","name":"[memory]","pid":7,"tid":7,"ts":%g,`+
		`"args":{"Total Reserved":4194304,"Total Allocated":%d,"Bytes":%d,"Addr":%d,"Device Id":%d,"Device Type":1,"Ev Idx":88}}`, at, total, bytes, address, device)
}

func stepAt(at float64, n int) string {
	return fmt.Sprintf(`{"ph":"X","cat":"user_annotation","name":"ProfilerStep#%d","pid":7,"tid":7,"ts":%g,"dur":10}`, n, at)
}

func traceOf(events ...string) string {
	return `{"schemaVersion": 1, "deviceProperties": [{"id": 0, "name": "a \"[\" GPU"}], "traceEvents": [` + strings.Join(events, ",\n") + `], "traceName": "x.json"}`
}

func read(t *testing.T, text string) *profiles.File {
	t.Helper()
	if !Is([]byte(text)) {
		t.Errorf("not taken for a trace: %.60s", text)
	}
	f, err := Read(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

func TestRead(t *testing.T) {
	f := read(t, traceOf(
		memoryEvent(5, 0, 0x1000, -64, 936), // out of order, and from before
		memoryEvent(1, 0, 0x2000, 500, 1500),
		`{"ph":"X","name":"aten::mul [memory]","ts":2,"dur":NaN,"args":{"path":"C:\Users\q"}}`,
		`{"ph":"X","name":"a \" } ] quote","ts":2}`,
		memoryEvent(6, 0, 0x2000, -500, 436),
		memoryEvent(7, 0, 0x2000, 200, 636),
		memoryEvent(8, 1, 0x2000, 9, 9),
	))
	if f.Partial != nil {
		t.Errorf("partial: %v", f.Partial)
	}
	var got []string
	for _, l := range f.Levels {
		got = append(got, fmt.Sprintf("%s %d %d %d", l.Device, *l.Live, *l.Count, *l.Peak))
	}
	if s := strings.Join(got, "; "); s != "cuda:0 200 1 1500; cuda:1 9 1 9" {
		t.Errorf("levels %s", s)
	}
	if s := strings.Join(f.Notes, " "); !strings.Contains(s, "1 free of memory made before the trace, 64 B") {
		t.Errorf("notes %q", s)
	}
}

func TestSteps(t *testing.T) {
	var events []string
	for i := range 5 {
		at := float64(10 * i)
		events = append(events, stepAt(at, i), stepAt(at+1, i), memoryEvent(at+2, 0, int64(1+i), 100, 1), memoryEvent(at+3, 0, 99, 7, 1), memoryEvent(at+12, 0, 99, -7, 1))
	}
	f := read(t, "["+strings.Join(events, ",")+"]")
	if len(f.Checkpoints) != 5 {
		t.Errorf("%d steps, want 5: each thread states one", len(f.Checkpoints))
	}
	var kept, passing int
	for _, s := range f.Spans {
		switch {
		case s.Bytes == 100 && s.Died == 5:
			kept++
		case s.Bytes == 7 && s.Died == s.Born+1:
			passing++
		}
	}
	if kept != 4 || passing != 4 {
		t.Errorf("%d spans to the end and %d of a step: %v", kept, passing, f.Spans)
	}
}

func TestOlderReleases(t *testing.T) {
	f := read(t, traceOf(`{"ph":"i","s":"t","name":"[memory]","ts":1,"args":{"Device Type":0,"Device Id":-1,"Bytes":640}}`))
	if l := f.Levels[0]; l.Device != "cpu" || l.Live != nil || l.Peak != nil {
		t.Errorf("without addresses: %+v", l)
	}
	if !strings.Contains(f.Notes[0], "only the net is known, +640 B") {
		t.Errorf("notes %q", f.Notes)
	}
}

func TestCut(t *testing.T) {
	whole := traceOf(memoryEvent(1, 0, 0x2000, 500, 1500), memoryEvent(2, 0, 0x3000, 20, 1520))
	f := read(t, whole[:strings.LastIndex(whole, `"Bytes"`)])
	if f.Partial == nil || len(f.Levels) != 1 || *f.Levels[0].Live != 500 {
		t.Errorf("cut off: %+v", f)
	}
	if Is([]byte("[2026-05-01] loading")) || Is([]byte(`{"segments": []}`)) || Is([]byte("[[1, 2]]")) {
		t.Error("taken for a trace")
	}
}

func FuzzRead(f *testing.F) {
	f.Add(traceOf(stepAt(1, 1), memoryEvent(2, 0, 0x2000, 500, 1500), memoryEvent(3, 0, 0x2000, -500, 1000)))
	f.Add(`[{"ph":"i","name":"[memory]","ts":"1","args":{"Bytes":1e3}}]`)
	f.Add(`{"traceEvents":[{"ph":"i"`)
	f.Fuzz(func(t *testing.T, text string) {
		file, err := Read(strings.NewReader(text))
		if err != nil {
			return
		}
		for _, s := range file.Spans {
			if s.Born >= s.Died || s.Died > len(file.Checkpoints) {
				t.Errorf("a span from %d to %d of %d checkpoints", s.Born, s.Died, len(file.Checkpoints))
			}
		}
	})
}

// BenchmarkRead reads a trace in which few events are of memory.
func BenchmarkRead(b *testing.B) {
	other := `{"ph":"X","cat":"cpu_op","name":"aten::convolution","pid":7,"tid":7,"ts":100.5,"dur":20,"args":{"External id":7,"Input Dims":[[32,3,224,224]]}}`
	var events []string
	for i := range 20000 {
		events = append(events, other, other, other, other, memoryEvent(float64(i), 0, int64(i%100), 500, 1500))
	}
	text := traceOf(events...)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		if _, err := Read(strings.NewReader(text)); err != nil {
			b.Fatal(err)
		}
	}
}

func callAt(at, dur float64, tid int, category, name, more string) string {
	return fmt.Sprintf(`{"ph":"X","cat":%q,"name":%q,"pid":7,"tid":%d,"ts":%g,"dur":%g,"args":{%s}}`, category, name, tid, at, dur, more)
}

// TestStacks finds the operators and the lines of Python around what lives at the end.
func TestStacks(t *testing.T) {
	for _, c := range []struct {
		name   string
		events []string
		want   string
		note   string
	}{
		{"operators", []string{callAt(0, 9, 7, "cpu_op", "aten::linear", ""), callAt(1, 2, 7, "cpu_op", "aten::mm", ""), callAt(4, 1, 7, "cpu_op", "aten::add", "")}, "aten::mm < aten::linear", "with_stack=True"},
		{"python", []string{callAt(0, 9, 7, "python_function", "me/train.py(12): step", ""), callAt(1, 2, 7, "cpu_op", "aten::mm", "")}, "aten::mm < me/train.py:12 step", ""},
		{"python on thread 0", []string{strings.Replace(callAt(0, 9, 0, "python_function", "me/train.py(12): step", ""), `"pid":7`, `"pid":0`, 1), callAt(1, 2, 7, "cpu_op", "aten::mm", "")}, "aten::mm < me/train.py:12 step", ""},
		{"stack of an operator", []string{callAt(1, 2, 7, "Operator", "aten::mm", `"Call stack":"me/layer.py(3): forward;me/train.py(12): step"`)}, "aten::mm < me/layer.py:3 forward < me/train.py:12 step", ""},
		{"another thread", []string{callAt(1, 2, 8, "cpu_op", "aten::mm", "")}, "", "no operator"},
		{"over before", []string{callAt(1, 0.5, 7, "cpu_op", "aten::mm", "")}, "", "no operator"},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := read(t, traceOf(append(c.events, memoryEvent(2, 0, 0x1000, 64, 64), memoryEvent(2.5, 0, 0x2000, 64, 128))...))
			if len(f.Uses) != 1 || f.Uses[0].Count != 2 || f.Uses[0].Size != 64 || f.Uses[0].Device != "cuda:0" {
				t.Fatalf("uses %+v", f.Uses)
			}
			var got []string
			for _, x := range f.Uses[0].Stack {
				text := x.Function
				if x.File != "" {
					text = fmt.Sprintf("%s:%d %s", x.File, x.Line, x.Function)
				}
				got = append(got, text)
			}
			if s := strings.Join(got, " < "); s != c.want {
				t.Errorf("stack %s, want %s", s, c.want)
			}
			if notes := strings.Join(f.Notes, " "); (c.note == "") != (notes == "") || !strings.Contains(notes, c.note) {
				t.Errorf("notes %q", notes)
			}
		})
	}
}
