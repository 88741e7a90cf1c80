package finding

// LeakEvidence is that of leak and autograd-graph: how a population of allocations
// went from checkpoint to checkpoint. A checkpoint is a file, or a moment of the newest file's history.
type LeakEvidence struct {
	BytesAtCheckpoints []int64  `json:"bytes_at_checkpoints"`
	CheckpointEvents   []int    `json:"checkpoint_events,omitzero"`
	CountAtCheckpoints []int64  `json:"count_at_checkpoints"`
	Devices            []string `json:"devices,omitzero"` // their labels, in files of other tools
	Files              []string `json:"files,omitzero"`   // their names, if there are several
	HeldBy             []HeldBy `json:"held_by,omitzero"` // who keeps them, of most of them first
	Intervals          int      `json:"intervals"`        // between checkpoints
	Lost               int64    `json:"lost"`             // occasions at which it went
	Outlived           int64    `json:"outlived"`         // occasions at which it could have gone and did not
	Rounds             int      `json:"rounds"`           // intervals with additions that lasted
	Steps              int      `json:"steps,omitzero"`   // of the history
}

// RegrownEvidence is that of regrown in snapshots: a tensor that is reallocated and
// copied, larger each time.
type RegrownEvidence struct {
	BytesAtCheckpoints []int64  `json:"bytes_at_checkpoints"`
	Files              []string `json:"files,omitzero"` // their names, if there are several
	FirstBytes         int64    `json:"first_bytes"`    // the tensor, as first seen
	FreeBytes          int64    `json:"free_bytes"`     // in the segments in which its copies were
	Joined             int      `json:"joined"`         // copies that are larger by the size of another tensor that lived then
	Pieces             int      `json:"pieces"`         // the copies
	ReservedAt         []int64  `json:"reserved_at_files,omitzero"`
	Tensors            int      `json:"tensors"` // that do so at this place
}

// A HeldBy is what keeps tensors alive.
type HeldBy struct {
	ChainLength *int64  `json:"chain_length,omitzero"` // of autograd: nodes of one type on the longest path
	File        string  `json:"file,omitzero"`
	Grew        *int64  `json:"grew,omitzero"`  // the chain, since the snapshot before
	Kind        string  `json:"kind"`           // python, autograd, native
	Line        *int64  `json:"line,omitzero"`  // that puts tensors there
	Lines       []int64 `json:"lines,omitzero"` // if several may
	Node        string  `json:"node,omitzero"`  // of autograd: the type that the chain is of
	Path        string  `json:"path"`
	Share       float64 `json:"share"` // of the finding's tensors that were looked into
}

// CompilationsEvidence is that of growth of the number of compiled programs.
type CompilationsEvidence struct {
	CountAtCheckpoints []int64 `json:"count_at_checkpoints"`
}

// FragmentationEvidence is that of fragmentation as the state of segments and the
// history of what was taken from the driver show it.
type FragmentationEvidence struct {
	OverheadBytes        int64     `json:"overhead_bytes"` // of the peak reserved, not explained by what was active
	PeakReservedBytes    int64     `json:"peak_reserved_bytes"`
	PinnedBy             []PinSite `json:"pinned_by,omitzero"`   // most blocks first
	Pins                 *Pins     `json:"pins,omitzero"`        // of all segments with stranded memory
	ReleasableBytes      int64     `json:"releasable_bytes"`     // empty_cache() would return it
	ReservedBytes        int64     `json:"reserved_bytes"`       // now
	SavedBytes           int64     `json:"saved_bytes,omitzero"` // of the peak, by expandable segments, if it is a quarter or more and nothing else is wrong
	SparsePins           *Pins     `json:"sparse_pins,omitzero"` // of those that are at least half free
	StrandedBytes        int64     `json:"stranded_bytes"`       // free, next to active blocks
	TakenThoughFreeBytes int64     `json:"taken_though_free_bytes"`
}

