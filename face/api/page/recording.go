package page

import (
	"encoding/json"
	"errors"

	"strandline/face/api"
	"strandline/finding"
	"strandline/host/store/recording"
)

// Recording is the answer to recording: a recorded trace as a whole.
type Recording struct {
	File     string            `json:"file"`
	PID      int               `json:"pid"`
	Name     string            `json:"name"`
	Backend  string            `json:"rung"`
	Began    int64             `json:"began_us"`
	Moments  int               `json:"moments"`
	Partial  *string           `json:"partial"` // why reading ended before the end
	Judged   *float64          `json:"judged_seconds"`
	Verdict  finding.Verdict   `json:"verdict"`
	Card     api.Card          `json:"card"`    // of the verdict
	Summary  Summary           `json:"summary"` // of the last judgment
	Findings []RecordedFinding `json:"findings"`
	LeftOut  int               `json:"findings_left_out"`
	Stacks   []Stack           `json:"stacks"`
	Others   int               `json:"others"`
	Owners   []Owner           `json:"owners"`
	GPU      []GPUStack        `json:"gpu"`
}

// Summary is the figures of a judgment, with the names of `diagnose --json`.
type Summary struct {
	RSS         int64            `json:"rss_bytes"`
	Grown       int64            `json:"rss_growth_bytes"`
	Growth      recording.Growth `json:"growth"`
	Explained   *float64         `json:"explained_share"`
	Drops       uint64           `json:"drops"`
	StackDrops  uint64           `json:"stack_drops"`
	Paired      uint64           `json:"paired"`
	PairedBytes uint64           `json:"paired_bytes"`
	GPU         *Devices         `json:"gpu,omitempty"` // nil where it was not watched
}

// Devices is what the GPU's driver states of its devices.
type Devices struct {
	Libraries []string              `json:"libraries"`
	Devices   []recording.GPUDevice `json:"devices"`
}

// RecordedFinding is a finding of a recording, with the stacks that it is about.
type RecordedFinding struct {
	finding.Finding
	Card    api.Card `json:"card"`
	Origins []string `json:"origins" ts:"own|torch|library|generated|native"` // of the frames of its stack
	Stacks  []int    `json:"stacks"`                                          // that it is of
}

// Stack is what the calls with one stack hold.
type Stack struct {
	ID       int      `json:"id"`
	Key      string   `json:"key"` // of its site
	Label    string   `json:"label"`
	Slot     int      `json:"slot"`
	Call     string   `json:"call"`
	Complete bool     `json:"complete"`
	Grows    bool     `json:"grows"` // a finding states it
	Peak     float64  `json:"peak_bytes"`
	First    *float64 `json:"first_seconds"` // at which it holds something
	Last     *float64 `json:"last_seconds"`
	Resident *int64   `json:"resident_bytes"` // at the last judgment, as the next; null if it is not in it
	Assumed  int64    `json:"assumed_bytes"`
	Made     int64    `json:"made_bytes"`
	Calls    int64    `json:"calls"`
	Frames   []Frame  `json:"frames"`
	LeftOut  int      `json:"frames_left_out"`
}

// Owner is a library that holds memory of the GPU's driver, and of which kind.
type Owner struct {
	Owner  string `json:"owner"`
	Memory string `json:"memory"`
}

// GPUStack is what the calls of the driver with one stack hold.
type GPUStack struct {
	Stack
	Owner
	Bytes int64   `json:"live_bytes"`
	Count int64   `json:"live_count"`
	Trend []int64 `json:"trend"`
}

// Window holds the moments from one to another, all of them or those that show the
// most, and what is held at each. Lists have one element per moment, except for the
// courses, which list changes.
type Window struct {
	From      int       `json:"from"`
	To        int       `json:"to"`
	Moment    []int     `json:"moment"`
	Seconds   []float64 `json:"seconds"`
	RSS       []int64   `json:"rss_bytes"`
	Anonymous []int64   `json:"anonymous_bytes"`
	File      []int64   `json:"file_bytes"`
	Shared    []int64   `json:"shared_bytes"`
	Drops     []uint64  `json:"drops"`
	Live      []float64 `json:"live_bytes"`
	Stacks    []Course  `json:"stacks"` // as in the whole, followed by one for all others
	Owners    []Course  `json:"owners"`
}

// A Course is what is held from the given columns on; before the first nothing.
type Course struct {
	At    []int     `json:"at"`
	Bytes []float64 `json:"bytes"`
	Count []float64 `json:"count"`
}

// UnmarshalJSON reads the fields of the page in addition to those of the finding.
func (d *RecordedFinding) UnmarshalJSON(data []byte) error {
	beside := struct {
		Card    *api.Card `json:"card"`
		Origins *[]string `json:"origins"`
		Stacks  *[]int    `json:"stacks"`
	}{&d.Card, &d.Origins, &d.Stacks}
	return errors.Join(json.Unmarshal(data, &d.Finding), json.Unmarshal(data, &beside))
}
