package cli

import (
	"cmp"
	"fmt"
	"math"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"strandline/internal/shell"
	"strandline/record"
	"strandline/torch/compare"
	"strandline/torch/digest"
)

// manifests are those of the recordings that files belong to, by folder; nil where a
// folder has none.
type manifests map[string]*record.Manifest

// of returns the process and the snapshot that a file belongs to, or nil. Files are in
// the folder of the recording, or one below.
func (m manifests) of(path string) (*record.Process, *record.Dump) {
	for _, dir := range []string{filepath.Dir(filepath.Dir(path)), filepath.Dir(path)} {
		if _, known := m[dir]; !known {
			m[dir], _ = record.ReadManifest(dir) // otherwise the names of the files decide
		}
		if m[dir] == nil {
			continue
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			continue
		}
		if p, d := m[dir].Dump(filepath.ToSlash(name)); p != nil {
			return p, d
		}
	}
	return nil, nil
}

// failed returns the devices on which memory ran out in a process, and the other holders
// of their memory then.
func (m manifests) failed(p *record.Process) map[int]compare.Shared {
	out := map[int]compare.Shared{}
	for _, o := range p.OutOfSpace {
		shared := compare.Shared{}
		for _, d := range p.Devices {
			if d.Index == o.Device {
				shared.Capacity = d.Total // which that of the failure need not be: a fraction may be set
			}
		}
		for _, manifest := range m {
			if manifest == nil || !slices.ContainsFunc(manifest.Processes, func(q record.Process) bool { return q.PID == p.PID && q.Since.Equal(p.Since) }) {
				continue
			}
			for _, h := range manifest.Others(p, o) {
				name := fmt.Sprintf("pid%d", h.PID)
				if h.Process != nil {
					name = processName(h.Process)
				}
				shared.Others = append(shared.Others, compare.Holding{Process: name, Bytes: h.Bytes})
			}
		}
		out[o.Device] = shared
	}
	return out
}

// recordedProcesses are the processes of the files that the recorder wrote. The rest
// are the other files, or all if an expression groups them.
func recordedProcesses(paths []string, digests map[string]*digest.File, group *regexp.Regexp) (out []*compare.Process, rest []string) {
	if group != nil {
		return nil, paths
	}
	known := manifests{}
	var processes []*record.Process
	files := map[*record.Process][]string{}
	last := map[*record.Process]string{} // the snapshot at the exit
	held, steps := map[*digest.File]*compare.Held{}, map[*digest.File]int{}
	for _, path := range paths {
		p, d := known.of(path)
		if p == nil {
			rest = append(rest, path)
			continue
		}
		if files[p] == nil && last[p] == "" {
			processes = append(processes, p)
		}
		if h := compare.ReadHeld(d.HeldBy); h != nil {
			held[digests[path]] = h
		}
		if d.Step != nil {
			steps[digests[path]] = *d.Step
		} else if slices.ContainsFunc(p.Dumps, func(d record.Dump) bool { return d.Step != nil }) {
			steps[digests[path]] = 0
		}
		if d.Reason == "exit" {
			last[p] = path
		} else {
			files[p] = append(files[p], path)
		}
	}
	names := map[string]int{}
	for _, p := range processes {
		list := files[p]
		if last[p] != "" && len(list) < enoughFiles && len(p.OutOfSpace) == 0 && (len(list) < 2 || !freedAtExit(p)) {
			list = append(list, last[p])
		}
		name := processName(p)
		if names[name]++; names[name] > 1 {
			name = fmt.Sprintf("%s #%d", name, names[name])
		}
		var some []*digest.File
		for _, path := range list {
			some = append(some, digests[path])
		}
		c := compare.NewProcess(name, some)
		c.About = &compare.About{PID: p.PID, Rank: p.Rank, Role: p.Role, Command: p.Command, Failed: known.failed(p), Held: held, Steps: steps}
		c.About.Again = recordAgain(known.holding(p), p, c)
		out = append(out, c)
	}
	slices.SortStableFunc(out, func(a, b *compare.Process) int { return cmp.Compare(rankOf(a), rankOf(b)) })
	return out, rest
}

