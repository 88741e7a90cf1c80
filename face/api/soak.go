package api

import (
	"strandline/finding"
	"strandline/host/sampling/sample"
)

// Soak is the document of `strandline soak`.
type Soak struct {
	Schema  string          `json:"schema"`
	Verdict finding.Verdict `json:"verdict"`
	Missing []string        `json:"missing,omitempty"` // what a verdict would need, sentences
	Failed  string          `json:"failed,omitempty"`  // what ended the experiment: the server, or the command that reclaims
	// Interrupted reports whether the experiment was ended from outside.
	Interrupted bool              `json:"interrupted,omitempty"`
	URL         string            `json:"url"`
	Model       string            `json:"model"`
	PID         int               `json:"pid"` // of the server at the end
	Seconds     float64           `json:"seconds"`
	Stopped     bool              `json:"stopped,omitempty"` // before the last wave, since the verdict was clear
	Restarts    int               `json:"restarts"`          // of the server
	Growth      *SoakGrowth       `json:"growth"`            // nil where unknown
	Peak        CheckPeak         `json:"peak"`              // of the levels that were read
	Repeated    *SoakRepeated     `json:"repeated,omitempty"`
	Reclaim     *SoakReclaim      `json:"reclaim,omitempty"`
	Findings    []finding.Finding `json:"findings"`
	Load        SoakLoad          `json:"load"` // of all waves
	Waves       []SoakWave        `json:"waves"`
	Notes       []string          `json:"notes,omitempty"`
}

// SoakGrowth is how many bytes each request adds. The truth lies between Low and High in
// 9 of 10 cases.
type SoakGrowth struct {
	Metric          string `json:"metric"`
	Device          *int   `json:"device,omitempty"`
	Process         string `json:"process"`
	BytesPerRequest int64  `json:"bytes_per_request"`
	Low             int64  `json:"low"`
	High            int64  `json:"high"`
	// Allowed reports whether memory grows steadily, by no more than is allowed.
	Allowed bool `json:"allowed,omitempty"`
	// The same for each token that was generated; nil where there are none.
	BytesPerToken *float64 `json:"bytes_per_token"`
	LowPerToken   *float64 `json:"low_per_token"`
	HighPerToken  *float64 `json:"high_per_token"`
}

// SoakRepeated is what waves of requests that had been sent before added, which no cache
// that is keyed by their content grows by.
type SoakRepeated struct {
	Grows           bool  `json:"grows"`
	BytesPerRequest int64 `json:"bytes_per_request"`
}

// SoakReclaim is what the command of --reclaim-cmd did.
type SoakReclaim struct {
	Command string `json:"command"`
	// ReleasedBytes is what it released after a wave, in the mean.
	ReleasedBytes int64 `json:"released_bytes"`
	// Without is the verdict if what it released had been kept.
	Without finding.Verdict `json:"verdict_without"`
}

// SoakLoad is what became of requests.
type SoakLoad struct {
	Requests     int64            `json:"requests"` // that ended one way or another
	Completed    int64            `json:"completed"`
	Aborted      int64            `json:"aborted"` // by the client, on purpose
	Failed       int64            `json:"failed"`
	Errors       map[string]int64 `json:"errors"` // by kind; a request can meet several
	Example      string           `json:"example,omitempty"`
	PromptTokens int64            `json:"prompt_tokens"`
	OutputTokens int64            `json:"output_tokens"`
	Seconds      float64          `json:"seconds"`
	TTFT         *SoakLatency     `json:"ttft"` // time to the first token
	TPOT         *SoakLatency     `json:"tpot"` // time of each further token
	Latency      *SoakLatency     `json:"latency"`
}

// SoakLatency is half of the times and 19 of 20 at most, in milliseconds.
type SoakLatency struct {
	P50 float64 `json:"p50_ms"`
	P95 float64 `json:"p95_ms"`
}

// SoakWave is a wave and what the server held in the quiet after it. Wave 0 is before any
// load.
type SoakWave struct {
	Wave     int  `json:"wave"`
	Repeats  int  `json:"repeats,omitempty"` // the wave whose requests were sent again
	WarmUp   bool `json:"warm_up,omitempty"` // not judged
	Unjudged bool `json:"unjudged,omitempty"`
	// Ended reports whether the server ended in this wave or in the quiet after it, and
	// Restarted whether it then answered again.
	Ended     bool      `json:"ended,omitempty"`
	Restarted bool      `json:"restarted,omitempty"`
	Load      *SoakLoad `json:"load,omitempty"`
	HostBytes *int64    `json:"host_bytes"` // nil where it was not read
	// Settled is how long the quiet was, seconds; Falling states that memory was still
	// falling at its end.
	Settled float64 `json:"settled_seconds"`
	Falling bool    `json:"falling,omitempty"`
	// BeforeReclaim is what was held before the command of --reclaim-cmd.
	BeforeReclaim *int64        `json:"host_bytes_before_reclaim,omitempty"`
	Devices       []SoakDevice  `json:"devices"`
	Processes     []SoakProcess `json:"processes"`
	Engine        *sample.Load  `json:"engine"` // what the engine reports of itself; nil where it does not
}

// Host returns what was held on the host after the wave; false where it was not read.
func (w *SoakWave) Host() (bytes int64, ok bool) {
	if w.HostBytes == nil {
		return 0, false
	}
	return *w.HostBytes, true
}

// SoakDevice is what the server's processes hold of a device: by the driver's count, or
// what PyTorch has reserved.
type SoakDevice struct {
	Device int   `json:"device"`
	Bytes  int64 `json:"bytes"`
	// Allocated is what PyTorch's tensors have of it; nil where that is not known of
	// any process.
	Allocated *int64 `json:"allocated_bytes"`
}

// SoakProcess is a process of the server. Host memory is that which is not backed by a
// file.
type SoakProcess struct {
	PID       int          `json:"pid"`
	Command   string       `json:"command"`
	HostBytes int64        `json:"host_bytes"`
	Devices   []SoakDevice `json:"devices"`
}
