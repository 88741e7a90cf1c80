package record

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"strandline/host/proc/procfs"
	"strandline/internal/sorts"
)

// rights are what a process may write. A process can give up its rights while it is
// recorded, and with them those to note that it did.
type rights struct {
	user     int    // the effective user ID
	fileSize uint64 // RLIMIT_FSIZE, in bytes
	command  string
}

// lookAtRights notes the rights that a process has now.
func (o *observer) lookAtRights(p procfs.Process) {
	st, err := p.Status()
	size, failed := p.FileSizeLimit()
	if errors.Join(err, failed) == nil && !strings.HasPrefix(st.State, "Z") {
		o.rights[p] = rights{st.User, size, strings.Join(p.Args(), " ")}
	}
}

// isPython reports whether a process runs Python's own program.
func isPython(p procfs.Process) bool {
	exe, err := os.Readlink(fmt.Sprintf("/proc/%d/exe", p))
	return err == nil && strings.HasPrefix(filepath.Base(exe), "python")
}

// smallFile is a size of files that few snapshots fit in, in bytes.
const smallFile = 1 << 20

// reason states what a process cannot write by its rights, in the words that the recorder has
// for it; nothing if it can write all.
func (r rights) reason() string {
	switch {
	case r == rights{}: // not known
	case r.user != os.Geteuid() && r.user != 0:
		return fmt.Sprintf("it runs as user %d, who may not write to the folder of the recording", r.user)
	case r.fileSize < smallFile:
		return fmt.Sprintf("RLIMIT_FSIZE lets it write at most %d bytes to a file", r.fileSize)
	}
	return ""
}

// restricted are the processes that loaded the recorder or count steps, cannot write all,
// and could not note that themselves.
func (o *observer) restricted(m *Manifest) (out []Note) {
	steps := map[int]bool{} // processes that have a file to note steps in
	for _, name := range filesIn(o.levels, ".jsonl") {
		pid, _, _ := strings.Cut(filepath.Base(name), "-")
		n, _ := strconv.Atoi(pid)
		steps[n] = true
	}
	for pid, r := range o.rights {
		n := Note{PID: int(pid), Command: r.command, Why: r.reason()}
		noted := slices.ContainsFunc(m.Notes, func(of Note) bool { return of.PID == n.PID && strings.Contains(of.Why, n.Why) })
		open := steps[n.PID] && r.user != os.Geteuid() // another user can write to what is open
		heard := m.loaded[n.PID] || m.Find(n.PID) != nil || o.levels != "" && !open
		if n.Why != "" && !noted && heard {
			n.Why += ": what it could not write is missing"
			out = append(out, n)
		}
	}
	sorts.By(out, func(a, b Note) int { return cmp.Compare(a.PID, b.PID) })
	return out
}

// lookAtStranger notes a Python process that this user may not look into: one of another
// user.
func (o *observer) lookAtStranger(p procfs.Process) {
	st, err := p.Status()
	args := p.Args()
	if err != nil || st.User == os.Geteuid() || len(args) == 0 || !strings.HasPrefix(filepath.Base(args[0]), "python") {
		return
	}
	o.done[p] = true
	o.notes = append(o.notes, Note{PID: int(p), Command: strings.Join(args, " "), Why: fmt.Sprintf("it runs as user %d, who does not load the recorder of user %d", st.User, os.Geteuid())})
}
