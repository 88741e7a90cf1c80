package profiles

import (
	"math"
	"slices"
	"testing"
)

func TestChanges(t *testing.T) {
	nan := math.NaN()
	before := &File{Columns: []Column{
		{Name: "rss", Process: "pid 7", Bytes: []float64{10, 30, 20, nan}},
		{Name: "used", Process: "GPU 0", Bytes: []float64{1, 2}},
		{Name: "used", Process: "GPU 1", Bytes: []float64{3, 4}},
		{Name: "gone", Bytes: []float64{5}},
		{Name: "share", Bytes: []float64{5}, Percent: true},
		{Name: "value", Bytes: []float64{5}, Unstated: true},
		{Name: "missing", Bytes: []float64{nan}},
	}}
	after := &File{Columns: []Column{
		{Name: "used", Process: "GPU 1", Bytes: []float64{9, 8}},
		{Name: "used", Process: "GPU 2", Bytes: []float64{6}},
		{Name: "rss", Process: "pid 9", Bytes: []float64{15, 12}},
		{Name: "share", Bytes: []float64{6}, Percent: true},
		{Name: "value", Bytes: []float64{6}, Unstated: true},
		{Name: "missing", Bytes: []float64{6}},
	}}
	changes, onlyBefore, onlyAfter := Changes(before, after)
	if want := []Change{{"rss", "", 30, 15, 20, 12}, {"used", "GPU 1", 4, 9, 4, 8}}; !slices.Equal(changes, want) {
		t.Errorf("%+v, want %+v", changes, want)
	}
	if !slices.Equal(onlyBefore, []string{"used of GPU 0", "gone"}) || !slices.Equal(onlyAfter, []string{"used of GPU 2", "missing"}) {
		t.Errorf("only before %q, only after %q", onlyBefore, onlyAfter)
	}
}
