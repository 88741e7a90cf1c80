package api

import (
	"strandline/finding"
	"strandline/pausable/state"
)

// Mem is the document of `strandline mem`: the pausable memory of a process, after what
// was done.
type Mem struct {
	Schema string      `json:"schema"`
	PID    int         `json:"pid"`
	Do     string      `json:"do"` // status, pause, resume or plan
	Tags   []state.Tag `json:"tags"`
	// Device is the first of Devices, or the one that has not enough memory; nil if the
	// process uses none.
	Device   *MemDevice        `json:"device"`
	Devices  []MemDevice       `json:"devices"`
	Note     string            `json:"devices_note,omitempty"` // why the driver counts no processes
	Doing    *state.Doing      `json:"doing"`                  // nil if no pause or resume is under way
	NotFreed int64             `json:"not_freed_bytes"`
	Kept     int64             `json:"pinned_pool_bytes"`
	Margin   int64             `json:"margin_bytes"`
	Seconds  *float64          `json:"seconds,omitempty"` // that a pause or resume took
	Failure  *MemFailure       `json:"failure,omitempty"`
	Steps    []MemStep         `json:"steps,omitempty"` // of a plan
	Findings []finding.Finding `json:"findings"`
}

// MemDevice is a device of the process. Sizes of it are the driver's count.
type MemDevice struct {
	state.Device
	// Index is the device's number by the driver, which need not be CUDA's; nil if the
	// driver was not asked.
	Index *int `json:"driver_device"`
	// Process is what this process holds, Cached what PyTorch's allocator keeps of it that
	// no tensor uses; nil if it is not known.
	Process *int64 `json:"process_bytes"`
	Cached  *int64 `json:"cached_bytes"`
	// Outside is what PyTorch's allocator has in no region; nil if it is not known.
	Outside *state.Outside `json:"outside"`
	// Released is by how much more is free than before a pause or resume; negative if
	// less is.
	Released *int64      `json:"released_bytes,omitempty"`
	Holders  []MemHolder `json:"holders"` // all processes that hold some, the largest first
}

// MemHolder is what a process holds of a device.
type MemHolder struct {
	PID     int    `json:"pid"`
	Command string `json:"command"`
	Bytes   *int64 `json:"bytes"` // nil if the driver does not count it
	Pausing bool   `json:"pausable"`
}

// MemFailure is why a pause or resume was refused.
type MemFailure struct {
	Text      string `json:"text"`
	Device    *int   `json:"device"` // as CUDA counts in the process
	Needed    int64  `json:"needed_bytes"`
	Available int64  `json:"available_bytes"`
}

// MemStep is a step of a plan.
type MemStep struct {
	Do       string          `json:"do"`
	Tag      *string         `json:"tag"` // nil for all
	Fits     bool            `json:"fits"`
	Saved    int64           `json:"saved_bytes"`
	Restored int64           `json:"restored_bytes"`
	Devices  []MemStepDevice `json:"devices"`
}

// MemStepDevice is a device after a step.
type MemStepDevice struct {
	Device int   `json:"device"`
	Taken  int64 `json:"taken_bytes"`
	Free   int64 `json:"free_bytes"` // negative is what is missing
	Used   int64 `json:"used_bytes"` // by all processes
}
