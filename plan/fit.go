package plan

// Component is a part of a GPU's memory.
type Component struct {
	Name   string
	Size   Range
	Source string // what the figure is based on
}

// Verdict is whether a set-up fits.
type Verdict string

const (
	Fits    Verdict = "fits"
	Tight   Verdict = "may fit" // at one end of the ranges
	TooMuch Verdict = "does not fit"
	NotRun  Verdict = "does not run" // the engine refuses it, whatever the memory
)

// Possible reports whether a set-up may run.
func (v Verdict) Possible() bool { return v == Fits || v == Tight }

// Judge returns whether a peak and what is outside PyTorch fit a GPU.
func Judge(peak, outside Range, total int64) Verdict {
	switch all := peak.Plus(outside); {
	case all.High <= total:
		return Fits
	case all.Low <= total:
		return Tight
	}
	return TooMuch
}

// Names of the components, in the order in which they are drawn.
const (
	Weights     = "weights"
	KVCache     = "KV cache"
	Activations = "activations"
	Graphs      = "CUDA graphs"
	NonTorch    = "non-torch"
	Buffers     = "buffers" // in the host's memory
	Slack       = "slack"
)
