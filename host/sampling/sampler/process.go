package sampler

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"strandline/host/proc/procfs"
	"strandline/host/sampling/sample"
	"strandline/internal/secret"
	"strandline/internal/sorts"
	"strandline/plan/engine"
)

// process is one that is watched.
type process struct {
	files   files
	now     sample.Process
	visible []string // the devices that it sees, by CUDA_VISIBLE_DEVICES; nil if that is not set
	group   *group
	looked  int
	retry   bool      // its files are to be opened again
	mapped  int64     // of statm, when status was read
	young   time.Time // until when its reads are looked at
	low     *int64    // the least that it held on the host, bytes; nil before the first sample
}

// files of a process stay open: reading them costs less then, and never shows another
// process of the same number. Those that cannot be opened are nil.
type files struct{ status, statm, io *os.File }

// How often what changes rarely is read again, in samples: what a young process has read,
// status where statm shows no other change than of anonymous memory, the number of open
// files, and what a process is and where it runs.
const (
	readEach        = 2
	statusEach      = 5
	descriptorsEach = 10
	describedEach   = 60
)

func (s *Sampler) open(pid int, o origin) *process {
	p := &process{now: sample.Process{PID: pid, Started: o.started, Parent: o.parent, Devices: []sample.DeviceShare{}}}
	p.openFiles(s)
	if age, err := procfs.Process(pid).Age(); err == nil && s.o.root == procRoot {
		seconds := age.Seconds()
		p.now.Age = &seconds
		p.young = time.Now().Add(sample.Young - age)
		if age < sample.Young {
			p.files.io, _ = os.Open(s.path(pid, "io"))
		}
	}
	return p
}

// openFiles opens what is read in each sample.
func (p *process) openFiles(s *Sampler) {
	status, err := os.Open(s.path(p.now.PID, "status"))
	p.retry = s.lacks(err)
	if err != nil {
		p.now.Note = reason(err)
		return
	}
	p.files.status = status
	p.files.statm, _ = os.Open(s.path(p.now.PID, "statm"))
}

// reads is what a young process has read; nil where that is not known.
func (p *process) reads(buffer []byte) *int64 {
	if p.files.io == nil {
		return nil
	}
	if !time.Now().Before(p.young) {
		p.files.io.Close()
		p.files.io = nil
		return nil
	}
	n, _ := p.files.io.ReadAt(buffer, 0)
	if read, ok := procfs.ParseRead(buffer[:n]); ok {
		return &read
	}
	return nil
}

func (p *process) close() {
	for _, f := range []*os.File{p.files.status, p.files.statm, p.files.io} {
		if f != nil {
			f.Close()
		}
	}
}

// reason is why a file of a process cannot be read, in words.
func reason(err error) string {
	switch {
	case errors.Is(err, os.ErrPermission):
		return "its figures may not be read; run strandline as root"
	case procfs.HasExited(err):
		return "it has ended"
	case errors.Is(err, syscall.ENOMEM):
		return "its figures cannot be read now: the machine has no memory left"
	case procfs.Lacks(err):
		return "its figures cannot be read now: too many files are open (ulimit -n)"
	}
	return err.Error()
}

// look brings the figures of the host up to date. It reports whether the process is
// still there.
func (p *process) look(s *Sampler) bool {
	if _, ok := s.known[p.now.PID]; !ok {
		return false
	}
	p.now.Devices = []sample.DeviceShare{}
	if p.retry {
		p.openFiles(s)
	}
	if p.files.status == nil {
		p.now.Host, p.now.State = nil, "not readable"
		p.describe(s)
		return true
	}
	if !p.lookCheaply(s) {
		if there, read := p.lookClosely(s); !there || !read {
			return there
		}
	}
	turn := p.looked + p.now.PID // not all processes at once
	if p.looked == 0 || turn%readEach == 0 {
		p.now.Read = p.reads(s.buffer)
	}
	if p.looked == 0 || turn%describedEach == 0 {
		p.describe(s)
	}
	if p.looked == 0 || turn%descriptorsEach == 0 {
		p.now.Descriptors = descriptors(s.path(p.now.PID, "fd"))
	}
	p.looked++
	return true
}

