package record

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"strandline/host/proc/procfs"
	"strandline/internal/lazyregexp"
	"strandline/internal/sorts"
)

// An observer looks for processes of a command that use PyTorch's device and do not
// load the recorder.
type observer struct {
	module string // folder of the Python module
	levels string // folder in which Python processes note steps; "" if they do not
	done   map[procfs.Process]bool
	notes  []Note
	silent []Note                    // of processes that should load the recorder
	rights map[procfs.Process]rights // of processes that use PyTorch's device, when they were last seen
	// drivers are of processes that load the driver's library, and not PyTorch's.
	drivers map[procfs.Process]Note
}

func newObserver(module string) observer {
	return observer{module: module, done: map[procfs.Process]bool{}, rights: map[procfs.Process]rights{}, drivers: map[procfs.Process]Note{}}
}

// deviceLibrary matches the library of PyTorch that every process loads which can use
// a device.
var deviceLibrary = lazyregexp.New(`^libc10_(cuda|hip)[.-]`)

// torchLibrary matches the other libraries of PyTorch, which show it where the one for
// the device has another name.
var torchLibrary = lazyregexp.New(`^libtorch[._]`)

// driverLibrary matches the library by which every program uses a device of Nvidia's or
// AMD's.
var driverLibrary = lazyregexp.New(`^lib(cuda|amdhip64)\.so`)

// look looks at the processes that a command has started, and at itself.
func (o *observer) look(pid int) {
	root := procfs.Process(pid)
	children, _ := root.Descendants() // looked for again
	for _, p := range append(children, root) {
		if o.done[p] || o.levels != "" && isPython(p) {
			o.lookAtRights(p)
		}
		if o.done[p] {
			continue
		}
		maps, err := p.Maps()
		if err != nil {
			if errors.Is(err, fs.ErrPermission) {
				o.lookAtStranger(p)
			}
			continue
		}
		driver := loads(maps, driverLibrary)
		torch := loads(maps, deviceLibrary) || driver && loads(maps, torchLibrary)
		if !torch && !driver {
			continue
		}
		args := p.Args()
		if !torch {
			o.drivers[p] = Note{PID: int(p), Command: strings.Join(args, " "), Why: "it uses the device without a library of PyTorch, whose allocator is what is recorded: it is another program, or PyTorch is linked into it statically; strandline trace --gpu shows its memory"}
			continue
		}
		delete(o.drivers, p)
		o.done[p] = true
		o.lookAtRights(p)
		environ, err := p.Environ()
		if err != nil {
			continue
		}
		n := Note{PID: int(p), Command: strings.Join(args, " "), Why: cmp.Or(whyUnseen(args, environ, o.module), o.whyUnreached(p))}
		if n.Why != "" {
			o.notes = append(o.notes, n)
		} else {
			o.silent = append(o.silent, n)
		}
	}
}

// unseen returns why processes that use the device are not in a manifest. The error is
// why the folder of the recording cannot be written, nil where it can.
func (o *observer) unseen(m *Manifest, unwritable error) (out []Note) {
	for _, n := range o.notes {
		if m.Find(n.PID) == nil && !m.loaded[n.PID] {
			out = append(out, n)
		}
	}
	out = append(out, o.restricted(m)...)
	heard := map[string]bool{} // commands; a child that was forked imports nothing by itself
	for _, n := range o.silent {
		if m.loaded[n.PID] || m.Find(n.PID) != nil || slices.ContainsFunc(m.Notes, func(of Note) bool { return of.PID == n.PID }) {
			heard[n.Command] = true
		}
	}
	for _, n := range o.silent {
		switch {
		case heard[n.Command]:
			continue
		case o.rights[procfs.Process(n.PID)].reason() != "":
			n.Why = o.rights[procfs.Process(n.PID)].reason()
		case unwritable != nil:
			n.Why = fmt.Sprintf("it could not write to the folder of the recording: %v", unwritable)
		case m.begun[n.PID]:
			n.Why = "it was recorded, but could not write to the folder of the recording: the disk was full"
		default:
			n.Why = "it loads PyTorch's library for the device, but not the recorder: it is not a Python program, or its interpreter is frozen or embedded and ignores PYTHONPATH, or it ended while it imported torch; strandline record --pid N records such a process while it runs"
		}
		out = append(out, n)
	}
	return out
}

// whyUnreached returns why a process cannot load the recorder, or note anything, nothing
// if it can: it sees other files, or runs as another user.
func (o *observer) whyUnreached(p procfs.Process) string {
	if _, err := os.Stat(fmt.Sprintf("/proc/%d/root%s", p, o.module)); errors.Is(err, fs.ErrNotExist) {
		return fmt.Sprintf("it runs in a container or a root of its own, without %s, from which the recorder is loaded; strandline record --pid N records such a process from outside", o.module)
	}
	st, err := p.Status()
	if err != nil || st.User == os.Geteuid() || st.User == 0 {
		return ""
	}
	return fmt.Sprintf("it runs as user %d, who may not read the recorder in %s, nor write to the folder of the recording", st.User, o.module)
}

// others are the processes that use the device without PyTorch.
func (o *observer) others(m *Manifest) (out []Note) {
	for _, n := range o.drivers {
		if !m.loaded[n.PID] && m.Find(n.PID) == nil {
			out = append(out, n)
		}
	}
	sorts.By(out, func(a, b Note) int { return cmp.Compare(a.PID, b.PID) })
	return out
}

func loads(maps []procfs.Mapping, library *lazyregexp.Regexp) bool {
	return slices.ContainsFunc(maps, func(m procfs.Mapping) bool { return library.MatchString(filepath.Base(m.Path)) })
}

// whyUnseen returns why a process does not load the recorder, or nothing if it does.
func whyUnseen(args []string, environ map[string]string, module string) string {
	for _, a := range args[min(1, len(args)):] {
		if len(a) < 2 || a[0] != '-' || a[1] == '-' {
			break
		}
		for _, flag := range a[1:] {
			switch flag {
			case 'I', 'E':
				return fmt.Sprintf("python -%c ignores PYTHONPATH, by which the recorder is loaded", flag)
			case 'S':
				return "python -S does not load site, by which the recorder is started"
			case 'c', 'm', 'W', 'X': // the rest is not of flags
				return withoutPath(environ, module)
			}
		}
	}
	return withoutPath(environ, module)
}

func withoutPath(environ map[string]string, module string) string {
	if strings.Contains(environ["PYTHONPATH"], module) && environ[variable] != "" {
		return ""
	}
	return "it was started without PYTHONPATH or " + variable + ", by which the recorder is loaded: its parent replaced the environment"
}
