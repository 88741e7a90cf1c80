// Package host judges what a process shows from outside: whether what its calls
// mapped, its memory by class, and what it took from a GPU's driver grow, by which
// place, and what to do about it. [Host] is the way in, growth.go judges the shape of
// a curve, classes.go the classes of memory, driver.go allocations from the driver.
//
// It reads no process: sums, observations and accounts are passed in. Note that a
// process that only warms up grows, too, so growth has to continue to be a leak.
package host
