//go:build amd64 || arm64

package malloc

import (
	cryptorand "crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"strandline/host/calls/event"
	"strandline/host/code/pyframes"
	"strandline/host/code/symbolize"
	"strandline/internal/safefile"
)

// variable is the environment variable that tells the library where the shared memory is.
const variable = "STRANDLINE_MALLOC"

// How often calls are sampled. The distance between two samples follows the time that they
// take, of the thread that waits and to name them.
const (
	firstInterval = 256 << 10 // bytes
	minInterval   = 64 << 10
	maxInterval   = 1 << 34
	maxSpent      = pace / 5 // in a pace
	minSpent      = pace / 15
)

// maxPrograms bounds those that are known at once.
const maxPrograms = 1 << 12

// maxWaiting bounds the samples whose stacks have been copied and not yet named, and
// maxPending those that looks have seen, as a program can write any number.
const (
	maxWaiting = 64
	maxPending = 1 << 12
)

// A Sampling is that of one command. Its methods may be called from any goroutine.
type Sampling struct {
	library, file *os.File         // in memory
	folder        *safefile.Folder // of the library for all users; nil for none
	shared        *shared
	memory        []byte

	mu       sync.Mutex
	on       bool
	first    bool // the next look is the first after a pause
	interval uint64
	least    uint64 // that the interval may be
	looks    []look
	programs map[process]*program
	stacks   stacks
	pending  map[uint32][]pending // by ticket: what looks have seen of a stack that is not named
	began    bool                 // whether the goroutines run

	tickets uint32       // so far
	spent   atomic.Int64 // ns that samples took since the last look
	samples chan sample
	close   chan struct{}
	done    sync.WaitGroup
}

// A program is one that was seen to ask.
type program struct {
	shared uint64 // where it has what is shared; its samples can be read
	inUse  uint64 // bytes that malloc has in use by its own account; 0 if that is not known
	python *event.PythonLayout
}

// A sample is a stack that was copied, with the entry that it is for, or prepare where the
// image of its program is to be read.
type sample struct {
	process
	event.Sample
	entry  int
	ticket uint32
}

const prepare = -1

// pending is what the stack of a sample is to be added to, once it is named.
type pending struct {
	kept map[int]sum
	sum
}

// ticket marks the number that an entry has until its stack is named.
const ticket = 1 << 31

// New makes the library and the memory that is shared with it. The error says why calls of
// malloc cannot be sampled.
func New() (*Sampling, error) {
	s := &Sampling{interval: firstInterval, least: minInterval, programs: map[process]*program{}, pending: map[uint32][]pending{}, samples: make(chan sample, maxWaiting), close: make(chan struct{})}
	var err error
	if s.library, err = inMemory("strandline-malloc", library, 0); err != nil {
		return nil, fmt.Errorf("calls of malloc cannot be sampled: %w", err)
	}
	if err := s.share(); err != nil {
		s.library.Close()
		if s.folder != nil {
			remove(s.folder)
		}
		return nil, fmt.Errorf("calls of malloc cannot be sampled: %w", err)
	}
	return s, nil
}

func (s *Sampling) share() error {
	if err := runnable(s.library); err != nil {
		return err
	}
	if os.Geteuid() == 0 {
		s.folder = forAll("/run", "/var/lib")
	}
	var err error
	if s.file, err = inMemory(samplesName, nil, int64(unsafe.Sizeof(shared{}))); err != nil {
		return err
	}
	if s.memory, err = unix.Mmap(int(s.file.Fd()), 0, int(unsafe.Sizeof(shared{})), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED); err != nil {
		s.file.Close()
		return err
	}
	s.shared = (*shared)(unsafe.Pointer(&s.memory[0]))
	var token [8]byte
	cryptorand.Read(token[:])
	s.shared.token = binary.LittleEndian.Uint64(token[:])>>1 | 1
	return nil
}

// runnable returns why the system does not run what is in a file, nil if it does.
func runnable(f *os.File) error {
	code, err := unix.Mmap(int(f.Fd()), 0, len(library), unix.PROT_READ|unix.PROT_EXEC, unix.MAP_PRIVATE)
	if err == nil {
		unix.Munmap(code)
	}
	return err
}

// libraryName is that of its file in a folder, samplesName of what is shared.
const (
	libraryName = "libstrandline-malloc.so"
	samplesName = "strandline-samples"
)

