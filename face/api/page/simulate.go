package page

// Replay is the result of a device's history under its own settings, with the
// names of `simulate --json`.
type Replay struct {
	Events     int        `json:"events"`
	Settings   string     `json:"settings"`
	Exact      bool       `json:"exact"`
	Lost       bool       `json:"lost"`             // nothing can be simulated
	Difference *string    `json:"first_difference"` // in words
	Calls      Reproduced `json:"driver_calls"`
	Segments   Reproduced `json:"segments"`
	Capacity   *int64     `json:"capacity"` // that an out-of-memory error or a limit shows
	Assumed    []string   `json:"assumed"`
	Try        []string   `json:"try"` // settings to begin with
}

// Reproduced counts what is recorded and what of it the replay reproduced.
type Reproduced struct {
	Recorded   int `json:"recorded"`
	Reproduced int `json:"reproduced"`
}

// Outcome is the result of a run, with the names of `simulate --json`.
type Outcome struct {
	Settings  string   `json:"settings"` // as they are understood
	Notes     []string `json:"notes"`
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
}

// Refused is the first request for which there was no memory.
type Refused struct {
	Event    int    `json:"event"`
	Bytes    int64  `json:"bytes"`
	Reserved int64  `json:"reserved_bytes"`
	Active   int64  `json:"active_bytes"`
	Site     *Frame `json:"site"`
}

// Runs is the answer to search: runs under the settings that were tried, the best
// first.
type Runs struct {
	Runs []Outcome `json:"runs"`
}

// Fits is the answer to fits: the least capacity with which a run does not run out of
// memory, null if there is none.
type Fits struct {
	Smallest *int64 `json:"smallest_capacity_bytes"`
}
