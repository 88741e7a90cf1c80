package ptrace

import (
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"strandline/host/calls/event"
	"strandline/host/code/pyframes"
	"strandline/host/proc/procfs"
)

const (
	options = unix.PTRACE_O_TRACESECCOMP | unix.PTRACE_O_TRACECLONE | unix.PTRACE_O_TRACEFORK | unix.PTRACE_O_TRACEVFORK |
		unix.PTRACE_O_TRACEEXEC | unix.PTRACE_O_TRACESYSGOOD | unix.PTRACE_O_EXITKILL
	// maxEvents bounds the events that wait to be polled.
	maxEvents  = 1 << 19
	maxSamples = 1 << 10
)

// A Tracer is the command, traced.
type Tracer struct {
	PID int

	lock    sync.Mutex
	batch   event.Batch
	serving uint64 // when the stop that is being served began; 0 if none is
	budget  int
	pace    map[site]*paceOf
	python  map[uint32]event.PythonLayout
	large   map[uint32]bool
	ended   chan struct{} // closed when nothing is traced any more
	known   chan struct{} // closed when the status of the command is known
	once    sync.Once     // closes it
	begin   func()        // lets the command run, once
	nested  string        // a program that tried to trace others itself
	status  unix.WaitStatus
	threads map[int]*thread // used by one goroutine only
	owners  map[uint32]uint32
}

// A thread is a traced thread; call is the system call that it has entered and not yet
// left.
type thread struct {
	pid     uint32
	call    *unix.PtraceRegs
	entered uint64
}

type site struct {
	pid   uint32
	op    event.Op
	class uint32
	place event.Place
}

type paceOf struct{ next, every uint64 }

// Start starts a command through the program at helper, whose arguments args lead to
// [Filtered] with descriptor 3. The command stays stopped until [Tracer.Go].
func Start(helper string, args []string, stdin, stdout, stderr *os.File) (*Tracer, func(), error) {
	ready, release, err := os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	defer ready.Close()
	cmd := exec.Command(helper, args...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = stdin, stdout, stderr
	cmd.ExtraFiles = []*os.File{ready}
	t := &Tracer{
		pace: map[site]*paceOf{}, python: map[uint32]event.PythonLayout{}, large: map[uint32]bool{},
		threads: map[int]*thread{}, owners: map[uint32]uint32{}, ended: make(chan struct{}), known: make(chan struct{}),
	}
	started := make(chan error)
	released := make(chan struct{})
	go func() {
		runtime.LockOSThread() // all of ptrace belongs to one thread
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		t.PID = cmd.Process.Pid
		if err := t.seize(); err != nil {
			cmd.Process.Kill()
			cmd.Wait()
			started <- fmt.Errorf("ptrace: %w", err)
			return
		}
		started <- nil
		<-released
		release.Write([]byte{1})
		release.Close()
		t.loop()
	}()
	if err := <-started; err != nil {
		release.Close()
		return nil, nil, err
	}
	t.begin = sync.OnceFunc(func() { close(released) })
	return t, t.begin, nil
}

// seize attaches to all threads of the helper; threads that these create meanwhile are
// attached along with them.
func (t *Tracer) seize() error {
	for {
		tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", t.PID))
		if err != nil || len(tasks) == 0 {
			return errors.Join(err, os.ErrProcessDone)
		}
		added := false
		for _, task := range tasks {
			tid, _ := strconv.Atoi(task.Name())
			if t.threads[tid] != nil {
				continue
			}
			_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_SEIZE, uintptr(tid), 0, options, 0, 0)
			if errno != 0 && errno != unix.EPERM { // a thread that was attached along with its creator refuses
				return errno
			}
			t.threads[tid] = &thread{pid: uint32(t.PID)}
			added = true
		}
		if !added {
			return nil
		}
	}
}

// loop serves the stops until nothing is left to trace.
func (t *Tracer) loop() {
	for len(t.threads) > 0 {
		var ws unix.WaitStatus
		tid, err := unix.Wait4(-1, &ws, unix.WALL|unix.WNOTHREAD, nil)
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			break
		}
		t.serve(event.Now())
		t.stop(tid, ws)
		t.serve(0)
	}
	close(t.ended)
}

// serve records that a stop has been in service since a time; 0 means that it no longer
// is. Its event has a later time, and may be entered after the next poll.
func (t *Tracer) serve(since uint64) {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.serving = since
}

