// Package levels samples how much memory a command's processes hold while it runs:
// the process that was started and all that come from it. It measures from outside,
// by what the kernel shows of each process, and judges nothing.
package levels

import (
	"slices"
	"strings"
	"sync"
	"time"

	"strandline/host/proc/procfs"
	"strandline/plan/engine"
)

// The sampling. A sample is taken as often as it costs no more than a share of the
// time, and half of the samples go when there are too many.
const (
	first      = 10 * time.Millisecond // between two samples
	cost       = 20                    // times of a sample between two
	maxSamples = 4096                  // samples that are kept
)

// A Process is one that was seen.
type Process struct {
	PID     int
	Command string
	Caches  engine.Caches // that it is known to fill
	started uint64
	read    uint64 // with system calls so far, in bytes
}

// A Sample is what the processes held at a moment.
type Sample struct {
	At    time.Time
	Step  int           // that ended then; 0 if the sample was taken by the clock
	Bytes map[int]int64 // by index of the process in Samples.Processes
	// Read is how much all processes had read by then with system calls such as read, from
	// files, pipes and sockets, in bytes.
	Read int64
}

// Sum returns what all processes held together, in bytes.
func (s *Sample) Sum() (sum int64) {
	for _, b := range s.Bytes {
		sum += b
	}
	return sum
}

// Samples are those of a command, oldest first.
type Samples struct {
	Processes []Process
	Samples   []Sample
	// Peak is the most that all processes held together at a sample, in bytes.
	Peak int64
}

// A Sampler samples until it is closed. Its methods may be called from any goroutine,
// Step from one at a time.
type Sampler struct {
	root  procfs.Process
	mu    sync.Mutex
	known map[uint64]int // processes by when they started and their number
	all   Samples
	every time.Duration
	began time.Time
	spent time.Duration // on samples of steps
	close chan struct{}
	done  chan struct{}
}

// Start samples a process and its descendants.
func Start(pid int) *Sampler {
	s := &Sampler{root: procfs.Process(pid), known: map[uint64]int{}, every: first, began: time.Now(), close: make(chan struct{}), done: make(chan struct{})}
	go s.run()
	return s
}

func (s *Sampler) run() {
	defer close(s.done)
	timer := time.NewTimer(0)
	defer timer.Stop()
	var took []time.Duration
	for {
		select {
		case <-s.close:
			return
		case <-timer.C:
		}
		began := time.Now()
		s.take(0)
		took = append(took, time.Since(began))
		took = took[max(0, len(took)-recent):]
		s.mu.Lock()
		next := max(s.every, cost*slices.Min(took))
		s.mu.Unlock()
		timer.Reset(next)
	}
}

// recent is how many samples state what one costs, by the quickest of them: the others
// waited for a processor.
const recent = 8

// Close ends the sampling.
func (s *Sampler) Close() {
	close(s.close)
	<-s.done
}

// free is the time for samples of steps that is not weighed: much of it is spent waiting
// for a processor.
const free = 30 * time.Second

// Step takes a sample at the end of a step, unless such samples have taken more than a
// tenth of the time so far.
func (s *Sampler) Step(n int) {
	began := time.Now()
	if s.spent > max(free, began.Sub(s.began)/10) {
		return
	}
	s.take(n)
	s.spent += time.Since(began)
}

func (s *Sampler) take(step int) {
	now := Sample{At: time.Now(), Step: step, Bytes: map[int]int64{}}
	var together int64
	s.mu.Lock()
	defer s.mu.Unlock()
	children, err := s.root.Descendants()
	if procfs.Lacks(err) {
		return // a sample without some of them would be too low
	}
	for _, p := range append(children, s.root) {
		l, err := walked(p)
		if procfs.Lacks(err) {
			return
		}
		if err != nil {
			continue
		}
		if i, ok := s.index(p); ok {
			now.Bytes[i] = l.bytes()
			together += l.share()
			if n, err := p.ReadBytes(); err == nil {
				s.all.Processes[i].read = n
			}
		}
	}
	for i := range s.all.Processes { // also of those that have ended
		now.Read += int64(s.all.Processes[i].read)
	}
	if len(now.Bytes) == 0 { // all have ended
		return
	}
	s.all.Peak = max(s.all.Peak, together)
	if s.all.Samples = append(s.all.Samples, now); len(s.all.Samples) >= maxSamples {
		half := s.all.Samples[:0]
		for i := 1; i < len(s.all.Samples); i += 2 {
			half = append(half, s.all.Samples[i])
		}
		s.all.Samples = half
		s.every *= 2
	}
}

// index is the place of a process among those that were seen.
func (s *Sampler) index(p procfs.Process) (int, bool) {
	started, err := p.Started()
	if err != nil {
		return 0, false
	}
	key := started<<22 | uint64(p)&(1<<22-1) // of pids, of which there are at most 1<<22
	i, ok := s.known[key]
	if !ok {
		i = len(s.all.Processes)
		s.known[key] = i
		s.all.Processes = append(s.all.Processes, Process{PID: int(p), started: started})
	}
	q := &s.all.Processes[i]
	if command := p.Command(); command != "" && command != q.Command { // exec replaces it soon after a fork
		q.Command, q.Caches = command, CachesOf(p, command)
	}
	return i, true
}

// CachesOf are the caches of a process that has, or had, a command.
func CachesOf(p procfs.Process, command string) engine.Caches {
	args := p.Args()
	if args[0] == "" { // it has ended
		args = strings.Fields(command)
	}
	return engine.CachesOf(args, func(name string) string {
		environ, _ := p.Environ()
		return environ[name]
	})
}

// Samples returns those so far.
func (s *Sampler) Samples() Samples {
	s.mu.Lock()
	defer s.mu.Unlock()
	out := s.all
	out.Processes, out.Samples = slices.Clone(out.Processes), slices.Clone(out.Samples)
	return out
}
