// Package bpf watches, in the kernel, the system calls by which processes change their
// mappings, and the functions of a GPU's driver. Its [Tracer] implements event.Source:
// it delivers what happened, in order, and knows nothing of leaks. [Requests] watches the
// requests to PyTorch's allocator in a running process (requests.go, c/requests.c);
// both attach to functions of a library with the probes of uprobes_linux.go.
//
// A mapping that is made and then unmapped as a whole between two calls of
// [Tracer.Poll] is paired in the kernel and only counted. Stacks are copied for some of
// the calls from each place, at a rate that user space sets.
//
// Note that structure layouts are written down twice, in c/events.h and here, and
// that the committed object must be built from those sources by build.sh.
package bpf
