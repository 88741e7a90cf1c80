package finding

// CallGrowthEvidence is that of growth of a process which calls of one class or
// place made.
type CallGrowthEvidence struct {
	AssumedBytes   int64   `json:"assumed_bytes"` // whose release could have gone unseen
	Calls          int64   `json:"calls"`
	EarlyBytes     *int64  `json:"early_bytes,omitzero"`   // grown before SettledSeconds, and not counted
	HeapEnlarged   bool    `json:"heap_enlarged,omitzero"` // the site is where malloc's heap was enlarged
	LargestBytes   int64   `json:"largest_bytes"`
	LimitBytes     *int64  `json:"limit_bytes,omitzero"` // that is reached first: of a control group, or the machine's memory
	MappedBytes    int64   `json:"mapped_bytes"`
	RatePerSecond  float64 `json:"rate_bytes_per_second,omitzero"` // where it goes on
	ResidentBytes  int64   `json:"resident_bytes"`
	RSSGrowthBytes int64   `json:"rss_growth_bytes"` // of the processes in the time that is judged
	// SecondsToLimit is when the processes reach the limit, at the fastest and at the
	// slowest rate of the trace; the second is nil if at that they never do.
	SecondsToLimit *[2]*float64 `json:"seconds_to_limit,omitzero"`
	SettledSeconds float64      `json:"settled_seconds,omitzero"` // when a faster growth at first ended
	StackComplete  bool         `json:"stack_complete"`
	Stacks         []int        `json:"stacks"` // ids of those that grow
}

// SampledGrowthEvidence is that of growth of a class of memory which was seen by
// sampling the process from outside.
type SampledGrowthEvidence struct {
	EarlyBytes     int64        `json:"early_bytes,omitzero"` // grown before SettledSeconds, and not counted
	GrownBytes     int64        `json:"grown_bytes"`
	HeapEnlarged   bool         `json:"heap_enlarged,omitzero"` // as of CallGrowthEvidence
	LimitBytes     *int64       `json:"limit_bytes,omitzero"`   // as of CallGrowthEvidence, as RatePerSecond and SecondsToLimit
	OutsideRSS     bool         `json:"outside_rss"`            // in no process's resident memory
	RatePerSecond  float64      `json:"rate_bytes_per_second,omitzero"`
	RSSGrowthBytes int64        `json:"rss_growth_bytes"`
	SecondsToLimit *[2]*float64 `json:"seconds_to_limit,omitzero"`
	SettledSeconds float64      `json:"settled_seconds,omitzero"` // when a faster growth at first ended
}

// EnlargedHeap reports whether a finding's site is where the heap of malloc was enlarged,
// rather than where what is in it was allocated.
func (f *Finding) EnlargedHeap() bool {
	switch e := f.Evidence.(type) {
	case *CallGrowthEvidence:
		return e.HeapEnlarged
	case *SampledGrowthEvidence:
		return e.HeapEnlarged
	case *RecordedEvidence:
		return e.enlarged
	}
	return false
}

// UnexplainedEvidence is that of unexplained: growth of resident memory by kind.
type UnexplainedEvidence struct {
	AnonymousBytes int64 `json:"anonymous_bytes"`
	FileBytes      int64 `json:"file_bytes"`
	OlderBytes     int64 `json:"older_bytes"` // in mappings that were there before
	RSSGrowthBytes int64 `json:"rss_growth_bytes"`
	SharedBytes    int64 `json:"shared_bytes"`
	UnnamedBytes   int64 `json:"unnamed_bytes"` // by calls with an unknown stack
	UnseenBytes    int64 `json:"unseen_bytes"`  // by calls that were not seen
}

// DriverLeakEvidence is that of driver-leak.
type DriverLeakEvidence struct {
	AssumedBytes int64  `json:"assumed_bytes"`
	Calls        int64  `json:"calls"`
	Function     string `json:"function"`             // of the driver
	LimitBytes   *int64 `json:"limit_bytes,omitzero"` // of the device, where it is known
	Memory       string `json:"memory"`               // its kind
	Owner        string `json:"owner"`                // the library that asked for it
	// RatePerSecond is how fast it grows, in bytes, where it goes on.
	RatePerSecond  float64      `json:"rate_bytes_per_second,omitzero"`
	SecondsToLimit *[2]*float64 `json:"seconds_to_limit,omitzero"` // as of CallGrowthEvidence
	SettledSeconds float64      `json:"settled_seconds,omitzero"`  // when it ended, where it does not
	StackComplete  bool         `json:"stack_complete"`
	Stacks         []int        `json:"stacks"` // ids of those that grow
}

