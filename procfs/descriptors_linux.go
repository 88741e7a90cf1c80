package procfs

import (
	"cmp"
	"os"
	"slices"
	"strings"
	"syscall"
)

// mostDescriptors bounds what is looked at.
const mostDescriptors = 1 << 17

// Descriptors reads /proc/PID/fd. The files are not opened.
func (p Process) Descriptors() (*Descriptors, error) {
	dir, err := os.Open(p.file("fd"))
	if err != nil {
		return nil, err
	}
	defer dir.Close()
	names, err := dir.Readdirnames(mostDescriptors)
	if err != nil {
		return nil, err
	}
	out := &Descriptors{Total: len(names)}
	type file struct{ dev, inode uint64 }
	seen := map[file]bool{}
	for _, name := range names {
		link := p.file("fd/" + name)
		target, err := os.Readlink(link)
		if err != nil {
			continue // closed meanwhile
		}
		switch {
		case strings.HasPrefix(target, "socket:"):
			out.Sockets++
		case strings.HasPrefix(target, "pipe:"):
			out.Pipes++
		case strings.HasPrefix(target, "/memfd:"), strings.HasPrefix(target, "/dev/shm/"):
			var st syscall.Stat_t
			if syscall.Stat(link, &st) != nil || seen[file{st.Dev, st.Ino}] {
				continue
			}
			seen[file{st.Dev, st.Ino}] = true
			target, deleted := strings.CutSuffix(target, " (deleted)")
			out.Memory = append(out.Memory, MemoryFile{target, 512 * uint64(st.Blocks), deleted})
		}
	}
	slices.SortFunc(out.Memory, func(a, b MemoryFile) int {
		return cmp.Or(cmp.Compare(b.Bytes, a.Bytes), cmp.Compare(a.Name, b.Name))
	})
	return out, nil
}
