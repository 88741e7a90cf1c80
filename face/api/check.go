package api

import "strandline/finding"

// LeakCheck is the document of `strandline check`.
type LeakCheck struct {
	Schema   string            `json:"schema"`
	Verdict  finding.Verdict   `json:"verdict"`
	Findings []finding.Finding `json:"findings"` // of all runs
	Growth   *CheckGrowth      `json:"growth"`   // of the first run that leaks, otherwise of the first; nil where unknown
	Runs     []CheckRun        `json:"runs"`
	Cure     *CheckCure        `json:"cure,omitempty"` // of --ab
}

// CheckGrowth is how many bytes are added each step, or each second where the command
// shows no steps. The truth lies between Low and High in 9 of 10 cases.
type CheckGrowth struct {
	Metric         string `json:"metric"`
	Process        string `json:"process"`
	BytesPerStep   *int64 `json:"bytes_per_step,omitempty"`
	BytesPerSecond *int64 `json:"bytes_per_second,omitempty"`
	Low            int64  `json:"low"`
	High           int64  `json:"high"`
}

// CheckRun is one command and its verdict.
type CheckRun struct {
	Name       string          `json:"name,omitempty"` // of one of several
	Command    []string        `json:"command"`
	Verdict    finding.Verdict `json:"verdict"`
	Missing    []string        `json:"missing,omitempty"` // what a verdict would need, sentences
	ExitStatus int             `json:"exit_status"`
	Failed     string          `json:"failed,omitempty"` // how the command failed by itself
	// OutOfMemory reports whether it ran out of memory, or was killed as what does is.
	OutOfMemory bool              `json:"out_of_memory,omitempty"`
	Stopped     bool              `json:"stopped,omitempty"`
	Interrupted bool              `json:"interrupted,omitempty"` // it was ended from outside
	Seconds     float64           `json:"seconds"`
	Steps       int               `json:"steps"`
	StepsFrom   string            `json:"steps_from,omitempty"`
	Growth      *CheckGrowth      `json:"growth"`
	Peak        CheckPeak         `json:"peak"`
	Findings    []finding.Finding `json:"findings"`
	Notes       []string          `json:"notes,omitempty"` // what was not measured, sentences

	// Unstarted reports whether the command could not be started, so that Failed is all
	// there is to say.
	Unstarted bool `json:"-"`
}

// CheckPeak is the most that all processes of a command held together; nil where
// unknown.
type CheckPeak struct {
	HostBytes   *int64 `json:"host_bytes"`
	DeviceBytes *int64 `json:"device_bytes"`
}

// Cannot notes what a verdict would need, and makes it unknown unless a problem was
// found.
func (r *CheckRun) Cannot(why string) {
	r.Missing = append(r.Missing, why)
	if r.Verdict == finding.OK {
		r.Verdict = finding.Unknown
	}
}

// CheckCure is what a remedy did: the same command without and with a setting.
type CheckCure struct {
	Setting string `json:"setting"`
	// Cures is nil where that cannot be known.
	Cures      *bool   `json:"cures"`
	Confidence float64 `json:"confidence"` // 0 to 1, that Text holds
	Text       string  `json:"text"`
}