// forAll puts the library into a new folder of the first of these in which that works; it returns nil
// if there is none. A program that root starts may become another user, who cannot open the files of
// this process. In a folder where others can write, they could make it anew after it is gone, for
// what still runs with its name.
func forAll(folders ...string) *safefile.Folder {
	for _, parent := range folders {
		folder, err := safefile.MakeSharedFolder(filepath.Join(parent, "strandline-"+cryptorand.Text()))
		if err != nil {
			continue
		}
		if err = folder.Write(libraryName, library); err == nil {
			var f *os.File
			if f, err = safefile.Open(filepath.Join(folder.Path(), libraryName), int64(len(library))); err == nil {
				err = runnable(f)
				f.Close()
			}
		}
		if err == nil {
			return folder
		}
		remove(folder)
	}
	return nil
}

func remove(folder *safefile.Folder) {
	folder.Remove(libraryName)
	folder.Close()
	os.Remove(folder.Path())
}

// inMemory makes a file that exists only in memory, with a content or a size, which others
// cannot change: what is cut off a file that is mapped ends the process.
func inMemory(name string, content []byte, size int64) (*os.File, error) {
	const executable = 0x10 // MFD_EXEC, since Linux 6.3
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING|executable)
	if errors.Is(err, unix.EINVAL) {
		fd, err = unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	}
	if err != nil {
		return nil, err
	}
	f := os.NewFile(uintptr(fd), name)
	seals := unix.F_SEAL_SEAL | unix.F_SEAL_SHRINK | unix.F_SEAL_GROW
	if _, err = f.Write(content); err == nil && size > 0 {
		err = f.Truncate(size)
	} else {
		seals |= unix.F_SEAL_WRITE
	}
	if err == nil {
		_, err = unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, seals)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// Environ is the environment env with what makes programs load the library, before others
// that stand before malloc.
func (s *Sampling) Environ(env []string) []string {
	preload := path(s.library)
	if s.folder != nil {
		preload = filepath.Join(s.folder.Path(), libraryName)
	}
	out := make([]string, 0, len(env)+3)
	sanitizer := "verify_asan_link_order=0" // it need not be the first library
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		switch {
		case name == variable:
		case name == "LD_PRELOAD" && value != "":
			preload += ":" + value
		case name == "LD_PRELOAD":
		case name == "ASAN_OPTIONS" && value != "":
			sanitizer += ":" + value
		case name == "ASAN_OPTIONS":
		default:
			out = append(out, e)
		}
	}
	return append(out, "LD_PRELOAD="+preload, "ASAN_OPTIONS="+sanitizer, fmt.Sprintf("%s=%s %d", variable, path(s.file), s.shared.token))
}

// path is where another process finds a file of this one, as long as it runs.
func path(f *os.File) string { return fmt.Sprintf("/proc/%d/fd/%d", os.Getpid(), f.Fd()) }

// Sample begins to sample, or stops to, while what was sampled is still seen to be freed.
func (s *Sampling) Sample(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.on == on {
		return
	}
	s.on, s.first = on, on
	s.look()
	if !on {
		s.shared.interval.Store(0)
		return
	}
	s.shared.began.Store(1)
	s.shared.interval.Store(s.interval)
	if !s.began {
		s.began = true
		s.done.Go(s.serve)
		s.done.Go(s.nameStacks)
	}
}

// Close ends the sampling. What is known stays so.
func (s *Sampling) Close() {
	s.Sample(false)
	close(s.close)
	s.done.Wait()
	unix.Munmap(s.memory)
	s.file.Close()
	s.library.Close()
	if s.folder != nil {
		remove(s.folder)
	}
}

// serve answers requests, and looks at what is there.
func (s *Sampling) serve() {
	defer close(s.samples)
	looked := time.Now()
	for {
		select {
		case <-s.close:
			s.answer()
			return
		default:
		}
		asked := s.shared.asked.Load()
		s.answer()
		if time.Since(looked) >= pace {
			s.mu.Lock()
			if s.on {
				if isDue(s.looks, time.Now()) {
					s.look()
				} else {
					s.sweep()
				}
				s.adapt()
			}
			s.mu.Unlock()
			s.reclaim()
			looked = time.Now()
		}
		most := unix.NsecToTimespec(int64(20 * time.Millisecond))
		const wait = 0 // FUTEX_WAIT
		unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&s.shared.asked)), wait, uintptr(asked), uintptr(unsafe.Pointer(&most)), 0, 0)
	}
}

