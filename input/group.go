package input

import (
	"cmp"
	"fmt"
	"io"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"sort"

	"strandline/internal/sorts"
	"strandline/logs"
	"strandline/record"
	"strandline/torch/compare"
	"strandline/torch/digest"
)

// manifests are those of the recordings that files belong to, by folder; nil where a
// folder has none.
type manifests struct {
	byFolder map[string]*record.Manifest
	read     func(dir string) (*record.Manifest, error)
}

// in returns the manifest of a folder, or nil.
func (m *manifests) in(dir string) *record.Manifest {
	found, known := m.byFolder[dir]
	if !known {
		if m.byFolder == nil {
			m.byFolder = map[string]*record.Manifest{}
		}
		var err error
		if found, err = m.read(dir); err != nil {
			found = nil // the names of the files decide
		}
		m.byFolder[dir] = found
	}
	return found
}

// recorded returns the process and the snapshot that a file belongs to, or nil. Files are in
// the folder of the recording, or one below.
func (m *manifests) recorded(path string) (*record.Manifest, *record.Process, *record.Dump) {
	for _, dir := range []string{filepath.Dir(filepath.Dir(path)), filepath.Dir(path)} {
		found := m.in(dir)
		if found == nil {
			continue
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			continue
		}
		if p, d := found.Dump(filepath.ToSlash(name)); p != nil {
			return found, p, d
		}
	}
	return nil, nil, nil
}

// maxManifest is the longest manifest that is read, in bytes.
const maxManifest = 256 << 20

// manifestAmong reads manifests that are among sources.
func manifestAmong(sources []Source) func(dir string) (*record.Manifest, error) {
	return func(dir string) (*record.Manifest, error) {
		path := filepath.Join(dir, record.ManifestName)
		for _, s := range sources {
			if filepath.Clean(s.Path) != path {
				continue
			}
			r, err := s.Open()
			if err != nil {
				return nil, err
			}
			defer r.Close()
			data, err := io.ReadAll(io.LimitReader(r, maxManifest))
			if err != nil {
				return nil, err
			}
			return record.DecodeManifest(data)
		}
		return nil, nil
	}
}

// Notes are the notes of the recordings in the folders that were named: what could not be
// recorded, and why.
func (fs *Files) Notes() (notes []string) {
	for _, path := range fs.Given {
		if m := fs.manifests.in(path); m != nil {
			notes = append(notes, m.NoteTexts()...)
		}
	}
	return notes
}

// PIDOf is the process that wrote a snapshot: by the manifest of its recording, otherwise by
// its name; 0 if neither names it.
func (fs *Files) PIDOf(path string) int {
	if _, p, _ := fs.manifests.recorded(path); p != nil {
		return p.PID
	}
	return compare.PIDOf(path)
}

// Processes groups the digests of snapshots by process, and sorts those of each: by the
// manifest of the recorder, otherwise by the names of the files, otherwise by their folders.
// With an expression it is what that matches in their paths.
func (fs *Files) Processes(snapshots []*digest.File, group *regexp.Regexp) (out []*compare.Process) {
	rest := snapshots
	if group == nil {
		out, rest = fs.recordedProcesses(snapshots)
	}
	names, files := groupBy(rest, func(f *digest.File) string { return f.Name }, group)
	for _, name := range names {
		list := files[name]
		if name == "" && len(out) > 0 {
			name = compare.ProcessOf(list[0].Name, nil)
		}
		out = append(out, compare.NewProcess(name, list))
	}
	return out
}

// groupBy groups files as [compare.Group] does their names.
func groupBy[F any](list []F, nameOf func(F) string, group *regexp.Regexp) (names []string, files map[string][]F) {
	byPath := map[string]F{}
	var paths []string
	for _, f := range list {
		byPath[nameOf(f)] = f
		paths = append(paths, nameOf(f))
	}
	names, grouped := compare.Group(paths, group)
	files = map[string][]F{}
	for _, name := range names {
		for _, path := range grouped[name] {
			files[name] = append(files[name], byPath[path])
		}
	}
	return names, files
}

// A recordedFiles is what the recorder noted of the files of a process.
type recordedFiles struct {
	manifest *record.Manifest
	process  *record.Process
	list     []*digest.File
	last     *digest.File // the snapshot at the exit
	held     map[*digest.File]*compare.Held
	host     map[*digest.File]int64
	dumps    map[*digest.File]*record.Dump
	steps    map[*digest.File]int
}

// recordedProcesses are the processes of the files that the recorder wrote, by rank. The rest
// are the other files.
func (fs *Files) recordedProcesses(snapshots []*digest.File) (out []*compare.Process, rest []*digest.File) {
	byProcess := map[*record.Process]*recordedFiles{}
	var all []*recordedFiles
	for _, f := range snapshots {
		m, p, d := fs.manifests.recorded(f.Name)
		if p == nil {
			rest = append(rest, f)
			continue
		}
		if byProcess[p] == nil {
			byProcess[p] = &recordedFiles{manifest: m, process: p, held: map[*digest.File]*compare.Held{}, host: map[*digest.File]int64{}, dumps: map[*digest.File]*record.Dump{}, steps: map[*digest.File]int{}}
			all = append(all, byProcess[p])
		}
		byProcess[p].add(f, d)
	}
	names := map[string]int{}
	for _, r := range all {
		name := r.process.DisplayName()
		if names[name]++; names[name] > 1 {
			name = fmt.Sprintf("%s #%d", name, names[name])
		}
		p := r.named(name)
		p.About.Beside = r.beside(p.Newest(), byProcess)
		out = append(out, p)
	}
	sorts.StableBy(out, func(a, b *compare.Process) int { return cmp.Compare(rankOf(a), rankOf(b)) })
	return out, rest
}