// PeakEvidence is that of peak: requested bytes by purpose at their maximum.
type PeakEvidence struct {
	AtEnd        PurposeSums      `json:"at_end"`
	ByPurpose    map[string]int64 `json:"by_purpose"` // their sum is Bytes
	Bytes        int64            `json:"bytes"`
	Event        *int             `json:"event"` // nil: before the first
	Inferred     *Inferred        `json:"inferred,omitzero"`
	LeakedBytes  int64            `json:"leaked_bytes,omitzero"`
	Sites        []PurposePlace   `json:"sites"` // most bytes first
	UnusedGraphs *UnusedGraphs    `json:"unused_graphs,omitzero"`
}

// PurposeSums are the requested bytes of a moment by purpose.
type PurposeSums struct {
	ByPurpose   map[string]int64 `json:"by_purpose"` // their sum is Bytes
	Bytes       int64            `json:"bytes"`
	Inferred    *Inferred        `json:"inferred,omitzero"`
	LeakedBytes int64            `json:"leaked_bytes,omitzero"`
}

// UnusedGraphs is what forward passes keep for backward passes that do not follow.
type UnusedGraphs struct {
	Bytes      int64 `json:"bytes"`
	Count      int   `json:"count"`       // of forward passes
	OlderBytes int64 `json:"older_bytes"` // of all but the newest
	// PeakWithoutOlderBytes is the peak had each gone when the next began; nil if
	// there is only one.
	PeakWithoutOlderBytes *int64 `json:"peak_without_older_bytes,omitzero"`
}

// UsageEvidence is that of usage of a state without history.
type UsageEvidence struct {
	ByPurpose   map[string]int64 `json:"by_purpose"` // their sum is Bytes
	Bytes       int64            `json:"bytes"`      // requested
	LeakedBytes int64            `json:"leaked_bytes,omitzero"`
	Sites       []PurposePlace   `json:"sites"` // most bytes first
}

// SpikeEvidence is that of spike: what one place's short-lived memory adds to the
// peak of requested bytes.
type SpikeEvidence struct {
	EchoBytes            int64    `json:"echo_bytes"` // of the backward pass, in allocations of the same sizes, or half or twice
	Event                int      `json:"event"`
	KeptForBackwardBytes int64    `json:"kept_for_backward_bytes"`
	NextPeakEvent        *int     `json:"next_peak_event"` // nil: before the first
	PassingBytes         int64    `json:"passing_bytes"`   // activations and temporaries of all places
	PeakBytes            int64    `json:"peak_bytes"`
	PeakWithoutBytes     int64    `json:"peak_without_bytes"`
	PlaceBytes           int64    `json:"place_bytes"`
	Reliefs              []Relief `json:"reliefs"` // the one that lowers the peak most first
}

// A Relief is a place without which the peak would be lower.
type Relief struct {
	Bytes                int64 `json:"bytes"`
	Count                int   `json:"count"` // of allocations
	EchoBytes            int64 `json:"echo_bytes"`
	KeptForBackwardBytes int64 `json:"kept_for_backward_bytes"`
	NextPeakEvent        *int  `json:"next_peak_event"` // nil: before the first
	PeakWithoutBytes     int64 `json:"peak_without_bytes"`
	Site                 *Site `json:"site"` // nil if unknown
}

// CopiesEvidence is that of copies: one tensor and the copies of it at the peak.
type CopiesEvidence struct {
	Copies      []Copy `json:"copies"` // in the order in which they were made
	CopiesBytes int64  `json:"copies_bytes"`
	Event       int    `json:"event"`
	PeakBytes   int64  `json:"peak_bytes"`
	Source      *Site  `json:"source"` // of the tensor; nil if unknown
	SourceBytes int64  `json:"source_bytes"`
}

// A Copy is one copy of a tensor.
type Copy struct {
	Bytes    int64  `json:"bytes"`
	Operator string `json:"operator"` // PyTorch's
	Site     *Site  `json:"site"`     // nil if unknown
	Times    int    `json:"times"`    // allocations of this stack in the history
}