// adapt sets the interval by the time that samples took since the last look.
func (s *Sampling) adapt() {
	switch spent := time.Duration(s.spent.Swap(0)); {
	case spent > maxSpent:
		s.interval = min(s.interval*2, maxInterval)
	case spent < minSpent:
		s.interval /= 2
	}
	s.interval = max(s.interval, s.least)
	s.shared.interval.Store(s.interval)
}

// sweep drops what ended processes had, and half of the samples where there is little room
// for more.
func (s *Sampling) sweep() {
	gone, n := map[process]bool{}, 0
	for i := range s.shared.entries {
		if s.shared.addresses[i].Load() <= reserved {
			continue
		}
		e := &s.shared.entries[i]
		p := process{e.pid, e.born}
		if _, known := gone[p]; !known {
			gone[p] = s.programs[p] == nil || unix.Kill(int(p.pid), 0) == unix.ESRCH
		}
		if gone[p] {
			s.shared.addresses[i].Store(0)
			continue
		}
		n++
	}
	if n > entries/2 {
		s.halve()
	}
}

// halve samples the samples, so that they are as if the interval had been twice as long.
func (s *Sampling) halve() {
	s.least = min(s.least*2, maxInterval)
	for i := range s.shared.entries {
		at, e := s.shared.addresses[i].Load(), &s.shared.entries[i]
		if at <= reserved {
			continue
		}
		bytes, interval := float64(e.bytes), float64(e.interval)
		if rand.Float64() > of(bytes, interval).count/of(bytes, 2*interval).count {
			s.shared.addresses[i].CompareAndSwap(at, 0)
			continue
		}
		e.interval *= 2
	}
}

// look notes what is allocated.
func (s *Sampling) look() {
	s.sweep()
	now := look{at: time.Now(), first: s.first, kept: map[process]map[int]sum{}, inUse: map[process]uint64{}}
	s.first = false
	for i := range s.shared.entries {
		if s.shared.addresses[i].Load() <= reserved {
			continue
		}
		e := &s.shared.entries[i]
		p, stack := process{e.pid, e.born}, int(e.stack.Load())
		if s.programs[p] == nil {
			continue
		}
		if now.kept[p] == nil {
			now.kept[p], now.inUse[p] = map[int]sum{}, s.programs[p].inUse
		}
		one := of(float64(e.bytes), float64(e.interval))
		switch {
		case stack < len(s.stacks.nodes):
			now.kept[p][stack] = now.kept[p][stack].plus(one)
		case len(s.pending) < maxPending:
			s.pending[uint32(stack)] = append(s.pending[uint32(stack)], pending{now.kept[p], one})
		}
	}
	if s.looks = append(s.looks, now); len(s.looks) > maxLooks {
		s.looks = thinned(s.looks)
	}
}

// answer copies the stacks of the threads that wait.
func (s *Sampling) answer() {
	for i := range s.shared.requests {
		r := &s.shared.requests[i]
		if !r.state.CompareAndSwap(waiting, taken) {
			continue
		}
		began := time.Now()
		if !s.take(r) {
			r.entry = entries // there is none
		}
		s.spent.Add(int64(time.Since(began)))
		if !r.state.CompareAndSwap(taken, answered) {
			r.state.Store(free) // the thread did not wait
			continue
		}
		const wake = 1 // FUTEX_WAKE
		unix.Syscall6(unix.SYS_FUTEX, uintptr(unsafe.Pointer(&r.state)), wake, 1, 0, 0, 0)
	}
}

// reclaim frees the requests of threads that ended before they saw the answer.
func (s *Sampling) reclaim() {
	for i := range s.shared.requests {
		r := &s.shared.requests[i]
		if r.state.Load() == answered && unix.Tgkill(int(r.pid), int(r.tid), 0) == unix.ESRCH {
			r.state.CompareAndSwap(answered, free)
		}
	}
}

