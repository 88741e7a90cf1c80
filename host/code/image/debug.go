package image

import (
	"hash/crc32"
	"io"
	"os"
	"path"
	"time"

	"strandline/host/code/elffile"
	"strandline/host/proc/procfs"
)

// debugRoot is where distributions put files of symbols.
const debugRoot = "/usr/lib/debug"

// findDebug looks for the symbols that were stripped: in a file with the build ID that
// the linker assigned, in the file that the object names, or in the object itself,
// compressed. The process's own files take precedence over ours.
func (o *Object) findDebug(p procfs.Process, allowed *allowance) {
	id := o.BuildID()
	link, sum, linked := o.DebugLink()
	for _, open := range []func(string) (*os.File, error){p.OpenFile, procfs.OpenFile} {
		if len(id) > 2 && o.tryDebug(open, debugRoot+"/.build-id/"+id[:2]+"/"+id[2:]+".debug", id, nil, allowed) {
			return
		}
		if !linked || path.Base(link) != link {
			continue
		}
		dir := path.Dir(o.Path)
		for _, name := range []string{dir + "/" + link, dir + "/.debug/" + link, debugRoot + dir + "/" + link} {
			if name != o.Path && o.tryDebug(open, name, id, &sum, allowed) {
				return
			}
		}
	}
	if d, ok := o.MiniDebug(&allowed.unpacking); ok {
		o.Debug(d)
	}
}

// An allowance is what has been spent on looking for symbols. The files of a possibly
// hostile process can demand a lot.
type allowance struct {
	summed    int64             // bytes that were checksummed
	unpacking elffile.Unpacking // of compressed tables, which stay in memory
	tables    *elffile.Budget
}

const (
	maxSummed    = 4 << 30
	maxUnpacked  = 128 << 20
	maxUnpacking = 3 * time.Second
)

// tryDebug takes the symbols of a file if the file belongs to the object.
func (o *Object) tryDebug(open func(string) (*os.File, error), name, id string, sum *uint32, allowed *allowance) bool {
	f, err := open(name)
	if err != nil {
		return false
	}
	r := procfs.Patient(f)
	d, err := elffile.Open(r)
	if err != nil || !belongs(r, d, id, sum, allowed) {
		f.Close()
		return false
	}
	d.Limit(allowed.tables)
	o.Debug(d)
	o.debug = f
	return true
}

func belongs(f io.ReaderAt, d *elffile.File, id string, sum *uint32, allowed *allowance) bool {
	if id != "" {
		return d.BuildID() == id
	}
	if sum == nil {
		return false
	}
	h, left := crc32.NewIEEE(), maxSummed-allowed.summed
	n, err := io.CopyBuffer(h, io.NewSectionReader(f, 0, left), make([]byte, 1<<20))
	allowed.summed += n
	return err == nil && n < left && h.Sum32() == *sum
}
