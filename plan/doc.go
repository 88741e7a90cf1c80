// Package plan holds what every plan of memory is made of: sizes that are known
// between bounds ([Range], [Span]), GPUs ([GPU]), how a model is divided among them
// ([Parallel]), whether a sum fits ([Judge]), and a planned component beside what was
// observed ([Checked]).
//
// The plans themselves are made by plan/serving (an inference engine), plan/training
// (a training step) and plan/rl (a step of reinforcement learning in which both share
// the GPUs); plan/model is the architecture that they count from, plan/engine the table of
// engines with their defaults, and plan/observed compares plans with tables of observed runs.
//
// What follows from shapes and from the code of engines is a figure; what does not
// is a [Range], with its source. No constant is fitted to observed runs. Sizes are
// bytes, of the GPU with the least headroom.
//
// Nothing here reads files or keeps state; values can be used by several goroutines.
package plan
