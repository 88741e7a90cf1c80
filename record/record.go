// Package record starts a command so that every PyTorch process of it writes
// snapshots of its memory, and gathers what they note into a manifest. [Begin] prepares
// a recording and the environment of its command, and [Session.End] writes the
// manifest; [Dial] reaches a process that is recorded.
//
// The recorder itself is the Python module of the folder python, which each
// interpreter finds through PYTHONPATH and its sitecustomize. A process that initializes
// no device has empty snapshots, with which it is noted what keeps its tensors.
package record

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"strandline/host/proc/procfs"
	"strandline/internal/safefile"
)

// variable is the environment variable that holds the [Options] of a recording.
const variable = "STRANDLINE_RECORD"

// Options state what the processes of a command record. The zero value of a field is
// the module's default.
type Options struct {
	Dir          string  `json:"dir"`                     // of the recording, absolute
	Session      string  `json:"session"`                 // identifies the recording
	EverySeconds float64 `json:"every_seconds,omitempty"` // between two snapshots
	EverySteps   int     `json:"every_steps,omitempty"`   // between two snapshots
	Entries      int     `json:"entries,omitempty"`       // of the history, for each device
	Stacks       string  `json:"stacks,omitempty"`        // python, or all
	Above        int64   `json:"above,omitempty"`         // bytes reserved at which a snapshot is taken
	MaxFiles     int     `json:"max_files,omitempty"`     // of a process
	MaxBytes     int64   `json:"max_bytes,omitempty"`     // of all snapshots
	Steps        string  `json:"steps,omitempty"`         // annotation:NAME or MODULE:FUNCTION, otherwise optimizers
	// Levels has each process note its memory at the end of its steps, which
	// [Session.Levels] reads: auto (calls of strandline.step, otherwise of optimizers), call,
	// optimizer, annotation:NAME or MODULE:FUNCTION. Empty for never.
	Levels string `json:"levels,omitempty"`
	// NoSnapshots leaves PyTorch alone: steps are noted, and nothing else.
	NoSnapshots bool `json:"no_snapshots,omitempty"`

	// When memory is returned; each can be left out.
	ReclaimSteps   int     `json:"reclaim_steps,omitempty"`   // between two times
	ReclaimSeconds float64 `json:"reclaim_seconds,omitempty"` // between two times
	ReclaimAfter   string  `json:"reclaim_after,omitempty"`   // at the ends of an annotation
	ReclaimAbove   int64   `json:"reclaim_above,omitempty"`   // bytes reserved at the end of a step
}

// A Session is the recording of one command: the folder that snapshots go to, and
// the module that its processes load.
type Session struct {
	Options  Options
	manifest Manifest
	folder   *safefile.Folder // of the recording
	module   string           // folder of the Python module
	observer observer
	looks    int
	read     int64 // bytes of the journals that the manifest is of
	// Unseen are the processes that use PyTorch's device and did not load the recorder,
	// which are in the notes of the manifest, too; Others those that use a device without
	// PyTorch. They are known after End.
	Unseen, Others []Note
}

// Begin makes the folder of a recording, the module, and the manifest. A folder that
// already holds a recording is refused with [ErrExists].
func Begin(o Options, m Manifest) (*Session, error) {
	o.Session = rand.Text()
	s := &Session{Options: o, manifest: m}
	var err error
	if s.folder, err = Create(o.Dir, &s.manifest); err != nil {
		return nil, err
	}
	if err := s.prepare(); err != nil {
		if !errors.Is(err, ErrExists) {
			s.folder.RemoveAll(journals)
		}
		s.folder.Remove(ManifestName)
		s.folder.Close()
		return nil, err
	}
	s.observer = newObserver(s.module)
	if o.Levels != "" && o.Levels != "time" {
		s.observer.levels = filepath.Join(o.Dir, journals, "levels")
	}
	return s, nil
}

// prepare makes the folder of the journals, by whose session processes know it, and the
// module.
func (s *Session) prepare() error {
	inner, err := s.folder.Folder(journals)
	if err != nil {
		return err
	}
	defer inner.Close()
	err = inner.Write("session", []byte(s.Options.Session))
	if errors.Is(err, fs.ErrExist) || len(filesIn(inner.Path(), ".jsonl")) > 0 { // of a recording whose manifest is gone
		return fmt.Errorf("%s %w", s.Options.Dir, ErrExists)
	}
	if err != nil {
		return err
	}
	s.module, err = placeModule(filepath.Join(s.Options.Dir, journals))
	return err
}

// Environ is the environment env with what makes Python processes record.
func (s *Session) Environ(env []string) ([]string, error) {
	options, err := json.Marshal(s.Options)
	if err != nil {
		return nil, err
	}
	path := s.module
	out := make([]string, 0, len(env)+2)
	for _, e := range env {
		name, value, _ := strings.Cut(e, "=")
		switch {
		case name == variable:
		case name != "PYTHONPATH":
			out = append(out, e)
		case value != "":
			path = s.module + string(os.PathListSeparator) + value
		}
	}
	return append(out, "PYTHONPATH="+path, variable+"="+string(options)), nil
}

