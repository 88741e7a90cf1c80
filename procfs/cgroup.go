package procfs

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A Cgroup is what the memory controller counts for the group of a process,
// children groups included. Sizes are bytes.
type Cgroup struct {
	Path string // of its folder
	// Usage is all that is charged to the group.
	Usage uint64
	// Anon and Shmem are memory without a file and of tmpfs, memfd and shared
	// mappings; File is the page cache, without Shmem.
	Anon, Shmem, File uint64
	// InactiveFile is page cache that goes first when memory is short. Kernel is
	// what the kernel itself holds for the group: slabs, sockets, page tables,
	// stacks of threads.
	InactiveFile, Kernel uint64
}

// Cgroup is the memory group of a process. It is an error where no controller
// of memory is mounted.
func (p Process) Cgroup() (Cgroup, error) {
	text, err := os.ReadFile(p.file("cgroup"))
	if err != nil {
		return Cgroup{}, err
	}
	mounts, err := parsed("/proc/self/mountinfo", parseMounts)
	if err != nil {
		return Cgroup{}, err
	}
	for _, g := range groupsOf(string(text)) {
		for _, m := range mounts {
			if m.unified != g.unified {
				continue
			}
			rest, ok := strings.CutPrefix(g.path, m.root)
			if !ok && m.root != "/" {
				rest = "/" // a group outside what a container sees: its own is the root of the mount
			}
			out, err := readCgroup(filepath.Join(m.at, rest), g.unified)
			if err == nil {
				return out, nil
			}
		}
	}
	return Cgroup{}, fmt.Errorf("no memory controller of a cgroup counts process %d", int(p))
}

type group struct {
	path    string
	unified bool // cgroup v2
}

// groupsOf reads /proc/PID/cgroup: "N:controllers:path", where cgroup v2 is the
// line "0::path". The memory controller is in one of the two.
func groupsOf(text string) (out []group) {
	for line := range strings.Lines(text) {
		f := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3)
		switch {
		case len(f) < 3:
		case f[0] == "0" && f[1] == "":
			out = append(out, group{f[2], true})
		case contains(strings.Split(f[1], ","), "memory"):
			out = append([]group{{f[2], false}}, out...)
		}
	}
	return out
}

func contains(list []string, word string) bool {
	for _, x := range list {
		if x == word {
			return true
		}
	}
	return false
}

type cgroupMount struct {
	root, at string
	unified  bool
}

// parseMounts reads /proc/self/mountinfo: "id parent dev root at options … -
// type source super-options".
func parseMounts(r io.Reader) (out []cgroupMount, err error) {
	s := lines(r)
	for s.Scan() {
		before, after, ok := strings.Cut(s.Text(), " - ")
		left, right := strings.Fields(before), strings.Fields(after)
		if !ok || len(left) < 5 || len(right) < 3 {
			continue
		}
		m := cgroupMount{root: unescape(left[3]), at: unescape(left[4]), unified: right[0] == "cgroup2"}
		if m.unified || right[0] == "cgroup" && contains(strings.Split(right[2], ","), "memory") {
			out = append(out, m)
		}
	}
	return out, s.Err()
}

func readCgroup(dir string, unified bool) (c Cgroup, err error) {
	f, err := os.Open(filepath.Join(dir, "memory.stat"))
	if err != nil {
		return c, err
	}
	defer f.Close()
	stat, err := parseCounts(f)
	if err != nil {
		return c, fmt.Errorf("%s: %w", f.Name(), err)
	}
	c = Cgroup{Path: dir}
	if unified {
		c.Anon, c.Shmem, c.InactiveFile = stat["anon"], stat["shmem"], stat["inactive_file"]
		c.File = stat["file"] - min(stat["file"], c.Shmem)
		c.Kernel = stat["kernel"]
		if _, ok := stat["kernel"]; !ok { // before Linux 5.18
			c.Kernel = stat["slab"] + stat["kernel_stack"] + stat["pagetables"] + stat["percpu"]
		}
		c.Kernel += stat["sock"]
		c.Usage = number(dir, "memory.current")
		return c, nil
	}
	// Those with "total_" count the groups below, too.
	c.Anon, c.Shmem, c.InactiveFile = stat["total_rss"], stat["total_shmem"], stat["total_inactive_file"]
	c.File = stat["total_cache"] - min(stat["total_cache"], c.Shmem)
	c.Kernel = number(dir, "memory.kmem.usage_in_bytes") + number(dir, "memory.kmem.tcp.usage_in_bytes")
	c.Usage = number(dir, "memory.usage_in_bytes")
	return c, nil
}

func parseCounts(r io.Reader) (map[string]uint64, error) {
	out := map[string]uint64{}
	s := bufio.NewScanner(r)
	for n := 1; s.Scan(); n++ {
		name, value, _ := strings.Cut(s.Text(), " ")
		v, err := strconv.ParseUint(value, 10, 64)
		if err != nil {
			return out, fmt.Errorf("line %d: %w", n, err)
		}
		out[name] = v
	}
	return out, s.Err()
}

// number is the one in a file, 0 where there is no such file: kernels lack
// counters.
func number(dir, name string) uint64 {
	text, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return 0
	}
	n, _ := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	return n
}
