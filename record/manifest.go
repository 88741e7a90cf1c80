package record

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"strandline/internal/budget"
	"strandline/internal/lazyregexp"
	"strandline/internal/safefile"
	"strandline/internal/secret"
	"strandline/internal/sorts"
	"strandline/units"
)

// ManifestName is the name of the manifest in the folder of a recording, and
// manifestSchema the form of its JSON.
const (
	ManifestName   = "strandline.json"
	manifestSchema = "strandline.record/1"
)

// maxFile is the largest manifest or journal that is read, in bytes.
const maxFile = 256 << 20

// ErrExists is the error for a folder that holds a recording already.
var ErrExists = errors.New("holds a recording already; give another folder")

// journals is the folder, in that of a recording, in which processes note what they do.
const journals = ".strandline"

// A Manifest describes a recording: what ran, which processes were recorded, and when
// and why each of their snapshots was taken.
type Manifest struct {
	Schema     string            `json:"schema"`
	Strandline string            `json:"strandline,omitempty"` // version
	Command    []string          `json:"command"`
	Directory  string            `json:"directory,omitempty"` // working directory
	Host       string            `json:"host,omitempty"`
	Started    time.Time         `json:"started"`
	Ended      *time.Time        `json:"ended,omitempty"`
	ExitStatus *int              `json:"exit_status,omitempty"`
	Processes  []Process         `json:"processes"`
	Readings   []Reading         `json:"readings,omitempty"` // of the driver, when memory ran out
	Notes      []Note            `json:"notes"`              // what could not be recorded
	loaded     map[int]bool      // processes that imported torch under the recorder
	begun      map[int]bool      // processes that made a journal, which is empty where the disk was full
	files      map[string][2]int // by the name of each snapshot, its process and its number from 1; nil until it is asked for
	// MemoryErrors is how many processes ended by Python's MemoryError, as far as they
	// measured their steps.
	MemoryErrors int `json:"-"`
}

// A Process is one that was recorded, or that used PyTorch and could not be.
type Process struct {
	PID        int       `json:"pid"`
	Parent     int       `json:"parent,omitempty"` // pid
	Rank       *int      `json:"rank,omitempty"`
	LocalRank  *int      `json:"local_rank,omitempty"`
	WorldSize  *int      `json:"world_size,omitempty"`
	Role       string    `json:"role"`
	Command    string    `json:"command"`
	Python     string    `json:"python,omitempty"` // version
	Torch      string    `json:"torch,omitempty"`  // version
	CUDA       string    `json:"cuda,omitempty"`   // version that torch was built with
	Allocator  string    `json:"allocator,omitempty"`
	Settings   string    `json:"allocator_conf,omitempty"`
	Visible    *string   `json:"visible_devices,omitempty"`
	Devices    []Device  `json:"devices,omitempty"`
	Since      time.Time `json:"recorded_since"`
	Ended      bool      `json:"ended"` // in order, after its last snapshot
	Steps      int       `json:"steps,omitempty"`
	OutOfSpace []OOM     `json:"out_of_memory,omitempty"`
	Reclaims   []reclaim `json:"reclaims,omitempty"`
	Skipped    int       `json:"skipped,omitempty"` // snapshots that fell due before the one before was written
	Dumps      []Dump    `json:"dumps"`             // oldest first
}

// A Device is one that a process sees.
type Device struct {
	Index int    `json:"index"`
	Name  string `json:"name"`
	Total int64  `json:"total_bytes"`
	UUID  string `json:"uuid,omitempty"`
}

// An OOM is a request that the allocator could not satisfy.
type OOM struct {
	Time    time.Time `json:"time"`
	Device  int       `json:"device"`
	Request int64     `json:"request_bytes"`
	Total   int64     `json:"device_total_bytes"`
	Free    int64     `json:"device_free_bytes"`
}

// A Dump is one snapshot.
type Dump struct {
	File   string    `json:"file"` // below the folder of the recording
	Time   time.Time `json:"time"`
	Reason string    `json:"reason"` // schedule, step, above, oom, exit, signal, call
	Step   *int      `json:"step,omitempty"`
	Bytes  int64     `json:"bytes"`
	Events int64     `json:"events"`
	// Devices are those on which memory is reserved.
	Devices []Usage `json:"devices"`
	// Pause is how long the allocator's state took to copy, and Write how long the
	// file took to write beside the program, in seconds.
	Pause  float64         `json:"pause_seconds"`
	Write  float64         `json:"write_seconds"`
	HeldBy json.RawMessage `json:"held_by,omitempty"`
	// Host is the main memory in use then, in bytes; 0 if unknown.
	Host int64 `json:"host_bytes,omitempty"`
}

