// Package bpf watches, in the kernel, the system calls by which processes change their
// mappings, and the functions of a GPU's driver. Its [Tracer] implements event.Source:
// it delivers what happened, in order, and knows nothing of leaks.
//
// A mapping that is made and unmapped whole between two calls of [Tracer.Poll] is
// paired in the kernel and only counted. Stacks are copied for some calls of each
// place, at a rate that user space sets.
//
// Note that the layouts of structures are written twice, in c/mappings.c and here, and
// that the committed object has to be built from those sources by build.sh.
package bpf
