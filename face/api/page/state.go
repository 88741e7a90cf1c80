package page

import (
	"strandline/stack"
	"strandline/torch/timeline"
)

// State is the answer to state: the allocator's segments and blocks after an event.
type State struct {
	Event      int       `json:"event"`
	Exact      bool      `json:"exact"`
	Notes      []string  `json:"notes"`
	Reserved   int64     `json:"reserved"`
	Allocated  int64     `json:"allocated"`
	Pending    int64     `json:"pending"`
	Slack      int64     `json:"slack"`
	Free       int64     `json:"free"`
	Releasable int64     `json:"releasable"`
	Stranded   int64     `json:"stranded"`
	Segments   []Segment `json:"segments"`
	Stacks     [][]Frame `json:"stacks"` // of segments, each once
	Blocks     Blocks    `json:"blocks"`
	Strands    []Strand  `json:"strands,omitzero"` // always present except in a saved page
	Takers     []Taker   `json:"takers"`
	Changed    *Changed  `json:"changed"`
}

// Segment is a segment; its blocks are Blocks elements of the lists in [Blocks], from element First on.
type Segment struct {
	Address    string     `json:"address"`
	Size       int64      `json:"size"`
	Pool       string     `json:"pool"`
	Private    bool       `json:"private"`
	Stream     uint64     `json:"stream"`
	Type       string     `json:"type"`
	Expandable bool       `json:"expandable"`
	First      int        `json:"first"`
	Blocks     int        `json:"blocks"`
	Releasable int64      `json:"releasable"`
	Ranges     [][2]int64 `json:"ranges"`
	Stranded   int64      `json:"stranded"`
	Stack      int        `json:"stack"` // of those of [State]; -1 if it was not recorded
	// Missing is why no line of own code is known.
	Missing timeline.Missing `json:"missing,omitempty"`
}

// Blocks are the blocks of all segments, one array per field; State has one letter per block: a, p (pending) or f (free).
type Blocks struct {
	Offset    []int64 `json:"offset"`
	Size      []int64 `json:"size"`
	Requested []int64 `json:"requested"`
	State     string  `json:"state"`
	Alloc     []int   `json:"alloc"`
	Group     []int   `json:"group,omitzero"` // as Strands of [State]
}

// Strand is the free memory that blocks of a group keep from being released.
type Strand struct {
	Key   string `json:"key"`
	Group int    `json:"group"`
	Count int    `json:"count"`
	Bytes int64  `json:"bytes"`
}

// Taker is the reserved memory that a place took from the driver, most first. The place is
// null if no line of own code is known.
type Taker struct {
	Site    *stack.Frame     `json:"site"`
	Missing timeline.Missing `json:"missing,omitempty"` // why there is no site
	Bytes   int64            `json:"bytes"`
	Count   int              `json:"count"` // of the events that took it
}

// Changed is what the event changed.
type Changed struct {
	Address string `json:"address"`
	Size    int64  `json:"size"`
}

// StateGroups is the part of a [State] that depends on the grouping, which a saved page
// holds separately from the rest.
type StateGroups struct {
	Group   []int    `json:"group"`
	Strands []Strand `json:"strands"`
}
