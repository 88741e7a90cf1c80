package procfs

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// A Process is one that runs on this machine, by its number as we see it. A
// number can be given to another process later: [Process.Started] tells them
// apart.
type Process int

func (p Process) file(name string) string { return fmt.Sprintf("/proc/%d/%s", int(p), name) }

// Maps are the mappings, by address.
func (p Process) Maps() ([]Mapping, error) {
	return parsed(p.file("maps"), ParseMaps)
}

// Smaps are the mappings with their use. The kernel walks the page tables for
// it: some microseconds a mapping.
func (p Process) Smaps() ([]Usage, error) {
	return parsed(p.file("smaps"), ParseSmaps)
}

// Rollup is the use of all mappings together, by /proc/PID/smaps_rollup.
func (p Process) Rollup() (Usage, error) {
	all, err := parsed(p.file("smaps_rollup"), ParseSmaps)
	if err != nil || len(all) == 0 {
		return Usage{}, err
	}
	return all[0], nil
}

// FileBytes is what the process has read from disks and written to files of
// them: what is in their cache because of it.
func (p Process) FileBytes() (uint64, error) {
	counts, err := parsed(p.file("io"), numbers(":"))
	return counts["read_bytes"] + counts["write_bytes"], err
}

// ReadBytes is what the process has read by calls, from files, sockets and pipes,
// in the cache or not.
func (p Process) ReadBytes() (uint64, error) {
	counts, err := parsed(p.file("io"), numbers(":"))
	return counts["rchar"], err
}

// Status is what /proc/PID/status has.
func (p Process) Status() (Status, error) {
	return parsed(p.file("status"), ParseStatus)
}

// Self is what /proc/self/status has of this process. It fails where /proc is of
// a pid namespace in which the process is not.
func Self() (Status, error) { return parsed("/proc/self/status", ParseStatus) }

func parsed[T any](file string, parse func(io.Reader) (T, error)) (T, error) {
	f, err := os.Open(file)
	if err != nil {
		var none T
		return none, err
	}
	defer f.Close()
	out, err := parse(f)
	if err != nil {
		err = fmt.Errorf("%s: %w", file, err)
	}
	return out, err
}

// Started is when the process began, in clock ticks since boot.
func (p Process) Started() (uint64, error) {
	text, err := os.ReadFile(p.file("stat"))
	if err != nil {
		return 0, err
	}
	return started(string(text))
}

// started reads the 22nd field; the second is a name in parentheses that can
// hold anything.
func started(stat string) (uint64, error) {
	after := strings.LastIndexByte(stat, ')')
	fields := strings.Fields(stat[after+1:])
	if after < 0 || len(fields) < 20 {
		return 0, fmt.Errorf("%q is no stat of a process", stat)
	}
	return strconv.ParseUint(fields[19], 10, 64)
}

// Age is how long the process runs.
func (p Process) Age() (time.Duration, error) {
	ticks, err := p.Started()
	if err != nil {
		return 0, err
	}
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		return 0, err
	}
	up, _, _ := strings.Cut(string(text), " ")
	seconds, err := strconv.ParseFloat(up, 64)
	if err != nil {
		return 0, fmt.Errorf("/proc/uptime: %w", err)
	}
	const ticksPerSecond = 100 // of all architectures of Linux, for user space
	age := seconds - float64(ticks)/ticksPerSecond
	if age < 0 {
		return 0, fmt.Errorf("process %d began after now", int(p))
	}
	return time.Duration(age * float64(time.Second)), nil
}

// Environ is the environment that the process was started with.
func (p Process) Environ() (map[string]string, error) {
	f, err := os.Open(p.file("environ"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 4<<20))
	out := map[string]string{}
	for _, entry := range strings.Split(string(text), "\x00") {
		if name, value, ok := strings.Cut(entry, "="); ok {
			out[name] = value
		}
	}
	return out, err
}

