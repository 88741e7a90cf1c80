package ledger

import (
	"testing"

	"strandline/host/calls/event"
)

// A place that two ways lead to, one after the other: what was made without a
// stack is attributed to the way that was taken at the time, not to the one that made
// the most; a stack that comes late is accepted.
func TestInferTheNearest(t *testing.T) {
	const size, warm, leak = 1 << 20, 1, 2
	l := New()
	s := l.Space(1)
	at := func(i uint64) uint64 { return i * size }
	for i := range uint64(40) {
		l.apply(&event.Event{Op: event.Map, Time: i + 1, PID: 1, Addr: at(i), Len: size, Prot: event.ProtWrite, Flags: event.MapAnonymous})
		switch {
		case i < 30 && i%2 == 0:
			l.SetStack(1, i+1, at(i), size, warm)
		case i == 30 || i == 39:
			l.SetStack(1, i+1, at(i), size, leak)
		}
	}
	l.inferStacks()
	l.SetStack(1, 30, at(29), size, leak)
	type of struct {
		stack    int
		inferred bool
	}
	live := map[of]int64{}
	s.Each(func(iv *Interval) {
		c := l.Causes[iv.Cause]
		live[of{c.stack, c.inferred}] += iv.Size() / size
	})
	// Of the 30 of the first way 15 were copied, the last of the others was then
	// found to be of the second.
	for key, want := range map[of]int64{{warm, false}: 15, {warm, true}: 14, {leak, false}: 3, {leak, true}: 8} {
		if live[key] != want {
			t.Errorf("stack %d, inferred %v: %d mappings, want %d", key.stack, key.inferred, live[key], want)
		}
	}
	for _, c := range l.Causes[2:] {
		if c.stack == 0 && (c.Live != 0 || c.Count != 0) {
			t.Errorf("%d bytes are of no stack", c.Live)
		}
	}
}
