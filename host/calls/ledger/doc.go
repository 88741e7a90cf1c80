// Package ledger knows what is mapped in the watched processes, by which calls and
// since when: it applies events, corrects itself from the kernel's own lists, and sums
// up by stack what explains the growth of a process. [Trace] follows a process
// and its children and keeps a [Ledger] of them.
//
// It does not judge whether growth is a leak (judge/processes does), and does not see calls
// itself: events come from an event.Source. Note that events and the kernel's lists
// are not taken at the same instant; only differences that persist over consecutive
// checks count.
package ledger
