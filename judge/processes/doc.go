// Package processes judges what a process shows from outside: whether its mappings, its memory
// by class and its allocations from a GPU's driver grow, where in the code, and what to
// do about it. [Host] is the entry point; kinds.go has the table of the kinds
// of growth, with their words; growth.go judges the shape of a curve, classes.go the
// classes of memory, driver.go allocations from the driver.
//
// It reads no process: sums, observations and accounts are passed in. Note that a process
// that is only warming up grows too, so growth has to continue to be a leak.
package processes
