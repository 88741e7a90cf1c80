// Package jax reads device memory profiles that jax.profiler writes
// (save_device_memory_profile): pprof profiles of the arrays that a process keeps
// alive and of the programs that it compiled. The format is that of HeapProfile in
// jaxlib/py_client.cc.
package jax

import (
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/pprof/profile"

	"strandline/internal/budget"
	"strandline/internal/sorts"
	"strandline/profiles"
	"strandline/stack"
	"strandline/units"
)

// The kinds of memory in a profile.
const (
	Buffer     = "buffer"     // a live jax.Array
	Executable = "executable" // the code and constants of a compiled program
)

// The bounds of what is read: the unpacked size of a profile, and how many fields it and its
// samples and locations have. Each takes some hundred bytes of memory, and two of the file.
const (
	largest   = 32 << 20
	maxFields = 2 << 20
)

// Is reports whether an unpacked file can begin as a profile: with the first field
// of the message, a sample type.
func Is(head []byte) bool {
	const valueType, kind, unit = 0x0a, 0x08, 0x10 // tags of protobuf fields
	return len(head) > 2 && head[0] == valueType && head[1] > 0 && head[1] < 16 && (head[2] == kind || head[2] == unit)
}

// fields counts the fields of a message up to the first that is broken; of a profile, those of
// its samples and locations too.
func fields(data []byte, outer bool) (n int) {
	const varint, fixed64, message, fixed32 = 0, 1, 2, 5 // types on the wire
	const sample, location = 2, 4
	for len(data) > 0 {
		tag, size := binary.Uvarint(data)
		if size <= 0 {
			return n
		}
		data = data[size:]
		n++
		length := uint64(0)
		switch tag & 7 {
		case varint:
			if _, size = binary.Uvarint(data); size <= 0 {
				return n
			}
			length = uint64(size)
		case fixed64:
			length = 8
		case fixed32:
			length = 4
		case message:
			if length, size = binary.Uvarint(data); size <= 0 {
				return n
			}
			data = data[size:]
		default:
			return n
		}
		if length > uint64(len(data)) {
			return n
		}
		if kind := tag >> 3; outer && tag&7 == message && (kind == sample || kind == location) {
			n += fields(data[:length], false)
		}
		data = data[length:]
	}
	return n
}

// begun reports whether data begins as a profile with several values a sample: with a sample
// type, and another one.
func begun(data []byte) bool {
	if !Is(data) {
		return false
	}
	next := 2 + int(data[1])
	return len(data) > next && Is(data[next:])
}

