package export

import (
	"fmt"
	"testing"

	"strandline/profiles"
	"strandline/profiles/jax"
	"strandline/stack"
	"strandline/torch/snapshot"
)

// TestSeries draws three files: parameters stay, a batch is another one each time, and a
// line keeps one array more in each.
func TestSeries(t *testing.T) {
	at := func(line int64) []stack.Frame {
		return []stack.Frame{{File: "/x/site-packages/jax/_src/pjit.py", Line: 1, Function: "call"}, {File: "/me/train.py", Line: line, Function: "step"}}
	}
	var files []*profiles.File
	for i := range int64(3) {
		files = append(files, &profiles.File{Format: "jax", Uses: []profiles.Use{
			{Device: "cuda:1", Kind: jax.Buffer, Size: 1000, Count: 2, Stack: at(1)},
			{Device: "cuda:0", Kind: jax.Buffer, Size: 100 + i, Count: 1, Stack: at(2)},
			{Device: "cuda:0", Kind: jax.Buffer, Size: 7, Count: i + 1, Stack: at(3)},
			{Kind: jax.Executable, Size: -1, Count: 5},
		}})
	}
	s, err := Series(files)
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, tr := range s.Traces {
		for k, a := range tr.Action {
			if f := s.Stacks.Site(tr.Stack[k]); f.File != "/me/train.py" {
				t.Fatalf("the site of event %d is %v", k, f)
			}
			count[fmt.Sprintf("%d %s", tr.Device, a)]++
		}
	}
	want := map[string]int{"1 alloc": 2, "1 segment_alloc": 2, "0 alloc": 6, "0 segment_alloc": 6, "0 free_requested": 2, "0 free_completed": 2, "0 segment_free": 2}
	if fmt.Sprint(count) != fmt.Sprint(want) {
		t.Errorf("events %v, want %v", count, want)
	}
	var bytes [2]int64
	for i := range s.Segments {
		if s.Segments[i].Blocks[0].State != snapshot.Allocated {
			t.Errorf("a block is %s", s.Segments[i].Blocks[0].State)
		}
		bytes[s.Segments[i].Device] += s.Segments[i].ActiveSize
	}
	if bytes != [2]int64{102 + 3*7, 2000} {
		t.Errorf("at the end %v bytes live", bytes)
	}
	if _, err := Series(nil); err != nil {
		t.Errorf("of no files: %v", err)
	}
	many := &profiles.File{Format: "jax", Uses: []profiles.Use{{Kind: jax.Buffer, Size: 4, Count: 1 << 40, Stack: at(1)}}}
	if _, err := Series([]*profiles.File{many}); err == nil {
		t.Error("arrays without end are drawn")
	}
}
