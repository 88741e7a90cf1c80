package footprint

import (
	"bytes"
	"encoding/binary"
	"io"

	"strandline/host/proc/vmmap"
)

const (
	page    = 4 << 10
	huge    = 2 << 20
	maxHuge = 32  // huge pages that are examined
	maxPool = 256 // places where a Python pool may begin
)

// contents states what is in memory, recognized by its form.
type contents struct {
	python  float64 // the share of it that is taken by pools of CPython's allocator
	malloc  int64   // bytes of blocks that malloc mapped one by one
	zero    float64 // the share of small pages within huge ones that hold only zeros
	sampled bool    // the memory could be read
}

// look samples the memory of a region.
func look(memory io.ReaderAt, r *region, before *vmmap.Map) (c contents) {
	c.sampled = true
	c.python = pools(memory, r, before)
	if c.python < 0.5 {
		c.malloc = chunks(memory, r, before)
	}
	if 2*r.huge >= r.grown {
		c.zero = zeros(memory, r)
	}
	return c
}

// old reports whether an address was already mapped before.
func old(before *vmmap.Map, addr uint64) bool {
	_, ok := before.Find(addr)
	return ok
}

// pools returns the share of a region's new memory in which pools of CPython's
// allocator begin where they should (Objects/obmalloc.c): every 16 KiB since Python
// 3.10, every 4 KiB before.
func pools(memory io.ReaderAt, r *region, before *vmmap.Map) float64 {
	best := 0.0
	for _, size := range []uint64{16 << 10, 4 << 10} {
		first := (r.Start + size - 1) &^ (size - 1)
		if first+size > r.End {
			continue
		}
		step := max(size, (r.End-first)/maxPool&^(size-1))
		seen, found := 0, 0
		for at := first; at+size <= r.End; at += step {
			if (r.same || r.wider) && old(before, at) {
				continue
			}
			var header [48]byte
			if n, _ := memory.ReadAt(header[:], int64(at)); n < len(header) {
				continue
			}
			if bytes.Count(header[:], []byte{0}) == len(header) {
				continue // not used yet
			}
			seen++
			if isPool(header[:], size) {
				found++
			}
		}
		if seen > 0 {
			best = max(best, float64(found)/float64(seen))
		}
	}
	return best
}

// isPool recognizes the header of a pool: the count of its blocks, their size class and
// how much of it is in use are consistent.
func isPool(h []byte, pool uint64) bool {
	count := uint64(binary.LittleEndian.Uint32(h))
	class := uint64(binary.LittleEndian.Uint32(h[36:]))
	next := uint64(binary.LittleEndian.Uint32(h[40:]))
	last := uint64(binary.LittleEndian.Uint32(h[44:]))
	size := (class + 1) * 16
	return class < 64 && last == pool-size && next <= pool && count*size <= pool
}

// chunks returns the bytes of blocks that malloc mapped individually, from the
// beginning of the new part of a region on (malloc_chunk with IS_MMAPPED).
func chunks(memory io.ReaderAt, r *region, before *vmmap.Map) (bytes int64) {
	skipped := 0
	for at := r.Start; at+page <= r.End && skipped < 1<<10; {
		if r.same && old(before, at) {
			break
		}
		var h [16]byte
		if n, _ := memory.ReadAt(h[:], int64(at)); n < len(h) {
			break
		}
		size := binary.LittleEndian.Uint64(h[8:])
		if binary.LittleEndian.Uint64(h[:]) != 0 || size&7 != 2 || (size&^7)%page != 0 || size&^7 > r.End-at || size < page {
			at += page
			skipped++
			continue
		}
		if !old(before, at) {
			bytes += int64(size &^ 7)
		}
		at += size &^ 7
	}
	return min(bytes, r.grown)
}

// zeros returns the share of all-zero small pages in a sample of the huge pages of a
// region.
func zeros(memory io.ReaderAt, r *region) float64 {
	first := (r.Start + huge - 1) &^ (huge - 1)
	if first+huge > r.End {
		return 0
	}
	step := max(huge, (r.End-first)/maxHuge&^(huge-1))
	buf := make([]byte, huge)
	empty := make([]byte, page)
	seen, zero := 0, 0
	for at := first; at+huge <= r.End; at += step {
		n, _ := memory.ReadAt(buf, int64(at))
		for i := 0; i+page <= n; i += page {
			seen++
			if bytes.Equal(buf[i:i+page], empty) {
				zero++
			}
		}
	}
	if seen == 0 {
		return 0
	}
	return float64(zero) / float64(seen)
}
