package replay

import (
	"testing"

	"strandline/torch/allocator"
)

func TestNewestOf(t *testing.T) {
	for text, want := range map[string]allocator.Version{
		"2.2": 202, "2.5–2.7": 207, "2.10–2.11": 211, "2.12 or later": allocator.Newest, "unknown": 0, "profiler": 0,
		"1.13, or memory_snapshot() of any version": 113,
	} {
		if got := newestOf(text); got != want {
			t.Errorf("%q is %s, want %s", text, got, want)
		}
	}
}
