package api

import (
	"strandline/stack"
	"strandline/torch/timeline"
)

// Inspection is the document of `strandline inspect`.
type Inspection struct {
	Schema string `json:"schema"`
	*timeline.Facts
	At    *At    `json:"at,omitempty"`
	Alloc *Alloc `json:"alloc,omitempty"`
	Pools []Pool `json:"pools,omitempty"`
}

// At is what was live after an event.
type At struct {
	Event         int     `json:"event"`
	Device        int     `json:"device"`
	Requested     int64   `json:"requested_bytes"`
	Reserved      int64   `json:"reserved_bytes"`
	Allocated     *int64  `json:"allocated_bytes"` // null where the history cannot be replayed up to the event
	Active        *int64  `json:"active_bytes"`
	AllocatedLow  int64   `json:"allocated_bytes_at_least"`
	AllocatedHigh int64   `json:"allocated_bytes_at_most"`
	Allocations   int     `json:"allocations"`
	Sites         []Place `json:"sites"`
}

// Place is a site and what it holds.
type Place struct {
	Site
	Missing timeline.Missing `json:"missing,omitempty"` // why there is no site
	Bytes   int64            `json:"bytes"`
	Count   int              `json:"count"`
}

// Alloc is one allocation from birth to death. Events are null where they are
// outside the history.
type Alloc struct {
	Device    int           `json:"device"`
	Address   uint64        `json:"address"`
	Bytes     int64         `json:"bytes"`
	Born      *int          `json:"born_event"`
	Freed     *int          `json:"freed_event"`
	Completed *int          `json:"completed_event"`
	LivedUS   *int64        `json:"lived_us"`
	Stack     []stack.Frame `json:"stack"`
	FreeStack []stack.Frame `json:"free_stack"`
}

// Pool sums the segments of one pool, stream and size class.
type Pool struct {
	Pool       *string `json:"pool"` // nil if it is not recorded
	Stream     uint64  `json:"stream"`
	Type       string  `json:"type"`
	Expandable bool    `json:"expandable"`
	Segments   int     `json:"segments"`
	Reserved   int64   `json:"reserved_bytes"`
	Active     int64   `json:"active_bytes"`
	Free       int64   `json:"free_bytes"`
	LargestGap int64   `json:"largest_free_block_bytes"`
}

// Profile is the document of `strandline inspect` of another program's file.
type Profile struct {
	Schema  string         `json:"schema"`
	File    string         `json:"file"`
	Partial bool           `json:"partial"`
	Format  string         `json:"format"`
	Writer  string         `json:"writer,omitempty"`
	Notes   []string       `json:"notes"`
	Devices []ProfileLevel `json:"devices,omitempty"`
	Columns []LevelColumn  `json:"columns,omitempty"`
	Sites   []ProfilePlace `json:"sites,omitempty"`
	Failed  []ProfileCall  `json:"failed_calls,omitempty"`
	Steps   []string       `json:"steps,omitempty"`
	*ProfileHost
}

// ProfileLevel is memory of one kind on one device; null is what the file does not
// state.
type ProfileLevel struct {
	Device *string `json:"device"`
	Kind   string  `json:"kind"`
	Live   *int64  `json:"live_bytes"`
	Count  *int64  `json:"live_count"`
	Peak   *int64  `json:"peak_bytes"`
}

// LevelColumn is the level of one thing over time, in bytes; null where every sample is
// missing.
type LevelColumn struct {
	Process *string  `json:"process"`
	Name    string   `json:"name"`
	Samples int      `json:"samples"` // that are not missing
	Seconds *float64 `json:"seconds"` // from the first row to the last; null if there are no times
	Lowest  *int64   `json:"lowest_bytes"`
	Highest *int64   `json:"highest_bytes"`
	Last    *int64   `json:"last_bytes"`
	Limit   *int64   `json:"limit_bytes,omitempty"`
	// Percent takes the place of the bytes where a cache is only known to be so full: the
	// lowest, the highest and the last.
	Percent *[3]float64 `json:"percent,omitempty"`
}

// ProfilePlace is what one line holds.
type ProfilePlace struct {
	Site
	Device *string `json:"device"`
	Bytes  int64   `json:"bytes"`
	Count  int64   `json:"count"`
}

// ProfileCall is a call that failed.
type ProfileCall struct {
	Name   string `json:"name"`
	Status int64  `json:"status"`
	Count  int64  `json:"count"`
}

// ProfileHost is memory on the host.
type ProfileHost struct {
	PID       int    `json:"pid,omitempty"`
	RSS       *int64 `json:"rss_bytes,omitempty"`
	Peak      *int64 `json:"peak_rss_bytes,omitempty"`
	Anonymous *int64 `json:"anonymous_bytes,omitempty"`
	Heap      *int64 `json:"heap_bytes,omitempty"`
	File      *int64 `json:"file_bytes,omitempty"`
	Shared    *int64 `json:"shared_bytes,omitempty"`
	Memfd     *int64 `json:"memfd_bytes,omitempty"`
	HugePages *int64 `json:"huge_page_bytes,omitempty"`
	Pinned    *int64 `json:"pinned_bytes,omitempty"`
	Kernel    *int64 `json:"kernel_bytes,omitempty"`
	Stacks    *int64 `json:"thread_stack_bytes,omitempty"`
	Swap      *int64 `json:"swap_bytes,omitempty"`
	Cache     *int64 `json:"page_cache_bytes,omitempty"`
	Total     *int64 `json:"total_bytes,omitempty"`
	Available *int64 `json:"available_bytes,omitempty"`

	PrivateDirty *int64 `json:"private_dirty_bytes,omitempty"`
	SharedDirty  *int64 `json:"shared_dirty_bytes,omitempty"`
	Threads      *int64 `json:"threads,omitempty"`
	Writable     *int64 `json:"writable_bytes,omitempty"`
	Allocator    string `json:"allocator,omitempty"`
}