// AutocastEvidence is that of autocast-cache.
type AutocastEvidence struct {
	CacheBytes           int64 `json:"cache_bytes"`
	Event                int   `json:"event"` // of the peak
	KeptForBackwardBytes int64 `json:"kept_for_backward_bytes"`
	PeakBytes            int64 `json:"peak_bytes"`
	PeakWithoutBytes     int64 `json:"peak_without_bytes"`
}

// WaitingEvidence is that of waiting: memory that was freed and that another stream
// still used.
type WaitingEvidence struct {
	Event             *int   `json:"event,omitzero"` // at which most waited
	LongestWaitUS     *int64 `json:"longest_wait_us,omitzero"`
	MeanWaitUS        *int64 `json:"mean_wait_us,omitzero"`
	PeakBytes         int64  `json:"peak_bytes"`
	PeakWaitingBytes  int64  `json:"peak_waiting_bytes"`
	PeakWithoutBytes  int64  `json:"peak_without_bytes"`           // had nothing waited
	UnknownBytes      *int64 `json:"unknown_bytes,omitzero"`       // of PeakWaitingBytes, without a known place
	WaitedCount       *int   `json:"waited_count,omitzero"`        // frees that waited and were completed
	WaitingBytes      int64  `json:"waiting_bytes"`                // at the end
	WaitingCount      int    `json:"waiting_count"`                // blocks, at the end
	WaitingSinceEvent *int   `json:"waiting_since_event,omitzero"` // that freed the oldest of them
}

// PrivatePoolsEvidence is that of private-pools.
type PrivatePoolsEvidence struct {
	Pools                []PrivatePool `json:"pools"`
	PrivateActiveBytes   int64         `json:"private_active_bytes"`
	PrivateFreeBytes     int64         `json:"private_free_bytes"`
	PrivateReservedBytes int64         `json:"private_reserved_bytes"`
	ReservedBytes        int64         `json:"reserved_bytes"` // of the device, in all pools
	// SharableBytes is how much less would be free at best if graphs shared one pool;
	// 0 where that is not worthwhile.
	SharableBytes int64 `json:"sharable_bytes,omitzero"`
}

// A PrivatePool is a pool of a CUDA graph or a MemPool.
type PrivatePool struct {
	ActiveBytes   int64  `json:"active_bytes"`
	FreeBytes     int64  `json:"free_bytes"`
	Pool          string `json:"pool"` // its id
	ReservedBytes int64  `json:"reserved_bytes"`
	Segments      int    `json:"segments"`
	Site          *Site  `json:"site"` // which took most of it; nil if unknown
}

// RoundingEvidence is that of rounding: active blocks whose request is known.
type RoundingEvidence struct {
	ActiveBytes    int64  `json:"active_bytes"`
	LostBytes      int64  `json:"lost_bytes"` // active less requested
	RequestedBytes int64  `json:"requested_bytes"`
	TinyCount      int    `json:"tiny_count"`             // requests below 512 bytes
	TinyLostBytes  int64  `json:"tiny_lost_bytes"`        // by these
	UnknownBytes   *int64 `json:"unknown_bytes,omitzero"` // of LostBytes, without a known place
	UnsplitBytes   int64  `json:"unsplit_bytes"`          // not explained by rounding to 512 bytes
}

// PinnedEvidence is that of pinned host memory: active blocks whose request is known.
type PinnedEvidence struct {
	ActiveBytes    int64  `json:"active_bytes"`
	FreeBytes      int64  `json:"free_bytes"` // kept for reuse
	LostBytes      int64  `json:"lost_bytes"` // active less requested
	RequestedBytes int64  `json:"requested_bytes"`
	ReservedBytes  int64  `json:"reserved_bytes"`
	UnknownBytes   *int64 `json:"unknown_bytes,omitzero"` // of LostBytes, without a known place
}

