//go:build linux

// Package eventtest is the test suite that every [event.Source] has to pass: it checks
// what a source that sees system calls reports when a program makes each of them and,
// for every source, that a ledger fed by it agrees with the kernel.
//
// It is for tests only. Note that the program is the test's own binary, so a package's
// TestMain has to call [Main] first.
package eventtest

import (
	"bufio"
	"cmp"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"strandline/host/calls/event"
	"strandline/host/calls/ledger"
	"strandline/host/code/symbolize"
	"strandline/host/proc/procfs"
)

// A Program is the program that is watched: it takes one step for each line that it is
// sent, and answers with a line.
type Program struct {
	PID int
	In  io.Writer
	Out *bufio.Reader
}

// Step sends a line, unless it is empty, and waits for the answer.
func (p *Program) Step(t testing.TB, line string) string {
	t.Helper()
	if line != "" {
		if _, err := io.WriteString(p.In, line+"\n"); err != nil {
			t.Fatal(err)
		}
	}
	answer, err := p.Out.ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(answer)
}

// A Start starts a command that a source watches, or skips the test if there is no such
// source. The program ends with the test.
type Start func(t *testing.T, command []string) (event.Source, *Program)

// Run tests a source. Each test restarts the program.
func Run(t *testing.T, start Start) {
	for _, c := range []struct {
		name  string
		calls bool // for sources that see calls
		test  func(t *testing.T, s event.Source, p *Program)
	}{
		{"ledger agrees with the kernel", false, agrees},
		{"polls go on", false, polls},
		{"every call is seen", true, everyCall},
		{"stacks are copied as allowed", true, samples},
		{"children are followed", true, children},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, p := start(t, command())
			if c.calls && !s.SeesCalls() {
				return
			}
			p.Step(t, "")
			c.test(t, s, p)
			s.Close()
			s.Close() // a second call does nothing
		})
	}
}

// patience is how long a test waits for what must come.
const patience = 2 * time.Minute

// collect polls until it has seen enough.
func collect(t *testing.T, s event.Source, done func(all *event.Batch) bool) *event.Batch {
	t.Helper()
	all := &event.Batch{}
	for deadline := time.Now().Add(patience); time.Now().Before(deadline); time.Sleep(2 * time.Millisecond) {
		b, err := s.Poll()
		if err != nil {
			t.Fatal(err)
		}
		if b.Until < all.Until {
			t.Fatalf("a batch ends at %d, the one before at %d", b.Until, all.Until)
		}
		for _, e := range b.Events {
			if n := len(all.Events); e.Time > b.Until || n > 0 && e.Time < all.Events[n-1].Time {
				t.Fatalf("out of order in a batch up to %d: %+v", b.Until, e)
			}
			all.Events = append(all.Events, e)
		}
		all.Samples, all.Until = append(all.Samples, b.Samples...), b.Until
		if done(all) {
			return all
		}
	}
	t.Fatalf("not seen in time; of %d events the last are %+v", len(all.Events), all.Events[max(0, len(all.Events)-20):])
	return nil
}

// find returns the first event of an operation that matches.
func find(all *event.Batch, op event.Op, fits func(e *event.Event) bool) (e event.Event, ok bool) {
	i := slices.IndexFunc(all.Events, func(e event.Event) bool { return e.Op == op && fits(&e) })
	if i < 0 {
		return event.Event{}, false
	}
	return all.Events[i], true
}

// agrees compares the ledger with the kernel's list while the program is idle.
func agrees(t *testing.T, s event.Source, p *Program) {
	names := symbolize.New()
	defer names.Close()
	tr, err := ledger.NewTrace(procfs.Process(p.PID), s, names, event.System)
	if err != nil {
		t.Fatal(err)
	}
	p.Step(t, "all")
	var kept uint64
	if _, err := fmt.Sscan(p.Step(t, "keep"), &kept); err != nil {
		t.Fatal(err)
	}
	// The program's runtime maps and unmaps at any time: at some moment the two agree.
	for deadline := time.Now().Add(patience); ; {
		if err := tr.Settle(); err != nil {
			t.Fatal(err)
		}
		wrong := differences(t, tr, procfs.Process(p.PID), kept)
		if wrong == "" {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(wrong)
		}
	}
}

// differences states where a ledger differs from the kernel's list, or that it does not
// know that the mapping at an address is new; it is empty if neither is the case.
func differences(t *testing.T, tr *ledger.Trace, p procfs.Process, kept uint64) string {
	t.Helper()
	maps, err := p.Maps()
	if err != nil {
		t.Fatal(err)
	}
	type addresses struct{ start, end uint64 }
	join := func(all []addresses) (out []addresses) {
		slices.SortFunc(all, func(a, b addresses) int { return cmp.Compare(a.start, b.start) })
		for _, a := range all {
			if n := len(out); n > 0 && out[n-1].end == a.start {
				out[n-1].end = a.end
			} else {
				out = append(out, a)
			}
		}
		return out
	}
	var have, want []addresses
	known := int64(0)
	tr.Ledger.Space(uint32(p)).Each(func(iv *ledger.Interval) {
		have = append(have, addresses{iv.Start, iv.End})
		if iv.Cause != ledger.Before && iv.Start < kept+keptSize && iv.End > kept {
			known += int64(min(iv.End, kept+keptSize) - max(iv.Start, kept))
		}
	})
	for _, m := range maps {
		want = append(want, addresses{m.Start, m.End})
	}
	if have, want = join(have), join(want); !slices.Equal(have, want) {
		return fmt.Sprintf("the ledger has %x, the kernel %x", have, want)
	}
	if known != keptSize {
		return fmt.Sprintf("%d bytes at %x are known to be new, want %d", known, kept, keptSize)
	}
	return ""
}