// Look reads what the processes have noted so far, and now and then looks for those
// of the command pid that are not recorded. The manifest is valid until the next call.
func (s *Session) Look(pid int) (*Manifest, error) {
	const every = 3                                        // it reads the mappings of all processes
	if s.looks++; s.looks <= every || s.looks%every == 1 { // a short program is over soon
		s.observer.look(pid)
	}
	n := journalBytes(s.Options.Dir)
	if n == s.read {
		return &s.manifest, nil
	}
	s.read = n
	err := s.manifest.gather(s.Options.Dir)
	return &s.manifest, err
}

// journalBytes is the size of all journals, which only grow.
func journalBytes(dir string) (sum int64) {
	entries, _ := os.ReadDir(filepath.Join(dir, journals))
	for _, e := range entries {
		if info, err := e.Info(); err == nil {
			sum += info.Size()
		}
	}
	return sum
}

// AddReading notes what the driver reported.
func (s *Session) AddReading(r Reading) { s.manifest.Readings = append(s.manifest.Readings, r) }

// SnapshotAll has all processes of the recording write a snapshot.
func (s *Session) SnapshotAll(ctx context.Context, reason string) {
	var wait sync.WaitGroup
	for _, pid := range Running() {
		wait.Go(func() {
			c, err := Dial(ctx, pid)
			if err != nil {
				return
			}
			defer c.Close()
			if status, err := c.Status(); err == nil && status.Folder == s.Options.Dir {
				c.Snapshot(reason, SnapshotTime)
			}
		})
	}
	wait.Wait()
}

// End gathers what the processes noted, writes the manifest a last time, and removes the
// journals unless a process of the session goes on. Where the manifest cannot be written,
// as on a full disk, it is returned with the error, and the journals stay.
func (s *Session) End(status int) (*Manifest, error) {
	folder, err := s.folder.Reopen() // the program may have removed it
	if err != nil {
		return nil, err
	}
	s.folder = folder
	defer folder.Close()
	dir := s.Options.Dir
	if err := s.manifest.gather(dir); err != nil {
		return nil, err
	}
	now := time.Now()
	s.manifest.Ended, s.manifest.ExitStatus = &now, &status
	s.Unseen, s.Others = s.observer.unseen(&s.manifest, s.unwritable()), s.observer.others(&s.manifest)
	s.manifest.Notes = append(s.manifest.Notes, s.Unseen...)
	if !s.Options.NoSnapshots {
		s.manifest.Notes = append(s.manifest.Notes, s.Others...)
	}
	running := s.goesOn()
	if !running {
		s.manifest.unfinished(s.folder)
	}
	if err := s.manifest.Save(s.folder); err != nil {
		return &s.manifest, err
	}
	if !running {
		s.folder.RemoveAll(journals)
	}
	return &s.manifest, nil
}

// goesOn reports whether a process still writes to the recording, or can begin to.
func (s *Session) goesOn() bool {
	others, _ := s.Running(0)
	return len(others) > 0 || slices.ContainsFunc(s.manifest.Processes, func(p Process) bool { return !p.Ended && alive(p.PID) })
}

// unwritable returns why the folder of a recording cannot be written, nil where it can.
func (s *Session) unwritable() error {
	f, err := s.folder.Output(filepath.Join(journals, "attempt"))
	if err != nil {
		return err
	}
	_, err = f.Write(make([]byte, 4096))
	return errors.Join(err, f.Close())
}

func alive(pid int) bool {
	_, err := procfs.Process(pid).Started()
	return !procfs.HasExited(err)
}

// Running returns the processes on this machine that inherited the environment of a
// session, which has lasted for a time. It is unclear whether those are all while a process
// that began no earlier than the session has an empty environment: it has one as long as it
// is replacing its program.
func (s *Session) Running(lasted time.Duration) (out []procfs.Process, unclear bool) {
	for _, pid := range procfs.Processes() {
		if int(pid) == os.Getpid() {
			continue
		}
		environ, err := pid.Environ()
		switch {
		case err != nil:
		case Belongs(environ, s.Options.Session):
			out = append(out, pid)
		case len(environ) == 0:
			_, dead := os.Readlink(fmt.Sprintf("/proc/%d/exe", pid)) // also a thread of the kernel
			age, err := pid.Age()
			unclear = unclear || dead == nil && err == nil && age <= lasted+time.Second
		}
	}
	return out, unclear
}

// Belongs reports whether a process with that environment is of a session.
func Belongs(environ map[string]string, session string) bool {
	var o Options
	return json.Unmarshal([]byte(environ[variable]), &o) == nil && o.Session == session
}
