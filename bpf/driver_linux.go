//go:build linux && amd64

package bpf

import (
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// ofDriver is how the names of the programs and maps for the driver begin.
const ofDriver = "strand_driver_"

// loadDriver loads the programs for the driver, if that was not done.
func (t *Tracer) loadDriver() error {
	if t.driver != nil {
		return nil
	}
	shared := map[string]*ebpf.Map{}
	for name, m := range t.collection.Maps {
		if t.driverSpec.Maps[name] != nil && strings.HasPrefix(name, "strand_") { // constants are of each object
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
// returns how many the library has; those that it has not are left out.
func (t *Tracer) AttachDriver(pid int, library *os.File) (functions int, err error) {
	if err := t.loadDriver(); err != nil {
		return 0, err
	}
	exe, err := link.OpenExecutable(fmt.Sprintf("/proc/self/fd/%d", library.Fd()))
	if err != nil {
		return 0, err
	}
	attach := func(f *DriverFunction, o *link.UprobeOptions) error {
		if f.reads == readsAtOnce {
			return t.probe(pid, exe.Uprobe, f.Name, "free", o)
		}
		// The return first: a call whose return is not seen would hide others.
		if err := t.probe(pid, exe.Uretprobe, f.Name, "return", o); err != nil {
			return err
		}
		return t.probe(pid, exe.Uprobe, f.Name, "enter", o)
	}
	for i := range driverFunctions {
		f := &driverFunctions[i]
		o := &link.UprobeOptions{PID: pid, Cookie: uint64(f.reads)<<32 | uint64(driverOps) + uint64(i)}
		err := attach(f, o)
		if errors.Is(err, link.ErrNoSymbol) {
			continue
		}
		if err != nil {
			t.DetachDriver(pid)
			return 0, fmt.Errorf("watch %s: %w", f.Name, err)
		}
		functions++
	}
	return functions, nil
}

func (t *Tracer) probe(pid int, attach func(string, *ebpf.Program, *link.UprobeOptions) (link.Link, error), function, program string, o *link.UprobeOptions) error {
	l, err := attach(function, t.driver.Programs[ofDriver+program], o)
	if err == nil {
		t.probes[pid] = append(t.probes[pid], l)
	}
	return err
}

// DetachDriver begins to end what AttachDriver began in a process. The kernel
// waits up to 100 ms at the end of each probe; Close waits for all.
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
