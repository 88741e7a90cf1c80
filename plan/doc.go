// Package plan computes the memory that a model will take before it runs: served
// by an inference engine ([Serving]), in a training step ([Training]), or in a step
// of reinforcement learning in which both share the GPUs ([RL]). It also lays what
// a run logged beside its plan.
//
// What follows from shapes and from the code of engines is a figure; what does not
// is a [Range], with its source. No constant is fitted to observed runs: those are
// for [Against]. Sizes are bytes, of the GPU that has least to spare.
//
// Nothing here reads files or keeps state; values can be used by several goroutines.
package plan
