//go:build linux && (amd64 || arm64)

package bpf

import (
	"debug/elf"
	"errors"
	"math"
	"os"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/features"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// probes are the functions of a library that one program is attached to: their places
// in the file, and the cookies that the program receives.
type probes struct {
	program string
	returns bool
	offsets []uint64
	cookies []uint64
}

func (p *probes) add(offset, cookie uint64) {
	p.offsets, p.cookies = append(p.offsets, offset), append(p.cookies, cookie)
}

// attach attaches a program: by one link if together is set, which needs a kernel that can,
// otherwise by one link for each place. Links that were made are returned even with an
// error.
func (p *probes) attach(pid int, exe *link.Executable, program *ebpf.Program, together bool) (links []link.Link, err error) {
	if len(p.offsets) == 0 {
		return nil, nil
	}
	many, one := exe.UprobeMulti, exe.Uprobe
	if p.returns {
		many, one = exe.UretprobeMulti, exe.Uretprobe
	}
	if together {
		l, err := many(nil, program, &link.UprobeMultiOptions{Addresses: p.offsets, Cookies: p.cookies, PID: uint32(pid)})
		if err != nil {
			return nil, err
		}
		return []link.Link{l}, nil
	}
	for i, offset := range p.offsets {
		l, err := one("", program, &link.UprobeOptions{Address: offset, Cookie: p.cookies[i], PID: pid})
		if err != nil {
			return links, err
		}
		links = append(links, l)
	}
	return links, nil
}

// functionsOf returns where in the file the functions of a library are.
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

// uprobeMulti reports whether one link can watch many functions of one process. Linux
// 6.6 and newer have such links; the first of these kernels confused a process with its
// first thread, and are recognized by the error that they give for an impossible
// process.
var uprobeMulti = sync.OnceValue(func() bool {
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
