// Package recording is the file in which `strandline trace` keeps what it sees: growth
// over time with the stacks behind it. Its form is that of package journal; it is never
// rewritten, so that however the recording ends, the earlier lines remain valid.
package recording

import (
	"strandline/finding"
	"strandline/host/gpu/nvsmi"
)

// formerSchema is that of the files of earlier versions: lines without frames, in whose
// header Of is missing.
const formerSchema = "strandline.recording/1"

// of states in the header that the file is of a trace.
const of = "trace"

// DocumentSchema is the schema of a [Document].
const DocumentSchema = "strandline.trace/1"

// A Header is the first line: what is recorded.
type Header struct {
	Schema  string `json:"schema"`
	Of      string `json:"of,omitempty"`
	PID     int    `json:"pid"`
	Name    string `json:"name"` // of the program
	Backend string `json:"rung"`
	BeganUS int64  `json:"began_us"` // since 1970
}

// A Sample is the state at one moment.
type Sample struct {
	Seconds   float64 `json:"at_seconds"` // since the recording began
	RSS       int64   `json:"rss_bytes"`
	Anonymous int64   `json:"anonymous_bytes"` // growth since the beginning, like the next two
	File      int64   `json:"file_bytes"`
	Shared    int64   `json:"shared_bytes"`
	Drops     uint64  `json:"drops"`
	// Stacks are those that hold something other than at the sample before; the same
	// goes for the next field.
	Stacks []StackBytes `json:"stacks"`
	GPU    []GPUOwner   `json:"gpu,omitempty"`
}

// StackBytes is what the calls with one stack hold at a sample.
type StackBytes struct {
	ID    int   `json:"id"`
	Bytes int64 `json:"live_bytes"`
	Count int64 `json:"live_count"`
}

// A Document is the judgment at a moment, and all that `strandline trace` reports.
type Document struct {
	Schema      string            `json:"schema"`
	PID         int               `json:"pid"`
	Backend     string            `json:"rung"`
	Duration    float64           `json:"duration_seconds"`
	Ended       bool              `json:"ended"`
	RSS         int64             `json:"rss_bytes"`
	RSSGrowth   int64             `json:"rss_growth_bytes"`
	Growth      Growth            `json:"growth"`
	Processes   []Process         `json:"processes,omitempty"`
	Explained   *float64          `json:"explained_share"`
	Drops       uint64            `json:"drops"`
	StackDrops  uint64            `json:"stack_drops"`
	Unfollowed  uint64            `json:"unfollowed"`
	Paired      uint64            `json:"paired"`
	PairedBytes uint64            `json:"paired_bytes"`
	Discarded   int64             `json:"discarded_bytes"`
	Ledger      Ledger            `json:"ledger"`
	Stacks      []Stack           `json:"stacks"`
	GPU         *GPU              `json:"gpu,omitempty"`
	Findings    []finding.Finding `json:"findings"`
}

// A Process is a live process that was watched. The first one comes first, then those
// that grew most.
type Process struct {
	PID       int        `json:"pid"`
	Name      string     `json:"name"`
	Role      string     `json:"role,omitempty"` // what it is for, such as "rank 3"
	Command   string     `json:"command"`
	RSS       int64      `json:"rss_bytes"`
	RSSGrowth int64      `json:"rss_growth_bytes"`
	GPU       []GPUOwner `json:"gpu,omitempty"` // what it took from the GPU's driver and still holds
	PyTorch   *Reserved  `json:"pytorch,omitempty"`
}

// A Reserved is what PyTorch's allocator has of a process's device memory, according to
// a snapshot that the process wrote.
type Reserved struct {
	Snapshot  string `json:"snapshot"` // the name of the file
	Bytes     int64  `json:"reserved_bytes"`
	Allocated int64  `json:"allocated_bytes"`
	Since     int64  `json:"since_bytes"` // the part of what is reserved that was taken since the trace began
}

// Growth is the growth of resident memory by kind.
type Growth struct {
	Anonymous int64 `json:"anonymous_bytes"`
	File      int64 `json:"file_bytes"`
	Shared    int64 `json:"shared_bytes"`
	Older     int64 `json:"older_bytes"`   // in memory that was mapped before
	Unnamed   int64 `json:"unnamed_bytes"` // from calls whose stack is not known
	Threads   int64 `json:"threads"`
}

// A Ledger states how the ledger of mappings agreed with the kernel's list.
type Ledger struct {
	Checks  int   `json:"checks"`
	Missing int64 `json:"missing_bytes"`
	Extra   int64 `json:"extra_bytes"`
}

// A Stack is what the calls with it hold. ID is 0 if the stack is unknown.
type Stack struct {
	ID            int     `json:"id"`
	LiveBytes     int64   `json:"live_bytes"`
	LiveCount     int64   `json:"live_count"`
	ResidentBytes *int64  `json:"resident_bytes"`
	AssumedBytes  int64   `json:"assumed_bytes"`
	MadeBytes     int64   `json:"made_bytes"`
	Calls         int64   `json:"calls"`
	Call          string  `json:"call"`
	Complete      bool    `json:"complete"`
	Trend         []int64 `json:"trend"`
	Frames        []Frame `json:"frames"`
}

// A GPU is what was taken from the GPU's driver since the trace began and not given
// back.
type GPU struct {
	Libraries    []string   `json:"libraries"`  // of the driver; none if it was not loaded
	LiveBytes    int64      `json:"live_bytes"` // on devices, like the next
	LiveCount    int64      `json:"live_count"`
	ManagedBytes int64      `json:"managed_bytes"`
	PinnedBytes  int64      `json:"pinned_bytes"`
	Foreign      int64      `json:"foreign_count"` // handles of memory of other processes
	Owners       []GPUOwner `json:"owners"`
	Stacks       []GPUStack `json:"stacks"`
	// Devices states what the memory of the devices is, as far as is known.
	Devices []GPUDevice `json:"devices"`
}