// polls keeps polling, even after the program has ended.
func polls(t *testing.T, s event.Source, p *Program) {
	from := event.Now()
	collect(t, s, func(all *event.Batch) bool { return all.Until > from })
	unix.Kill(p.PID, unix.SIGKILL)
	collect(t, s, func(all *event.Batch) bool {
		_, ended := find(all, event.Exit, func(e *event.Event) bool { return e.Child() == uint32(p.PID) })
		return ended || !s.SeesCalls()
	})
}

// everyCall has the program make each call that changes mappings.
func everyCall(t *testing.T, s event.Source, p *Program) {
	p.Step(t, "all")
	pid := uint32(p.PID)
	all := collect(t, s, func(all *event.Batch) bool {
		_, last := find(all, event.Detach, func(e *event.Event) bool { return e.PID == pid })
		return last
	})
	one := func(op event.Op, fits func(e *event.Event) bool) event.Event {
		t.Helper()
		e, ok := find(all, op, func(e *event.Event) bool { return e.PID == pid && fits(e) })
		if !ok {
			t.Errorf("%s is not among %+v", op, all.Events)
		}
		return e
	}
	made := one(event.Map, func(e *event.Event) bool { return e.Len == size && e.Prot == 3 && e.Flags == anonymous })
	if made.Place.IP == 0 || made.Place.Caller == 0 || made.TID == 0 || made.Class != event.SizeClass(size) {
		t.Errorf("got %+v", made)
	}
	moved := one(event.Remap, func(e *event.Event) bool { return e.Old == made.Addr && e.OldLen == size && e.Len == 2*size })
	if moved.Took == 0 || uint64(moved.Took) > moved.Time-made.Time {
		t.Errorf("mremap took %d ns", moved.Took)
	}
	one(event.Protect, func(e *event.Event) bool { return e.Addr == moved.Addr && e.Len == page && e.Prot == 0 })
	one(event.Advise, func(e *event.Event) bool { return e.Addr == moved.Addr+page && e.Flags == unix.MADV_DONTNEED })
	one(event.Unmap, func(e *event.Event) bool { return e.Addr == moved.Addr && e.Len == page })
	one(event.Break, func(e *event.Event) bool { return e.Addr != 0 })
	file := one(event.Memfd, func(e *event.Event) bool { return e.FD > 0 })
	one(event.Truncate, func(e *event.Event) bool { return e.FD == file.FD && e.Len == size })
	at := one(event.Attach, func(e *event.Event) bool { return e.Addr != 0 })
	one(event.Detach, func(e *event.Event) bool { return e.Addr == at.Addr })
}

// samples has one stack copied if one is allowed, and none if none is.
func samples(t *testing.T, s event.Source, p *Program) {
	mapped := func(all *event.Batch) (event.Event, bool) {
		return find(all, event.Map, func(e *event.Event) bool { return e.Len == keptSize })
	}
	copied := func(all *event.Batch, made event.Event) int {
		return slices.IndexFunc(all.Samples, func(x event.Sample) bool { return x.Time == made.Time })
	}
	kept := func() *event.Batch {
		p.Step(t, "keep")
		return collect(t, s, func(all *event.Batch) bool {
			made, ok := mapped(all)
			return ok && (!made.Sampled || copied(all, made) >= 0)
		})
	}
	if err := s.Budget(0); err != nil {
		t.Fatal(err)
	}
	if all := kept(); len(all.Samples) > 0 {
		t.Errorf("%d stacks were copied, and none was allowed", len(all.Samples))
	}
	if err := s.Budget(100); err != nil {
		t.Fatal(err)
	}
	all := kept()
	made, _ := mapped(all)
	i := copied(all, made)
	if !made.Sampled || i < 0 {
		t.Fatalf("the stack of %+v is not among %d", made, len(all.Samples))
	}
	x := &all.Samples[i]
	switch {
	case x.PID != made.PID || x.TID != made.TID || x.Addr != made.Addr || x.Len != made.Len || x.Regs.IP != made.Place.IP:
		t.Errorf("the sample %d/%d of %#x, %d bytes at %#x is not of %+v", x.PID, x.TID, x.Addr, x.Len, x.Regs.IP, made)
	case x.Base > x.Regs.SP || x.Regs.SP-x.Base >= page || len(x.Stack) < page:
		t.Errorf("%d bytes from %#x, with the stack pointer at %#x", len(x.Stack), x.Base, x.Regs.SP)
	case binary.LittleEndian.Uint64(x.Stack[x.Regs.SP-x.Base:]) != made.Place.Caller:
		t.Error("the word on top of the copied stack is not the caller")
	}
}

// children sees a child start, run another program, map memory and end.
func children(t *testing.T, s event.Source, p *Program) {
	var child int
	if _, err := fmt.Sscan(p.Step(t, "child"), &child); err != nil {
		t.Fatal(err)
	}
	all := collect(t, s, func(all *event.Batch) bool {
		_, ended := find(all, event.Exit, func(e *event.Event) bool { return e.Child() == uint32(child) })
		return ended
	})
	var seen []event.Op
	for _, e := range all.Events {
		if (e.Op == event.Fork && e.Child() == uint32(child) || e.PID == uint32(child)) && !slices.Contains(seen, e.Op) {
			seen = append(seen, e.Op)
		}
	}
	if len(seen) < 4 || seen[0] != event.Fork || seen[1] != event.Exec || !slices.Contains(seen, event.Map) || seen[len(seen)-1] != event.Exit {
		t.Errorf("of the child %v are seen, in this order", seen)
	}
}

// command returns the program's command line, for a Start.
func command() []string { return []string{"/proc/self/exe", role} }
