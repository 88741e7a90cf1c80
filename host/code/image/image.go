// Package image represents the program that a process runs: the objects as they are
// mapped, and symbol names for addresses, including those from separate debug files.
//
// It makes no stacks: packages unwind and symbolize do. Note that the map is only as
// fresh as the last [Image.Refresh].
package image

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/ianlancetaylor/demangle"

	"strandline/host/code/elffile"
	"strandline/host/proc/procfs"
	"strandline/host/proc/vmmap"
)

// An Object is a file that is mapped as executable.
type Object struct {
	*elffile.File
	Path string

	file  *os.File // nil if it is read from memory
	debug *os.File // nil if the symbols are not in a separate file

	mu    sync.Mutex
	names map[uint64]string // of functions, demangled, by their address
}

// Name returns the file's name without its folder.
func (o *Object) Name() string { return filepath.Base(o.Path) }

// Files holds the objects that were opened, for all processes that map them.
type Files struct {
	mu      sync.Mutex
	objects map[string]*Object          // nil for those that cannot be read
	files   map[procfs.Identity]*Object // the object that has the tables of a file, whatever name it is mapped by
	tables  *elffile.Budget
	spent   allowance
}

// maxTables bounds what the tables of symbols and slots of all files take. Those of a
// process with PyTorch and its libraries take tens of megabytes.
const maxTables = 512 << 20

// NewFiles returns a Files that knows no file yet.
func NewFiles() *Files {
	tables := elffile.NewBudget(maxTables)
	return &Files{objects: map[string]*Object{}, files: map[procfs.Identity]*Object{}, tables: tables, spent: allowance{tables: tables, unpacking: elffile.Unpacking{Left: maxUnpacked, Spare: maxUnpacking}}}
}

// Close closes the files.
func (f *Files) Close() {
	for _, o := range f.objects {
		if o != nil && o.file != nil {
			o.file.Close()
		}
		if o != nil && o.debug != nil {
			o.debug.Close()
		}
	}
	clear(f.objects)
	clear(f.files)
}

// An Image is the program of one process. It may be queried by several goroutines at
// once, but not while it is being refreshed.
type Image struct {
	Process procfs.Process
	Map     *vmmap.Map
	files   *Files
	memory  *procfs.Memory

	mu      sync.Mutex
	objects map[uint64]*Object // by the start of their mappings
	vdso    *Object            // code of the kernel, as it is mapped here
}

// Open reads the map of a process.
func Open(p procfs.Process, files *Files) (*Image, error) {
	im := &Image{Process: p, files: files, objects: map[uint64]*Object{}}
	var err error
	if im.memory, err = p.Memory(); err != nil {
		return nil, err
	}
	if err := im.Refresh(); err != nil {
		im.Close()
		return nil, err
	}
	return im, nil
}

// Refresh reads the map again.
func (im *Image) Refresh() error {
	maps, err := im.Process.Maps()
	if err != nil {
		return err
	}
	im.Map = vmmap.New(maps)
	clear(im.objects)
	return nil
}

// Close closes the process's memory.
func (im *Image) Close() { im.memory.Close() }

// Read reads the memory of the process as it is now.
func (im *Image) Read(b []byte, addr uint64) error {
	n, err := im.memory.ReadAt(b, int64(addr))
	if n == len(b) {
		return nil
	}
	if err == nil {
		err = io.ErrUnexpectedEOF
	}
	return fmt.Errorf("memory at %#x: %w", addr, err)
}

// Object returns the file of a mapping; nil if there is none or it cannot be read.
func (im *Image) Object(m procfs.Mapping) *Object {
	im.mu.Lock()
	defer im.mu.Unlock()
	o, known := im.objects[m.Start]
	if !known {
		switch {
		case m.Path == "[vdso]":
			o = im.readVDSO(m)
		case m.Inode != 0:
			o = im.objectOf(m)
		}
		im.objects[m.Start] = o
	}
	return o
}

// maxObjects bounds the files that are kept open.
const maxObjects = 4096

