// Package state is what a process with pausable memory reports of it: the lines that
// pausable/c/status.c describes, from the process's socket, and what
// can be computed of them.
package state

import (
	"bytes"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// A Status is what the library holds in a process. Sizes are bytes.
type Status struct {
	Tags    []Tag
	Devices []Device // that the process used
	// Doing is the pause or resume that is under way, nil if none is.
	Doing *Doing
	// Did is the one that ended last, nil if there was none.
	Did *Did
	// NotFreed is memory of blocks that the program freed and the driver did not.
	NotFreed int64
	// Kept is pinned memory of the host that is kept for the next pause.
	Kept int64
	// Margin is what a resume leaves free of each device.
	Margin int64
	// Blocks are where the memory is, if that was asked for.
	Blocks []Block
}

// A Block is an allocation of the library's. It keeps its addresses while it is paused.
type Block struct {
	Device int // as CUDA counts in the process
	Addr   uint64
	Bytes  int64
}

// A Tag is the blocks of one name.
type Tag struct {
	Name   string `json:"tag"`
	Bytes  int64  `json:"bytes"` // of addresses, which it keeps while it is paused
	Blocks int64  `json:"blocks"`
	State  string `json:"state"`  // Active, Paused or Partial
	Backup string `json:"backup"` // none, pinned, pageable or file
	// BackupBytes is what is kept in backups now, and Held what the tag has of devices.
	BackupBytes int64   `json:"backup_bytes"`
	Held        int64   `json:"held_bytes"`
	Devices     []Share `json:"devices"`
}

// A Share is what of a tag is on a device.
type Share struct {
	Device int   `json:"device"` // as CUDA counts in the process
	Bytes  int64 `json:"bytes"`
	Held   int64 `json:"held_bytes"`
	Keep   int64 `json:"keep_bytes"` // what a pause copies to backups
	Backup int64 `json:"backup_bytes"`
}

// A Device is a device's memory as its driver counts it, of all processes.
type Device struct {
	Index int   `json:"device"` // as CUDA counts in the process
	Free  int64 `json:"free_bytes"`
	Total int64 `json:"total_bytes"`
}

// Outside is what PyTorch's allocator has of a device in no region. Sizes are bytes.
type Outside struct {
	Tensors    int64 `json:"tensors_bytes"`
	Cache      int64 `json:"cache_bytes"` // that no tensor uses
	Pools      int64 `json:"pools_bytes"` // of CUDA graphs, and others of the program's own
	Expandable int64 `json:"expandable_bytes"`
	// Split is the part of Cache that is in segments of tensors, which stay with them.
	Split int64 `json:"split_bytes"`
	// PoolTensors is the part of Pools that tensors use.
	PoolTensors int64 `json:"-"`
}

// Total is all of it.
func (o *Outside) Total() int64 { return o.Tensors + o.Cache + o.Pools + o.Expandable }

// Doing is a pause or resume that is under way: of what it copies, Done of Total bytes.
type Doing struct {
	Do    string `json:"do"`  // Pause or Resume
	Tag   string `json:"tag"` // "-" for all
	All   bool   `json:"all"`
	Total int64  `json:"total_bytes"`
	Done  int64  `json:"done_bytes"`
}

// A Did is a pause or resume that has ended.
type Did struct {
	Step
	Copied  int64 // bytes, to backups or from them
	Seconds float64
	Kind    int   // of its failure, as c/pausable.h has it; 0 if it succeeded
	Count   int64 // of those before it, and it
}

// The states of a tag, and what can be done to it.
const (
	Active  = "active"
	Paused  = "paused"
	Partial = "partial"

	Pause  = "pause"
	Resume = "resume"
)

// The bounds of what is read, far above what a process has.
const (
	maxTags    = 1 << 12
	maxDevices = 64
	maxBlocks  = 1 << 20
	maxName    = 256     // bytes
	maxSum     = 1 << 62 // of all numbers but addresses, so that no sum of some overflows
)

// Parse reads a status. Lines that begin with an unknown word are passed over, as are
// fields beyond those that are known.
func Parse(text []byte) (*Status, error) {
	l := Lines{}
	for line := range bytes.Lines(text) {
		if err := l.Add(strings.TrimSuffix(string(line), "\n")); err != nil {
			return nil, err
		}
	}
	return l.Status(), nil
}

// Lines gathers a status line by line.
type Lines struct {
	s    Status
	sum  int64
	tags map[string]bool
}

// Status is the status so far.
func (l *Lines) Status() *Status {
	if l.s.Tags == nil {
		l.s.Tags = []Tag{}
	}
	if l.s.Devices == nil {
		l.s.Devices = []Device{}
	}
	return &l.s
}

// Add reads a line of a status. The error is a line that no library writes.
func (l *Lines) Add(line string) error {
	s := &l.s
	word, rest, _ := strings.Cut(line, " ")
	f := fields{line: line, rest: strings.Split(rest, " "), sum: &l.sum}
	switch word {
	case "tag":
		t := Tag{Name: f.name(), Bytes: f.bytes(), Blocks: f.bytes(), State: f.one(Active, Paused, Partial), Backup: f.one("none", "pinned", "pageable", "file"),
			BackupBytes: f.bytes(), Held: f.bytes(), Devices: []Share{}}
		if l.tags == nil {
			l.tags = map[string]bool{}
		}
		if len(s.Tags) >= maxTags || l.tags[t.Name] || t.Held > t.Bytes {
			f.refuse()
		}
		l.tags[t.Name] = true
		s.Tags = append(s.Tags, t)
	case "part": // of the tag before
		name := f.name()
		if len(s.Tags) == 0 || s.Tags[len(s.Tags)-1].Name != name {
			return fmt.Errorf("%.80q does not follow its tag", line)
		}
		t := &s.Tags[len(s.Tags)-1]
		p := Share{f.device(), f.bytes(), f.bytes(), f.bytes(), f.bytes()}
		if p.Held > p.Bytes || slices.ContainsFunc(t.Devices, func(other Share) bool { return other.Device == p.Device }) {
			f.refuse()
		}
		t.Devices = append(t.Devices, p)
	case "device":
		d := Device{f.device(), f.bytes(), f.bytes()}
		if d.Free > d.Total || slices.ContainsFunc(s.Devices, func(other Device) bool { return other.Index == d.Index }) {
			f.refuse()
		}
		s.Devices = append(s.Devices, d)
	case "doing":
		s.Doing = &Doing{Do: f.one(Pause, Resume)}
		s.Doing.Tag, s.Doing.All = f.nameOrAll()
		s.Doing.Total, s.Doing.Done = f.bytes(), f.bytes()
	case "did":
		d := &Did{Step: f.step(), Copied: f.bytes()}
		d.Seconds = float64(f.bytes()) / 1e9
		d.Kind, d.Count = int(f.bytes()), f.bytes()
		s.Did = d
	case "freed":
		f.word()
		s.NotFreed = f.bytes()
	case "kept":
		s.Kept = f.bytes()
	case "margin":
		s.Margin = f.bytes()
	case "block":
		if len(s.Blocks) >= maxBlocks {
			f.refuse()
		}
		s.Blocks = append(s.Blocks, Block{f.device(), uint64(f.number()), f.bytes()})
	}
	return f.err
}

// fields are those of a line that are still to be read.
type fields struct {
	line string
	rest []string
	sum  *int64 // of the numbers of all lines
	err  error
}

// refuse makes the line one that no library writes.
func (f *fields) refuse() {
	if f.err == nil {
		f.err = fmt.Errorf("%.80q is no line of a library", f.line)
	}
}

func (f *fields) word() (out string) {
	if len(f.rest) == 0 || f.rest[0] == "" {
		if f.err == nil {
			f.err = fmt.Errorf("a field is missing in %.80q", f.line)
		}
		return ""
	}
	out, f.rest = f.rest[0], f.rest[1:]
	return out
}

// one reads one of some words.
func (f *fields) one(known ...string) string {
	word := f.word()
	if !slices.Contains(known, word) {
		f.refuse()
	}
	return word
}

// number reads a number that is not negative.
func (f *fields) number() int64 {
	text := f.word()
	n, err := strconv.ParseInt(text, 10, 64)
	if (err != nil || n < 0) && f.err == nil {
		f.err = fmt.Errorf("%.40q is not a size in %.80q", text, f.line)
		return 0
	}
	return n
}

// bytes reads a size, or another number whose sum with all others does not overflow.
func (f *fields) bytes() int64 {
	n := f.number()
	if n > maxSum-*f.sum {
		f.refuse()
		return 0
	}
	*f.sum += n
	return n
}

// device reads the index of a device.
func (f *fields) device() int {
	n := f.number()
	if n >= maxDevices {
		f.refuse()
		return 0
	}
	return int(n)
}

// name reads a name with %XX for what does not stand for itself.
func (f *fields) name() string {
	text := f.word()
	name, err := url.PathUnescape(text)
	if (err != nil || len(name) > maxName) && f.err == nil {
		f.err = fmt.Errorf("%.40q is not a name in %.80q", text, f.line)
	}
	return name
}

// nameOrAll reads a name, or "-" that stands for all.
func (f *fields) nameOrAll() (name string, all bool) {
	all = len(f.rest) > 0 && f.rest[0] == "-"
	return f.name(), all
}

// step reads what was done to which tag.
func (f *fields) step() Step {
	s := Step{Do: f.word()}
	if s.Do != Pause && s.Do != Resume && f.err == nil {
		f.err = fmt.Errorf("%.80q is neither a pause nor a resume", f.line)
	}
	if s.Tag, s.All = f.nameOrAll(); s.All {
		s.Tag = ""
	}
	return s
}

// ParseStep reads what was done to which tag, as lines have it: pause or resume, and a
// name or "-" for all.
func ParseStep(text string) (Step, error) {
	f := fields{line: text, rest: strings.Split(text, " "), sum: new(int64)}
	s := f.step()
	if len(f.rest) > 0 {
		f.refuse()
	}
	return s, f.err
}

// Encode is a name as lines have it. One that is "-" would stand for all.
func Encode(name string) string {
	if name == "-" {
		return "%2D"
	}
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; c > ' ' && c < 0x7f && c != '%' {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(&b, "%%%02X", c)
		}
	}
	return b.String()
}

// Held is what the tags have of a device.
func (s *Status) Held(device int) (n int64) {
	for i := range s.Tags {
		for _, d := range s.Tags[i].Devices {
			if d.Device == device {
				n += d.Held
			}
		}
	}
	return n
}

// Paused is what the tags have addresses for, and no memory of a device.
func (s *Status) Paused(device int) (n int64) {
	for i := range s.Tags {
		for _, d := range s.Tags[i].Devices {
			if d.Device == device {
				n += d.Bytes - d.Held
			}
		}
	}
	return n
}

// Idle reports whether there are tags and all are paused.
func (s *Status) Idle() bool {
	for i := range s.Tags {
		if s.Tags[i].State != Paused {
			return false
		}
	}
	return len(s.Tags) > 0 && s.Doing == nil
}