// DriverSumEvidence is that of driver-sum: parts of a device's memory that do not
// make its sum.
type DriverSumEvidence struct {
	AbsentBytes  int64 `json:"absent_bytes"` // taken by PyTorch's allocator, and in no segment
	BeyondBytes  int64 `json:"beyond_bytes"` // more than the driver counts
	PyTorchBytes int64 `json:"pytorch_bytes"`
	TracedBytes  int64 `json:"traced_bytes"`
}

// DriverUnseenEvidence is that of driver-unseen.
type DriverUnseenEvidence struct {
	UnseenBytes int64 `json:"unseen_bytes"`
}

// LevelsEvidence is that of a series of levels over time, or of levels whose moments are
// counted, in steps of a training for example.
type LevelsEvidence struct {
	// BytesPerRequest and BytesPerToken are the growth for each request that an
	// inference engine finished, and each token that it read or wrote; nil if they are
	// not known.
	BytesPerRequest *float64 `json:"bytes_per_request,omitzero"`
	// BytesPerRequestBounds hold the truth in 9 of 10 cases.
	BytesPerRequestBounds *[2]float64 `json:"bytes_per_request_bounds,omitzero"`
	BytesPerToken         *float64    `json:"bytes_per_token,omitzero"`

	Column     string  `json:"column"`
	Confidence float64 `json:"confidence"`
	Growing    float64 `json:"growing"` // the probability that it keeps growing
	// Keeper is the pool or process that grows, where a text names it.
	Keeper string `json:"keeper,omitzero"`
	// LevelBytes is where it is at the end, or where it levels off; between
	// LevelBoundsBytes in 9 of 10 cases. Both are nil if nothing was measured.
	// LevelPercent, its bounds and RatePercent, per second or Unit, take the place of
	// bytes where a cache is only known to be so full. The time to the limit is then that
	// until it is full.
	LevelBoundsBytes   *[2]int64   `json:"level_bounds_bytes"`
	LevelBoundsPercent *[2]float64 `json:"level_bounds_percent,omitzero"`
	LevelBytes         *int64      `json:"level_bytes"`
	LevelPercent       *float64    `json:"level_percent,omitzero"`
	LimitBytes         *int64      `json:"limit_bytes,omitzero"`
	// Phase is the moment at which it was measured, where a text names one.
	Phase string `json:"phase,omitzero"`
	// RatePerSecond is the growth at the end; nil if it is not known.
	RatePerSecond *float64 `json:"rate_bytes_per_second"`
	// RatePerStep takes the place of RatePerSecond where the moments are counted in Unit.
	RatePerStep *float64 `json:"rate_bytes_per_step,omitzero"`
	RatePercent *float64 `json:"rate_percent,omitzero"`
	Samples     int      `json:"samples"`
	Seconds     *float64 `json:"seconds"` // between the first and the last; nil if the moments are counted in Unit
	// SecondsToLimit are the bounds of the time from the last sample until
	// LimitBytes is reached; nil if there is no limit or it does not grow, and the
	// second is nil if it may never be reached.
	SecondsToLimit *[2]*float64 `json:"seconds_to_limit,omitzero"`
	// StepsToLimit is the same where the moments are counted in Unit.
	StepsToLimit *[2]*float64 `json:"steps_to_limit,omitzero"`
	// Unit is what the moments are counted in, such as step; empty if they are times.
	Unit    string `json:"unit,omitzero"`
	Verdict string `json:"verdict"` // a shape of package trend
}

func (*LevelsEvidence) evidence()        {}
func (*CallGrowthEvidence) evidence()    {}
func (*SampledGrowthEvidence) evidence() {}
func (*UnexplainedEvidence) evidence()   {}
func (*DriverLeakEvidence) evidence()    {}
func (*DriverSumEvidence) evidence()     {}
func (*DriverUnseenEvidence) evidence()  {}
