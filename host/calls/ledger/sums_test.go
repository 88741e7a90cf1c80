//go:build linux

package ledger

import (
	"os"
	"reflect"
	"slices"
	"testing"

	"strandline/host/calls/event"
	"strandline/host/calls/polling"
	"strandline/host/code/symbolize"
	"strandline/host/proc/procfs"
)

// TestSumsChangeNothing sums up a ledger that has calls with and without stacks:
// it is the same after, and so are the sums of it.
func TestSumsChangeNothing(t *testing.T) {
	names := symbolize.New()
	defer names.Close()
	tr, err := NewTrace(procfs.Process(os.Getpid()), polling.Source{}, names, event.System)
	if err != nil {
		t.Fatal(err)
	}
	const nobody, size = 1 << 22, 1 << 20
	stack := tr.Stacks.Intern(symbolize.Stack{Frames: []symbolize.Frame{{Object: "/x/libengine.so"}}})
	for i := range uint64(10) {
		tr.Ledger.apply(&event.Event{Op: event.Map, Time: event.Now(), PID: nobody, Addr: (i + 1) * 2 * size, Len: size, Flags: event.MapAnonymous, Place: event.Place{IP: i % 2}})
		if i == 4 {
			tr.Ledger.SetStack(nobody, tr.Ledger.latest(nobody), (i+1)*2*size, size, stack)
		}
	}
	type state struct {
		causes    []Cause
		intervals []Interval
	}
	now := func() (s state) {
		s.causes = slices.Clone(tr.Ledger.Causes)
		tr.Ledger.Space(nobody).Each(func(iv *Interval) { s.intervals = append(s.intervals, *iv) })
		return s
	}
	before := now()
	first := tr.Sums()
	if after := now(); !reflect.DeepEqual(before, after) {
		t.Errorf("the ledger is\n%+v after summing up, and was\n%+v", after, before)
	}
	if second := tr.Sums(); !reflect.DeepEqual(first.Uses, second.Uses) {
		t.Errorf("the sums are\n%+v the second time, and were\n%+v", second.Uses, first.Uses)
	}
	if i := slices.IndexFunc(first.Uses, func(u Use) bool { return u.ID == stack }); i < 0 || first.Uses[i].Live != 5*size || first.Uses[i].Inferred != 4*size {
		t.Errorf("%+v: want the stack to hold what its place made", first.Uses)
	}
}

// latest returns when the last interval of a process was made.
func (l *Ledger) latest(pid uint32) (at uint64) {
	l.Space(pid).Each(func(iv *Interval) { at = max(at, iv.since) })
	return at
}
