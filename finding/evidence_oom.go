package finding

// OOMEvidence is that of oom, of the last request that failed. What the file or the
// text does not state is nil, or left out of the JSON.
type OOMEvidence struct {
	ActiveBytes      *int64           `json:"active_bytes,omitzero"`      // a lower bound where Exact is false
	AllocationsAfter *int             `json:"allocations_after,omitzero"` // above 0 the program went on
	AvailableBytes   *int64           `json:"available_bytes,omitzero"`   // for what NeededBytes counts
	ByPurpose        map[string]int64 `json:"by_purpose,omitzero"`        // requested bytes
	CapacityBytes    *int64           `json:"capacity_bytes,omitzero"`    // of the device or the host
	Cause            string           `json:"cause,omitzero"`             // such as "fragmented"; "" if unknown
	Contradictory    bool             `json:"contradictory,omitzero"`     // the figures cannot all be true
	DeviceFreeBytes  *int64           `json:"device_free_bytes,omitzero"` // which the driver had left
	Event            *int             `json:"event,omitzero"`
	EventsOfKind     *int             `json:"events_of_kind,omitzero"` // failures in that history
	Exact            *bool            `json:"exact,omitzero"`          // the file was dumped at the failure
	FailedCalls      int              `json:"failed_calls,omitzero"`   // of the driver, by name, in a profile
	Failures         []OOMFailure     `json:"failures,omitzero"`       // the last of each rank and device, if several failed
	File             string           `json:"file,omitzero"`           // the snapshot or text that shows it
	Inferred         *Inferred        `json:"inferred,omitzero"`
	LargestFreeBytes *int64           `json:"largest_free_bytes,omitzero"` // block that the request could have used
	LeakedBytes      int64            `json:"leaked_bytes,omitzero"`       // sum of Leaks
	Leaks            []Place          `json:"leaks,omitzero"`
	LimitBytes       *int64           `json:"limit_bytes,omitzero"`
	Line             int64            `json:"line,omitzero"` // of the message, from 1
	MaxLengthTokens  *int64           `json:"max_length_tokens,omitzero"`
	MessageFile      string           `json:"message_file,omitzero"` // the text of the same failure
	Messages         int              `json:"messages,omitzero"`     // that the text holds
	NeededBytes      *int64           `json:"needed_bytes,omitzero"`
	Of               string           `json:"of,omitzero"`              // "device" or "host": whose memory ran out
	OtherProcesses   []OOMProcess     `json:"other_processes,omitzero"` // that held memory of the device
	OthersBytes      *int64           `json:"others_bytes,omitzero"`    // held by the process outside PyTorch
	Outcome          Outcome          `json:"outcome,omitzero"`         // of the program, where a text states the failure
	OutsideBytes     *int64           `json:"outside_bytes,omitzero"`   // of the device, neither free nor reserved
	PinnedBy         []PinSite        `json:"pinned_by,omitzero"`
	Pins             *Pins            `json:"pins,omitzero"`
	Pools            []OOMPool        `json:"pools,omitzero"`
	PrivateBytes     *int64           `json:"private_bytes,omitzero"` // free in private pools
	ProcessBytes     *int64           `json:"process_bytes,omitzero"` // held by the process in all
	RequestBytes     *int64           `json:"request_bytes,omitzero"`
	RequestedBytes   *int64           `json:"requested_bytes,omitzero"` // of all that lived
	ReservedBytes    *int64           `json:"reserved_bytes,omitzero"`
	RSSBytes         *int64           `json:"rss_bytes,omitzero"` // of the process that was killed
	Source           string           `json:"source,omitzero"`    // who states it, such as "pytorch"
	SparsePins       *Pins            `json:"sparse_pins,omitzero"`
	Statement        string           `json:"statement,omitzero"`         // the kind of what the text states
	UnallocatedBytes *int64           `json:"unallocated_bytes,omitzero"` // reserved and not active
	UnknownBytes     *int64           `json:"unknown_bytes,omitzero"`     // of what lived, with an unknown stack
}

// An Outcome is what became of a program that a text says ran out of memory.
type Outcome string

// The outcomes.
const (
	Died      Outcome = "died"
	Recovered Outcome = "recovered" // a later step or request is in the text
	Thrashing Outcome = "thrashing" // it goes on, and runs out again and again
	Uncertain Outcome = "unknown"   // the text does not show it
)

// An OOMFailure is the last message of a rank and device.
type OOMFailure struct {
	ActiveBytes     *int64  `json:"active_bytes,omitzero"`
	CapacityBytes   *int64  `json:"capacity_bytes,omitzero"`
	Cause           string  `json:"cause,omitzero"`
	Device          *int    `json:"device"` // nil if unknown
	DeviceFreeBytes *int64  `json:"device_free_bytes,omitzero"`
	Line            int64   `json:"line"`
	Messages        int     `json:"messages"`
	OutsideBytes    *int64  `json:"outside_bytes,omitzero"`
	Rank            *string `json:"rank"` // nil if unknown
	RequestBytes    *int64  `json:"request_bytes,omitzero"`
	ReservedBytes   *int64  `json:"reserved_bytes,omitzero"`
}

// An OOMProcess is another process on the device, the one of the most memory first.
type OOMProcess struct {
	Bytes   int64  `json:"bytes"`
	Process string `json:"process"`
}

// An OOMPool is the segments of a pool, stream and size class at a failure.
type OOMPool struct {
	ActiveBytes      int64   `json:"active_bytes"`
	Expandable       bool    `json:"expandable"`
	FreeBytes        int64   `json:"free_bytes"`
	LargestFreeBytes int64   `json:"largest_free_bytes"` // block
	Pool             *string `json:"pool"`               // its id; nil if it is not recorded
	ReservedBytes    int64   `json:"reserved_bytes"`
	Segments         int     `json:"segments"`
	Stream           uint64  `json:"stream"`
	Type             string  `json:"type"` // "small" or "large"
}

func (*OOMEvidence) evidence() {}