// Usage is what the allocator has of a device.
type Usage struct {
	Device    int   `json:"device"`
	Allocated int64 `json:"allocated_bytes"`
	Reserved  int64 `json:"reserved_bytes"`
	Used      int64 `json:"used_bytes,omitempty"` // by all processes, according to the driver; 0 if unknown
}

// A reclaim is a time that memory was returned, and what that brought.
type reclaim struct {
	Time           time.Time `json:"time"`
	Reason         string    `json:"reason"`
	Step           *int      `json:"step,omitempty"`
	Objects        int64     `json:"collected_objects"`
	Collected      int64     `json:"collected_bytes"`
	CollectSeconds float64   `json:"collect_seconds"`
	Emptied        int64     `json:"emptied_bytes"`
	EmptySeconds   float64   `json:"empty_seconds"`
	Reserved       int64     `json:"reserved_bytes"`
}

// A Note is something that could not be recorded, and why.
type Note struct {
	PID     int    `json:"pid,omitempty"`
	Command string `json:"command,omitempty"`
	Why     string `json:"why"`
}

// ReadManifest reads the manifest of the folder of a recording, also of one that has
// not ended. The error is an [fs.ErrNotExist] where there is none.
func ReadManifest(dir string) (*Manifest, error) {
	data, err := safefile.ReadFile(filepath.Join(dir, ManifestName), maxFile)
	if err != nil {
		return nil, err
	}
	m, err := DecodeManifest(data)
	if err != nil {
		return nil, err
	}
	return m, m.gather(dir)
}

// DecodeManifest reads the text of a manifest.
func DecodeManifest(data []byte) (*Manifest, error) {
	m, b := &Manifest{}, budget.Of(int64(len(data)), budget.Plain)
	if err := b.Spend(budget.JSON(data), "values"); err != nil {
		return nil, err
	}
	if err := json.Unmarshal(data, m); err != nil {
		return nil, err
	}
	m.boundNotes()
	m.mask()
	return m, nil
}

// How many notes of a recording are kept, which has a few of some processes, and how much
// of a text, in bytes.
const maxNotes, maxText = 1000, 4096

// boundNotes keeps each note once, the first of too many, and the beginning of a long one.
func (m *Manifest) boundNotes() {
	seen := make(map[Note]bool, min(len(m.Notes), maxNotes))
	all := m.Notes
	m.Notes = all[:0]
	for i, n := range all {
		n.Why, n.Command = clip(n.Why), clip(n.Command)
		if seen[n] {
			continue
		}
		if len(seen) == maxNotes {
			m.Notes = append(m.Notes, Note{Why: units.Plural(int64(len(all)-i), "more note") + " of the recording"})
			return
		}
		seen[n] = true
		m.Notes = append(m.Notes, n)
	}
}

func clip(text string) string {
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + "…"
}

// mask removes secrets, which versions before this one kept.
func (m *Manifest) mask() {
	m.Command = secret.Args(m.Command)
	for i := range m.Processes {
		m.Processes[i].Command = secret.Line(m.Processes[i].Command)
	}
	for i := range m.Notes {
		m.Notes[i].Command = secret.Line(m.Notes[i].Command)
	}
}

// Find returns the process of that id, or nil.
func (m *Manifest) Find(pid int) *Process {
	for i := range m.Processes {
		if m.Processes[i].PID == pid {
			return &m.Processes[i]
		}
	}
	return nil
}

// Failures returns how often memory ran out.
func (m *Manifest) Failures() (n int) {
	for i := range m.Processes {
		n += len(m.Processes[i].OutOfSpace)
	}
	return n
}

// Dump returns the snapshot of that name below the folder, and its process, or nil. It is
// for manifests that were read.
func (m *Manifest) Dump(file string) (*Process, *Dump) {
	if m.files == nil {
		m.files = map[string][2]int{}
		for i := range m.Processes {
			for k := range m.Processes[i].Dumps {
				if name := m.Processes[i].Dumps[k].File; m.files[name] == [2]int{} {
					m.files[name] = [2]int{i, k + 1}
				}
			}
		}
	}
	at := m.files[file]
	if at[1] == 0 {
		return nil, nil
	}
	p := &m.Processes[at[0]]
	return p, &p.Dumps[at[1]-1]
}

