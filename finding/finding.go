// Package finding is the form in which every judgment is given: what is wrong,
// how confident we are, the evidence that a person can check, and what to
// change. It imports no other package of strandline, and judges nothing: the
// rules are in the packages below judge, and every output shows what they return.
//
// Its JSON is published: field names and kinds keep their meaning. A pointer is
// nil where a figure is not known, which is not zero.
package finding

// A Severity states what a finding asks of a person.
type Severity string

// The severities. A problem makes a command exit with 1.
const (
	Problem Severity = "problem" // wrong: act
	Warning Severity = "warning" // may be wrong: look
	Info    Severity = "info"    // good to know
)

// Rank orders severities: 2 for a problem, 1 for a warning, 0 for information and for
// anything else.
func (s Severity) Rank() int {
	switch s {
	case Problem:
		return 2
	case Warning:
		return 1
	}
	return 0
}

// A Kind names what was found, for machines.
type Kind string

// The kinds of finding.
const (
	Leak          Kind = "leak"           // allocations that survive and grow
	AutogradGraph Kind = "autograd-graph" // a leak that is a kept graph of the forward pass
	Growth        Kind = "growth"         // growth that is not judged a leak
	OutOfMemory   Kind = "oom"            // a request that the allocator could not meet
	Fragmentation Kind = "fragmentation"  // reserved far above what is active
	Peak          Kind = "peak"           // what memory is for where it is highest
	Spike         Kind = "spike"          // one place's short-lived memory that makes the peak
	Copies        Kind = "copies"         // one tensor held several times
	AutocastCache Kind = "autocast-cache" // copies of weights that autocast keeps
	Waiting       Kind = "waiting"        // freed memory that waits for another stream
	PrivatePools  Kind = "private-pools"  // memory that only CUDA graphs or a MemPool can use
	Rounding      Kind = "rounding"       // blocks that are larger than what was asked for
	Pinned        Kind = "pinned"         // the same of pinned host memory
	History       Kind = "history"        // what the recording does not show
	Usage         Kind = "usage"          // what a table of memory_summary() states, or a state without history
	Retries       Kind = "retries"        // the driver refuses segments, or memory runs out, time and again
	Ended         Kind = "ended"          // a log that ends during start-up without an error
	AboveLimit    Kind = "above-limit"    // more than a gate allows
	Residue       Kind = "residue"        // what a process holds while its pausable memory is paused
	ResumeShort   Kind = "resume-short"   // paused memory for which the device has no room now
	Unpausable    Kind = "unpausable"     // a setting with which memory passes regions by, or that memory
)

// The kinds of finding about the memory of a process on the host.
const (
	MmapLeak           Kind = "mmap-leak"           // mappings that one place makes and nothing unmaps
	ArenaRetention     Kind = "arena-retention"     // freed, and kept by glibc's malloc
	HugePages          Kind = "thp"                 // partly used huge pages
	PageCache          Kind = "page-cache"          // of a cgroup, not of a process
	CopyOnWrite        Kind = "copy-on-write"       // pages that processes have no longer in common
	MemoryFiles        Kind = "memfd"               // unnamed files that live in memory
	KernelMemory       Kind = "kernel"              // what the kernel holds for a process
	HeapLeak           Kind = "heap-leak"           // malloc without free
	PythonObjects      Kind = "python-objects"      // the arenas of Python's objects grow
	AllocatorRetention Kind = "allocator-retention" // memory that another malloc than the C library's takes
	Remap              Kind = "mremap"              // one allocation that is made larger time and again
	Regrown            Kind = "regrown"             // one buffer that is reallocated and copied, larger each time
	SharedMemory       Kind = "shm"                 // memory shared between processes
	FileMapping        Kind = "file-mapping"        // files that are mapped
	ThreadStacks       Kind = "thread-stacks"       // threads that are started and stay
	DriverLeak         Kind = "driver-leak"         // memory that one place takes from a GPU's driver and does not give back
	DriverSum          Kind = "driver-sum"          // what is known of a device's memory does not make its sum
	DriverUnseen       Kind = "driver-unseen"       // memory of a device that came by no call that is watched
	Unexplained        Kind = "unexplained"         // growth of which no call that was seen made most
)

// A Site is a place in the user's code. The zero Site is unknown.
type Site struct {
	File     string `json:"file"`
	Line     int64  `json:"line"`
	Function string `json:"function"`
}

// A Frame is one level of a call stack.
type Frame = Site

// A Place is a site and what it holds in the newest file, in requested bytes.
type Place struct {
	Site
	Bytes int64 `json:"bytes"`
	Count int64 `json:"count"`
}

// A Remedy is something to do about a finding.
type Remedy struct {
	Kind    string  `json:"kind"` // "code" or "setting"
	Text    string  `json:"text"`
	Detail  string  `json:"detail,omitempty"`  // why, or when it helps
	Setting string  `json:"setting,omitempty"` // ready to paste
	Effect  *Effect `json:"effect,omitempty"`  // nil where it was not computed
}

// An Effect is what a setting would have done to the recorded run, simulated.
type Effect struct {
	PeakReserved int64 `json:"peak_reserved_bytes"`
	Saves        int64 `json:"saves_bytes"` // of that peak; less than 0 if it costs
	RunsOut      bool  `json:"runs_out"`    // of memory, in as much as there was
	Exact        bool  `json:"exact"`       // the recorded run itself is reproduced exactly
	// Left is what was still available after the request that had failed; nil if
	// none had.
	Left *int64 `json:"left_bytes,omitempty"`
}

// CodeChange is a remedy in the program's source.
func CodeChange(text string) Remedy { return Remedy{Kind: "code", Text: text} }

// SettingChange is a remedy in how the program is run: a setting to paste.
func SettingChange(setting, text string) Remedy {
	return Remedy{Kind: "setting", Setting: setting, Text: text}
}

// A Finding is one judgment.
type Finding struct {
	Kind       Kind     `json:"kind"`
	Severity   Severity `json:"severity"`
	Confidence float64  `json:"confidence"` // 0 to 1; Basis states what it is computed from
	Title      string   `json:"title"`
	Brief      Brief    `json:"brief,omitzero"`
	// Detail is what a person needs beyond the title, a sentence an item.
	Detail  []string `json:"detail,omitempty"`
	Basis   string   `json:"basis,omitempty"`
	Device  *int     `json:"device"`
	Process string   `json:"process,omitempty"`

	Site         *Site   `json:"site"`
	Stack        []Frame `json:"stack,omitempty"` // innermost first
	Bytes        *int64  `json:"bytes,omitempty"` // requested, in the newest file
	Count        *int64  `json:"count,omitempty"`
	BytesPerStep *int64  `json:"bytes_per_step,omitempty"`
	Sites        []Place `json:"sites,omitempty"` // where it covers several
	// Trend is the finding's live bytes over time, oldest first, for a sparkline.
	Trend    []int64  `json:"trend,omitempty"`
	Evidence Evidence `json:"evidence,omitempty"`
	Remedies []Remedy `json:"remedies,omitempty"`
}

// Grew is by how many bytes the trend ends above its beginning; 0 if there is none.
func (f *Finding) Grew() int64 {
	if len(f.Trend) == 0 {
		return 0
	}
	return f.Trend[len(f.Trend)-1] - f.Trend[0]
}

// Int is a pointer to n, for the fields that can be absent.
func Int(n int64) *int64 { return &n }
