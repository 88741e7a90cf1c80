package procfs

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// A MemoryFile is an open file that lives in memory and has no name: a memfd, or
// one of /dev/shm that was removed. It takes memory for as long as a process
// holds it, mapped or not.
type MemoryFile struct {
	Name  string
	Dev   uint64
	Inode uint64
	Bytes uint64 // in memory, or in swap
}

// OpenFiles counts the open sockets, pipes and other objects of the kernel that
// a process holds, and tells the files that live in memory, each once.
func (p Process) OpenFiles() (objects int, inMemory []MemoryFile, err error) {
	dir := p.file("fd")
	entries, err := os.ReadDir(dir)
	if err != nil {
		return 0, nil, err
	}
	seen := map[[2]uint64]bool{}
	for _, e := range entries {
		name, err := os.Readlink(filepath.Join(dir, e.Name()))
		if err == nil && !strings.HasPrefix(name, "/") {
			objects++ // such as socket:[4026]
		}
		if err != nil || !livesInMemory(name) {
			continue // closed in the meantime, or of no interest
		}
		var st syscall.Stat_t
		if err := syscall.Stat(filepath.Join(dir, e.Name()), &st); err != nil || seen[[2]uint64{uint64(st.Dev), st.Ino}] {
			continue
		}
		seen[[2]uint64{uint64(st.Dev), st.Ino}] = true
		name = strings.TrimSuffix(name, " (deleted)")
		inMemory = append(inMemory, MemoryFile{name, uint64(st.Dev), st.Ino, uint64(st.Blocks) * 512})
	}
	return objects, inMemory, nil
}

func livesInMemory(link string) bool {
	return strings.HasPrefix(link, "/memfd:") || strings.HasPrefix(link, "/dev/shm/") && strings.HasSuffix(link, " (deleted)")
}

// Rollup is the use of all mappings together, by /proc/PID/smaps_rollup.
func (p Process) Rollup() (Usage, error) {
	all, err := parsed(p.file("smaps_rollup"), ParseSmaps)
	if err != nil || len(all) == 0 {
		return Usage{}, err
	}
	return all[0], nil
}

// ReadBytes is what the process has read from files, cached ones included.
func (p Process) ReadBytes() (n uint64, err error) {
	counts, err := parsed(p.file("io"), parseColons)
	return counts["rchar"], err
}
