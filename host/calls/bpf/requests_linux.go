//go:build linux && amd64

package bpf

import (
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/cilium/ebpf/ringbuf"

	"strandline/host/calls/event"
)

// Requests are the programs that watch the requests to PyTorch's caching allocator in
// one process. The kernel removes them all when the process that loaded them ends,
// however it ends.
type Requests struct {
	collection     *ebpf.Collection
	links          []link.Link
	events, stacks *ringbuf.Reader
	record         ringbuf.Record
	together       bool // one link watches many places
}

// StartRequests loads the programs. Nothing is watched yet. The error is an
// [errors.ErrUnsupported] if the machine does not support BPF or the user may not use
// it.
func StartRequests() (*Requests, error) {
	allowLocked()
	all, err := load(object)
	if err != nil {
		return nil, err
	}
	if err := rewriteNamespace(all, split(all, ofSelf)); err != nil {
		return nil, err
	}
	spec := split(all, ofRequests)
	spec.Variables = nil // see Start
	for name := range spec.Maps {
		if strings.HasPrefix(name, "strand_") && !strings.HasPrefix(name, ofRequests) {
			delete(spec.Maps, name)
		}
	}
	r := &Requests{together: uprobeMulti()}
	if r.together {
		for _, p := range spec.Programs {
			p.AttachType = ebpf.AttachTraceUprobeMulti
		}
	}
	if r.collection, err = ebpf.NewCollection(spec); err != nil {
		return nil, fmt.Errorf("the kernel refuses the BPF programs for requests: %w", plain(err))
	}
	if r.events, err = ringbuf.NewReader(r.collection.Maps[ofRequests+"events"]); err == nil {
		r.stacks, err = ringbuf.NewReader(r.collection.Maps[ofRequests+"stacks"])
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// Python makes requests carry the interpreter's frames.
func (r *Requests) Python(p event.PythonLayout) error {
	span := spanOf(&p)
	if span > maxSpan {
		return fmt.Errorf("the frames of Python are too large")
	}
	setup := struct {
		Layout         event.PythonLayout
		Span, Together uint32
	}{Layout: p, Span: span}
	if p.InstructionSize == 8 { // from 3.11 on
		setup.Together = 1
	}
	return r.collection.Maps[ofRequests+"python"].Update(uint32(0), setup, ebpf.UpdateAny)
}

// Watch starts watching a process's calls at places in its library.
func (r *Requests) Watch(pid int, library *os.File, places []RequestPlace) error {
	// The ends first: a call whose end is not seen counts as one that failed.
	ends, begins, frees := probes{program: "done"}, probes{program: "enter"}, probes{program: "free"}
	for _, p := range places {
		switch p.At {
		case RequestEnds:
			ends.add(p.File, 0)
		case RequestBegins:
			begins.add(p.File, 0)
		case FreeBegins:
			frees.add(p.File, 0)
		case DeleteBegins:
			frees.add(p.File, 1)
		}
	}
	return r.attach(pid, library, &ends, &frees, &begins)
}

// WatchDriver starts watching the functions of a GPU driver's library by which the
// allocator takes memory and gives it back. It returns how many of them the library
// has.
func (r *Requests) WatchDriver(pid int, library *os.File) (functions int, err error) {
	in, err := functionsOf(library)
	if err != nil {
		return 0, err
	}
	ret, enter, at := probes{program: "driver_return", returns: true}, probes{program: "driver_enter"}, probes{program: "driver_at"}
	for name, op := range driverRequests {
		offset, has := in[name]
		if !has {
			continue
		}
		functions++
		if op != 0 {
			at.add(offset, uint64(op))
			continue
		}
		ret.add(offset, 0)
		enter.add(offset, 0)
	}
	return functions, r.attach(pid, library, &ret, &enter, &at)
}

func (r *Requests) attach(pid int, library *os.File, all ...*probes) error {
	defer runtime.KeepAlive(library) // its descriptor is used by number below
	exe, err := link.OpenExecutable(fmt.Sprintf("/proc/self/fd/%d", library.Fd()))
	if err != nil {
		return err
	}
	for _, p := range all {
		links, err := p.attach(pid, exe, r.collection.Programs[ofRequests+p.program], r.together)
		r.links = append(r.links, links...)
		if err != nil {
			return plain(err)
		}
	}
	return nil
}

// Poll returns what has happened since the last call. There is room for up to 290,000
// events and 2,700 stacks between calls.
func (r *Requests) Poll() (*event.Requests, error) {
	b := &event.Requests{}
	err := readRing(r.events, &r.record, func(raw []byte) {
		if len(raw) >= requestSize {
			b.Events = append(b.Events, decodeRequest(raw))
		}
	})
	if err != nil {
		return nil, err
	}
	err = readRing(r.stacks, &r.record, func(raw []byte) {
		if len(raw) > requestStackHead {
			b.Stacks = append(b.Stacks, decodeRequestStack(raw))
		}
	})
	if err != nil {
		return nil, err
	}
	counts := r.collection.Maps[ofRequests+"counts"]
	if err := counts.Lookup(uint32(1), &b.Lost); err != nil {
		return nil, err
	}
	return b, counts.Lookup(uint32(2), &b.LostStacks)
}

// Activity returns how many events there have been, including those that were lost, and
// how many requests are in progress.
func (r *Requests) Activity() (events, open uint64, err error) {
	counts := r.collection.Maps[ofRequests+"counts"]
	if err = counts.Lookup(uint32(0), &events); err == nil {
		err = counts.Lookup(uint32(3), &open)
	}
	return events, open, err
}

// Open returns the threads that are in a request, or whose last one failed, with the
// address of the return address of each.
func (r *Requests) Open() (map[uint32]uint64, error) {
	open := map[uint32]uint64{}
	var tid uint32
	var thread []byte
	all := r.collection.Maps[ofRequests+"threads"].Iterate()
	for all.Next(&tid, &thread) {
		if len(thread) >= requestThreadHead && order.Uint32(thread[requestThreadOpen:]) != 0 {
			open[tid] = order.Uint64(thread[requestThreadStack:])
		}
	}
	return open, all.Err()
}

// Stop ends the watching; what has happened until then can still be polled.
func (r *Requests) Stop() {
	var closing sync.WaitGroup // the kernel waits up to 100 ms for each
	for _, l := range r.links {
		closing.Go(func() { l.Close() })
	}
	closing.Wait()
	r.links = nil
}

// Close ends the watching and frees what it used.
func (r *Requests) Close() {
	r.Stop()
	for _, ring := range []*ringbuf.Reader{r.events, r.stacks} {
		if ring != nil {
			ring.Close()
		}
	}
	r.collection.Close()
}