// HistoryEvidence is that of history: what a recording leaves unknown.
type HistoryEvidence struct {
	Events         *int       `json:"events,omitzero"`
	FileCount      int        `json:"file_count,omitzero"`
	RequestedBytes *int64     `json:"requested_bytes,omitzero"` // of all that lives
	Runs           [][]string `json:"runs,omitzero"`            // the names of the files of each
	Steps          *int       `json:"steps,omitzero"`
	Unknown        []string   `json:"unknown,omitzero"`       // actions, keys and settings that are not known
	UnknownBytes   int64      `json:"unknown_bytes,omitzero"` // live, with an unknown stack
	UnknownCount   *int64     `json:"unknown_count,omitzero"` // live allocations of that kind
}

// TableEvidence is that of findings that rest on tables of memory_summary(), which
// state sizes in whole units. What a table does not state is nil.
type TableEvidence struct {
	ActiveBytes          *int64 `json:"active_bytes,omitzero"`
	AllocatedBytes       *int64 `json:"allocated_bytes,omitzero"`
	AllocatedGrowthBytes *int64 `json:"allocated_growth_bytes,omitzero"` // from the oldest table to the newest
	Allocations          *int64 `json:"allocations,omitzero"`            // a count
	AllocationsGrowth    *int64 `json:"allocations_growth,omitzero"`     // of that count
	CachedGrowthBytes    *int64 `json:"cached_growth_bytes,omitzero"`    // of reserved less allocated
	File                 string `json:"file"`                            // of the newest table
	FirstFile            string `json:"first_file,omitzero"`             // of the oldest, if there are several
	FirstLine            int64  `json:"first_line,omitzero"`
	// Levels is where allocated memory is heading, if there are enough tables to judge it.
	Levels              *LevelsEvidence `json:"levels,omitzero"`
	Line                int64           `json:"line"`
	NonReleasableBytes  *int64          `json:"non_releasable_bytes,omitzero"`
	OOMs                *int64          `json:"ooms,omitzero"`           // of usage the counter, of retries its growth
	OverheadBytes       *int64          `json:"overhead_bytes,omitzero"` // reserved now less active at the peak
	PeakActiveBytes     *int64          `json:"peak_active_bytes,omitzero"`
	PeakAllocatedBytes  *int64          `json:"peak_allocated_bytes,omitzero"`
	PeakReservedBytes   *int64          `json:"peak_reserved_bytes,omitzero"`
	ReleasableBytes     *int64          `json:"releasable_bytes,omitzero"` // empty_cache() would return it
	RequestedBytes      *int64          `json:"requested_bytes,omitzero"`
	ReservedBytes       *int64          `json:"reserved_bytes,omitzero"`
	ReservedGrowthBytes *int64          `json:"reserved_growth_bytes,omitzero"`
	Retries             *int64          `json:"retries,omitzero"` // of usage the counter, of retries its growth
	Seconds             *int64          `json:"seconds,omitzero"` // from the oldest table to the newest
	Tables              int             `json:"tables"`
	TotalAllocatedBytes *int64          `json:"total_allocated_bytes,omitzero"` // since the process began
	TotalFreedBytes     *int64          `json:"total_freed_bytes,omitzero"`     // since the process began
}

func (*LeakEvidence) evidence()          {}
func (*RegrownEvidence) evidence()       {}
func (*CompilationsEvidence) evidence()  {}
func (*FragmentationEvidence) evidence() {}
func (*PeakEvidence) evidence()          {}
func (*UsageEvidence) evidence()         {}
func (*SpikeEvidence) evidence()         {}
func (*CopiesEvidence) evidence()        {}
func (*AutocastEvidence) evidence()      {}
func (*WaitingEvidence) evidence()       {}
func (*PrivatePoolsEvidence) evidence()  {}
func (*RoundingEvidence) evidence()      {}
func (*PinnedEvidence) evidence()        {}
func (*HistoryEvidence) evidence()       {}
func (*TableEvidence) evidence()         {}
