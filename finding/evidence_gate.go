package finding

// StepGrowthEvidence is that of memory over the steps of a program, as `strandline check`
// measures it.
type StepGrowthEvidence struct {
	Growing float64 `json:"growing"` // the probability that it keeps growing
	// HighBytes and LowBytes are the bounds of the growth of a unit, between which the
	// truth lies in 9 of 10 cases.
	HighBytes  int64  `json:"high_bytes"`
	LevelBytes int64  `json:"level_bytes"` // at the end
	LimitBytes *int64 `json:"limit_bytes,omitzero"`
	LowBytes   int64  `json:"low_bytes"`
	Metric     string `json:"metric"` // "host" or "device"
	Samples    int    `json:"samples"`
	Unit       string `json:"unit"`    // "step", "second" or "request"
	Verdict    string `json:"verdict"` // a shape of package trend
}

func (*StepGrowthEvidence) evidence() {}
