package image

import (
	"hash/crc32"
	"io"
	"os"
	"path"

	"strandline/elf"
	"strandline/procfs"
)

// debugRoot is where distributions put files of symbols.
const debugRoot = "/usr/lib/debug"

// findDebug looks for the symbols that were stripped: in a file that has the
// identity that the linker gave, in the file that the object names, or in the
// object itself, compressed. The process's own files come before ours.
func (o *Object) findDebug(p procfs.Process) {
	id := o.BuildID()
	link, sum, linked := o.DebugLink()
	for _, open := range []func(string) (*os.File, error){p.OpenFile, procfs.OpenFile} {
		if len(id) > 2 && o.tryDebug(open, debugRoot+"/.build-id/"+id[:2]+"/"+id[2:]+".debug", id, nil) {
			return
		}
		if !linked || path.Base(link) != link {
			continue
		}
		dir := path.Dir(o.Path)
		for _, name := range []string{dir + "/" + link, dir + "/.debug/" + link, debugRoot + dir + "/" + link} {
			if name != o.Path && o.tryDebug(open, name, id, &sum) {
				return
			}
		}
	}
	if d, ok := o.MiniDebug(); ok {
		o.Debug(d)
	}
}

// tryDebug takes the symbols of a file if it belongs to the object.
func (o *Object) tryDebug(open func(string) (*os.File, error), name, id string, sum *uint32) bool {
	f, err := open(name)
	if err != nil {
		return false
	}
	r := procfs.Patient(f)
	d, err := elf.Open(r)
	if err != nil || !belongs(r, d, id, sum) {
		f.Close()
		return false
	}
	o.Debug(d)
	o.debug = f
	return true
}

// mostSummed bounds a file of which a checksum is computed.
const mostSummed = 1 << 30

func belongs(f io.ReaderAt, d *elf.File, id string, sum *uint32) bool {
	if id != "" {
		return d.BuildID() == id
	}
	if sum == nil {
		return false
	}
	h := crc32.NewIEEE()
	n, err := io.Copy(h, io.NewSectionReader(f, 0, mostSummed))
	return err == nil && n < mostSummed && h.Sum32() == *sum
}
