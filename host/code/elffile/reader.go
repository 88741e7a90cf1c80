package elffile

import (
	"encoding/binary"
	"fmt"
)

// reader takes numbers out of a table; bad is set if the table ends too early.
type reader struct {
	data []byte
	at   int
	addr uint64 // of data
	bad  bool
}

func (r *reader) take(n uint64) []byte {
	if r.bad || n > uint64(len(r.data)-r.at) {
		r.bad = true
		return nil
	}
	b := r.data[r.at : r.at+int(n)]
	r.at += int(n)
	return b
}

func (r *reader) skip(n uint64) { r.take(n) }

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) u16() uint16 {
	if b := r.take(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *reader) u32() uint32 {
	if b := r.take(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *reader) u64() uint64 {
	if b := r.take(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

func (r *reader) uleb() (v uint64) {
	for shift := 0; ; shift += 7 {
		b := r.byte()
		if shift < 64 {
			v |= uint64(b&0x7f) << shift
		}
		if b&0x80 == 0 || r.bad {
			return v
		}
	}
}

func (r *reader) sleb() (v int64) {
	for shift := 0; ; {
		b := r.byte()
		if shift < 64 {
			v |= int64(b&0x7f) << shift
		}
		shift += 7
		if b&0x80 == 0 || r.bad {
			if b&0x40 != 0 && shift < 64 {
				v |= -1 << shift
			}
			return v
		}
	}
}

func (r *reader) cstring() string {
	for i := r.at; i < len(r.data); i++ {
		if r.data[i] == 0 {
			s := string(r.data[r.at:i])
			r.at = i + 1
			return s
		}
	}
	r.bad = true
	return ""
}

func (r *reader) block() []byte { return r.take(r.uleb()) }

// pointer reads an address in one of DWARF's encodings.
func (r *reader) pointer(enc byte, data uint64) (uint64, error) {
	if enc == encOmit {
		return 0, nil
	}
	here := r.addr + uint64(r.at)
	var v uint64
	switch enc & 0x0f {
	case 0x00, 0x04, 0x0c:
		v = r.u64()
	case 0x01:
		v = r.uleb()
	case 0x02:
		v = uint64(r.u16())
	case 0x03:
		v = uint64(r.u32())
	case 0x09:
		v = uint64(r.sleb())
	case 0x0a:
		v = uint64(int64(int16(r.u16())))
	case 0x0b:
		v = uint64(int64(int32(r.u32())))
	default:
		return 0, fmt.Errorf("%w: encoding %#x", errFrame, enc)
	}
	if r.bad {
		return 0, errFrame
	}
	switch enc & 0x70 {
	case 0x00:
	case 0x10:
		v += here
	case 0x30:
		v += data
	default:
		return 0, fmt.Errorf("%w: encoding %#x", errFrame, enc)
	}
	return v, nil
}