// lookCheaply takes what changed of anonymous memory from statm. It reports whether that
// is enough by now: status has more, and takes 10 µs to read instead of 1.8.
func (p *process) lookCheaply(s *Sampler) bool {
	if p.files.statm == nil {
		return false
	}
	n, _ := p.files.statm.ReadAt(s.buffer, 0)
	resident, mapped, ok := procfs.ParseMapped(s.buffer[:n])
	same := ok && mapped == p.mapped
	p.mapped = mapped
	if !same || resident == 0 || p.now.Host == nil || p.looked == 0 || (p.looked+p.now.PID)%statusEach == 0 {
		return false
	}
	if h := *p.now.Host; h.Anonymous != resident-mapped {
		h.Anonymous = resident - mapped
		p.now.Host = &h // the one before belongs to a sample
	}
	return true
}

// lookClosely takes everything from status. It reports whether the process is still
// there, and whether it could be read.
func (p *process) lookClosely(s *Sampler) (there, read bool) {
	before := p.now.Host
	p.now.Host = nil
	n, err := p.files.status.ReadAt(s.buffer, 0)
	if err != nil && err != io.EOF {
		p.now.Note = reason(err)
		s.lacks(err)
		return !procfs.HasExited(err), false
	}
	var v procfs.Vitals
	if err := procfs.ParseVitals(s.buffer[:n], &v); err != nil {
		p.now.Note = err.Error()
		return true, false
	}
	p.now.Note = ""
	p.now.State, p.now.Parent = stateName(v.State), v.Parent
	if v.Resident {
		h := sample.Host{Anonymous: v.Anon, File: v.File, Shared: v.Shared, Swapped: v.Swapped, Pinned: max(v.Locked, v.Pinned)}
		if p.now.Host = before; before == nil || *before != h {
			p.now.Host = &h
		}
	}
	if p.now.Threads == nil || *p.now.Threads != v.Threads {
		threads := v.Threads
		p.now.Threads = &threads
	}
	if string(v.Name) != p.now.Name { // new, or it runs another program
		p.now.Name = strings.ToValidUTF8(string(v.Name), "?")
		p.looked = 0
	}
	return true, true
}

// minHeld is the least that the process held of its own and shared memory.
func (p *process) minHeld(h *sample.Host) int64 {
	held := h.Anonymous + h.Shared
	if p.low == nil || held < *p.low {
		p.low = &held
	}
	return *p.low
}

// states are the kernel's letters for what a process does.
var states = map[byte]string{
	'R': "running", 'S': "sleeping", 'D': "waiting for a device", 'T': "stopped", 't': "traced",
	'Z': sample.Zombie, 'X': "ended", 'I': "idle", 'P': "parked",
}

func stateName(c byte) string {
	if name, ok := states[c]; ok {
		return name
	}
	return string(rune(c))
}

// descriptors counts the open files of a process; nil if they may not be looked at.
func descriptors(folder string) *int {
	info, err := os.Stat(folder)
	if err != nil {
		return nil
	}
	if n := int(info.Size()); n > 0 && filepath.IsAbs(folder) && strings.HasPrefix(folder, "/proc/") { // since Linux 6.2
		return &n
	}
	f, err := os.Open(folder)
	if err != nil {
		return nil
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	if err != nil {
		return nil
	}
	n := len(names)
	return &n
}

// longestCommand bounds what is kept of a command line, and longestRead what is read of it, in
// bytes.
const longestCommand, longestRead = 512, 16 << 10

// describe states what a process is and where it runs.
func (p *process) describe(s *Sampler) {
	pid := p.now.PID
	line := head(s.path(pid, "cmdline"), longestRead)
	if line != "" || p.now.Command == "" { // a zombie no longer has one
		p.now.Command = secret.Command(line[:min(len(line), longestCommand+secret.Margin)], longestCommand)
	}
	if p.now.Command == "" {
		p.now.Command = p.now.Name
	}
	environ := procfs.Variables(strings.ToValidUTF8(head(s.path(pid, "environ"), 256<<10), "?"))
	groups := head(s.path(pid, "cgroup"), 16<<10)
	place(&p.now, groups, environ)
	if s.o.root == procRoot {
		p.now.Launch = procfs.Process(pid).Launch(environ)
	}
	if line != "" {
		caches := engine.CachesOf(strings.Split(strings.TrimSuffix(line, "\x00"), "\x00"), func(name string) string { return environ[name] })
		p.now.PromptCache, p.now.TaskEvents = caches.Prompts, caches.Tasks
	}
	p.visible = nil
	if list, ok := environ["CUDA_VISIBLE_DEVICES"]; ok {
		p.visible = strings.Split(list, ",")
	}
	if p.group = s.groupOf(pid, groups); p.group != nil {
		p.now.Group = p.group.name
	}
}

// head is the beginning of a file, empty if it cannot be read.
func head(path string, maxBytes int64) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	text, _ := io.ReadAll(io.LimitReader(f, maxBytes))
	return string(text)
}