func (im *Image) objectOf(m procfs.Mapping) *Object {
	im.files.mu.Lock()
	defer im.files.mu.Unlock()
	key := fmt.Sprintf("%s:%d:%s", m.Dev, m.Inode, m.Path)
	o, known := im.files.objects[key]
	if !known {
		if len(im.files.objects) >= maxObjects { // one that is in use stays open until it no longer is
			for key, old := range im.files.objects {
				delete(im.files.objects, key)
				im.files.forget(old)
				break
			}
		}
		var slow bool
		if o, slow = im.open(m); slow {
			return nil
		}
		im.files.objects[key] = o
	}
	return o
}

// forget frees what the tables of an object take.
func (f *Files) forget(o *Object) {
	if o == nil {
		return
	}
	o.Forget()
	for id, known := range f.files {
		if known == o {
			delete(f.files, id)
			return
		}
	}
}

// silent holds the devices on which a file did not respond in time, and when. For a while no
// other file on them is waited for: a server may be gone, but a disk may just be busy.
var silent sync.Map

// silentFor is how long.
const silentFor = 30 * time.Second

// open opens the file of a mapping. It is slow if it may be opened later.
func (im *Image) open(m procfs.Mapping) (o *Object, slow bool) {
	if since, is := silent.Load(m.Dev); is && time.Since(since.(time.Time)) < silentFor {
		return nil, true
	}
	late := func(err error) (*Object, bool) {
		if errors.Is(err, procfs.ErrSilent) {
			silent.Store(m.Dev, time.Now())
			return nil, true
		}
		return nil, false
	}
	f, err := im.Process.OpenMapped(m)
	if err != nil {
		return late(err)
	}
	id, identified := procfs.IdentityOf(f)
	if known := im.files.files[id]; identified && known != nil {
		f.Close()
		return &Object{File: known.File, Path: m.Path, names: map[uint64]string{}}, false
	}
	file, err := elffile.Open(procfs.Patient(f))
	if err != nil {
		f.Close()
		return late(err)
	}
	file.Limit(im.files.tables)
	o = &Object{File: file, Path: m.Path, file: f, names: map[uint64]string{}}
	if identified {
		im.files.files[id] = o
	}
	if file.Stripped() {
		o.findDebug(im.Process, &im.files.spent)
	}
	return o, false
}

// readVDSO reads the code that the kernel maps into each process.
func (im *Image) readVDSO(m procfs.Mapping) *Object {
	if im.vdso != nil {
		return im.vdso
	}
	data := make([]byte, min(m.Size(), 1<<20))
	if im.Read(data, m.Start) == nil {
		if f, err := elffile.Open(bytes.NewReader(data)); err == nil {
			im.vdso = &Object{File: f, Path: m.Path, names: map[uint64]string{}}
		}
	}
	return im.vdso
}

// A Place is an address inside an object. Object is nil for code that belongs to no
// file.
type Place struct {
	Mapping procfs.Mapping
	Object  *Object
	Linked  uint64 // the address as linked in the object
}

// Locate finds the object that holds an address; it returns false if nothing is mapped
// there.
func (im *Image) Locate(addr uint64) (Place, bool) {
	m, ok := im.Map.Find(addr)
	if !ok {
		return Place{}, false
	}
	p := Place{Mapping: m}
	if o := im.Object(m); o != nil {
		if linked, ok := o.Addr(m.Offset+addr-m.Start, m.Exec); ok {
			p.Object, p.Linked = o, linked
		}
	}
	return p, true
}

// Bias returns the difference between the addresses in memory and the linked addresses
// of a place's object.
func (p Place) Bias(addr uint64) uint64 { return addr - p.Linked }

// Function returns the name of the function at a linked address; empty if it has none.
func (o *Object) Function(linked uint64) string {
	s, ok := o.File.Function(linked)
	if !ok {
		return ""
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	name, known := o.names[s.Addr]
	if !known {
		name = demangle.Filter(s.Name, demangle.NoClones, demangle.MaxLength(longestName))
		if len(o.names) >= maxNames {
			clear(o.names)
		}
		o.names[s.Addr] = name
	}
	return name
}

const (
	maxNames    = 1 << 16
	longestName = 12 // as a power of two, demangled
)
