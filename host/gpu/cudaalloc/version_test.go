package cudaalloc

import (
	"strings"
	"testing"
)

func TestUntried(t *testing.T) {
	for version, want := range map[string]string{
		"2.6.0+cu124": "",
		"2.6.0a0":     "",
		"2.0.1":       "than 2.0.1",
		"2.11.0":      "",
		"2.5.1":       "than 2.5.1",
		"2.16.0":      "PyTorch 2.16.0 is none of the releases",
		"3.6.0":       "PyTorch 3.6.0 is none of the releases",
		"1.13.1":      "PyTorch 1.13.1 is none of the releases",
		"":            "its version.py was not found",
		"odd":         "PyTorch odd is none of the releases",
	} {
		got := Untried(version)
		if !strings.Contains(got, want) || (got == "") != (want == "") {
			t.Errorf("%q: %q, want %q", version, got, want)
		}
	}
}