// A group is a control group of processes that are watched.
type group struct {
	name   string
	folder *procfs.Cgroup
	at     time.Time // when it was read
	now    sample.Group
}

// Of more than maxFreshGroups, the figures are used for groupsAge: the kernel sums them up again
// each time.
const (
	maxFreshGroups = 8
	groupsAge      = 5 * time.Second
)

// groupOf is the control group that counts the memory of a process, by the text of its
// file cgroup; nil if none does.
func (s *Sampler) groupOf(pid int, text string) *group {
	if g := s.groups[text]; g != nil {
		return g
	}
	name := procfs.MemoryPath(text)
	if name == "" {
		return nil
	}
	g := &group{name: name}
	found, ok := procfs.FindCgroup(s.o.root, pid, text)
	if !ok && !s.canOpen() {
		return nil // looked for again
	}
	switch {
	case ok && found.Counts():
		g.folder = found
	case !ok && s.outermost && name == "/": // it has no limit
		return nil
	case !ok || !s.outermost: // otherwise the kernel does not count memory
		g.now.Note = unseenGroup
	}
	s.groups[text] = g
	return g
}

// canOpen reports whether files can be opened at all.
func (s *Sampler) canOpen() bool {
	f, err := os.Open(s.o.root)
	if err == nil {
		f.Close()
	}
	return !s.lacks(err)
}

// unseenGroup is why the limit of a group is not known.
const unseenGroup = "its files cannot be seen from here: they are in no file system that is mounted, or outside this container"

// limits fills in the control groups and the machine. A group whose last process has
// ended is there once more: it knows whether the kernel killed the process.
func (s *Sampler) limits(out *sample.Sample) {
	age := min(groupsAge, 5*s.o.Interval)
	if len(s.groups) <= maxFreshGroups {
		age = 0
	}
	live, seen := map[*group]bool{}, map[string]bool{}
	for _, p := range s.watched {
		live[p.group] = true
	}
	for text, g := range s.groups {
		if !live[g] {
			delete(s.groups, text)
		}
		if seen[g.name] {
			continue
		}
		seen[g.name] = true
		if !live[g] || out.Time.Sub(g.at) >= age {
			g.at = out.Time
			g.read()
		}
		out.Groups = append(out.Groups, g.now)
	}
	sorts.By(out.Groups, func(a, b sample.Group) int { return strings.Compare(a.Name, b.Name) })
	if room, err := procfs.RoomIn(nil); err == nil {
		out.Machine = &sample.Machine{Total: int64(room.Limit), Available: int64(room.Left)}
	}
}

// read asks the kernel for the group, or the one above it whose limit is nearest.
func (g *group) read() {
	if g.now.Name = g.name; g.folder == nil {
		return
	}
	g.now = sample.Group{Name: g.name}
	if n := g.folder.Kills(); n != nil {
		kills := int64(*n)
		g.now.Kills = &kills
	}
	if _, m := g.folder.Tightest(); m != nil {
		used, limit := int64(m.Working()), int64(*m.Limit)
		g.now.Used, g.now.Limit = &used, &limit
		return
	}
	if m, err := g.folder.Memory(); err == nil {
		used := int64(m.Working())
		g.now.Used = &used
	}
}
