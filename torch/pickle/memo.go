package pickle

import (
	"fmt"
)

const (
	packShift = 60
	packMask  = 1<<packShift - 1
)

// pack puts a value in one word: the kind above, the number below.
func (d *decoder) pack(v Value) uint64 {
	if v.N>>packShift == 0 {
		return uint64(v.Kind)<<packShift | v.N
	}
	d.wide = append(d.wide, v)
	return uint64(Mark)<<packShift | uint64(len(d.wide)-1)
}

func (d *decoder) unpack(w uint64) Value {
	v := Value{Kind(w >> packShift), w & packMask}
	if v.Kind == Mark {
		return d.wide[v.N]
	}
	return v
}

// unset marks the places of a page where no value was stored.
const unset = ^uint64(0)

// noMemo is the first page before there is one.
var noMemo = func() (p [256]uint64) {
	for i := range p {
		p[i] = unset
	}
	return p
}()

func (d *decoder) put(i uint64, v Value) {
	w := d.pack(v)
	page := int(i >> pageBits)
	if _, stray := d.strays[i]; stray || page > len(d.pages) || page == len(d.pages) && d.count < i/2 {
		if d.strays == nil {
			d.strays = map[uint64]uint64{}
		}
		if stray {
			d.repeats.forget()
		} else {
			d.count++
		}
		d.strays[i] = w
		return
	}
	if page == len(d.pages) {
		p := make([]uint64, pageSize)
		for k := range p {
			p[k] = unset
		}
		d.pages = append(d.pages, p)
		if page == 0 {
			d.first = (*[256]uint64)(p)
		}
	}
	slot := &d.pages[page][i&(pageSize-1)]
	if *slot == unset {
		d.count++
	} else {
		d.repeats.forget()
	}
	*slot = w
}

func (d *decoder) get(i uint64) (Value, error) {
	w := unset
	if page := i >> pageBits; page < uint64(len(d.pages)) {
		w = d.pages[page][i&(pageSize-1)]
	}
	if w == unset {
		var ok bool
		if w, ok = d.strays[i]; !ok {
			return Value{}, fmt.Errorf("memo entry %d is used before it is stored", i)
		}
	}
	return d.unpack(w), nil
}

// memo stores the top of the stack under an index, or fetches what is there.
func (d *decoder) memo(store bool, i uint64) error {
	if store {
		v, err := d.top(0)
		if err == nil {
			d.put(i, v)
		}
		return err
	}
	v, err := d.get(i)
	if err == nil {
		d.stack = append(d.stack, v)
	}
	return err
}
