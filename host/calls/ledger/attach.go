package ledger

import (
	"strandline/host/calls/event"
	"strandline/host/proc/procfs"
)

// An attachment is a call of shmat, which does not state how large the mapping is.
type attachment struct {
	event.Event
	stack int // 0 if it was not copied
}

// maxAttached bounds a process's calls of shmat that wait for the next check.
const maxAttached = 1 << 12

func (s *Space) attach(e *event.Event) {
	if s.attached == nil {
		s.attached = map[uint64]attachment{}
	}
	if len(s.attached) < maxAttached {
		s.attached[e.Addr] = attachment{Event: *e}
	}
}

// attachmentAt returns the call of shmat that was made at a time and waits for a check.
func (l *Ledger) attachmentAt(pid uint32, at, addr uint64) (a attachment, ok bool) {
	if s := l.spaces[pid]; s != nil {
		a, ok = s.attached[addr]
	}
	return a, ok && a.Time == at
}

// measure enters what calls of shmat attached, using the kernel's list, which was read
// at a time. What is not in the list has been detached again.
func (l *Ledger) measure(s *Space, maps []procfs.Mapping, at uint64) {
	for _, m := range maps {
		if len(s.attached) == 0 {
			return
		}
		a, ok := s.attached[m.Start]
		if !ok || a.Time > at {
			continue
		}
		a.Len = m.End - m.Start
		l.place(s, &a.Event, Interval{kind: kindOf(m), writable: m.Write})
		l.SetStack(s.pid, a.Time, a.Addr, a.Len, a.stack)
		delete(s.attached, m.Start)
	}
	for addr, a := range s.attached {
		if a.Time <= at {
			delete(s.attached, addr)
		}
	}
}
