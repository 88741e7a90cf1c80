package ledger

import (
	"strandline/host/calls/event"
	"strandline/host/proc/procfs"
)

const (
	// maxFiles bounds the number of in-memory files that are known.
	maxFiles = 1 << 14
	// pruneEvery is how often to look for closed files if there are that many, in ns.
	pruneEvery = 10_000_000_000
)

// A madeFile is an in-memory file and who made it: who called memfd_create, or set the
// length of a file in /dev/shm.
type madeFile struct {
	stack int // 0 if it was not copied
	pid   uint32
	at    uint64
	place event.Place
}

// A call is a call by a process at one moment.
type call struct {
	pid uint32
	at  uint64
}

// files are the in-memory files that were made during a trace. They do not know which
// of the files still exist, or who holds them.
type files struct {
	made map[procfs.FileID]*madeFile
	by   map[call]*madeFile
	// pruned is when closed files were last forgotten.
	pruned uint64
}

func newFiles() *files {
	return &files{made: map[procfs.FileID]*madeFile{}, by: map[call]*madeFile{}}
}

// enter takes in that a file was made or its length was set. A file that is already
// closed is not kept. What memfd_create returned is new; setting the length shows who
// made a file only if nothing else does.
func (f *files) enter(e *event.Event) {
	file, ok := procfs.Process(e.PID).MemoryFile(e.FD)
	known := f.made[file.ID]
	if !ok || known == nil && !f.room(e.Time) || known != nil && e.Op == event.Truncate {
		return
	}
	f.forget(file.ID)
	m := &madeFile{pid: e.PID, at: e.Time, place: e.Place}
	f.made[file.ID], f.by[call{e.PID, e.Time}] = m, m
}

func (f *files) forget(id procfs.FileID) {
	if m := f.made[id]; m != nil {
		delete(f.by, call{m.pid, m.at})
		delete(f.made, id)
	}
}

// room makes room for another file, and reports whether there is any.
func (f *files) room(now uint64) bool {
	if len(f.made) < maxFiles || now-f.pruned < pruneEvery {
		return len(f.made) < maxFiles
	}
	f.pruned = now
	held := map[uint32]map[procfs.FileID]bool{}
	for id, m := range f.made {
		if held[m.pid] == nil {
			held[m.pid] = map[procfs.FileID]bool{}
			if open, err := procfs.Process(m.pid).Descriptors(); err == nil {
				for _, file := range open.Memory {
					held[m.pid][file.ID] = true
				}
			}
		}
		if !held[m.pid][id] {
			f.forget(id)
		}
	}
	return len(f.made) < maxFiles
}

// stacks returns the stacks of the calls that made files. A stack that was not copied
// is assumed to be that of another call from the same place, the nearest in time.
func (f *files) stacks() map[procfs.FileID]int {
	type place struct {
		pid uint32
		event.Place
	}
	known := map[place][]copied{}
	for _, m := range f.made {
		if m.stack != 0 {
			known[place{m.pid, m.place}] = append(known[place{m.pid, m.place}], copied{m.at, m.stack})
		}
	}
	byTime(known)
	out := map[procfs.FileID]int{}
	for id, m := range f.made {
		if calls := known[place{m.pid, m.place}]; len(calls) > 0 {
			out[id] = nearest(calls, m.at)
		}
	}
	return out
}
