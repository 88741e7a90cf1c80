package compare

import (
	"fmt"
	"strings"
	"testing"

	"strandline/torch/digest"
	"strandline/torch/snapshot"
)

// recorded is a file of one device: a history from start to end, what lived before
// it and what lives at its end.
func recorded(name string, start, end int64, older, live []digest.Live) *digest.File {
	return file(name, digest.Device{
		History: digest.History{
			HasTime: true, HasHistory: true, Events: 100, Start: start, End: end, First: uint64(start), Complete: len(older) == 0,
		},
		Allocations: digest.Allocations{Older: older, Live: live},
	})
}

// unrecorded is a file of one device without a history.
func unrecorded(name string, live []digest.Live) *digest.File {
	return file(name, digest.Device{Allocations: digest.Allocations{Live: live}})
}

// blocks are n blocks from an address on, made before the recording.
func blocks(from uint64, n int) (out []digest.Live) {
	for i := range n {
		out = append(out, digest.Live{Addr: from + uint64(i)<<20, Bytes: 1000 + int64(i), Born: -1})
	}
	return out
}

func TestSplit(t *testing.T) {
	mine, others := blocks(1<<40, 300), blocks(1<<44, 400)
	born := func(list []digest.Live, at int64) (out []digest.Live) {
		for _, l := range list {
			l.Born = at
			out = append(out, l)
		}
		return out
	}
	partial := recorded("4", 310, 320, nil, nil)
	for _, c := range []struct {
		name  string
		files []*digest.File
		want  string
	}{
		{"one history that grows", []*digest.File{
			recorded("1", 10, 20, nil, born(mine, 15)), recorded("2", 10, 30, nil, born(mine, 15)), recorded("3", 10, 40, nil, nil)}, "1 2 3"},
		{"recordings with gaps, in which some blocks went", []*digest.File{
			recorded("1", 10, 20, nil, born(mine, 15)), recorded("2", 110, 120, mine[:294], mine[:200]), recorded("3", 210, 220, mine[100:], mine)}, "1 2 3"},
		{"a gap in which the model was made", []*digest.File{
			recorded("1", 10, 20, nil, born(mine[:4], 15)), recorded("2", 110, 120, mine, mine)}, "1 2"},
		{"a ring that overflowed", []*digest.File{
			recorded("1", 10, 100, nil, born(mine, 15)), recorded("2", 60, 160, mine[:250], append(append([]digest.Live{}, mine[:250]...), born(mine[250:], 15)...))}, "1 2"},
		{"runs one after another", []*digest.File{
			recorded("1", 10, 20, nil, born(mine, 15)), recorded("2", 110, 120, nil, born(others, 115)), recorded("3", 210, 220, others, others)}, "1; 2 3"},
		{"one address in common", []*digest.File{
			recorded("1", 10, 20, blocks(1<<50, 1), mine), recorded("2", 110, 120, append(append([]digest.Live{}, mine[:1]...), others...), others)}, "1; 2"},
		{"two programs at once", []*digest.File{
			recorded("1", 10, 20, nil, born(mine, 15)), recorded("2", 11, 25, nil, born(others, 16)), recorded("3", 10, 30, nil, born(mine, 15))}, "1 3; 2"},
		{"without history", []*digest.File{
			unrecorded("1", mine), unrecorded("2", mine[:290]), unrecorded("3", others)}, "1 2; 3"},
		{"the same program run again", []*digest.File{
			recorded("1", 10, 20, nil, born(mine, 15)), recorded("2", 110, 120, nil, born(mine, 115))}, "1; 2"},
		{"an empty file first", []*digest.File{
			unrecorded("1", nil), recorded("2", 10, 20, nil, born(mine, 15)), recorded("3", 10, 30, nil, born(mine, 15))}, "1 2 3"},
		{"an empty file between two runs", []*digest.File{
			recorded("1", 10, 20, nil, born(mine, 15)), unrecorded("2", nil), recorded("3", 110, 120, others, others)}, "1; 3; 2"},
		{"a file that was cut", []*digest.File{
			recorded("1", 10, 20, nil, born(mine, 15)), partial, recorded("3", 110, 120, mine, mine)}, "1 3 4"},
	} {
		partial.Partial = nil
		if strings.Contains(c.name, "cut") {
			partial.Partial = &snapshot.Partial{}
		}
		var got []string
		for _, r := range NewProcess("", c.files).Split() {
			var names []string
			for _, f := range r.Files {
				names = append(names, f.Name)
			}
			got = append(got, strings.Join(names, " "))
		}
		if fmt.Sprint(strings.Join(got, "; ")) != c.want {
			t.Errorf("%s: %s, want %s", c.name, strings.Join(got, "; "), c.want)
		}
	}
}

func TestRunsAreNamed(t *testing.T) {
	p := NewProcess("rank1", []*digest.File{
		recorded("d/1", 10, 20, nil, blocks(1<<40, 9)), recorded("d/2", 10, 30, nil, blocks(1<<40, 9)), recorded("d/3", 50, 60, nil, blocks(1<<44, 9))})
	var names []string
	for _, r := range p.Split() {
		names = append(names, r.Name)
	}
	if got := fmt.Sprint(names); got != "[rank1: 1 to 2 rank1: 3]" {
		t.Errorf("runs %s", got)
	}
}