// A GPUDevice states what the memory of a device is, or of several devices if processes
// use them all, as driver calls do not show which. The parts add up to the memory in
// use, except for Beyond, by which they exceed it.
type GPUDevice struct {
	Names  []string  `json:"names"` // as nvidia-smi counts them
	At     float64   `json:"at_seconds"`
	Used   *int64    `json:"used_bytes"`
	Total  *int64    `json:"total_bytes"`
	Own    *int64    `json:"own_bytes"` // by the driver's count of the traced processes
	Parts  []GPUPart `json:"parts"`
	Beyond int64     `json:"beyond_bytes"`
	// Absent is memory that, according to its stack, PyTorch's allocator took, and that
	// is in no segment of the snapshots.
	Absent int64    `json:"absent_bytes"`
	Notes  []string `json:"notes"`
}

// A GPUPart is a part of a device's memory.
type GPUPart struct {
	Part  Part   `json:"part"`
	Owner string `json:"owner,omitempty"` // of traced memory
	Bytes int64  `json:"bytes"`
	// For what PyTorch has reserved: how much is allocated, and how much was taken
	// since the trace began.
	Allocated *int64 `json:"allocated_bytes,omitempty"`
	Since     *int64 `json:"since_bytes,omitempty"`
	Count     int    `json:"count,omitempty"` // of other processes
}

// A Part states what memory is used for.
type Part string

// The parts of a device's memory.
const (
	PartPyTorch   Part = "pytorch"   // reserved, according to a snapshot
	PartTraced    Part = "traced"    // taken by calls that were seen, outside the snapshot
	PartEarlier   Part = "earlier"   // of the processes: contexts, and what was taken before the trace
	PartUnseen    Part = "unseen"    // of the processes: taken since then, by no call that is watched
	PartOthers    Part = "others"    // of other processes
	PartRemainder Part = "remainder" // the rest
)

// A GPUState is what is known about devices' memory at one moment: from the driver
// calls that were seen, and from the driver's own count.
type GPUState struct {
	At         float64        `json:"at_seconds"`
	PIDs       []int          `json:"pids"`            // the processes that have the driver loaded
	Before     *nvsmi.Reading `json:"before"`          // when the trace began
	Count      *nvsmi.Reading `json:"count"`           // at this moment
	NotCounted string         `json:"not_counted"`     // why there is no count
	Meanwhile  int64          `json:"meanwhile_bytes"` // taken while the driver was queried
	Managed    int64          `json:"managed_bytes"`   // a part of which can be on the device
	Foreign    int64          `json:"foreign_count"`   // handles of memory of other processes
	Dropped    bool           `json:"dropped"`         // events were lost
	Pieces     []GPUPiece     `json:"pieces"`          // of device memory
}

// Held returns the total of all pieces, in bytes.
func (s *GPUState) Held() (n int64) {
	for _, p := range s.Pieces {
		n += p.Bytes
	}
	return n
}

// A GPUPiece is device memory that a process took since the trace began and still
// holds. Addr is 0 for memory that has no address; there is one such piece for each
// owner.
type GPUPiece struct {
	PID   int    `json:"pid"`
	Addr  uint64 `json:"addr"`
	Bytes int64  `json:"bytes"`
	Owner string `json:"owner"`
}

// A HandOver is device memory that a process gave back while it kept its addresses, or
// that it took again at them, in calls of the driver that follow one another. A pause lasts
// from the first call that unmaps memory to the last that releases it, a resume from the
// first that makes a handle to the last that maps it, in seconds since the trace began.
type HandOver struct {
	PID    int     `json:"pid"`
	Do     Act     `json:"do"`
	Began  float64 `json:"began_seconds"`
	Ended  float64 `json:"ended_seconds"`
	Owner  string  `json:"owner"` // whose calls took the memory; "" if that is not known
	Blocks []Block `json:"blocks"`
	// What all processes held by their calls before the first one of a pause, and after the
	// last one; a resume has none before, as handles are made for other reasons too.
	Before []GPUOwner `json:"before,omitempty"`
	After  []GPUOwner `json:"after,omitempty"`
}

// An Act is what is done in a [HandOver].
type Act string

// The acts.
const (
	Pause  Act = "pause"
	Resume Act = "resume"
)

// A Block is memory of a device at an address, in bytes.
type Block struct {
	Addr  uint64 `json:"addr"`
	Bytes int64  `json:"bytes"`
}

// A GPUOwner is what one library's calls hold of one kind of memory.
type GPUOwner struct {
	Owner     string `json:"owner"`
	Memory    string `json:"memory"`
	LiveBytes int64  `json:"live_bytes"`
	LiveCount int64  `json:"live_count"`
}

// A GPUStack is what the calls with one stack hold.
type GPUStack struct {
	Stack
	Owner  string `json:"owner"`
	Memory string `json:"memory"`
	// Peak is the most that they held at once; nil if they never held anything.
	Peak *GPUPeak `json:"peak"`
}

// A GPUPeak is the most that the calls with one stack held at once, between two moments
// at which they held nothing. Times are since the trace began.
type GPUPeak struct {
	Bytes int64    `json:"bytes"`
	From  float64  `json:"from_seconds"`
	At    float64  `json:"at_seconds"`
	Until *float64 `json:"until_seconds"` // nil if something is still held
	Times int      `json:"times"`         // how often they took something when they held nothing
}

// A Frame is one level of a stack; what is unknown is nil.
type Frame struct {
	Function *string `json:"function"`
	File     *string `json:"file"`
	Line     *int64  `json:"line"`
	Object   *string `json:"object"`
}
