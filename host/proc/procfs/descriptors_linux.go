package procfs

import (
	"cmp"
	"os"
	"strconv"
	"strings"
	"syscall"

	"strandline/internal/sorts"
)

// maxDescriptors bounds how many descriptors are examined.
const maxDescriptors = 1 << 17

// Descriptors reads /proc/PID/fd. The files are not opened.
func (p Process) Descriptors() (*Descriptors, error) {
	dir, err := os.Open(p.file("fd"))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(maxDescriptors)
	if err != nil {
		return nil, err
	}
	out := &Descriptors{Total: len(names)}
	seen := map[FileID]bool{}
	for _, name := range names {
		target, err := os.Readlink(p.file("fd/" + name))
		switch {
		case err != nil: // closed meanwhile
		case strings.HasPrefix(target, "socket:"):
			out.Sockets++
		case strings.HasPrefix(target, "pipe:"):
			out.Pipes++
		default:
			if f, ok := p.memoryFile(name, target); ok && !seen[f.ID] {
				seen[f.ID] = true
				out.Memory = append(out.Memory, f)
			}
		}
	}
	sorts.By(out.Memory, func(a, b MemoryFile) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}

// MemoryFile returns the file of a descriptor, if it is in memory.
func (p Process) MemoryFile(fd int32) (MemoryFile, bool) {
	name := strconv.Itoa(int(fd))
	target, err := os.Readlink(p.file("fd/" + name))
	if err != nil {
		return MemoryFile{}, false
	}
	return p.memoryFile(name, target)
}

func (p Process) memoryFile(fd, target string) (MemoryFile, bool) {
	var st syscall.Stat_t
	if !strings.HasPrefix(target, "/memfd:") && !strings.HasPrefix(target, "/dev/shm/") || syscall.Stat(p.file("fd/"+fd), &st) != nil {
		return MemoryFile{}, false
	}
	target = strings.TrimSuffix(target, " (deleted)")
	return MemoryFile{FileID{st.Dev, st.Ino}, target, 512 * uint64(st.Blocks)}, true
}
