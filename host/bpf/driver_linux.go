//go:build linux && amd64

package bpf

import (
	"debug/elf"
	"errors"
	"fmt"
	"math"
	"os"
	"runtime"
	"strandline/host/event"
	"strings"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// ofDriver is how the names of the programs and maps for the driver begin.
const ofDriver = "strand_driver_"

// loadDriver loads the programs for the driver, if that was not done: so that one
// link can watch many functions where the kernel has such links, else for links
// of one function each.
func (t *Tracer) loadDriver() error {
	if t.driver != nil {
		return nil
	}
	if manyAtOnce() {
		for _, p := range t.driverSpec.Programs {
			p.AttachType = ebpf.AttachTraceUprobeMulti
		}
		t.together = true
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

// manyAtOnce reports whether one link can watch many functions of one process.
// Linux 6.6 and newer have such links; the first of them took a process for its
// first thread, and are recognised by their error for an impossible process.
var manyAtOnce = sync.OnceValue(func() bool {
	if features.HaveBPFLinkUprobeMulti() != nil {
		return false
	}
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.Kprobe, AttachType: ebpf.AttachTraceUprobeMulti, License: "Dual MIT/GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
	})
	if err != nil {
		return false
	}
	defer p.Close()
	self, err := link.OpenExecutable("/proc/self/exe")
	if err != nil {
		return false
	}
	l, err := self.UprobeMulti(nil, p, &link.UprobeMultiOptions{Addresses: []uint64{1}, PID: math.MaxUint32})
	if err == nil {
		l.Close()
	}
	return errors.Is(err, unix.EINVAL)
})

// probes are the functions of a library that one program is attached to: where
// they are in the file, and the cookie that the program is given.
type probes struct {
	program string
	returns bool
	offsets []uint64
	cookies []uint64
}

func (p *probes) add(offset, cookie uint64) {
	p.offsets, p.cookies = append(p.offsets, offset), append(p.cookies, cookie)
}

// AttachDriver watches the functions of a GPU driver's library in one process. It
// returns how many the library has; those that it has not are left out.
func (t *Tracer) AttachDriver(pid int, library *os.File) (functions int, err error) {
	at, err := functionsOf(library)
	if err != nil {
		return 0, err
	}
	// The returns first: a call whose return is not seen would hide others.
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
	defer runtime.KeepAlive(library) // its number stands for it below
	exe, err := link.OpenExecutable(fmt.Sprintf("/proc/self/fd/%d", library.Fd()))
	if err != nil {
		return 0, err
	}
	for _, p := range []*probes{&ret, &enter, &free} {
		if err := t.probe(pid, exe, p); err != nil {
			t.DetachDriver(pid)
			return 0, err
		}
	}
	return functions, nil
}

// probe attaches a program: by one link if the kernel can, else by one for each
// function.
func (t *Tracer) probe(pid int, exe *link.Executable, p *probes) error {
	if len(p.offsets) == 0 {
		return nil
	}
	program, many, one := t.driver.Programs[ofDriver+p.program], exe.UprobeMulti, exe.Uprobe
	if p.returns {
		many, one = exe.UretprobeMulti, exe.Uretprobe
	}
	if t.together {
		l, err := many(nil, program, &link.UprobeMultiOptions{Addresses: p.offsets, Cookies: p.cookies, PID: uint32(pid)})
		if err == nil {
			t.probes[pid] = append(t.probes[pid], l)
		}
		return err
	}
	for i, offset := range p.offsets {
		l, err := one("", program, &link.UprobeOptions{Address: offset, Cookie: p.cookies[i], PID: pid})
		if err != nil {
			return err
		}
		t.probes[pid] = append(t.probes[pid], l)
	}
	return nil
}

// functionsOf are where the functions of a library are in its file.
func functionsOf(library *os.File) (map[string]uint64, error) {
	f, err := elf.NewFile(library)
	if err != nil {
		return nil, err
	}
	symbols, err := f.DynamicSymbols()
	if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
		return nil, err
	}
	out := map[string]uint64{}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) != elf.STT_FUNC || s.Section == elf.SHN_UNDEF {
			continue
		}
		for _, p := range f.Progs {
			if p.Type == elf.PT_LOAD && p.Flags&elf.PF_X != 0 && p.Vaddr <= s.Value && s.Value-p.Vaddr < p.Filesz {
				out[s.Name] = s.Value - p.Vaddr + p.Off
			}
		}
	}
	return out, nil
}

// DetachDriver begins to end what AttachDriver began in a process. The kernel
// waits up to 100 ms at the end of each link; Close waits for all.
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
