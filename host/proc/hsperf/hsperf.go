// Package hsperf reads what a Java virtual machine states of its memory in the file that it maps
// for monitors (hsperfdata).
package hsperf

import (
	"bytes"
	"encoding/binary"
	"errors"
	"strings"

	"strandline/host/proc/procfs"
	"strandline/internal/lazyregexp"
	"strandline/internal/safefile"
)

// A Heap is what a machine manages itself, in bytes: as of its last collection for some
// collectors.
type Heap struct{ Used, Committed int64 }

var (
	// ErrNone states that a process maps no such file: it is no Java, or -XX:-UsePerfData is set.
	ErrNone = errors.New("no file of a Java virtual machine is mapped")

	errForm = errors.New("the file of the Java virtual machine has another form, or states no heap")
)

var (
	mapped = lazyregexp.New(`/hsperfdata_[^/]+/\d+$`)
	space  = lazyregexp.New(`^sun\.gc\.generation\.\d+\.space\.\d+\.used$`)
	room   = lazyregexp.New(`^sun\.gc\.generation\.\d+\.space\.\d+\.capacity$`)
)

// Of reads the file among the mappings of a process.
func Of(p procfs.Process, mappings []procfs.Mapping) (*Heap, error) {
	for _, m := range mappings {
		if !mapped.MatchString(m.Path) {
			continue
		}
		f, err := p.OpenMapped(m)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		const maxBytes = 1 << 20
		data, err := safefile.ReadAll(f, maxBytes)
		if err != nil {
			return nil, err
		}
		return parse(data)
	}
	return nil, ErrNone
}

// parse reads the counters: entries of a name and a number, behind a head that says where they
// begin and how many there are.
func parse(data []byte) (*Heap, error) {
	const head, entry = 32, 20
	if len(data) < head || binary.BigEndian.Uint32(data) != 0xcafec0c0 {
		return nil, errForm
	}
	var order binary.ByteOrder = binary.BigEndian
	if data[4] == 1 {
		order = binary.LittleEndian
	}
	h, found := &Heap{}, false
	at, n := uint64(order.Uint32(data[24:])), order.Uint32(data[28:])
	for range n {
		if at+entry > uint64(len(data)) {
			break
		}
		e := data[at:]
		length, name, value := uint64(order.Uint32(e)), uint64(order.Uint32(e[4:])), uint64(order.Uint32(e[16:]))
		if length < entry || length > uint64(len(e)) {
			break
		}
		at += length
		if name >= length || value+8 > length {
			continue
		}
		text, _, _ := bytes.Cut(e[name:length], []byte{0})
		if number := int64(order.Uint64(e[value:])); e[12] == 'J' && number >= 0 {
			switch s := string(text); {
			case !strings.HasPrefix(s, "sun.gc."):
			case space.MatchString(s):
				h.Used, found = h.Used+number, true
			case room.MatchString(s):
				h.Committed += number
			}
		}
	}
	if !found {
		return nil, errForm
	}
	return h, nil
}
