package procfs

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"strandline/internal/secret"
)

// A Process is a process on this machine, identified by its pid as we see it. A pid can
// later be reused for another process: [Process.Started] distinguishes them.
type Process int

func (p Process) file(name string) string { return fmt.Sprintf("/proc/%d/%s", int(p), name) }

// Maps returns the mappings, by address.
func (p Process) Maps() ([]Mapping, error) {
	return parsed(p.file("maps"), parseMaps)
}

// MapsNaming reports whether the process maps a file whose name begins so. It takes a
// third of the time of [Process.Maps].
func (p Process) MapsNaming(prefix string) (bool, error) {
	return parsed(p.file("maps"), func(r io.Reader) (bool, error) { return contains(r, "/"+prefix) })
}

// contains reports whether a text contains another one.
func contains(r io.Reader, text string) (bool, error) {
	buffer, held := make([]byte, 16<<10), 0
	for {
		n, err := r.Read(buffer[held:])
		if held += n; bytes.Contains(buffer[:held], []byte(text)) {
			return true, nil
		}
		if err == io.EOF {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		held = copy(buffer, buffer[max(held-len(text), 0):held])
	}
}

// Smaps returns the mappings with their usage. The kernel has to walk the page tables
// for this: a few microseconds per mapping.
func (p Process) Smaps() ([]Usage, error) {
	return parsed(p.file("smaps"), ParseSmaps)
}

// Rollup returns the usage of all mappings together, from /proc/PID/smaps_rollup.
func (p Process) Rollup() (Usage, error) {
	all, err := parsed(p.file("smaps_rollup"), ParseSmaps)
	if err != nil || len(all) == 0 {
		return Usage{}, err
	}
	return all[0], nil
}

// FileBytes returns how much the process has read from and written to files on disks:
// this is what put their content in the page cache.
func (p Process) FileBytes() (uint64, error) {
	counts, err := parsed(p.file("io"), numbers(":"))
	return counts["read_bytes"] + counts["write_bytes"], err
}

// ReadBytes returns how much the process has read with system calls, from files,
// sockets and pipes, cached or not.
func (p Process) ReadBytes() (uint64, error) {
	counts, err := parsed(p.file("io"), numbers(":"))
	return counts["rchar"], err
}

// StackPointer returns the stack pointer of a thread that waits in the kernel, or 0 for one
// that runs.
func (p Process) StackPointer(tid uint32) (uint64, error) {
	text, err := os.ReadFile(p.file(fmt.Sprintf("task/%d/syscall", tid)))
	if err != nil {
		return 0, err
	}
	// The number of the system call and its arguments, or -1, then the stack pointer and
	// the instruction pointer; or the word running.
	words := strings.Fields(string(text))
	if len(words) < 3 {
		return 0, nil
	}
	return strconv.ParseUint(words[len(words)-2], 0, 64)
}

// Status returns the content of /proc/PID/status.
func (p Process) Status() (Status, error) {
	return parsed(p.file("status"), parseStatus)
}

// Self returns the status of this process from /proc/self/status. It fails if /proc
// belongs to a pid namespace that does not contain this process.
func Self() (Status, error) { return parsed("/proc/self/status", parseStatus) }

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

// Started returns when the process began, in clock ticks since boot.
func (p Process) Started() (uint64, error) {
	text, err := os.ReadFile(p.file("stat"))
	if err != nil {
		return 0, err
	}
	return started(string(text))
}

// started reads the 22nd field of /proc/PID/stat.
func started(stat string) (uint64, error) {
	_, ticks, err := ParseOrigin(stat)
	return ticks, err
}

// ParseOrigin returns, from the text of /proc/PID/stat, the parent of the process (the
// 4th field) and when it started, in clock ticks since boot (the 22nd). The second
// field is a name in parentheses that can contain anything.
func ParseOrigin(stat string) (parent int, started uint64, err error) {
	after := strings.LastIndexByte(stat, ')')
	fields := strings.Fields(stat[after+1:])
	if after < 0 || len(fields) < 20 {
		return 0, 0, fmt.Errorf("%q is not a process's stat", stat)
	}
	if parent, err = strconv.Atoi(fields[1]); err != nil {
		return 0, 0, err
	}
	started, err = strconv.ParseUint(fields[19], 10, 64)
	return parent, started, err
}

// Faults returns how often the process touched a page that was not mapped, or not its
// own, and got it without a disk read.
func (p Process) Faults() (uint64, error) {
	text, err := os.ReadFile(p.file("stat"))
	if err != nil {
		return 0, err
	}
	return faults(string(text))
}

// faults reads the 10th field of /proc/PID/stat.
func faults(stat string) (uint64, error) {
	after := strings.LastIndexByte(stat, ')')
	fields := strings.Fields(stat[after+1:])
	if after < 0 || len(fields) < 8 {
		return 0, fmt.Errorf("%q is not a process's stat", stat)
	}
	return strconv.ParseUint(fields[7], 10, 64)
}

// Age returns how long the process has been running.
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
	const ticksPerSecond = 100 // on all architectures of Linux, for user space
	age := seconds - float64(ticks)/ticksPerSecond
	if age < 0 {
		return 0, fmt.Errorf("process %d began after now", int(p))
	}
	return time.Duration(age * float64(time.Second)), nil
}

