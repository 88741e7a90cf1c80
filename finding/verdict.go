package finding

// A Verdict is the weightiest thing that was found, in a word.
type Verdict string

// The verdicts. Unknown is the answer where the input holds too little to judge.
const (
	OK         Verdict = "ok"
	Leaking    Verdict = "leak"
	Fragmented Verdict = "fragmentation"
	RanOut     Verdict = "oom"
	Over       Verdict = "over" // above what a gate allows, without a leak
	Unknown    Verdict = "unknown"
)
