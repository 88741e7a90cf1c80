package compare

import (
	"fmt"
	"strings"
	"testing"

	"strandline/torch/snapshot"
)

// history is a file of one device: a history from start to end, what lived before
// it and what lives at its end.
func history(name string, start, end int64, older, live []Live) *Digest {
	return digest(name, Device{
		HasTime: true, HasHistory: true, Events: 100, Start: start, End: end, First: uint64(start),
		Older: older, Live: live, Complete: len(older) == 0,
	})
}

// blocks are n blocks from an address on, made before the recording.
func blocks(from uint64, n int) (out []Live) {
	for i := range n {
		out = append(out, Live{Addr: from + uint64(i)<<20, Bytes: 1000 + int64(i), Born: -1})
	}
	return out
}

func TestSplit(t *testing.T) {
	mine, others := blocks(1<<40, 300), blocks(1<<44, 400)
	born := func(list []Live, at int64) (out []Live) {
		for _, l := range list {
			l.Born = at
			out = append(out, l)
		}
		return out
	}
	partial := history("4", 310, 320, nil, nil)
	for _, c := range []struct {
		name  string
		files []*Digest
		want  string
	}{
		{"one history that grows", []*Digest{
			history("1", 10, 20, nil, born(mine, 15)), history("2", 10, 30, nil, born(mine, 15)), history("3", 10, 40, nil, nil)}, "1 2 3"},
		{"recordings with gaps, in which some blocks went", []*Digest{
			history("1", 10, 20, nil, born(mine, 15)), history("2", 110, 120, mine[:294], mine[:200]), history("3", 210, 220, mine[100:], mine)}, "1 2 3"},
		{"a gap in which the model was made", []*Digest{
			history("1", 10, 20, nil, born(mine[:4], 15)), history("2", 110, 120, mine, mine)}, "1 2"},
		{"a ring that overflowed", []*Digest{
			history("1", 10, 100, nil, born(mine, 15)), history("2", 60, 160, mine[:250], append(append([]Live{}, mine[:250]...), born(mine[250:], 15)...))}, "1 2"},
		{"runs one after another", []*Digest{
			history("1", 10, 20, nil, born(mine, 15)), history("2", 110, 120, nil, born(others, 115)), history("3", 210, 220, others, others)}, "1; 2 3"},
		{"one address in common", []*Digest{
			history("1", 10, 20, blocks(1<<50, 1), mine), history("2", 110, 120, append(append([]Live{}, mine[:1]...), others...), others)}, "1; 2"},
		{"two programs at once", []*Digest{
			history("1", 10, 20, nil, born(mine, 15)), history("2", 11, 25, nil, born(others, 16)), history("3", 10, 30, nil, born(mine, 15))}, "1 3; 2"},
		{"without history", []*Digest{
			digest("1", Device{Live: mine}), digest("2", Device{Live: mine[:290]}), digest("3", Device{Live: others})}, "1 2; 3"},
		{"the same program run again", []*Digest{
			history("1", 10, 20, nil, born(mine, 15)), history("2", 110, 120, nil, born(mine, 115))}, "1; 2"},
		{"an empty file first", []*Digest{
			digest("1", Device{}), history("2", 10, 20, nil, born(mine, 15)), history("3", 10, 30, nil, born(mine, 15))}, "1 2 3"},
		{"an empty file between two runs", []*Digest{
			history("1", 10, 20, nil, born(mine, 15)), digest("2", Device{}), history("3", 110, 120, others, others)}, "1; 3; 2"},
		{"a file that was cut", []*Digest{
			history("1", 10, 20, nil, born(mine, 15)), partial, history("3", 110, 120, mine, mine)}, "1 3 4"},
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
	p := NewProcess("rank1", []*Digest{
		history("d/1", 10, 20, nil, blocks(1<<40, 9)), history("d/2", 10, 30, nil, blocks(1<<40, 9)), history("d/3", 50, 60, nil, blocks(1<<44, 9))})
	var names []string
	for _, r := range p.Split() {
		names = append(names, r.Name)
	}
	if got := fmt.Sprint(names); got != "[rank1: 1 to 2 rank1: 3]" {
		t.Errorf("runs %s", got)
	}
}
