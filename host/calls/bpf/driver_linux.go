//go:build linux && (amd64 || arm64)

package bpf

import (
	"fmt"
	"os"
	"runtime"
	"strandline/host/calls/event"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// ofDriver is the prefix of the names of the programs and maps for the driver.
const ofDriver = "strand_driver_"

// loadDriver loads the programs for the driver if that has not been done: in a form in
// which one link can watch many functions where the kernel has such links, otherwise for one
// link per function.
func (t *Tracer) loadDriver() error {
	if t.driver != nil {
		return nil
	}
	if uprobeMulti() {
		for _, p := range t.driverSpec.Programs {
			p.AttachType = ebpf.AttachTraceUprobeMulti
		}
		t.together = true
	}
	shared := map[string]*ebpf.Map{}
	for name, m := range t.collection.Maps {
		if t.driverSpec.Maps[name] != nil && strings.HasPrefix(name, "strand_") { // every object has its own constants
			shared[name] = m
		}
	}
	c, err := ebpf.NewCollectionWithOptions(t.driverSpec, ebpf.CollectionOptions{MapReplacements: shared})
	if err != nil {
		return fmt.Errorf("the kernel refuses the BPF programs for the driver: %w", plain(err))
	}
	if err := c.Maps[ofDriver+"tail"].Update(uint32(0), c.Programs[ofDriver+"sample"], ebpf.UpdateAny); err != nil {
		c.Close()
		return err
	}
	t.driver = c
	return nil
}

// AttachDriver watches the functions of a GPU driver's library in one process. It
// returns how many of them the library has; the others are left out.
func (t *Tracer) AttachDriver(pid int, library *os.File) (functions int, err error) {
	at, err := functionsOf(library)
	if err != nil {
		return 0, err
	}
	// The returns first: a call whose return is not seen would hide other calls.
	ret, enter, free := probes{program: "return", returns: true}, probes{program: "enter"}, probes{program: "free"}
	for op, f := range event.DriverFunctions {
		offset, has := at[f.Name]
		if !has {
			continue
		}
		functions++
		reads := readsOf[f.Name]
		cookie := uint64(reads)<<32 | uint64(op)
		if reads == readsAtOnce {
			free.add(offset, cookie)
			continue
		}
		ret.add(offset, cookie)
		enter.add(offset, cookie)
	}
	if functions == 0 {
		return 0, nil
	}
	if err := t.loadDriver(); err != nil {
		return 0, err
	}
	defer runtime.KeepAlive(library) // its descriptor is used by number below
	exe, err := link.OpenExecutable(fmt.Sprintf("/proc/self/fd/%d", library.Fd()))
	if err != nil {
		return 0, err
	}
	for _, p := range []*probes{&ret, &enter, &free} {
		links, err := p.attach(pid, exe, t.driver.Programs[ofDriver+p.program], t.together)
		t.probes[pid] = append(t.probes[pid], links...)
		if err != nil {
			t.DetachDriver(pid)
			return 0, err
		}
	}
	return functions, nil
}

// DetachDriver starts to undo AttachDriver in a process. The kernel waits up to 100 ms
// at the end of each link; Close waits for all of them.
func (t *Tracer) DetachDriver(pid int) {
	links := t.probes[pid]
	delete(t.probes, pid)
	t.detaching.Go(func() {
		for _, l := range links {
			l.Close()
		}
	})
}

// DriverBudget allows the stacks of n calls of the driver to be copied until the
// next call.
func (t *Tracer) DriverBudget(n int) error {
	if t.driver == nil {
		return nil
	}
	return t.driver.Maps[ofDriver+"budget"].Update(uint32(0), int64(n), ebpf.UpdateAny)
}

func (t *Tracer) closeDriver() {
	for pid := range t.probes {
		t.DetachDriver(pid)
	}
	t.detaching.Wait()
	if t.driver != nil {
		t.driver.Close()
	}
}
