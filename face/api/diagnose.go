package api

import (
	"strandline/finding"
	"strandline/host/store/recording"
)

// Diagnosis is the document of `strandline diagnose`.
type Diagnosis struct {
	Schema    string            `json:"schema"`
	Verdict   finding.Verdict   `json:"verdict"`
	Findings  []finding.Finding `json:"findings"`
	Processes []Process         `json:"processes"`
	// Notes are what a recording does not have and why, in sentences.
	Notes []string `json:"notes,omitempty"`
	// Devices are those of the recording of a trace of the GPU's driver.
	Devices []recording.GPUDevice `json:"gpu_devices,omitempty"`
	// Job is the verdict on a job of several ranks, absent for other files.
	Job *Job `json:"job,omitempty"`
	// Traced are the processes of the recording of a trace.
	Traced []recording.Process `json:"traced_processes,omitempty"`
}

// Process states what was judged.
type Process struct {
	Process *string  `json:"process"`
	PID     *int     `json:"pid,omitempty"` // this and the next are of recorded processes
	Rank    *int     `json:"rank,omitempty"`
	Role    string   `json:"role,omitempty"`
	Command string   `json:"command,omitempty"`
	Files   []string `json:"files"` // oldest first
	Partial []string `json:"partial,omitempty"`
	Texts   []string `json:"texts,omitempty"` // not snapshots, but text with statements about memory
	Basis   []string `json:"basis"`           // what the judgment of each device rests on
}