func (t *Tracer) stop(tid int, ws unix.WaitStatus) {
	if ws.Exited() || ws.Signaled() {
		t.threadEnded(tid, ws)
		return
	}
	th := t.threads[tid]
	if th == nil { // its creator's stop comes later
		th = &thread{pid: groupOf(tid)}
		t.threads[tid] = th
	}
	signal := 0
	switch stop := int(ws) >> 16; {
	case stop == unix.PTRACE_EVENT_SECCOMP:
		if t.entered(tid, th) {
			unix.PtraceSyscall(tid, 0)
			return
		}
	case ws.StopSignal() == unix.SIGTRAP|0x80:
		t.callEnded(tid, th)
	case stop == unix.PTRACE_EVENT_FORK, stop == unix.PTRACE_EVENT_VFORK, stop == unix.PTRACE_EVENT_CLONE:
		t.forked(tid, th, stop)
	case stop == unix.PTRACE_EVENT_EXEC:
		t.executed(tid)
	case stop == unix.PTRACE_EVENT_STOP:
		switch ws.StopSignal() {
		case unix.SIGSTOP, unix.SIGTSTP, unix.SIGTTIN, unix.SIGTTOU: // for all threads: it stays stopped
			unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_LISTEN, uintptr(tid), 0, 0, 0, 0)
			return
		}
	default:
		signal = int(ws.StopSignal())
	}
	unix.PtraceCont(tid, signal)
}

// ownNumber returns a thread's number in its own pid namespace.
func ownNumber(tid int) int {
	if st, err := procfs.Process(tid).Status(); err == nil && len(st.NamespacePIDs) > 0 {
		return st.NamespacePIDs[len(st.NamespacePIDs)-1]
	}
	return tid
}

// groupOf returns the process of a thread.
func groupOf(tid int) uint32 {
	if st, err := procfs.Process(tid).Status(); err == nil && st.Group > 0 {
		return uint32(st.Group)
	}
	return uint32(tid)
}

func (t *Tracer) owner(pid uint32) uint32 {
	if o, ok := t.owners[pid]; ok {
		return o
	}
	return pid
}

func (t *Tracer) threadEnded(tid int, ws unix.WaitStatus) {
	th := t.threads[tid]
	delete(t.threads, tid)
	if tid == t.PID {
		t.once.Do(func() {
			t.status = ws
			close(t.known)
		})
	}
	if th != nil && th.pid == uint32(tid) {
		t.event(event.Event{Op: event.Exit, PID: t.owner(th.pid), TID: uint32(tid), Addr: uint64(tid)})
		delete(t.owners, th.pid)
		t.lock.Lock()
		delete(t.python, th.pid)
		delete(t.large, th.pid)
		t.lock.Unlock()
	}
}

func (t *Tracer) forked(tid int, th *thread, stop int) {
	id, err := unix.PtraceGetEventMsg(tid)
	if err != nil {
		return
	}
	child := int(id)
	if groupOf(child) != uint32(child) {
		t.threads[child] = &thread{pid: th.pid}
		return
	}
	t.threads[child] = &thread{pid: uint32(child)}
	owner := uint32(child)
	if stop == unix.PTRACE_EVENT_VFORK {
		owner = t.owner(th.pid)
		t.owners[uint32(child)] = owner
	}
	t.event(event.Event{Op: event.Fork, PID: t.owner(th.pid), TID: uint32(tid), Addr: uint64(child), Old: uint64(owner)})
}

// executed forgets the threads that an exec ended: they do not report it.
func (t *Tracer) executed(tid int) {
	for other, th := range t.threads {
		if th.pid == uint32(tid) && other != tid {
			delete(t.threads, other)
		}
	}
	t.threads[tid] = &thread{pid: uint32(tid)}
	delete(t.owners, uint32(tid))
	t.lock.Lock()
	delete(t.python, uint32(tid))
	t.lock.Unlock()
	t.event(event.Event{Op: event.Exec, PID: uint32(tid), TID: uint32(tid)})
}

func (t *Tracer) event(e event.Event) { t.enter(e, nil) }

// enter adds an event together with its stack, if that was copied: a poll takes both or
// neither.
func (t *Tracer) enter(e event.Event, s *event.Sample) {
	if e.Time == 0 {
		e.Time = event.Now()
	}
	t.lock.Lock()
	defer t.lock.Unlock()
	if len(t.batch.Events) >= maxEvents {
		t.batch.Lost++
		return
	}
	t.batch.Events = append(t.batch.Events, e)
	if s != nil {
		t.batch.Samples = append(t.batch.Samples, *s)
	}
}

const page = 4096

func pages(n uint64) uint64 { return (n + page - 1) &^ (page - 1) }

