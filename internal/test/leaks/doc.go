// Package leaks holds small programs that each grow in one way, for tests: what
// is reported of a process can be checked against what it really does. The programs
// are built and started here.
//
// It runs on Linux alone. Note that a machine that is short of memory takes pages back,
// so that some programs do not grow there; [Program.Kept] skips their test.
package leaks
