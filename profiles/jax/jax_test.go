package jax

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"strandline/profiles"
	"strandline/stack"
)

// piece is an entry of a profile that a test makes.
type piece struct {
	kind, device string
	size, count  int64
	frames       []stack.Frame
}

// written is a profile as jaxlib writes it, unpacked.
func written(t testing.TB, pieces ...piece) []byte {
	t.Helper()
	p := &profile.Profile{SampleType: []*profile.ValueType{{Type: "allocations", Unit: "count"}, {Type: "space", Unit: "bytes"}}}
	for _, x := range pieces {
		s := &profile.Sample{Value: []int64{x.count, x.size * x.count}, Label: map[string][]string{"kind": {x.kind}}}
		if x.device != "" {
			s.Label["device"] = []string{x.device}
		}
		for _, f := range x.frames {
			id := uint64(len(p.Location) + 1)
			p.Function = append(p.Function, &profile.Function{ID: id, Name: f.Function, Filename: f.File})
			p.Location = append(p.Location, &profile.Location{ID: id, Line: []profile.Line{{Function: p.Function[id-1], Line: f.Line}}})
			s.Location = append(s.Location, p.Location[id-1])
		}
		p.Sample = append(p.Sample, s)
	}
	var out bytes.Buffer
	if err := p.WriteUncompressed(&out); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func call(line int64) []stack.Frame {
	return []stack.Frame{
		{File: "/usr/lib/python3/dist-packages/jax/_src/pjit.py", Line: 340, Function: "cache_miss"},
		{File: "/home/me/train.py", Line: line, Function: "step"},
		{File: "/home/me/train.py", Line: 99, Function: "<module>"},
	}
}

func TestRead(t *testing.T) {
	f, err := Read(bytes.NewReader(written(t,
		piece{Buffer, "cuda:1", 4096, 3, call(10)},
		piece{Buffer, "cuda:0", 4096, 3, call(10)},
		piece{Buffer, "cuda:0", 4, 100, call(20)},
		piece{Buffer, "", 8, 1, nil},
		piece{Executable, "", -1, 7, call(30)},
	)))
	if err != nil {
		t.Fatal(err)
	}
	type level struct {
		device, kind string
		live, count  int64
	}
	want := []level{{"", Buffer, 8, 1}, {"cuda:0", Buffer, 12688, 103}, {"cuda:1", Buffer, 12288, 3}, {"", Executable, -1, 7}}
	if len(f.Levels) != len(want) {
		t.Fatalf("%d levels, want %d", len(f.Levels), len(want))
	}
	for i, l := range f.Levels {
		got := level{l.Device, l.Kind, -1, *l.Count}
		if l.Live != nil {
			got.live = *l.Live
		}
		if got != want[i] {
			t.Errorf("level %d: %v, want %v", i, got, want[i])
		}
	}
	if got := Site(f.Uses[0].Stack); got.Line != 10 || got.Function != "step" {
		t.Errorf("the site is %v", got)
	}
	if len(f.Notes) != 3 { // the executables' size, the device, what is not in the file
		t.Errorf("notes: %q", f.Notes)
	}
}

func TestSite(t *testing.T) {
	packages := "/opt/venv/lib/python3.12/site-packages/"
	for _, c := range []struct {
		frames []stack.Frame
		line   int64
	}{
		{[]stack.Frame{{File: packages + "jax/_src/api.py", Line: 1}, {File: packages + "flax/linen.py", Line: 2}, {File: "/tmp/ipykernel_7/4095.py", Line: 3}}, 3},
		{[]stack.Frame{{File: packages + "jax/_src/api.py", Line: 1}, {File: packages + "flax/linen.py", Line: 2}}, 2},
		{[]stack.Frame{{File: "<frozen importlib._bootstrap>", Line: 1}, {File: "/usr/lib/python3.12/runpy.py", Line: 2}}, 0},
	} {
		if got := Site(c.frames); got.Line != c.line {
			t.Errorf("%v: line %d, want %d", c.frames, got.Line, c.line)
		}
	}
}

func TestOtherFiles(t *testing.T) {
	heap := &profile.Profile{SampleType: []*profile.ValueType{{Type: "inuse_space", Unit: "bytes"}}}
	var b bytes.Buffer
	if err := heap.WriteUncompressed(&b); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(&b); err == nil || errors.Is(err, profiles.ErrOther) {
		t.Errorf("a profile of Go's heap: %v", err)
	}
	if _, err := Read(bytes.NewReader([]byte("\x0a\x04none"))); !errors.Is(err, profiles.ErrOther) {
		t.Errorf("no profile: %v", err)
	}
	f, err := Read(bytes.NewReader(written(t, piece{Buffer, "cuda:0", -8, 3, nil}, piece{Buffer, "cuda:0", 8, -3, nil}, piece{Buffer, "cuda:0", 1 << 40, 1 << 20, nil})))
	if err != nil || len(f.Uses) != 0 || len(f.Notes) == 0 {
		t.Errorf("figures that cannot be: %v, %v", f, err)
	}
}

// TestCut says of a profile that was cut off, or has a field longer than it is, that it is one.
func TestCut(t *testing.T) {
	whole := written(t, piece{Buffer, "cuda:0", 4096, 3, call(10)}, piece{Executable, "", -1, 7, nil})
	for name, data := range map[string][]byte{"cut off": whole[:len(whole)*2/3], "a field without end": append(bytes.Clone(whole), 0x12, 0xff, 0xff, 0xff, 0xff, 0x7f)} {
		if _, err := Read(bytes.NewReader(data)); err == nil || errors.Is(err, profiles.ErrOther) || !strings.Contains(err.Error(), "a pprof profile that is damaged or cut off") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestFields refuses a profile of more entries than memory has room for, at its level and below,
// before it is parsed: a file of some kilobytes unpacks to it.
func TestFields(t *testing.T) {
	whole := written(t, piece{Buffer, "cuda:0", 4096, 3, call(10)})
	samples := append(bytes.Clone(whole), bytes.Repeat([]byte("\x12\x02\x08\x01"), maxFields/2)...)
	labels := bytes.Repeat([]byte("\x1a\x00"), maxFields)
	sample := append(binary.AppendUvarint(append(bytes.Clone(whole), 0x12), uint64(len(labels))), labels...)
	for name, data := range map[string][]byte{"samples": samples, "labels": sample} {
		if _, err := Read(bytes.NewReader(data)); err == nil || !strings.Contains(err.Error(), "more than 2,097,152 fields") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if n := fields([]byte("\x08\x01\x11\x00\x00\x00\x00\x00\x00\x00\x00\x1d\x00\x00\x00\x00\x12\x04\x08\x01\x08\x01\x13"), true); n != 7 {
		t.Errorf("%d fields, want 7", n)
	}
}

func FuzzRead(f *testing.F) {
	f.Add(written(f, piece{Buffer, "cuda:0", 4096, 3, call(10)}, piece{Executable, "", -1, 7, nil}))
	f.Add(written(f))
	f.Add([]byte{0x0a, 0x00})
	f.Fuzz(func(t *testing.T, data []byte) {
		p, err := Read(bytes.NewReader(data))
		if err != nil {
			return
		}
		for _, l := range p.Levels {
			if *l.Count <= 0 || l.Live != nil && *l.Live < 0 {
				t.Errorf("%s on %s: %d pieces", l.Kind, l.Device, *l.Count)
			}
		}
	})
}

// TestIs recognizes profiles by how they begin, and takes empty lines for text.
func TestIs(t *testing.T) {
	for head, want := range map[string]bool{"\n\x04\x08\x01\x10\x02": true, "\n\x02\x10\x02": true, "\n\n\n\n\n\n": false, "\n": false, "": false} {
		if got := Is([]byte(head)); got != want {
			t.Errorf("%q: %v, want %v", head, got, want)
		}
	}
}