// entered handles calls that end a mapping before they do so; it returns true for calls
// whose end must be seen.
func (t *Tracer) entered(tid int, th *thread) bool {
	var r unix.PtraceRegs
	if unix.PtraceGetRegs(tid, &r) != nil {
		return false
	}
	e := event.Event{PID: t.owner(th.pid), TID: uint32(tid), FD: -1, Addr: r.Rdi}
	switch r.Orig_rax {
	case unix.SYS_MUNMAP:
		if e.Len = pages(r.Rsi); r.Rdi%page == 0 && e.Len > 0 {
			e.Op = event.Unmap
			t.event(e)
		}
		return false
	case unix.SYS_SHMDT:
		e.Op = event.Detach
		t.event(e)
		return false
	case unix.SYS_PTRACE:
		if r.Rdi == unix.PTRACE_TRACEME || r.Rdi == unix.PTRACE_ATTACH || r.Rdi == unix.PTRACE_SEIZE {
			t.wantsToTrace(th)
		}
		return false
	}
	th.call, th.entered = &r, event.Now()
	return true
}

// wantsToTrace records a program whose attempt will fail: a process that is traced
// cannot be traced by another.
func (t *Tracer) wantsToTrace(th *thread) {
	st, err := procfs.Process(th.pid).Status()
	if err != nil {
		return
	}
	t.lock.Lock()
	defer t.lock.Unlock()
	if t.nested == "" {
		t.nested = fmt.Sprintf("%s (process %d)", st.Name, th.pid)
	}
}

// Nested returns the name of a program in the command that tried to trace another, as
// debuggers do, and could not; empty if none did.
func (t *Tracer) Nested() string {
	t.lock.Lock()
	defer t.lock.Unlock()
	return t.nested
}

// callEnded handles the end of a call.
func (t *Tracer) callEnded(tid int, th *thread) {
	call := th.call
	th.call = nil
	var r unix.PtraceRegs
	if call == nil || unix.PtraceGetRegs(tid, &r) != nil {
		return
	}
	e, ok := eventOf(call.Orig_rax, &r)
	if !ok {
		return
	}
	e.Time, e.PID, e.TID = event.Now(), t.owner(th.pid), uint32(tid)
	if e.Op == event.Remap {
		e.Took = uint32(min(e.Time-th.entered, math.MaxUint32))
	}
	mem := memory(tid)
	e.Place = event.Place{IP: r.Rip, Caller: mem.word(r.Rsp)}
	if e.Op != event.Advise && (e.Op != event.Protect || e.Prot&unix.PROT_WRITE != 0) && t.due(&e) {
		e.Sampled = true
		t.enter(e, t.sample(mem, &e, &r))
		return
	}
	t.event(e)
}

// eventOf returns what a call did, according to the registers that it left.
func eventOf(number uint64, r *unix.PtraceRegs) (e event.Event, ok bool) {
	e = event.Event{FD: -1}
	if ret := int64(r.Rax); ret < 0 && ret >= -4095 {
		return e, false
	}
	switch number {
	case unix.SYS_MMAP:
		e.Op, e.Addr, e.Len, e.Prot, e.Flags, e.FD = event.Map, r.Rax, pages(r.Rsi), uint32(r.Rdx), uint32(r.R10), int32(r.R8)
		e.Class = event.SizeClass(e.Len)
	case unix.SYS_MREMAP:
		e.Op, e.Addr, e.Len, e.Old, e.OldLen, e.Flags = event.Remap, r.Rax, pages(r.Rdx), r.Rdi, pages(r.Rsi), uint32(r.R10)
	case unix.SYS_BRK:
		e.Op, e.Addr = event.Break, r.Rax
		return e, r.Rdi == r.Rax
	case unix.SYS_MPROTECT, unix.SYS_PKEY_MPROTECT:
		e.Op, e.Addr, e.Len, e.Prot = event.Protect, r.Rdi, pages(r.Rsi), uint32(r.Rdx)
	case unix.SYS_MADVISE:
		e.Op, e.Addr, e.Len, e.Flags = event.Advise, r.Rdi, pages(r.Rsi), uint32(r.Rdx)
	case unix.SYS_SHMAT:
		e.Op, e.Addr, e.FD = event.Attach, r.Rax, int32(r.Rdi)
	case unix.SYS_MEMFD_CREATE:
		e.Op, e.FD, e.Flags = event.Memfd, int32(r.Rax), uint32(r.Rsi)
	case unix.SYS_FTRUNCATE:
		e.Op, e.FD, e.Len = event.Truncate, int32(r.Rdi), r.Rsi
	default:
		return e, false
	}
	return e, true
}

