// Package host judges what a process shows from outside: whether what its calls
// mapped, its memory by class, and what it took from a GPU's driver grow, by which
// place, and what to do about it.
//
// It reads no process: sums, observations and accounts are handed in. The trap: a
// process that only warms up grows, too, so growth has to go on to be a leak.
package host
