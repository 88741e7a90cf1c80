// Package symbolize turns samples of threads into stacks of named frames, native and
// Python: it unwinds each sample with the image of its process and caches what it has
// read about processes and functions.
//
// It does not decide which calls are sampled. Note that a process's map changes while
// it is read, and that code can be replaced by other code at the same address;
// [Symbolizer.Mapped] has to be called for every mapping, in chronological order.
package symbolize
