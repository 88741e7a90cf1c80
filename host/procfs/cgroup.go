package procfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// A Cgroup is the control group that a process's memory is charged to.
type Cgroup struct {
	Folder string // where its files are
	v2     bool   // it is in the unified hierarchy
}

// GroupMemory is what a control group is charged for, in bytes. Memory is charged to
// the group that first touched it, no matter who holds it now.
type GroupMemory struct {
	Used uint64
	// Anon is anonymous memory; Shared that of tmpfs and shared mappings; Cache that of
	// files on disks. InactiveFile is the part of Cache that the kernel reclaims first.
	Anon, Shared, Cache, InactiveFile uint64
	// Kernel is the kernel's own memory: page tables, sockets, caches of file names. It
	// is nil if the kernel does not count it.
	Kernel *uint64
	Limit  *uint64 // nil if there is none
}

// errNoCgroup states that no control group counts a process's memory.
var errNoCgroup = errors.New("no control group counts the memory of the process")

// Cgroup returns the control group of a process.
func (p Process) Cgroup() (*Cgroup, error) {
	groups, err := os.ReadFile(p.file("cgroup"))
	if err != nil {
		return nil, err
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return nil, err
	}
	g, ok := FindCgroup(string(groups), string(mounts))
	if !ok {
		return nil, errNoCgroup
	}
	return g, nil
}

// FindCgroup combines the lines of /proc/PID/cgroup, "number:controllers:path", with
// the mount points of the hierarchies in /proc/self/mountinfo. The older hierarchy of
// the memory controller takes precedence: if there is one, the unified hierarchy does
// not count memory.
func FindCgroup(groups, mounts string) (*Cgroup, bool) {
	paths := memoryPaths(groups)
	for _, v2 := range []bool{false, true} {
		path, ok := paths[v2]
		if !ok {
			continue
		}
		for _, line := range strings.Split(mounts, "\n") {
			if m, ok := parseMount(line); ok && m.holds(v2) {
				return &Cgroup{Folder: m.folder(path), v2: v2}, true
			}
		}
	}
	return nil, false
}

// MemoryPath returns the path of the group that counts a process's memory, by the text of
// /proc/PID/cgroup; "" if it names none.
func MemoryPath(groups string) string {
	paths := memoryPaths(groups)
	if path, ok := paths[false]; ok {
		return path
	}
	return paths[true]
}

// memoryPaths are the paths of the groups that may count memory, keyed by whether the
// hierarchy is the unified one.
func memoryPaths(groups string) map[bool]string {
	paths := map[bool]string{}
	for line := range strings.SplitSeq(groups, "\n") {
		fields := strings.SplitN(line, ":", 3)
		switch {
		case len(fields) < 3:
		case fields[0] == "0" && fields[1] == "":
			paths[true] = fields[2]
		case hasWord(fields[1], "memory"):
			paths[false] = fields[2]
		}
	}
	return paths
}

// mount is a line of /proc/PID/mountinfo.
type mount struct{ root, point, kind, options string }

// parseMount reads "id parent device root point options [more] - type source
// options".
func parseMount(line string) (mount, bool) {
	before, after, ok := strings.Cut(line, " - ")
	fields, last := strings.Fields(before), strings.Fields(after)
	if !ok || len(fields) < 6 || len(last) < 3 {
		return mount{}, false
	}
	return mount{octal(fields[3]), octal(fields[4]), last[0], last[2]}, true
}

func (m mount) holds(v2 bool) bool {
	if v2 {
		return m.kind == "cgroup2"
	}
	return m.kind == "cgroup" && hasWord(m.options, "memory")
}

// folder returns where the group that the kernel calls path is. In a container only a
// part of the hierarchy is mounted.
func (m mount) folder(path string) string {
	path = filepath.Clean("/" + path)
	if inside, ok := strings.CutPrefix(path, strings.TrimSuffix(m.root, "/")); ok && (inside == "" || inside[0] == '/') {
		return filepath.Join(m.point, inside)
	}
	return m.point
}

func hasWord(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}

// octal undoes the kernel's escaping of blanks in the names of mounts.
func octal(s string) string {
	return strings.NewReplacer(`\040`, " ", `\011`, "\t", `\012`, "\n", `\134`, `\`).Replace(s)
}

// Memory reads what the group is charged for.
func (g *Cgroup) Memory() (*GroupMemory, error) {
	names := struct{ used, limit, kernel string }{"memory.usage_in_bytes", "memory.limit_in_bytes", "memory.kmem.usage_in_bytes"}
	if g.v2 {
		names.used, names.limit, names.kernel = "memory.current", "memory.max", ""
	}
	stat, err := parsed(filepath.Join(g.Folder, "memory.stat"), numbers(" "))
	if err != nil {
		return nil, err
	}
	m := groupMemory(stat, g.v2)
	used := g.number(names.used)
	if used == nil {
		return nil, fmt.Errorf("%s does not report memory use", g.Folder)
	}
	m.Used = *used
	if names.kernel != "" {
		m.Kernel = g.number(names.kernel)
	}
	const unlimited = 1 << 62 // the older hierarchy uses a number to state that there is none
	if limit := g.number(names.limit); limit != nil && *limit < unlimited {
		m.Limit = limit
	}
	return m, nil
}

// Kills returns how many processes of the group, and of those below it, the kernel has
// killed for want of memory; nil if it does not count them (before Linux 4.13).
func (g *Cgroup) Kills() *uint64 {
	name := "memory.oom_control"
	if g.v2 {
		name = "memory.events"
	}
	counts, err := parsed(filepath.Join(g.Folder, name), numbers(" "))
	if err != nil {
		return nil
	}
	if n, ok := counts["oom_kill"]; ok {
		return &n
	}
	return nil
}

// number reads a file that holds one number; nil if it contains "max" or does not exist.
func (g *Cgroup) number(name string) *uint64 {
	text, err := os.ReadFile(filepath.Join(g.Folder, name))
	if err != nil {
		return nil
	}
	n, err := strconv.ParseUint(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return nil
	}
	return &n
}

// groupMemory sorts the figures. Those of the older hierarchy that begin with total_
// include the groups below, as all figures of the unified one do. In both, the cache
// includes memory of tmpfs.
func groupMemory(stat map[string]uint64, v2 bool) *GroupMemory {
	m := &GroupMemory{}
	cache := uint64(0)
	if v2 {
		m.Anon, m.Shared, cache, m.InactiveFile = stat["anon"], stat["shmem"], stat["file"], stat["inactive_file"]
		kernel, ok := stat["kernel"] // since Linux 5.18
		if !ok {
			kernel = stat["slab"] + stat["kernel_stack"] + stat["pagetables"] + stat["percpu"]
		}
		kernel += stat["sock"]
		m.Kernel = &kernel
	} else {
		m.Anon, m.Shared, cache, m.InactiveFile = stat["total_rss"], stat["total_shmem"], stat["total_cache"], stat["total_inactive_file"]
	}
	m.Cache = cache - min(m.Shared, cache)
	return m
}
