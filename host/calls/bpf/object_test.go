package bpf

import (
	"testing"

	"strandline/internal/test/live"
)

// TestObjectIsOfSources shows that the sources were not changed without
// rebuilding the object. test.sh builds it where the same compiler is.
func TestObjectIsOfSources(t *testing.T) {
	live.BuiltOf(t, "host/calls/bpf/build.sh", "object/mappings.txt", "c/kernel.h", "c/events.h", "c/samples.h", "c/mappings.c", "c/driver.c", "c/requests.c")
}
