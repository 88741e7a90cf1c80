package ledger

import (
	"testing"

	"strandline/host/calls/event"
	"strandline/host/proc/procfs"
)

// What shmat attaches is known with its stack as soon as the kernel's list shows how
// large it is.
func TestAttached(t *testing.T) {
	const at, size = 0x7000_0000, 5 * testPage
	l := New()
	s := l.Space(1)
	l.check(s, nil, 1) // of what was there before
	call := event.Event{Time: 10, PID: 1, Op: event.Attach, Addr: at, Place: event.Place{IP: 7}}
	l.apply(&call)
	if !l.Lives(1, 10, at, 0) {
		t.Fatal("the stack of the call would be thrown away")
	}
	l.SetStack(1, 10, at, 0, 3)
	gone := call
	gone.Time, gone.Addr = 11, at+1<<20
	l.apply(&gone)
	list := []procfs.Mapping{{Start: at, End: at + size, Read: true, Write: true, Shared: true, Path: "/SYSV00000000 (deleted)", Inode: 9}}
	l.check(s, list, 20)
	var c *Cause
	s.Each(func(iv *Interval) {
		if iv.Start != at || iv.Size() != size || iv.kind != Shared {
			t.Errorf("got %+v", iv)
		}
		c = &l.Causes[iv.Cause]
	})
	if c == nil || c.Op != event.Attach || c.stack != 3 || c.Live != size || c.calls != 1 {
		t.Fatalf("got %+v", c)
	}
	if len(s.attached) > 0 {
		t.Errorf("waiting still: %v", s.attached)
	}
	l.apply(&event.Event{Time: 30, PID: 1, Op: event.Detach, Addr: at})
	if c.Live != 0 {
		t.Errorf("%d bytes live", c.Live)
	}
}

// A call that is younger than the list waits for the next one.
func TestAttachedAfterTheList(t *testing.T) {
	l := New()
	s := l.Space(1)
	l.check(s, nil, 1)
	l.apply(&event.Event{Time: 10, PID: 1, Op: event.Attach, Addr: 4 * testPage})
	old := []procfs.Mapping{{Start: 4 * testPage, End: 6 * testPage}}
	if l.check(s, old, 5); len(s.attached) != 1 {
		t.Error("it was taken for another mapping")
	}
}

// MAP_HUGETLB makes a mapping of whole huge pages.
func TestHugePagesAreWhole(t *testing.T) {
	const twoMiB, anonymous = 21 << 26, 0x22
	for _, c := range []struct {
		flags uint32
		want  int64
	}{{anonymous, testPage}, {anonymous | mapHuge | twoMiB, 2 << 20}, {anonymous | mapHuge | 30<<26, 1 << 30}, {anonymous | mapHuge, int64(procfs.HugePage())}} {
		l := New()
		l.apply(&event.Event{Time: 1, PID: 1, Op: event.Map, Addr: 1 << 30, Len: testPage, Flags: c.flags})
		l.Space(1).Each(func(iv *Interval) {
			if iv.Size() != c.want {
				t.Errorf("flags %#x: %d bytes", c.flags, iv.Size())
			}
		})
	}
}

// A site has a stack from its first on, until its process ends.
func TestHasStack(t *testing.T) {
	l := New()
	call := event.Event{Time: 1, PID: 1, Op: event.Map, Addr: testPage, Len: testPage}
	site := SiteOf(&call)
	l.apply(&call)
	if l.HasStack(site) {
		t.Error("it has none yet")
	}
	l.SetStack(1, 1, testPage, testPage, 5)
	if !l.HasStack(site) {
		t.Error("it has one")
	}
	if l.End(1, 2); l.HasStack(site) {
		t.Error("its process has ended")
	}
}
