package levels

import (
	"cmp"
	"os"
	"strings"

	"strandline/host/proc/procfs"
	"strandline/host/sampling/sample"
)

// A level is the memory of a process that is not of a file, in bytes.
type level struct {
	anonymous int64 // also what it has in common with others since a fork, so that one which ends does not add to the others
	own       int64 // of that, its part of what is in common
	shared    int64 // its part, where that is known
	swapped   int64
}

func (l level) bytes() int64 { return l.anonymous + l.shared + l.swapped }

// share is what adds up to the memory of several processes.
func (l level) share() int64 { return l.own + l.shared + l.swapped }

// Held returns the memory of a process that is not of a file: anonymous, shared or swapped
// out, in bytes. The error is [os.ErrProcessDone] if the process has ended.
func Held(p procfs.Process) (int64, error) {
	l, err := walked(p)
	return l.bytes(), err
}

// walked has the kernel walk the page tables, some 15 ms for each GiB. Meanwhile what the process maps
// and unmaps waits.
func walked(p procfs.Process) (level, error) {
	if u, err := p.Rollup(); err == nil && u.End > 0 {
		return level{int64(u.Anonymous), int64(cmp.Or(u.PSSAnonymous, u.Anonymous)), int64(u.PSSShared), int64(u.Swap)}, nil
	} else if procfs.Lacks(err) {
		return level{}, err // the other figure is a different one
	}
	return counted(p)
}

// counted is by the counters of the kernel, which are there at once. Shared memory counts whole.
func counted(p procfs.Process) (level, error) {
	st, err := p.Status()
	switch {
	case err != nil && !procfs.HasExited(err):
		return level{}, err
	case err != nil || st.VMSize == 0 || strings.HasPrefix(st.State, "Z"):
		return level{}, os.ErrProcessDone
	}
	return level{int64(st.Anon), int64(st.Anon), int64(st.Shared), int64(st.Swapped)}, nil
}

// A Reader reads what processes hold at moments that are compared. Its figure is that of [Held], but the
// page tables of a process are walked only as long as the counters could state something else.
type Reader struct {
	sums    bool // the kernel sums its counters up when they are read
	swapped func() (uint64, error)
	walks   map[sample.ID]walk
}

// A walk is what a process held by its counters and by a walk at the same moment.
type walk struct {
	counted, walked level
	agree           bool // in all but the part of shared memory
}

// NewReader returns a Reader that has read nothing.
func NewReader() *Reader {
	return &Reader{sums: procfs.SumsCounters(), swapped: procfs.Swapped}
}

// Read returns what each of some processes holds, in bytes, without those that have ended. If it need not
// be exact, it is by the counters: they can lag by some pages for each processor, and count shared memory
// in each process.
func (r *Reader) Read(all []sample.ID, exact bool) (map[sample.ID]int64, error) {
	now, out := map[sample.ID]level{}, map[sample.ID]int64{}
	for _, id := range all {
		l, err := counted(procfs.Process(id.PID))
		if procfs.Lacks(err) {
			return nil, err // a sum without it would be too low
		}
		if err == nil {
			now[id], out[id] = l, l.bytes()
		}
	}
	if !exact {
		return out, nil
	}
	suffice := r.suffice(now)
	walks := map[sample.ID]walk{}
	for id, l := range now {
		w := r.walks[id]
		if suffice(w) {
			l.shared = w.walked.shared
			walks[id], out[id] = w, l.bytes()
			continue
		}
		w, err := compared(procfs.Process(id.PID), l)
		if procfs.Lacks(err) {
			return nil, err
		}
		if delete(out, id); err == nil {
			walks[id], out[id] = w, w.walked.bytes()
		}
	}
	r.walks = walks
	return out, nil
}

// suffice returns whether the counters of a process suffice after a walk, by those of all now. The part
// that a process has of shared memory is the one before as long as none of them maps more or less of it.
// What shared memory has in swap is in no counter.
func (r *Reader) suffice(now map[sample.ID]level) func(walk) bool {
	swapped, err := r.swapped()
	same := r.sums && err == nil && swapped == 0
	for id, w := range r.walks {
		same = same && w.counted.shared == now[id].shared // 0 if it has ended
	}
	for id, l := range now {
		same = same && l.shared == r.walks[id].counted.shared
	}
	return func(w walk) bool { return same && w.agree }
}

// compared walks a process whose counters were just read. They agree if nothing moved meanwhile.
func compared(p procfs.Process, before level) (walk, error) {
	l, err := walked(p)
	if err != nil {
		return walk{}, err
	}
	after, err := counted(p)
	agree := err == nil && after == before && l.anonymous == before.anonymous && l.swapped == before.swapped
	return walk{before, l, agree}, nil
}
