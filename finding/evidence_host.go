package finding

// CallGrowthEvidence is that of growth of a process which calls of one class or
// place made.
type CallGrowthEvidence struct {
	AssumedBytes   int64   `json:"assumed_bytes"` // whose release could have gone unseen
	Calls          int64   `json:"calls"`
	EarlyBytes     *int64  `json:"early_bytes,omitzero"` // grown before SettledSeconds, and not counted
	LargestBytes   int64   `json:"largest_bytes"`
	MappedBytes    int64   `json:"mapped_bytes"`
	ResidentBytes  int64   `json:"resident_bytes"`
	RSSGrowthBytes int64   `json:"rss_growth_bytes"`         // of the processes in the time that is judged
	SettledSeconds float64 `json:"settled_seconds,omitzero"` // when a faster growth at first ended
	StackComplete  bool    `json:"stack_complete"`
	Stacks         []int   `json:"stacks"` // ids of those that grow
}

// SampledGrowthEvidence is that of growth of a class of memory which was seen by
// sampling the process from outside.
type SampledGrowthEvidence struct {
	EarlyBytes     int64   `json:"early_bytes,omitzero"` // grown before SettledSeconds, and not counted
	GrownBytes     int64   `json:"grown_bytes"`
	OutsideRSS     bool    `json:"outside_rss"` // in no process's resident memory
	RSSGrowthBytes int64   `json:"rss_growth_bytes"`
	SettledSeconds float64 `json:"settled_seconds,omitzero"` // when a faster growth at first ended
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
	AssumedBytes  int64  `json:"assumed_bytes"`
	Calls         int64  `json:"calls"`
	Function      string `json:"function"` // of the driver
	Memory        string `json:"memory"`   // its kind
	Owner         string `json:"owner"`    // the library that asked for it
	StackComplete bool   `json:"stack_complete"`
	Stacks        []int  `json:"stacks"` // ids of those that grow
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

func (*CallGrowthEvidence) evidence()    {}
func (*SampledGrowthEvidence) evidence() {}
func (*UnexplainedEvidence) evidence()   {}
func (*DriverLeakEvidence) evidence()    {}
func (*DriverSumEvidence) evidence()     {}
func (*DriverUnseenEvidence) evidence()  {}