// take copies the stack of a thread that waits, and reports whether it could.
func (s *Sampling) take(r *request) bool {
	pid, tid, sp := r.pid, r.tid, r.sp // the program may write to them
	out := sample{process: process{pid, r.born}, entry: int(r.entry)}
	if out.entry >= entries {
		return false
	}
	python, shared := s.program(out.process)
	self := shared + uint64(uintptr(unsafe.Pointer(r))-uintptr(unsafe.Pointer(s.shared)))
	if shared == 0 || r.self != self {
		return false
	}
	memory := memory(pid)
	var born [8]byte
	if memory.Read(born[:], self+uint64(unsafe.Offsetof(r.born))) != nil || binary.LittleEndian.Uint64(born[:]) != out.born {
		return false // its number is one of another namespace
	}
	out.Sample = event.Sample{Time: event.Now(), PID: pid, TID: tid, Regs: event.Regs{IP: r.ip, SP: sp, BP: r.bp}, Base: sp &^ (page - 1)}
	out.Stack = memory.pages(out.Base)
	if python != nil {
		out.Python, out.PythonState = pyframes.Walk(&paged{memory: memory}, python, pyframes.Thread{Native: int(tid), Pthread: r.pthread})
	}
	s.mu.Lock()
	if known := s.programs[out.process]; known != nil {
		known.inUse = r.inUse
	}
	s.mu.Unlock()
	s.tickets++
	out.ticket = ticket | s.tickets
	s.shared.entries[out.entry].stack.Store(out.ticket)
	if !s.put(out) {
		s.shared.entries[out.entry].stack.Store(0) // no look waits for its name
		return false
	}
	return true
}

// program returns where a program's interpreter keeps its frames, nil if it has none, and
// where it has what is shared, 0 before its image was read.
func (s *Sampling) program(p process) (python *event.PythonLayout, shared uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if known := s.programs[p]; known != nil {
		return known.python, known.shared
	}
	if len(s.programs) == maxPrograms {
		maps.DeleteFunc(s.programs, func(p process, _ *program) bool { return unix.Kill(int(p.pid), 0) == unix.ESRCH })
	}
	if len(s.programs) < maxPrograms && s.put(sample{process: p, entry: prepare}) {
		s.programs[p] = &program{}
	}
	return nil, 0
}

// put has a sample named, unless too many wait.
func (s *Sampling) put(x sample) bool {
	select {
	case s.samples <- x:
		return true
	default:
		return false
	}
}

// nameStacks names what was copied.
func (s *Sampling) nameStacks() {
	names := symbolize.New()
	defer names.Close()
	layout := func(pid int, python *event.PythonLayout) {
		s.mu.Lock()
		defer s.mu.Unlock()
		for p, program := range s.programs {
			if int(p.pid) == pid {
				program.python = python
			}
		}
	}
	names.Python = func(pid int, p event.PythonLayout) { layout(pid, &p) }
	for x := range s.samples {
		if x.entry == prepare {
			shared := s.sharedWith(x.pid)
			if shared == 0 {
				continue
			}
			layout(int(x.pid), nil)
			names.Forget(x.pid)
			names.Prepare(x.pid)
			s.mu.Lock()
			if p := s.programs[x.process]; p != nil {
				p.shared = shared
			}
			s.mu.Unlock()
			continue
		}
		s.mu.Lock()
		wanted := s.shared.addresses[x.entry].Load() != 0 || s.pending[x.ticket] != nil
		s.mu.Unlock()
		if !wanted {
			continue // it is freed, as most are
		}
		began := time.Now()
		stack := names.Stack(&x.Sample)
		s.spent.Add(int64(time.Since(began)))
		s.mu.Lock()
		n := s.stacks.number(stack)
		for _, p := range s.pending[x.ticket] {
			p.kept[n] = p.kept[n].plus(p.sum)
		}
		delete(s.pending, x.ticket)
		s.mu.Unlock()
		s.shared.entries[x.entry].stack.CompareAndSwap(x.ticket, uint32(n))
	}
}

// Kept returns what a process allocated in spans until a time, and did not free, by stack,
// with the spans. What has no stack is left out.
func (s *Sampling) Kept(pid int, until time.Time) (out []Kept, spans []Span) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var last process // the program that the process ran last
	for p := range s.programs {
		if int(p.pid) == pid && p.born >= last.born {
			last = p
		}
	}
	sums, spans := kept(s.looks, last, until)
	for stack, sum := range sums {
		if stack > 0 {
			out = append(out, Kept{s.stacks.at(stack), sum.bytes, sum.count, sum.variance})
		}
	}
	return out, spans
}
