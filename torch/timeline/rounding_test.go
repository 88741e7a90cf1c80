package timeline

import (
	"testing"

	"strandline/torch/snapshot"
)

func TestRounding(t *testing.T) {
	for _, c := range []struct {
		name            string
		block           snapshot.Block
		active, lost    int64
		tiny, unsplit   int64
		tinyCount, held int
	}{
		{"as asked", snapshot.Block{Size: 1024, Requested: 1024, State: snapshot.Allocated}, 1024, 0, 0, 0, 0, 1},
		{"rounded to 512", snapshot.Block{Size: 1024, Requested: 600, State: snapshot.Allocated}, 1024, 424, 0, 0, 0, 1},
		{"tiny", snapshot.Block{Size: 512, Requested: 4, State: snapshot.Allocated}, 512, 508, 508, 0, 1, 1},
		{"not split off", snapshot.Block{Size: 12 << 20, Requested: 11<<20 + 1, State: snapshot.Allocated}, 12 << 20, 1<<20 - 1, 0, 1<<20 - 512, 0, 1},
		{"one that waits", snapshot.Block{Size: 512, Requested: 12, State: snapshot.Pending}, 512, 500, 500, 0, 1, 1},
		{"free, with what it was once asked for", snapshot.Block{Size: 1024, Requested: 1}, 0, 0, 0, 0, 0, 0},
		{"of unknown request", snapshot.Block{Size: 1024, State: snapshot.Allocated}, 0, 0, 0, 0, 0, 0},
		{"of a false request", snapshot.Block{Size: 1024, Requested: 2048, State: snapshot.Allocated}, 0, 0, 0, 0, 0, 0},
	} {
		s := snapshot.New()
		seg := snapshot.Segment{Addr: base, TotalSize: c.block.Size, Blocks: []snapshot.Block{c.block}}
		s.Segments = []snapshot.Segment{{Device: 1, Addr: base, Blocks: []snapshot.Block{{Size: 512, Requested: 1, State: snapshot.Allocated}}}, seg}
		r := RoundingOf(s, s.Devices()[0])
		if r.Active != c.active || r.Lost() != c.lost || r.Tiny != c.tiny || r.TinyCount != c.tinyCount || r.Unsplit != c.unsplit || len(r.Sites) != c.held {
			t.Errorf("%s: %+v", c.name, r)
		}
	}
}
