package samples

import (
	"fmt"
	"strings"

	"strandline/finding"
	"strandline/host/sampling/sample"
	"strandline/units"
)

// classWords are the classes of growth on the host, in words after a size.
var classWords = map[finding.Kind]string{
	finding.ArenaRetention:     "freed by the program and kept by malloc",
	finding.AllocatorRetention: "held by another malloc than the C library's (how much of it is free cannot be seen)",
	finding.HeapLeak:           "of malloc's blocks in use",
	finding.PythonObjects:      "in use by Python objects",
	finding.MmapLeak:           "mapped and not unmapped",
	finding.Remap:              "in mappings that are enlarged repeatedly",
	finding.HugePages:          "of zeros in partly used huge pages",
	finding.CopyOnWrite:        "of copies of pages that it had shared with the process that forked it",
	finding.MemoryFiles:        "in unnamed files in memory (memfd, or removed from /dev/shm)",
	finding.SharedMemory:       "of shared memory",
	finding.Pinned:             "locked or pinned in memory",
}

// classes adds to a finding on the host what the growth consists of, as far as the
// mappings of the process were looked at, and what helps against the largest class.
func classes(f *finding.Finding, p *sample.Process) {
	if p.Grown == nil {
		return
	}
	var parts []string
	for _, c := range p.Grown.Classes {
		words, ok := classWords[finding.Kind(c.Class)]
		if !ok {
			continue
		}
		if len(parts) == 0 {
			f.Remedies = append(f.Remedies, finding.HostRemedies(finding.Kind(c.Class))...)
		}
		parts = append(parts, units.Bytes(c.Bytes)+" "+words)
	}
	if len(parts) > 0 {
		f.Detail = append(f.Detail, fmt.Sprintf("by its mappings, these came within %s: %s", units.Seconds(p.Grown.Seconds), strings.Join(parts, "; ")))
	}
}