// Read reads an unpacked profile. What is not a pprof profile is [profiles.ErrOther].
func Read(r io.Reader) (*profiles.File, error) {
	data, err := io.ReadAll(io.LimitReader(r, largest+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("a pprof profile that is damaged or cut off: after %s of it: %w", units.Bytes(int64(len(data))), err)
	case len(data) > largest:
		return nil, fmt.Errorf("a profile of more than %s is not read", units.Bytes(largest))
	}
	if fields(data, true) > maxFields {
		return nil, fmt.Errorf("a profile of more than %s fields is not read", units.Count(maxFields))
	}
	b := budget.Of(int64(len(data)), budget.Plain)
	p, err := profile.ParseUncompressed(data)
	if err == nil {
		err = p.CheckValid()
	}
	if err != nil && begun(data) {
		return nil, fmt.Errorf("a pprof profile that is damaged or cut off, in its %s: %w", units.Bytes(int64(len(data))), err)
	}
	if err != nil {
		return nil, fmt.Errorf("%w: not a pprof profile: %v", profiles.ErrOther, err)
	}
	count, space := column(p, "allocations", "count"), column(p, "space", "bytes")
	if count < 0 || space < 0 {
		return nil, fmt.Errorf("a pprof profile of %s, not a device memory profile of JAX; `go tool pprof` reads it", types(p))
	}
	f := &profiles.File{Format: "jax"}
	wrong := 0
	for _, s := range p.Sample {
		if f.Partial = b.Spend(useBytes+frameBytes*depth(s), "frames of arrays"); f.Partial != nil {
			break
		}
		u, ok := use(s, s.Value[count], s.Value[space])
		if !ok {
			wrong++
			continue
		}
		f.Uses = append(f.Uses, u)
	}
	if wrong > 0 {
		f.Notes = append(f.Notes, fmt.Sprintf("%s left out, whose counts or sizes cannot be", units.Plural(int64(wrong), "entry")))
	}
	f.Levels = levels(f.Uses)
	f.Notes = append(f.Notes, notes(f)...)
	return f, nil
}

func column(p *profile.Profile, name, unit string) int {
	return slices.IndexFunc(p.SampleType, func(t *profile.ValueType) bool { return t.Type == name && t.Unit == unit })
}

func types(p *profile.Profile) string {
	var names []string
	for _, t := range p.SampleType {
		names = append(names, t.Type)
	}
	return strings.Join(names, ", ")
}

// use reads a sample; it is not ok where its figures cannot be. A backend that does
// not know the size of a program states -1 for each.
func use(s *profile.Sample, count, space int64) (profiles.Use, bool) {
	u := profiles.Use{Kind: Buffer, Count: count, Stack: frames(s)}
	if labels := s.Label["device"]; len(labels) > 0 {
		u.Device = labels[0]
	}
	if labels := s.Label["kind"]; len(labels) > 0 {
		u.Kind = labels[0]
	}
	const maxValue = 1 << 48 // of pieces, and of bytes
	switch {
	case count <= 0 || count > maxValue || space > maxValue:
		return u, false
	case space < 0:
		u.Size = -1
		return u, u.Kind == Executable
	}
	u.Size = space / count
	return u, space%count == 0
}

// The bytes of a use, and of a frame of it: samples share locations.
const useBytes, frameBytes = 128, 40

// depth is how many frames the stack of a sample has.
func depth(s *profile.Sample) (n int) {
	for _, l := range s.Location {
		n += len(l.Line)
	}
	return n
}

// frames are the stack of a sample, innermost first.
func frames(s *profile.Sample) (out []stack.Frame) {
	for _, l := range s.Location {
		for _, line := range l.Line {
			if line.Function != nil {
				out = append(out, stack.Frame{File: line.Function.Filename, Line: line.Line, Function: line.Function.Name})
			}
		}
	}
	return out
}

// levels sums uses by kind and device, in the order of their labels.
func levels(uses []profiles.Use) (out []profiles.Level) {
	type key struct{ kind, device string }
	at := map[key]int{}
	for _, u := range uses {
		k := key{u.Kind, u.Device}
		i, ok := at[k]
		if !ok {
			i = len(out)
			at[k] = i
			out = append(out, profiles.Level{Device: u.Device, Kind: u.Kind, Live: new(int64), Count: new(int64)})
		}
		l := &out[i]
		*l.Count = units.Sum(*l.Count, u.Count)
		switch {
		case u.Size < 0:
			l.Live = nil
		case l.Live != nil:
			*l.Live = units.Sum(*l.Live, u.Size*u.Count)
		}
	}
	sorts.StableBy(out, func(a, b profiles.Level) int {
		if a.Kind != b.Kind {
			return strings.Compare(a.Kind, b.Kind)
		}
		return strings.Compare(a.Device, b.Device)
	})
	return out
}

// notes returns what cannot be concluded from a profile.
func notes(f *profiles.File) (out []string) {
	for _, l := range f.Levels {
		switch {
		case l.Kind == Executable && l.Live == nil:
			out = append(out, fmt.Sprintf("the size of %s is unknown: the backend does not state it", units.Plural(*l.Count, "executable")))
		case l.Kind == Buffer && l.Device == "":
			out = append(out, "the file does not state which device its arrays are on")
		}
	}
	return append(out, "temporaries of running programs, usually most of a peak, are not in this file, nor is the pool that JAX preallocates: "+
		"an out-of-memory message or jax.Device.memory_stats() states them")
}

// installed are parts of the paths of code that is not the program's own.
var installed = []string{"/site-packages/", "/dist-packages/", "/jax/_src/"}

// Site is the innermost frame of a stack outside installed packages and Python's
// library; otherwise outside JAX; otherwise the zero one.
func Site(frames []stack.Frame) stack.Site {
	var other stack.Site
	for _, f := range frames {
		if stack.OriginOf(f) != stack.Own {
			continue
		}
		if !slices.ContainsFunc(installed, func(part string) bool { return strings.Contains(f.File, part) }) {
			return f
		}
		if other == (stack.Site{}) && !strings.Contains(f.File, "/jax/") && !strings.Contains(f.File, "/jaxlib/") {
			other = f
		}
	}
	return other
}