// firstPace is how often stacks of a place are copied until user space sets a pace.
const firstPace = uint64(50 * time.Millisecond)

func (t *Tracer) due(e *event.Event) bool {
	t.lock.Lock()
	defer t.lock.Unlock()
	key := site{e.PID, e.Op, e.Class, e.Place}
	p := t.pace[key]
	if p == nil {
		if len(t.pace) > 8192 {
			clear(t.pace)
		}
		p = &paceOf{every: firstPace}
		t.pace[key] = p
	}
	if t.budget <= 0 || e.Time < p.next || len(t.batch.Samples) >= maxSamples {
		return false
	}
	t.budget--
	p.next = e.Time + p.every
	return true
}

const smallStack, largeStack = 5 * page, 17 * page

func (t *Tracer) sample(mem memory, e *event.Event, r *unix.PtraceRegs) *event.Sample {
	s := &event.Sample{
		Time: e.Time, PID: e.PID, TID: e.TID, Op: e.Op, Addr: e.Addr, Len: e.Len,
		Regs: event.Regs{IP: r.Rip, SP: r.Rsp, BP: r.Rbp, BX: r.Rbx, R12: r.R12, R13: r.R13, R14: r.R14, R15: r.R15},
		Base: r.Rsp &^ (page - 1),
	}
	t.lock.Lock()
	size := smallStack
	if t.large[e.PID] {
		size = largeStack
	}
	python, ok := t.python[e.PID]
	t.lock.Unlock()
	s.Stack = make([]byte, size)
	n := 0
	for n < size && mem.read(s.Stack[n:n+page], s.Base+uint64(n)) {
		n += page
	}
	s.Stack = s.Stack[:n]
	if ok {
		s.Python, s.PythonState = pyframes.Walk(mem, &python, pyframes.Thread{Native: ownNumber(int(e.TID)), Pthread: r.Fs_base})
	}
	return s
}

// Poll returns what has happened since the last call.
func (t *Tracer) Poll() (*event.Batch, error) {
	t.lock.Lock()
	defer t.lock.Unlock()
	out := t.batch
	if out.Until = event.Now(); t.serving > 0 {
		out.Until = t.serving
		if n := len(out.Events); n > 0 { // the last may belong to the stop that is being served
			out.Until = max(out.Until, out.Events[n-1].Time)
		}
	}
	t.batch = event.Batch{Lost: out.Lost}
	return &out, nil
}

// Watch has nothing to do: the command and its children are already watched.
func (t *Tracer) Watch(int) error { return nil }

// LargeStacks makes the copies of a process's stacks 64 KiB instead of 16 KiB.
func (t *Tracer) LargeStacks(pid int) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.large[uint32(pid)] = true
	return nil
}

// Python makes the samples of a process carry its interpreter's frames.
func (t *Tracer) Python(pid int, p event.PythonLayout) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.python[uint32(pid)] = p
	return nil
}

// Budget allows n stacks to be copied until the next call.
func (t *Tracer) Budget(n int) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	t.budget = n
	return nil
}

// Pace sets how often the stack of calls like e is copied.
func (t *Tracer) Pace(e *event.Event, every time.Duration) error {
	t.lock.Lock()
	defer t.lock.Unlock()
	if p := t.pace[site{e.PID, e.Op, e.Class, e.Place}]; p != nil && p.every != uint64(every) {
		p.every = uint64(every)
		p.next = min(p.next, event.Now()+p.every)
	}
	return nil
}

// Close ends the command, and waits until nothing is traced, for at most two
// seconds: children of the command end when this process does.
func (t *Tracer) Close() {
	const maxWait = 2 * time.Second
	select {
	case <-t.ended: // its pid may belong to another process by now
		return
	default:
		syscall.Kill(t.PID, syscall.SIGKILL)
	}
	t.begin() // what is killed is waited for like what has run
	select {
	case <-t.ended:
	case <-time.After(maxWait):
	}
}

// Failed returns how the command failed, such as "exit status 1" or "signal: killed";
// it is empty while the command runs, and if it did not fail. That a process has ended can
// be seen a little before its status is known.
func (t *Tracer) Failed() string {
	select {
	case <-t.known:
	case <-time.After(time.Second):
		return ""
	}
	switch {
	case t.status.Signaled():
		return "signal: " + t.status.Signal().String()
	case t.status.ExitStatus() != 0:
		return fmt.Sprintf("exit status %d", t.status.ExitStatus())
	}
	return ""
}

// SeesCalls reports true.
func (*Tracer) SeesCalls() bool { return true }
