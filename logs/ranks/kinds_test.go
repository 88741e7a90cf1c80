package ranks

import (
	"maps"
	"strings"
	"testing"
)

// TestWorld takes the number of ranks that a line states, unless no job has as many.
func TestWorld(t *testing.T) {
	for line, want := range map[string]map[int]int{
		"[rank0]: world size: 64":                                                                {64: 1},
		"[rank0]: world size: 2000000000":                                                        {},
		"[rank0]: world size: 99999999999999999999999":                                           {},
		"[rank0]: nnodes=4 nproc_per_node=8":                                                     {32: 1},
		"[rank0]: nnodes=2000000 nproc_per_node=2000000":                                         {},
		"[rank0]: nnodes=9223372036854775807 nproc_per_node=8":                                   {},
		"[rank0]: Building 2-D device mesh with ['pp', 'tp'], [4, 8]":                            {32: 1},
		"[rank0]: Building 3-D device mesh with ['pp', 'tp', 'dp'], [4194304, 4194304, 4194304]": {},
	} {
		text, err := Read(strings.NewReader(line+"\n"), "job.log", nil)
		if err != nil || !maps.Equal(text.World, want) {
			t.Errorf("%s: %v, want %v (%v)", line, text.World, want, err)
		}
	}
}
