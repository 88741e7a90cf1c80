package cli

import (
	"strandline/host/sampling/sample"
	"strandline/host/store/series"
)

// A store keeps samples in a file. A file that cannot be written, as on a full disk, is
// reported once, and tried again with each sample.
type store struct {
	g      *globals
	w      *series.Writer
	failed bool
}

func (s *store) add(now *sample.Sample) {
	err := s.w.Add(now)
	if (err != nil) == s.failed {
		return
	}
	if s.failed = err != nil; s.failed {
		s.g.warn("samples are not recorded now: %v", err)
		return
	}
	s.g.warn("samples are recorded again")
}