// unfinished removes what is left of snapshots whose process ended while it wrote
// them, and notes that.
func (m *Manifest) unfinished(folder *safefile.Folder) {
	entries, _ := os.ReadDir(folder.Path())
	for _, e := range entries {
		if !e.IsDir() || !momentName.MatchString(e.Name()) {
			continue
		}
		for _, path := range filesIn(filepath.Join(folder.Path(), e.Name()), ".pickle.tmp") {
			name := filepath.Base(path)
			pid := pidOf(name)
			if !m.begun[pid] || folder.Remove(filepath.Join(e.Name(), name)) != nil {
				continue
			}
			folder.Remove(e.Name()) // if it is empty
			n := Note{PID: pid, Why: "it ended while it wrote " + strings.TrimSuffix(name, ".tmp")}
			if p := m.Find(pid); p != nil && p.Ended {
				n.Why = "it could not finish " + strings.TrimSuffix(name, ".tmp")
			}
			m.Notes = append(m.Notes, n)
		}
	}
}

// momentName matches the folders of snapshots.
var momentName = lazyregexp.New(`^\d{8}-\d{6}\.\d{3}$`)

// pidOf is the process of the name of an unfinished snapshot, 0 if there is none in it.
func pidOf(name string) int {
	_, number, _ := strings.Cut(strings.TrimSuffix(name, ".pickle.tmp"), "_pid")
	pid, _ := strconv.Atoi(number)
	return pid
}

// encode is the manifest as its file has it.
func (m *Manifest) encode() ([]byte, error) {
	if m.Processes == nil {
		m.Processes = []Process{}
	}
	if m.Notes == nil {
		m.Notes = []Note{}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(m)
	return b.Bytes(), err
}

// event is a line of a journal. Its fields depend on the kind.
type event struct {
	Kind string  `json:"event"`
	Time float64 `json:"time"` // Unix seconds
	Note
	Taken float64 `json:"taken"` // of a dump, Unix seconds
	Steps int     `json:"steps"`
}

// gather replaces processes and notes by those of the journals, where there are any.
func (m *Manifest) gather(dir string) error {
	defer m.mask()
	names := filesIn(filepath.Join(dir, journals), ".jsonl")
	if len(names) == 0 {
		return nil
	}
	m.Processes, m.Notes, m.MemoryErrors = nil, nil, 0
	m.loaded, m.begun = map[int]bool{}, map[int]bool{}
	for _, name := range names {
		if err := m.readJournal(dir, name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	m.boundNotes()
	sorts.By(m.Processes, func(a, b Process) int { return a.Since.Compare(b.Since) })
	return nil
}

func (m *Manifest) readJournal(dir, name string) error {
	f, err := safefile.Open(name, maxFile)
	if err != nil {
		return err
	}
	defer f.Close()
	if number, _, ok := strings.Cut(strings.TrimPrefix(filepath.Base(name), "pid"), "-"); ok {
		if pid, err := strconv.Atoi(number); err == nil {
			m.begun[pid] = true
		}
	}
	p := Process{Dumps: []Dump{}}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		m.apply(&p, lines.Bytes(), dir)
	}
	if p.PID > 0 && !p.idle() {
		m.Processes = append(m.Processes, p)
	}
	return lines.Err()
}

// idle reports whether a process used no device and kept no tensor, such as a launcher.
func (p *Process) idle() bool {
	return len(p.Devices) == 0 && len(p.Dumps) == 0 && len(p.OutOfSpace) == 0 && p.Steps == 0
}

// apply applies a line of a journal. One that cannot be read, as the end of a journal
// whose process was killed, is left out.
func (m *Manifest) apply(p *Process, line []byte, dir string) {
	var e event
	if json.Unmarshal(line, &e) != nil {
		return
	}
	line = bytes.Replace(line, []byte(`"time"`), []byte(`"at"`), 1) // Unix seconds, where the manifest has a date
	switch e.Kind {
	case "recording":
		json.Unmarshal(line, p)
		p.Since = moment(e.Time)
	case "process":
		json.Unmarshal(line, p)
	case "dump":
		d := Dump{Time: moment(e.Taken)}
		if json.Unmarshal(line, &d) == nil && exists(filepath.Join(dir, d.File)) {
			p.Dumps = append(p.Dumps, d)
		}
	case "oom":
		o := OOM{Time: moment(e.Time)}
		if json.Unmarshal(line, &o) == nil {
			p.OutOfSpace = append(p.OutOfSpace, o)
		}
	case "reclaim":
		r := reclaim{Time: moment(e.Time)}
		if json.Unmarshal(line, &r) == nil {
			p.Reclaims = append(p.Reclaims, r)
		}
	case "skipped":
		p.Skipped++
	case "note":
		m.Notes = append(m.Notes, e.Note)
	case "loaded":
		m.loaded[e.PID] = true
	case "memory_error":
		m.MemoryErrors++
	case "end":
		p.Ended, p.Steps = true, e.Steps
	}
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

func moment(unix float64) time.Time {
	return time.UnixMicro(int64(unix * 1e6)).UTC()
}
