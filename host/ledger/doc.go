// Package ledger always knows what is mapped in the processes that are watched, by
// which calls and since when: it applies events, corrects itself by the kernel's own
// lists, and sums up by stack what explains the growth of a process. [Ledger] is the
// book; [Trace] follows a process and its children and keeps one.
//
// It does not judge whether growth is a leak, and does not see calls itself: events
// come from an event.Source. The trap: events and the kernel's lists are not of the
// same instant, so a difference counts only if checks in a row find it.
package ledger
