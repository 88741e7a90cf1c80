// Package gpudriver keeps a ledger of what processes take from the driver of a GPU:
// memory of the device, managed and pinned memory, handles and their bindings, with
// whose code asked for it. It takes part in a ledger.Trace.
//
// It does not know what was taken before the trace began, nor contexts and code of
// kernels: the account of a device in package gpuaccount does. The trap: memory that
// has a handle lives as long as the handle or a binding of it does, and the driver
// gives the number of a handle again.
package gpudriver
