package api

import (
	"strandline/finding"
	"strandline/host/sampling/sample"
)

// Watch is the document of `strandline watch`: the last sample, and what was found in
// all of them.
type Watch struct {
	Schema    string            `json:"schema"`
	Duration  float64           `json:"duration_seconds"`
	Samples   int               `json:"samples"`
	Processes []sample.Process  `json:"processes"`
	Devices   []sample.Device   `json:"devices"`
	Note      string            `json:"devices_note,omitempty"`
	Groups    []sample.Group    `json:"groups"`
	Machine   *sample.Machine   `json:"machine"`
	Load      *sample.Load      `json:"load,omitempty"`
	Findings  []finding.Finding `json:"findings"`
}
