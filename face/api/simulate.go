package api

import "strandline/torch/replay"

// Simulation is the document of `strandline simulate`.
type Simulation struct {
	Schema  string      `json:"schema"`
	File    string      `json:"file"`
	Partial bool        `json:"partial"`
	Version string      `json:"torch_version"`
	Devices []Replayed  `json:"devices"`
	Runs    []Simulated `json:"runs"`
	// Best is the outcome of a search, nil where none was asked for.
	Best *Recommendation `json:"recommendation,omitempty"`
	// Reclaim is how memory stays below a level, nil where that was not asked for.
	Reclaim *Reclaim `json:"reclaim,omitempty"`
}

// Reclaim is how reserved memory is kept below a level by calls of empty_cache.
type Reclaim struct {
	Line     int64         `json:"line_bytes"`
	Recorded int64         `json:"recorded_peak_bytes"` // reserved, on the device that has most
	InUse    int64         `json:"in_use_peak_bytes"`   // allocated there at most
	Policy   *string       `json:"policy"`              // nil where none is needed or none suffices
	Text     string        `json:"text"`
	Tried    []TriedPolicy `json:"tried"`
	Notes    []string      `json:"notes"`
}

// TriedPolicy is a policy that was tried.
type TriedPolicy struct {
	Policy  string     `json:"policy"`
	Calls   int        `json:"calls"` // of empty_cache, on all devices
	CostMS  float64    `json:"driver_ms_estimate"`
	Devices []PolicyOn `json:"devices"`
}

// PolicyOn is a policy on a device. Levels are nil where it called nothing there.
type PolicyOn struct {
	Device   int    `json:"device"`
	Reserved int64  `json:"peak_reserved_bytes"`
	Before   *int64 `json:"level_before_bytes"`
	After    *int64 `json:"level_after_bytes"`
	Rises    int64  `json:"level_rises_bytes"`
}

// Replayed is the result of a device's history under its own settings.
type Replayed struct {
	Device     int                `json:"device"`
	Kind       string             `json:"kind,omitempty"` // "host" for pinned host memory
	Events     int                `json:"events"`
	Settings   string             `json:"settings"`
	Exact      bool               `json:"exact"`
	Unverified []string           `json:"unverified"` // what is not known of the file, a sentence each
	Calls      Reproduced         `json:"driver_calls"`
	Segments   Reproduced         `json:"segments"`
	Difference *replay.Difference `json:"first_difference"`
	Reserved   *int64             `json:"peak_reserved_bytes"`
	Allocated  *int64             `json:"peak_allocated_bytes"`
	Retries    *int64             `json:"alloc_retries"`
	OOMs       *int64             `json:"ooms"`
	Stranded   *int64             `json:"peak_stranded_bytes"`
	Samples    []Course           `json:"samples"`
	Assumed    Assumed            `json:"assumed"`

	Lost bool  `json:"-"` // nothing can be run
	Held int64 `json:"-"` // bytes reserved when the recording began, which no setting changes
}

// Reproduced counts what is recorded and what of it the replay reproduced.
type Reproduced struct {
	Recorded   int `json:"recorded"`
	Reproduced int `json:"reproduced"`
}

// Assumed is what the file does not hold and the replay settled.
type Assumed struct {
	Limit    *int64   `json:"memory_limit"`
	Capacity *int64   `json:"capacity"`
	Notes    []string `json:"notes"`

	Room *int64 `json:"-"` // what PyTorch can have: the lesser of the two
}

// Simulated is a run under other settings.
type Simulated struct {
	Settings string            `json:"settings"`
	Notes    []string          `json:"notes"`
	Devices  []SimulatedDevice `json:"devices"`
	Host     *SimulatedHost    `json:"host,omitempty"` // where the settings change pinned host memory

	Untested []string `json:"-"` // rules that a note mentions
}

// SimulatedHost is the result of a run for pinned host memory.
type SimulatedHost struct {
	Reserved  int64 `json:"peak_reserved_bytes"`
	Allocated int64 `json:"peak_allocated_bytes"`
	Calls     int64 `json:"driver_calls"`
}

// SimulatedDevice is such a run on one device.
type SimulatedDevice struct {
	Device    int      `json:"device"`
	Capacity  *int64   `json:"capacity_bytes"`
	Limit     *int64   `json:"memory_limit_bytes"`
	Reserved  int64    `json:"peak_reserved_bytes"`
	Allocated int64    `json:"peak_allocated_bytes"`
	Stranded  int64    `json:"peak_stranded_bytes"`
	OOM       *Refused `json:"oom"`
	OOMs      int64    `json:"ooms"`
	Calls     int64    `json:"driver_calls"`
	CostMS    float64  `json:"driver_ms_estimate"`
	Retries   int64    `json:"alloc_retries"`
	Smallest  *int64   `json:"smallest_capacity_bytes"`
	Samples   []Course `json:"samples"`

	Limited bool `json:"-"` // no capacity is enough under the limit
}

// Refused is the first request for which there was no memory.
type Refused struct {
	Event    int   `json:"event"`
	Bytes    int64 `json:"bytes"`
	Reserved int64 `json:"reserved_bytes"`
	Active   int64 `json:"active_bytes"`
	Site     Site  `json:"site"`
	Recorded bool  `json:"recorded"`
}

// Course is the memory after an event.
type Course struct {
	Event     int   `json:"event"`
	Reserved  int64 `json:"reserved_bytes"`
	Allocated int64 `json:"allocated_bytes"`
	Stranded  int64 `json:"stranded_bytes"`
}

// Recommendation is the outcome of a search.
type Recommendation struct {
	Settings *string `json:"settings"`    // nil where none is better than the file's
	Saves    int64   `json:"saves_bytes"` // of peak reserved memory, over all devices
	Text     string  `json:"text"`
}
