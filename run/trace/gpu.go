package trace

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"strandline/host/calls/event"
	"strandline/host/calls/ledger"
	"strandline/host/gpu/cudaalloc"
	"strandline/host/gpu/gpuaccount"
	"strandline/host/gpu/gpudriver"
	"strandline/host/gpu/nvsmi"
	"strandline/host/proc/procfs"
	"strandline/host/store/recording"
	"strandline/judge/processes"
	"strandline/torch/compare"
	"strandline/torch/snapshot"
)

// A gpuWatch holds what a trace knows about the GPU.
type gpuWatch struct {
	driver    *gpudriver.Driver
	trace     *ledger.Trace
	used      int64          // as given by --device-used; 0 if it is not
	before    *nvsmi.Reading // when the trace began
	why       error          // the reason why the driver's count is not known
	taken     *gpudriver.Sums
	held      *recording.GPUState // the latest, by the calls alone
	counted   *recording.GPUState // the latest, by the driver's count too
	asked     chan countOrWhy
	next      time.Time // when to ask again
	snapshots []*snapshot.Snapshot
	gauges    map[uint32]*cudaalloc.Gauge // of PyTorch's allocators, by process
	retry     time.Time                   // when to look for further ones
	tensors   []int64                     // what they have allocated in all, from look to look
}

// patience is how long the driver's tool may take; it is slow if no process keeps the
// driver awake.
const patience = 10 * time.Second

// watchGPU begins to watch the GPU's driver, and asks how much is in use by then. What is
// taken meanwhile is counted by both, so nothing appears to be missed.
func watchGPU(ctx context.Context, t *ledger.Trace, source event.Source, backend string, used int64) (*gpuWatch, error) {
	driver, ok := source.(gpudriver.Source)
	if !ok {
		return nil, fmt.Errorf("--gpu needs BPF, and this is %s; `strandline doctor` has the remedy", backend)
	}
	w := &gpuWatch{used: used, trace: t, gauges: map[uint32]*cudaalloc.Gauge{}}
	var err error
	if w.driver, err = gpudriver.Watch(t, driver); err != nil {
		return nil, err
	}
	if used == 0 {
		ctx, stop := context.WithTimeout(ctx, patience)
		defer stop()
		w.before, w.why = nvsmi.Read(ctx)
	}
	return w, nil
}

// holds returns what the processes hold according to the calls alone.
func (w *gpuWatch) holds() *recording.GPUState {
	s := w.driver.State()
	s.Dropped = w.trace.Last.Lost > 0
	return s
}

// sum sums up what has been taken so far.
func (w *gpuWatch) sum(at time.Duration) {
	w.taken, w.held = w.driver.Sums(), w.holds()
	w.gauge()
	w.taken.Tensors = w.tensors
	w.held.At = at.Round(time.Millisecond).Seconds()
}

// gauge reads what PyTorch's tensors hold in the processes that took memory.
func (w *gpuWatch) gauge() {
	const interval = 2 * time.Second
	now := time.Now()
	search := now.After(w.retry)
	if search {
		w.retry = now.Add(interval)
	}
	var sum int64
	known := false
	for _, h := range w.taken.Holders {
		g := w.gauges[h.PID]
		if g == nil && search && h.Name == gpudriver.OwnerPyTorch {
			g, _ = cudaalloc.OpenGauge(procfs.Process(h.PID))
			w.gauges[h.PID] = g
		}
		if g == nil || h.Name != gpudriver.OwnerPyTorch || h.Memory != event.Device {
			continue
		}
		all, err := g.Read()
		if err != nil {
			continue // the process has ended
		}
		known = true
		for _, l := range all {
			sum += l.Allocated
		}
	}
	if known {
		w.tensors = append(w.tensors, sum)
	}
}

func (w *gpuWatch) close() {
	for _, g := range w.gauges {
		if g != nil {
			g.Close()
		}
	}
}

// A countOrWhy is a state with the driver's count from the same moment, or the reason why
// the count is missing.
type countOrWhy struct {
	state *recording.GPUState
	why   error
}

func (w *gpuWatch) count(ctx context.Context, s recording.GPUState) (a countOrWhy) {
	s.Before = w.before
	if w.used > 0 {
		s.Count = &nvsmi.Reading{Devices: []nvsmi.Device{{Used: &w.used}}, Processes: []nvsmi.Use{}, Given: true}
		return countOrWhy{&s, nil}
	}
	if s.Count, a.why = nvsmi.Read(ctx); a.why == nil {
		a.state = &s
	}
	return a
}

// learn adds an answer from the driver; held is what the processes hold by now.
func (w *gpuWatch) learn(a countOrWhy, held int64) {
	if w.why = a.why; a.state != nil {
		a.state.Meanwhile = max(held-a.state.Held(), 0)
		w.counted = a.state
	}
}

// ask asks the driver now and then while the trace runs, as it no longer counts a process
// that has ended.
func (w *gpuWatch) ask(ctx context.Context, since time.Duration) {
	select {
	case a := <-w.asked:
		w.learn(a, w.held.Held())
		w.asked = nil
	default:
	}
	if now := time.Now(); w.asked == nil && !now.Before(w.next) {
		const often, seldom = 5 * time.Second, 4
		w.next = now.Add(max(often, since/seldom))
		asked, held := make(chan countOrWhy, 1), *w.held
		w.asked = asked
		go func() {
			ctx, stop := context.WithTimeout(ctx, patience)
			defer stop()
			asked <- w.count(ctx, held)
		}()
	}
}

// finish asks for the last time, even after an interrupt, if anything is left to ask
// about.
func (w *gpuWatch) finish(ctx context.Context) error {
	if !w.trace.Alive() {
		return nil
	}
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	ctx, stop := context.WithTimeout(ctx, patience)
	defer stop()
	a := w.count(ctx, *w.held)
	if err := w.trace.Step(); err != nil {
		return err
	}
	w.learn(a, w.holds().Held())
	return nil
}

// begin notes that the trace begins now.
func (w *gpuWatch) begin() { w.driver.Began = event.Now() }

// state is the latest known state.
func (w *gpuWatch) state() *recording.GPUState {
	if w.counted != nil {
		return w.counted
	}
	s := *w.held
	s.Before, s.NotCounted = w.before, "nvidia-smi was not queried while the processes ran"
	if w.why != nil {
		s.NotCounted = w.why.Error()
	}
	return &s
}

// judge judges what is known of the GPU: the account of the devices first, since what grows
// is judged by what they hold. Both are among the findings of the account.
func (w *gpuWatch) judge(found []ledger.Process) processes.Account {
	var shares []ledger.Share
	for _, h := range w.taken.Holders {
		if slices.ContainsFunc(found, func(p ledger.Process) bool { return p.PID == h.PID }) {
			shares = append(shares, ledger.Share{PID: h.PID, Live: h.Bytes})
		}
	}
	var has []gpuaccount.Reserved
	for _, s := range w.snapshots {
		r := processes.Reserved(s)
		r.Name, r.PID = filepath.Base(s.Name), compare.PIDOf(s.Name)
		has = append(has, r)
	}
	a := processes.Devices(w.state(), has, found, shares)
	a.Findings = append(processes.Driver(w.taken, found, a.Devices), a.Findings...)
	return a
}
