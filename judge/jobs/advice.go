package jobs

import (
	"fmt"
	"math"

	"strandline/units"
)

// fixes are what to do about each cause.
var fixes = map[Cause]string{
	Leak:          "find the holder: strandline record -- CMD, or three snapshots of the rank that grows",
	LongInput:     "truncate, pack or bucket samples: one sample is far longer than the rest",
	Imbalance:     "balance the stages or the experts: move layers, or cap the tokens of an expert",
	TooLarge:      "shrink the job: smaller micro batch, activation checkpointing, more sharding",
	Fragmentation: "export PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True",
	OtherProcess:  "end the other process on that GPU, or exclude the GPU",
	Limit:         "raise the limit: the memory fraction, or a whole GPU in place of a slice",
	NotMemory:     "mend the failure that is quoted: memory did not run out",
	HostMemory:    "give the node more memory: fewer data workers, smaller prefetch, sharded checkpoints",
}

// fix is what to do about a cause; empty where the texts do not tell.
func (v *Job) fix() string {
	if v.Confidence < 0.5 || v.Fix != "" {
		return v.Fix
	}
	return fixes[v.Cause]
}

// Again is what a restart from the last checkpoint does, in a sentence.
func (v *Job) Again() string {
	switch r, d := v.Restart, v.Differs; {
	case v.Cause == None:
		return ""
	case r == Helps && v.Cause == Leak && d != nil:
		return fmt.Sprintf("a restart helps for about %s", units.Plural(int64(math.Round(d.Above/d.PerStep)), "step"))
	case r == Helps && v.Cause == Leak:
		return "a restart helps for as many steps as this run made"
	case r == Helps:
		return "a restart helps"
	case r == Repeats:
		return "a restart repeats it"
	}
	return "unknown whether a restart helps"
}