// holding is the manifest that a process is from.
func (m manifests) holding(p *record.Process) *record.Manifest {
	for _, manifest := range m {
		if manifest == nil {
			continue
		}
		for i := range manifest.Processes {
			if p == &manifest.Processes[i] {
				return manifest
			}
		}
	}
	return &record.Manifest{}
}

// recordAgain shows how to record a process so that it can be judged, in the way in which
// it was recorded: with more snapshots or a longer time, and with a larger ring of events
// if that was too small.
func recordAgain(m *record.Manifest, p *record.Process, c *compare.Process) string {
	const snapshots = 10 // about as many of a run of the same length
	entries := int64(0)
	for _, f := range c.Files {
		for _, d := range f.Devices {
			if d.RingFull {
				entries = max(entries, 10*int64(d.Events))
			}
		}
	}
	end := p.Since
	for _, d := range p.Dumps {
		end = d.Time
	}
	if m.Ended != nil {
		end = *m.Ended
	}
	recorded := end.Sub(p.Since)
	every, longer := fmt.Sprintf("%dsteps", max(1, p.Steps/snapshots)), "# let it run through ten steps or more"
	if p.Steps == 0 {
		every = max(time.Second, (recorded / snapshots).Truncate(time.Second)).String()
		longer = "# let it run through ten requests, batches or steps; --steps MODULE:FUNCTION counts the calls of a function as steps"
	}
	switch {
	case len(p.Dumps) > 0 && p.Dumps[0].Reason == "outside":
		more := ""
		if entries > 0 {
			more = fmt.Sprintf(" --entries %d", entries)
		}
		duration := max(time.Minute, (4 * recorded).Round(time.Second))
		return fmt.Sprintf("sudo strandline record --pid %d --duration %s%s\n# long enough for ten steps or more; strandline record -- CMD… knows from the start what allocated the memory", p.PID, duration, more)
	case m.Strandline == "": // by a call in the program
		more := ""
		if entries > 0 {
			more = fmt.Sprintf(", entries=%d", entries)
		}
		if p.Steps == 0 {
			longer = "# call strandline.step() after each request, batch or step, and let it run through ten of them"
		}
		return fmt.Sprintf("import strandline\nstrandline.start(\"recording\", every=\"%s\"%s)  # before the model is created\n%s", every, more, longer)
	}
	more := ""
	if entries > 0 {
		more = fmt.Sprintf(" --entries %d", entries)
	}
	return fmt.Sprintf("strandline record --every %s%s -- %s\n%s", every, more, shell.Line(m.Command...), longer)
}

// rankOf is a process's rank; those without come last.
func rankOf(p *compare.Process) int {
	if p.About.Rank == nil {
		return math.MaxInt
	}
	return *p.About.Rank
}

// enoughFiles is how many snapshots make the one at the exit superfluous: by then the
// program's functions have returned, and what they kept is gone.
const enoughFiles = 4

// freedAtExit reports whether a process held less at its exit than in the snapshot
// before: what it kept until then would look as if nothing was kept.
func freedAtExit(p *record.Process) bool {
	var before, now int64
	for _, d := range p.Dumps {
		before, now = now, 0
		for _, u := range d.Devices {
			now += u.Allocated
		}
	}
	return now < before
}

// processName names a recorded process in findings.
func processName(p *record.Process) string {
	name := fmt.Sprintf("pid%d", p.PID)
	if p.Rank != nil {
		name = fmt.Sprintf("rank%d %s", *p.Rank, name)
	}
	if p.Role != "" {
		name += " (" + p.Role + ")"
	}
	return name
}

// recordedNotes are the notes of the recordings in some folders: what could not be recorded, and why.
func recordedNotes(paths []string) (notes []string) {
	for _, path := range paths {
		m, err := record.ReadManifest(path)
		if err != nil {
			continue // a file, or a folder of other snapshots
		}
		notes = append(notes, notesOf(m)...)
	}
	return notes
}

// notesOf are the notes of a recording, each once.
func notesOf(m *record.Manifest) []string {
	notes := []string{}
	for _, n := range m.Notes {
		if text := noteText(m, n); !slices.Contains(notes, text) {
			notes = append(notes, text)
		}
	}
	return notes
}
