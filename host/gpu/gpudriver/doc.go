// Package gpudriver keeps a ledger of what processes allocate from the driver of a GPU:
// device memory, managed and pinned memory, handles and their bindings, and which code
// requested it. It takes part in a ledger.Trace.
//
// It does not know what was allocated before the trace began, nor about contexts and
// kernel code: package gpuaccount accounts for those. Note that memory with a handle
// lives as long as the handle or one of its bindings, and that the driver reuses handle
// numbers.
package gpudriver