// Environ returns the environment that the process was started with.
func (p Process) Environ() (map[string]string, error) {
	f, err := os.Open(p.file("environ"))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, 4<<20))
	return Variables(string(text)), err
}

// Variables are those of the text of /proc/PID/environ.
func Variables(text string) map[string]string {
	out := map[string]string{}
	for entry := range strings.SplitSeq(text, "\x00") {
		if name, value, ok := strings.Cut(entry, "="); ok {
			out[name] = value
		}
	}
	return out
}

// maxCommand bounds how much of a command line is kept, in bytes.
const maxCommand = 1 << 10

// Command returns the command line of the process, without the secrets in it; empty if it
// has none or has ended.
func (p Process) Command() string { return secret.Command(p.commandLine(maxCommand), maxCommand) }

// Args returns the arguments of the process, its program first, without the secrets in
// them; one empty argument if it has none or has ended.
func (p Process) Args() []string {
	const maxArgs = 1 << 20 // bytes
	return secret.Args(secret.Split(p.commandLine(maxArgs)))
}

// commandLine is the beginning of the command line as the kernel shows it, and enough
// after it to recognize a secret.
func (p Process) commandLine(size int64) string {
	f, err := os.Open(p.file("cmdline"))
	if err != nil {
		return ""
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, size+secret.Margin))
	return string(text)
}

// Processes are those of this machine, in order.
func Processes() (out []Process) {
	entries, _ := os.ReadDir("/proc")
	for _, e := range entries {
		if n, err := strconv.Atoi(e.Name()); err == nil {
			out = append(out, Process(n))
		}
	}
	slices.Sort(out)
	return out
}

// Descendants returns the live children, and their descendants. The error states that
// there can be more, as they could not be read.
func (p Process) Descendants() (out []Process, err error) {
	for work := []Process{p}; len(work) > 0; work = work[1:] {
		threads, bad := os.ReadDir(work[0].file("task"))
		if bad != nil && !HasExited(bad) {
			err = bad
		}
		for _, thread := range threads {
			text, bad := os.ReadFile(filepath.Join(work[0].file("task"), thread.Name(), "children"))
			if bad != nil {
				if !HasExited(bad) {
					err = bad
				}
				continue // the thread has ended
			}
			for _, field := range strings.Fields(string(text)) {
				if n, err := strconv.Atoi(field); err == nil && n > 0 && len(out) < 1<<16 {
					out, work = append(out, Process(n)), append(work, Process(n))
				}
			}
		}
	}
	return out, err
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

// Close closes the memory.
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

// OfFile reports whether the page belongs to a file or is shared; in a private mapping
// it has then not been written to.
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

// Close closes the page map.
func (p *Pages) Close() error { return p.f.Close() }

// PageSize is the machine's page size.
var PageSize = uint64(os.Getpagesize())

// Each calls f with every page of a range, by address. Unmapped addresses are reported
// as pages that are not present.
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

// errTooLarge states that a range has too many pages to be read one by one.
var errTooLarge = errors.New("too large to look at each page")

// onePages is the longest range that is read page by page, in bytes. GPU drivers
// reserve terabytes of address space, of which next to nothing is in memory.
const onePages = 16 << 30

// Resident returns how many bytes of a range are in memory.
func (p *Pages) Resident(start, end uint64) (bytes uint64, err error) {
	if bytes, err := p.scan(start, end); err == nil {
		return bytes, nil
	}
	if end-start > onePages {
		return 0, errTooLarge
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