func (r *recordedFiles) add(f *digest.File, d *record.Dump) {
	r.dumps[f] = d
	if h := compare.ReadHeld(d.HeldBy); h != nil {
		r.held[f] = h
	}
	if d.Host > 0 {
		r.host[f] = d.Host
	}
	switch {
	case d.Step != nil:
		r.steps[f] = *d.Step
	case slices.ContainsFunc(r.process.Dumps, func(d record.Dump) bool { return d.Step != nil }):
		r.steps[f] = 0
	}
	if d.Reason == "exit" {
		r.last = f
	} else {
		r.list = append(r.list, f)
	}
}

// minFiles is how many snapshots make the one at the exit superfluous if its history does not
// show what the program kept: by then its functions have returned, and that is gone.
const minFiles = 4

// showsKept reports whether the history of a snapshot made most of what is live in it.
func showsKept(f *digest.File) bool {
	live, unknown := int64(0), int64(0)
	for i := range f.Devices {
		live += int64(len(f.Devices[i].Live))
		unknown += f.Devices[i].UnknownCount
	}
	return f.Events() > 0 && 2*unknown <= live
}

// AtExit reports whether a recorded process wrote a snapshot when it ended.
func (fs *Files) AtExit(path string) bool {
	_, _, d := fs.manifests.recorded(path)
	return d != nil && d.Reason == "exit"
}

// named is the process of the files.
func (r *recordedFiles) named(name string) *compare.Process {
	p := r.process
	list := r.list
	if r.last != nil && len(p.OutOfSpace) == 0 && (showsKept(r.last) || len(list) < minFiles && (len(list) < 2 || !p.FreedAtExit())) {
		list = append(list, r.last)
	}
	out := compare.NewProcess(name, list)
	out.About = &compare.About{PID: p.PID, Rank: p.Rank, Role: p.Role, Command: p.Command, Failed: failedDevices(r.manifest, p), Held: r.held, Host: r.host, Steps: r.steps, Exit: r.last}
	entries := int64(0)
	for _, f := range out.Files {
		for _, d := range f.Devices {
			if d.RingFull {
				entries = max(entries, 10*int64(d.Events))
			}
		}
	}
	out.About.Again = r.manifest.Again(p, entries)
	out.About.Outside = len(p.Dumps) > 0 && p.Dumps[0].Reason == "outside"
	return out
}

// beside is what other processes hold of the devices of the newest file.
func (r *recordedFiles) beside(newest *digest.File, given map[*record.Process]*recordedFiles) map[int]compare.Beside {
	d := r.dumps[newest]
	out := map[int]compare.Beside{}
	for _, u := range d.Devices {
		b := compare.Beside{Used: u.Used, Dumped: u.Reserved}
		for _, h := range r.manifest.Beside(r.process, d, u.Device) {
			if given[h.Process] != nil {
				b.Dumped += h.Bytes
			} else {
				b.Others = append(b.Others, compare.Holding{Process: h.Process.DisplayName(), Bytes: h.Bytes})
			}
		}
		out[u.Device] = b
	}
	return out
}

// failedDevices returns the devices on which memory ran out in a process, and the other
// holders of their memory then.
func failedDevices(m *record.Manifest, p *record.Process) map[int]compare.Shared {
	out := map[int]compare.Shared{}
	for _, o := range p.OutOfSpace {
		shared := compare.Shared{}
		for _, d := range p.Devices {
			if d.Index == o.Device {
				shared.Capacity = d.Total // which that of the failure need not be: a fraction may be set
			}
		}
		for _, h := range m.Others(p, o) {
			name := fmt.Sprintf("pid%d", h.PID)
			if h.Process != nil {
				name = h.Process.DisplayName()
			}
			shared.Others = append(shared.Others, compare.Holding{Process: name, Bytes: h.Bytes})
		}
		out[o.Device] = shared
	}
	return out
}

// rankOf is a process's rank; those without come last.
func rankOf(p *compare.Process) int {
	if p.About.Rank == nil {
		return math.MaxInt
	}
	return *p.About.Rank
}

// LogProcesses groups logs by process: those with tables of memory_summary() as snapshots are,
// since a before and an after belong to one; each other log separately. Where there are no
// snapshots beside them, a single process has no name.
func LogProcesses(all []*logs.File, group *regexp.Regexp, alone bool) (out []*logs.Process) {
	var tables []*logs.File
	for _, f := range all {
		if len(f.Series) > 0 {
			tables = append(tables, f)
		} else {
			out = append(out, &logs.Process{Name: f.Name, Files: []*logs.File{f}})
		}
	}
	names, files := groupBy(tables, func(f *logs.File) string { return f.Name }, group)
	for _, name := range names {
		list := files[name]
		sort.SliceStable(list, func(i, j int) bool { return compare.Natural(list[i].Name, list[j].Name) })
		switch {
		case len(list) == 1:
			name = list[0].Name
		case name == "":
			name = compare.ProcessOf(list[0].Name, group)
		}
		out = append(out, &logs.Process{Name: name, Files: list})
	}
	if alone && len(out) == 1 {
		out[0].Name = ""
	}
	return out
}
