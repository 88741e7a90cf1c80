package page

import (
	"strandline/stack"
	"strandline/torch/timeline"
)

// Hit is the answer to hit: what is drawn at a height after an event.
type Hit struct {
	Alloc *int  `json:"alloc"`
	Band  int   `json:"band"`
	Y0    int64 `json:"y0"`
	Bytes int64 `json:"bytes"`
}

// Alloc is the answer to alloc: an allocation from birth to death.
type Alloc struct {
	Alloc   int               `json:"alloc"`
	Bytes   int64             `json:"bytes"`
	Block   *int64            `json:"block"`
	Address string            `json:"address"`
	Birth   int               `json:"birth"`
	Freed   *int              `json:"freed"`
	Death   *int              `json:"death"`
	Born    *int64            `json:"born_us"`
	Died    *int64            `json:"died_us"`
	Stream  *uint64           `json:"stream"`
	Pool    *string           `json:"pool"`
	Purpose string            `json:"purpose"`
	Fate    string            `json:"fate" ts:"kept|freed|pending"`
	Keys    map[string]string `json:"keys"`
	Missing timeline.Missing  `json:"missing,omitempty"`
	Notes
	Stack     []Frame `json:"stack" ts:"null"`
	FreeStack []Frame `json:"free_stack" ts:"null"`
}

// Notes are the texts that the program or the compiler gave to an event.
type Notes struct {
	Metadata string `json:"user_metadata,omitempty"`
	Compile  string `json:"compile_context,omitempty"`
}

// Event is the answer to event, and an element of that to events.
type Event struct {
	Event     int     `json:"event"`
	Action    *string `json:"action"`
	Bytes     *int64  `json:"bytes"`
	Address   *string `json:"address"`
	Time      *int64  `json:"time_us"`
	Place     *int64  `json:"place"`
	Alloc     *int    `json:"alloc"`
	Live      int64   `json:"live"`
	Requested int64   `json:"requested"`
	Reserved  int64   `json:"reserved"`
	Stack     []Frame `json:"stack,omitempty" ts:"null"`
	Notes
	// Missing is why an allocation has no line of own code.
	Missing timeline.Missing `json:"missing,omitempty"`
}

// Frame is a frame of a stack, with whose code it is.
type Frame struct {
	stack.Frame
	Origin string `json:"origin" ts:"own|torch|library|generated|native"`
}

// Events is the answer to events.
type Events struct {
	Events []Event `json:"events"`
	More   int     `json:"more,omitempty"` // found, and not listed
}

// Next is the answer to next: the event to go to, null if there is none.
type Next struct {
	Event *int `json:"event"`
}
