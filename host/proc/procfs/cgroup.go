package procfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	g, ok := FindCgroup("/proc", int(p), string(groups))
	if !ok {
		return nil, errNoCgroup
	}
	return g, nil
}

// FindCgroup finds the files of a process's control group by the text of /proc/PID/cgroup.
// They are in a mount of this process or, where it is in a container that shows the
// processes of the machine, in one of the first of those. Root is where processes are shown.
func FindCgroup(root string, pid int, groups string) (*Cgroup, bool) {
	for _, whose := range []string{"self", "1"} {
		mounts, err := os.ReadFile(filepath.Join(root, whose, "mountinfo"))
		if err != nil {
			continue
		}
		seen := filepath.Join(root, whose, "root")
		if whose == "self" {
			seen = "/"
		}
		if g, ok := cgroupIn(pid, groups, string(mounts), seen); ok {
			return g, true
		}
	}
	return nil, false
}

// cgroupIn combines the lines of /proc/PID/cgroup, "number:controllers:path", with the
// mount points of the hierarchies in the text of a file mountinfo, which are below the
// folder seen. The older hierarchy of the memory controller takes precedence: if there is
// one, the unified hierarchy does not count memory.
func cgroupIn(pid int, groups, mounts, seen string) (*Cgroup, bool) {
	path, v2, ok := memoryGroup(groups)
	if !ok {
		return nil, false
	}
	for line := range strings.SplitSeq(mounts, "\n") {
		m, ok := parseMount(line)
		if !ok || !m.contains(v2) {
			continue
		}
		m.point = filepath.Join(seen, m.point)
		folder, ok := m.folder(path, pid)
		if ok && v2 {
			folder = m.counting(folder)
		}
		if ok {
			return &Cgroup{Folder: folder, v2: v2}, true
		}
	}
	return nil, false
}

// MemoryPath returns the path of the group that counts a process's memory, by the text of
// /proc/PID/cgroup; "" if it names none.
func MemoryPath(groups string) string {
	path, _, _ := memoryGroup(groups)
	return path
}

// memoryGroup is the path of the group that may count memory, and whether it is in the
// unified hierarchy.
func memoryGroup(groups string) (path string, v2, ok bool) {
	for line := range strings.SplitSeq(groups, "\n") {
		fields := strings.SplitN(line, ":", 3)
		switch {
		case len(fields) < 3:
		case hasWord(fields[1], "memory"):
			return fields[2], false, true
		case fields[0] == "0" && fields[1] == "":
			path, v2, ok = fields[2], true, true
		}
	}
	return path, v2, ok
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

func (m mount) contains(v2 bool) bool {
	if v2 {
		return m.kind == "cgroup2"
	}
	return m.kind == "cgroup" && hasWord(m.options, "memory")
}

// folder returns where the group of a process is that the kernel calls path; ok is false
// if the mount does not show it: in a container, only a part of the hierarchy is mounted.
// Both names are as seen from the group at which the namespace of this process begins.
// What is above that group has no names but "..": if the mount begins there, the group is
// looked for by the process in it.
func (m mount) folder(path string, pid int) (folder string, ok bool) {
	rootAbove, root := splitGroup(m.root)
	pathAbove, names := splitGroup(path)
	switch unnamed := rootAbove - pathAbove; {
	case unnamed == 0 && len(names) >= len(root) && slices.Equal(names[:len(root)], root):
		return filepath.Join(m.point, filepath.Join(names[len(root):]...)), true
	case unnamed > 0 && len(root) == 0:
		for _, above := range foldersBelow(m.point, unnamed) {
			folder := filepath.Join(above, filepath.Join(names...))
			if hasProcess(folder, pid) {
				return folder, true
			}
		}
	}
	return "", false
}

// foldersBelow are the folders so many levels below one.
func foldersBelow(folder string, levels int) (out []string) {
	if levels == 0 {
		return []string{folder}
	}
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		if e.IsDir() {
			out = append(out, foldersBelow(filepath.Join(folder, e.Name()), levels-1)...)
		}
	}
	return out
}

// splitGroup splits the path of a group into its names, after so many times "..".
func splitGroup(path string) (above int, names []string) {
	for name := range strings.SplitSeq(path, "/") {
		switch {
		case name == "" || name == ".":
		case name != "..":
			names = append(names, name)
		case len(names) > 0:
			names = names[:len(names)-1]
		default:
			above++
		}
	}
	return above, names
}

// hasProcess reports whether a process is in the group of a folder itself.
func hasProcess(folder string, pid int) bool {
	list, err := os.ReadFile(filepath.Join(folder, "cgroup.procs"))
	want := strconv.Itoa(pid)
	for line := range strings.Lines(string(list)) {
		if err == nil && strings.TrimSpace(line) == want {
			return true
		}
	}
	return false
}

// counting returns the folder of the group that memory of one in the unified hierarchy is
// charged to: the nearest above it for which the controller is enabled.
func (m mount) counting(folder string) string {
	for at := folder; len(at) >= len(m.point); at = filepath.Dir(at) {
		if _, err := os.Stat(filepath.Join(at, "memory.stat")); err == nil {
			return at
		}
		if at == m.point {
			break
		}
	}
	return folder
}

// Counts reports whether the files of the group can be seen.
func (g *Cgroup) Counts() bool {
	_, err := os.Stat(filepath.Join(g.Folder, "memory.stat"))
	return err == nil
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
// killed for lack of memory; nil if it does not count them (before Linux 4.13).
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