// Descendants are the children that live now, and theirs.
func (p Process) Descendants() (out []Process) {
	for work := []Process{p}; len(work) > 0; work = work[1:] {
		lists, _ := filepath.Glob(work[0].file("task/*/children"))
		for _, list := range lists {
			text, err := os.ReadFile(list)
			if err != nil {
				continue // the thread has ended
			}
			for _, field := range strings.Fields(string(text)) {
				if n, err := strconv.Atoi(field); err == nil && n > 0 && len(out) < 1<<16 {
					out, work = append(out, Process(n)), append(work, Process(n))
				}
			}
		}
	}
	return out
}

// Memory is the memory of a process, read without stopping it.
type Memory struct {
	f    *os.File
	read io.ReaderAt
}

// Memory opens the memory for reading.
func (p Process) Memory() (*Memory, error) {
	f, err := os.Open(p.file("mem"))
	if err != nil {
		return nil, err
	}
	return &Memory{f, Patient(f)}, nil
}

// Close ends the reading.
func (m *Memory) Close() error { return m.f.Close() }

// ReadAt reads at an address.
func (m *Memory) ReadAt(b []byte, addr int64) (int, error) {
	if addr < 0 {
		return 0, fmt.Errorf("address %#x lies in the kernel", uint64(addr))
	}
	return m.read.ReadAt(b, addr)
}

// A Page is an entry of /proc/PID/pagemap.
type Page uint64

// Present reports whether the page is in memory.
func (p Page) Present() bool { return p>>63 == 1 }

// Swapped reports whether the page is in swap.
func (p Page) Swapped() bool { return p>>62&1 == 1 }

// OfFile reports whether the page is one of a file or shared, and so that nobody
// wrote to it in a private mapping.
func (p Page) OfFile() bool { return p>>61&1 == 1 }

// Pages reads the page map of a process.
type Pages struct{ f *os.File }

// Pages opens the page map.
func (p Process) Pages() (*Pages, error) {
	f, err := os.Open(p.file("pagemap"))
	if err != nil {
		return nil, err
	}
	return &Pages{f}, nil
}

// Close ends the reading.
func (p *Pages) Close() error { return p.f.Close() }

// PageSize is that of the machine.
var PageSize = uint64(os.Getpagesize())

// Each calls f with every page of a range, by address. Addresses that are not
// mapped are pages that are not present.
func (p *Pages) Each(start, end uint64, f func(addr uint64, page Page)) error {
	buf := make([]byte, 64<<10)
	for addr := start &^ (PageSize - 1); addr < end; {
		n := min((end-addr+PageSize-1)/PageSize, uint64(len(buf)/8))
		_, err := p.f.ReadAt(buf[:8*n], int64(addr/PageSize*8))
		if errors.Is(err, io.EOF) {
			err = os.ErrProcessDone // its memory is gone, so that the page map is empty
		}
		if err != nil {
			return err
		}
		for i := range n {
			f(addr, Page(binary.LittleEndian.Uint64(buf[8*i:])))
			addr += PageSize
		}
	}
	return nil
}

// ErrTooLarge says that a range has too many pages to read them one by one.
var ErrTooLarge = errors.New("too large to look at each page")

// onePages is the longest range that is read page by page, bytes. Drivers of GPUs
// set terabytes of addresses aside, of which next to nothing is in memory.
const onePages = 16 << 30

// Resident is how many bytes of a range are in memory.
func (p *Pages) Resident(start, end uint64) (bytes uint64, err error) {
	if bytes, err := p.scan(start, end); err == nil {
		return bytes, nil
	}
	if end-start > onePages {
		return 0, ErrTooLarge
	}
	return p.count(start, end)
}

// count looks at each page.
func (p *Pages) count(start, end uint64) (bytes uint64, err error) {
	err = p.Each(start, end, func(addr uint64, page Page) {
		if page.Present() {
			bytes += min(addr+PageSize, end) - max(addr, start)
		}
	})
	return bytes, err
}
