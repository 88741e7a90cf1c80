package tile

import (
	"encoding/binary"
	"math"
)

// The flags of an encoded tile and of its rectangles. They are part of what the
// page reads: see ui/WIRE.md.
const (
	flagPartial = 1 << iota
	flagCrowded
)

const (
	rectStrip = 1 << iota
	rectBands
	rectPending
)

// Encode writes a tile as the page reads it: little endian, each array at a
// multiple of 8 bytes.
func (t *Tile) Encode(b *Bands, partial bool) []byte {
	n, m := len(t.columns), len(t.entries)
	if t.Kind == Single {
		m = len(t.rects)
	}
	w := writer{buf: make([]byte, 0, 64+n*48+m*(8+4*n)+64)}
	var flags uint32
	if partial {
		flags |= flagPartial
	}
	if t.crowded {
		flags |= flagCrowded
	}
	x := byte(0)
	if t.Axis.times != nil {
		x = 1
	}
	w.buf = append(w.buf, 'S', 'L', 'T', '1', byte(t.Kind), x, byte(t.Level), byte(t.Scale))
	w.u32(uint32(n))
	w.u32(uint32(m))
	w.f64(float64(t.first))
	w.u32(flags)
	w.u32(0)
	w.f64(float64(t.threshold))
	w.buf = append(w.buf, make([]byte, 64-len(w.buf))...)
	t.encodeColumns(&w)
	switch t.Kind {
	case Banded:
		t.encodeEntries(&w)
	case Single:
		t.encodeRects(&w, b)
	}
	return w.buf
}

func (t *Tile) encodeColumns(w *writer) {
	each(w, t.columns, func(c *column) { w.u32(uint32(int32(c.witness))) })
	each(w, t.columns, func(c *column) { w.u32(uint32(c.first)) })
	w.u32(uint32(t.end))
	w.align()
	each(w, t.columns, func(c *column) { w.f64(float64(c.max)) })
	each(w, t.columns, func(c *column) { w.f64(float64(c.min)) })
	each(w, t.columns, func(c *column) { w.f64(float64(c.last)) })
	each(w, t.columns, func(c *column) { w.f64(float64(c.reserved)) })
}

func (t *Tile) encodeEntries(w *writer) {
	each(w, t.entries, func(e *entry) {
		id := int32(e.first)
		if e.count > 1 {
			id = -1 - id
		}
		w.u32(uint32(id))
	})
	each(w, t.entries, func(e *entry) { w.u32(uint32(e.count)) })
	for i := range t.entries {
		for _, v := range t.entries[i].heights {
			w.f32(float32(v))
		}
	}
	w.align()
}

func (t *Tile) encodeRects(w *writer, b *Bands) {
	each(w, t.rects, func(r *rect) { w.u16(uint16(r.from)) })
	each(w, t.rects, func(r *rect) { w.u16(uint16(r.to)) })
	each(w, t.rects, func(r *rect) { w.f64(float64(r.below)) })
	each(w, t.rects, func(r *rect) { w.f32(float32(r.bytes)) })
	each(w, t.rects, func(r *rect) { w.u32(uint32(int32(r.alloc))) })
	each(w, t.rects, func(r *rect) { w.u32(uint32(r.band)) })
	each(w, t.rects, func(r *rect) { w.u32(uint32(r.count)) })
	each(w, t.rects, func(r *rect) {
		var flags uint16
		if r.alloc == stripID {
			flags |= rectStrip
		}
		if r.bands > 1 {
			flags |= rectBands
		}
		if b.Bands[r.band].Fate == Pending {
			flags |= rectPending
		}
		w.u16(flags)
	})
}

// writer appends numbers, little endian.
type writer struct{ buf []byte }

func (w *writer) u16(v uint16)  { w.buf = binary.LittleEndian.AppendUint16(w.buf, v) }
func (w *writer) u32(v uint32)  { w.buf = binary.LittleEndian.AppendUint32(w.buf, v) }
func (w *writer) f32(v float32) { w.u32(math.Float32bits(v)) }
func (w *writer) f64(v float64) { w.buf = binary.LittleEndian.AppendUint64(w.buf, math.Float64bits(v)) }

// align ends an array.
func (w *writer) align() {
	for len(w.buf)%8 != 0 {
		w.buf = append(w.buf, 0)
	}
}

// each writes an array of one number an element.
func each[T any](w *writer, list []T, write func(*T)) {
	for i := range list {
		write(&list[i])
	}
	w.align()
}
