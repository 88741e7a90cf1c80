package finding

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// everyEvidence is one of each struct.
var everyEvidence = []Evidence{
	&LeakEvidence{}, &CompilationsEvidence{}, &FragmentationEvidence{}, &PeakEvidence{}, &UsageEvidence{}, &SpikeEvidence{}, &CopiesEvidence{},
	&AutocastEvidence{}, &WaitingEvidence{}, &PrivatePoolsEvidence{}, &RoundingEvidence{}, &PinnedEvidence{},
	&HistoryEvidence{}, &TableEvidence{}, &OOMEvidence{}, &CallGrowthEvidence{}, &SampledGrowthEvidence{}, &LevelsEvidence{},
	&UnexplainedEvidence{}, &DriverLeakEvidence{}, &DriverSumEvidence{}, &DriverUnseenEvidence{}, &StepGrowthEvidence{}, &ResidueEvidence{}, &ResumeEvidence{}, &StayEvidence{},
}

// TestEvidenceIsSorted checks that the fields of evidence are in the order of
// their JSON names, and that each has one.
func TestEvidenceIsSorted(t *testing.T) {
	seen := map[reflect.Type]bool{}
	var check func(x reflect.Type)
	check = func(x reflect.Type) {
		for x.Kind() == reflect.Pointer || x.Kind() == reflect.Slice {
			x = x.Elem()
		}
		if x.Kind() != reflect.Struct || seen[x] || x == reflect.TypeFor[Site]() || x == reflect.TypeFor[Place]() {
			return
		}
		seen[x] = true
		var names []string
		for i := range x.NumField() {
			name, _, _ := strings.Cut(x.Field(i).Tag.Get("json"), ",")
			names = append(names, name)
			check(x.Field(i).Type)
		}
		if !slices.IsSorted(names) || slices.Contains(names, "") {
			t.Errorf("%s: %v", x, names)
		}
	}
	for _, e := range everyEvidence {
		check(reflect.TypeOf(e))
	}
}

// TestRecordedEvidence reads findings of any version, and writes them as they were.
func TestRecordedEvidence(t *testing.T) {
	for _, c := range []struct {
		in, out string
		stacks  []float64
		named   bool
	}{
		{`{"b":9007199254740993,"a":{"x":[1.50]},"stacks":[3,7]}`, `{"a":{"x":[1.50]},"b":9007199254740993,"stacks":[3,7]}`, []float64{3, 7}, true},
		{`{"stacks":[1e300,"x",null,-7,{}]}`, `{"stacks":[1e300,"x",null,-7,{}]}`, []float64{1e300, 0, 0, -7, 0}, true},
		{`{"stacks":[]}`, `{"stacks":[]}`, nil, true},
		{`{"stacks":7}`, `{"stacks":7}`, nil, false},
		{`{"owner":"x"}`, `{"owner":"x"}`, nil, false},
		{`{}`, "", nil, false},
		{`null`, "", nil, false},
	} {
		var f Finding
		if err := json.Unmarshal([]byte(`{"kind":"mmap-leak","count":4,"evidence":`+c.in+`}`), &f); err != nil {
			t.Fatal(c.in, err)
		}
		if f.Kind != MmapLeak || f.Count == nil || *f.Count != 4 {
			t.Errorf("%s: read as %+v", c.in, f)
		}
		e, _ := f.Evidence.(*RecordedEvidence)
		if (e == nil) != (c.out == "") || (f.Evidence == nil) != (c.out == "") {
			t.Fatalf("%s: evidence is %v", c.in, f.Evidence)
		}
		if e == nil {
			continue
		}
		if !slices.Equal(e.Stacks, c.stacks) || (e.Stacks != nil) != c.named {
			t.Errorf("%s: stacks %v", c.in, e.Stacks)
		}
		text, err := json.Marshal(&f)
		if err != nil || !strings.Contains(string(text), `"evidence":`+c.out+`}`) {
			t.Errorf("%s: written as %s, %v", c.in, text, err)
		}
	}
	for _, enlarged := range []bool{false, true} {
		f := Finding{Evidence: &CallGrowthEvidence{HeapEnlarged: enlarged}}
		text, err := json.Marshal(&f)
		if f = (Finding{}); err != nil || json.Unmarshal(text, &f) != nil || f.EnlargedHeap() != enlarged {
			t.Errorf("that the heap was enlarged (%v) is lost: %s, %v", enlarged, text, err)
		}
	}
	if err := json.Unmarshal([]byte(`{"evidence":7}`), new(Finding)); err == nil {
		t.Error("evidence that is a number is read")
	}
}
