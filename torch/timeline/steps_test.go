package timeline

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"strandline/torch/snapshot"
)

// stepped is a history in which each call allocates once; a call is the file and
// function of its frames, the innermost first.
func stepped(t *testing.T, annotations string, calls ...string) *Timeline {
	t.Helper()
	var events []string
	for k, call := range calls {
		var frames []string
		for frame := range strings.FieldsSeq(call) {
			file, function, _ := strings.Cut(frame, ":")
			frames = append(frames, fmt.Sprintf(`{"filename":%q,"name":%q,"line":1}`, file, function))
		}
		events = append(events, fmt.Sprintf(`{"action":"alloc","addr":%d,"size":512,"stream":0,"time_us":%d,"frames":[%s]}`, 1<<20+512*k, 100*(k+1), strings.Join(frames, ",")))
	}
	text := fmt.Sprintf(`{"segments":[],"device_traces":[[%s]],"external_annotations":[%s]}`, strings.Join(events, ","), annotations)
	s, err := snapshot.Read(strings.NewReader(text), snapshot.Options{Name: "steps.json"})
	if err != nil {
		t.Fatal(err)
	}
	return New(s, s.Devices()[0])
}

func TestStepEnds(t *testing.T) {
	const (
		load    = "train.py:load"
		update  = "torch/optim/adam.py:step train.py:main"
		closure = "torch/nn/modules/module.py:_call_impl train.py:closure torch/optim/adam.py:step train.py:main"
	)
	annotation := func(stage string, time int) string {
		return fmt.Sprintf(`{"name":"ProfilerStep#1","stage":%q,"device":0,"time_us":%d}`, stage, time)
	}
	for _, c := range []struct {
		name        string
		annotations []string
		calls       []string
		want        []int
		what        string
	}{
		{"updates", nil, []string{load, update, update, load, update, load}, []int{3, 5}, "where the optimizer is done"},
		{"an update at the end", nil, []string{load, update}, nil, "where the optimizer is done"},
		{"a closure that the optimizer calls", nil, []string{closure, closure, load}, nil, "where the optimizer is done"},
		{"annotations", []string{annotation("START", 50), annotation("END", 250)}, []string{load, load, load, update, load}, []int{2}, "profiler steps"},
		{"an annotation after all events", []string{annotation("START", 50), annotation("END", 950)}, []string{load, update, load}, nil, "profiler steps"},
	} {
		if got, what := stepped(t, strings.Join(c.annotations, ","), c.calls...).StepEnds(); !slices.Equal(got, c.want) || what != c.what {
			t.Errorf("%s: %v, %q; want %v, %q", c.name, got, what, c.want, c.what)
		}
	}
}

// A history may end with the last allocation of an update, in a step that shares no call
// with the one before.
func TestStepsToTheLastEvent(t *testing.T) {
	const (
		first  = "torch/optim/adam.py:_init_group torch/optim/adam.py:step train.py:main"
		second = "torch/optim/adam.py:_update torch/optim/adam.py:step train.py:main"
	)
	s := stepped(t, "", "train.py:load", first, "train.py:resume", second).Steps()
	if want := []int{1, 3}; s.Begin != -1 || !slices.Equal(s.Ends, want) {
		t.Errorf("steps begin after %d and end at %v; want -1 and %v", s.Begin, s.Ends, want)
	}
}
