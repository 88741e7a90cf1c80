package api

import "strandline/finding"

// HandOvers is the document of `strandline plan rl --check`.
type HandOvers struct {
	Schema    string            `json:"schema"`
	Path      string            `json:"path"`
	Processes []HandOverProcess `json:"processes"`
}

// HandOverProcess is what a process did to its pausable memory, beside the plan.
type HandOverProcess struct {
	PID       int               `json:"pid"`
	Device    int               `json:"device"`      // as CUDA counts in the process
	Total     int64             `json:"total_bytes"` // 0 if it is not known
	ByCalls   bool              `json:"by_calls"`    // it is of a trace of the driver's calls
	Way       string            `json:"way"`
	Tags      []HandOverTag     `json:"tags"`
	Phases    []HandOverPhase   `json:"phases"`
	Unplanned []HandOverTime    `json:"unplanned"`
	HandOvers []HandOver        `json:"hand_overs"`
	Speed     *float64          `json:"host_link"` // bytes per second
	Behind    *HandOverBehind   `json:"behind"`
	Findings  []finding.Finding `json:"findings"`
	Notes     []string          `json:"notes"`
}

// HandOverTag is a tag, and the components of the plan that it is.
type HandOverTag struct {
	Tag        string   `json:"tag"`
	Components []string `json:"components"`
}

// HandOverPhase is a phase of the plan. Measured is nil if it was not seen.
type HandOverPhase struct {
	Name     string        `json:"name"`
	Low      int64         `json:"low_bytes"`
	High     int64         `json:"high_bytes"`
	Tags     []PlannedPart `json:"tags"`
	Beyond   int64         `json:"beyond_bytes"`
	Measured *HandOverTime `json:"measured"`
}

// HandOverTime is a time between hand-overs, of all cycles together.
type HandOverTime struct {
	Active  []string      `json:"active"`
	Times   int           `json:"times"`
	Seconds float64       `json:"seconds"`
	Used    [2]int64      `json:"used_bytes"` // the least and the most
	Most    HandOverSplit `json:"most"`
}

// HandOverSplit is whose the memory of a device is. What is not known is nil.
type HandOverSplit struct {
	Used    int64          `json:"used_bytes"`
	Tags    []HandOverHeld `json:"tags"`
	Tensors *int64         `json:"tensors_bytes"`
	Cache   *int64         `json:"cache_bytes"`
	Pools   *int64         `json:"pools_bytes"`
	Rest    int64          `json:"rest_bytes"`
	// Libraries have part of the rest; nil if no trace shows them.
	Libraries []HandOverLibrary `json:"libraries"`
}

// HandOverLibrary is what a library has of a device by its calls of the driver.
type HandOverLibrary struct {
	Library string `json:"library"`
	Bytes   int64  `json:"bytes"`
}

// HandOverHeld is what a tag has of a device.
type HandOverHeld struct {
	Tag  string `json:"tag"`
	Held int64  `json:"held_bytes"`
}

// HandOver is what was done to a tag.
type HandOver struct {
	Do      string  `json:"do"`
	Tag     *string `json:"tag"` // nil for all
	Times   int     `json:"times"`
	Refused int     `json:"refused"`
	Bytes   *int64  `json:"copied_bytes"` // the median; nil if it is not known
	Moved   int64   `json:"moved_bytes"`  // that left the device or came to it, the median
	Seconds float64 `json:"seconds"`
	Longest float64 `json:"longest_seconds"`
}

// HandOverBehind is what is used while the fewest tags are active.
type HandOverBehind struct {
	Active []string      `json:"active"`
	Split  HandOverSplit `json:"split"`
	Low    int64         `json:"planned_low_bytes"` // of contexts and NCCL
	High   int64         `json:"planned_high_bytes"`
}
