package failure

import (
	"math"
	"math/bits"
	"strconv"
	"strings"

	"strandline/logs/text"
)

// An OOM is the message of an out-of-memory error. What it does not state is
// nil: a message may be cut off, and the wordings state different things.
type OOM struct {
	Line    int64  // on which it begins, from 1
	Rank    string // as its line names who wrote it, such as "rank3"; "" if it does not
	Wording Wording
	Backend string // "CUDA", "HIP", "XPU", …; "" if it was cut off
	Whole   bool   // its end is there

	Device      *int
	Request     *int64 // bytes, as they were asked of the driver
	Total       *int64 // the device's size
	Free        *int64 // what the driver had left
	Allowed     *int64 // the limit of this process, if one is set
	Allocated   *int64 // in use
	Reserved    *int64 // by PyTorch
	Unallocated *int64 // of what is reserved
	Private     *int64 // of that: free in private pools, which serve nothing else
	InUse       *int64 // by this process, with what is not PyTorch's
	Block       *int64 // the largest block that the platform gives
	Others      *int64 // on Apple's GPUs: held by this process beside PyTorch
	Processes   []Process
}

// A Process holds memory on the device, as the message states. In a container the
// program that failed can be among them, under a number it does not know.
type Process struct {
	PID   int64
	Bytes int64
}

// A Wording is the author of a message, and its form.
type Wording int

// The wordings.
const (
	Native  Wording = iota // of the caching allocator, PyTorch 2.1 on
	Old                    // the same before
	Async                  // of the backend cudaMallocAsync
	Metal                  // of Apple's GPUs, MPS
	Absurd                 // "Tried to allocate more than 1EB memory"
	Runtime                // "CUDA error: out of memory", of a call that is not the allocator's
	Driver                 // "CUDA driver error: out of memory"
	NCCL                   // of the communication library
	Silent                 // of the first allocator for Intel's GPUs, which states no figure
)

// bare reports whether a wording states no figure but the request.
func (w Wording) bare() bool { return w >= Absurd }

// Bare reports whether a message is of a wording that states no figure but the request.
func (o *OOM) Bare() bool { return o.Wording.bare() }

// A phrase is what is beside a figure of a message, white space taken out: so
// it does not matter where a line was broken. PyTorch 2.1 writes "capacty".
type phrase struct {
	before, after string
	wording       Wording
	field         func(*OOM) **int64
}

var phrases = []phrase{
	{"toallocate", "", Native, func(o *OOM) **int64 { return &o.Request }},
	{"capacityof", "", Native, func(o *OOM) **int64 { return &o.Total }},
	{"capactyof", "", Native, func(o *OOM) **int64 { return &o.Total }},
	{"", "totalcapacity", Old, func(o *OOM) **int64 { return &o.Total }},
	{"ofwhich", "isfree", Native, func(o *OOM) **int64 { return &o.Free }},
	{";", "free;", Old, func(o *OOM) **int64 { return &o.Free }},
	{"", "allowed", Native, func(o *OOM) **int64 { return &o.Allowed }},
	{"", "isallowed", Native, func(o *OOM) **int64 { return &o.Allowed }},
	{"allocatedmemory", "isallocated", Native, func(o *OOM) **int64 { return &o.Allocated }},
	{"", "isallocatedbyPyTorch", Native, func(o *OOM) **int64 { return &o.Allocated }},
	{"", "alreadyallocated", Old, func(o *OOM) **int64 { return &o.Allocated }},
	{"", "reservedintotal", Old, func(o *OOM) **int64 { return &o.Reserved }},
	{"", "isreserved", Native, func(o *OOM) **int64 { return &o.Unallocated }},
	{"", "cached)", Old, func(o *OOM) **int64 { return &o.Unallocated }},
	{"with", "allocatedinprivatepools", Native, func(o *OOM) **int64 { return &o.Private }},
	{"thisprocesshas", "memoryinuse", Native, func(o *OOM) **int64 { return &o.InUse }},

	{"largerthan", "!", Old, func(o *OOM) **int64 { return &o.Block }},

	{"Currentlyallocated:", "", Async, func(o *OOM) **int64 { return &o.Allocated }},
	{"Requested:", "", Async, func(o *OOM) **int64 { return &o.Request }},
	{"Devicelimit:", "", Async, func(o *OOM) **int64 { return &o.Total }},
	{"Free(accordingtoCUDA):", "", Async, func(o *OOM) **int64 { return &o.Free }},
	{"memoryfraction):", "", Async, func(o *OOM) **int64 { return &o.Allowed }},

	{"toallocate", "", Metal, func(o *OOM) **int64 { return &o.Request }},
	{"MPSallocated:", "", Metal, func(o *OOM) **int64 { return &o.Reserved }},
	{"otherallocations:", "", Metal, func(o *OOM) **int64 { return &o.Others }},
	{"maxallowed:", "", Metal, func(o *OOM) **int64 { return &o.Allowed }},
}

// phrasesByByte are the phrases, by their bits, that can be beside a figure: by the byte
// before it, and by the one after it where there is none before.
var phrasesByByte = func() (by struct{ last, first [256]uint32 }) {
	for i := range phrases {
		p := &phrases[i]
		if n := len(p.before); n > 0 {
			by.last[p.before[n-1]] |= 1 << i
		} else {
			by.first[p.after[0]] |= 1 << i
		}
	}
	return by
}()

// surrounds reports whether a figure is in a phrase. The words behind it may be cut
// off where the text ends, if those before it are enough.
func (p *phrase) surrounds(before, behind []byte) bool {
	const minLen = 2
	return text.HasSuffix(before, p.before) && (text.HasPrefix(behind, p.after) || len(p.before) >= minLen && strings.HasPrefix(p.after, string(behind)))
}

// Missing counts the figures that a message of its wording states and this one does
// not: it was cut off, or lines of others are in it.
func (o *OOM) Missing() (n int) {
	for _, x := range o.stated() {
		if x == nil {
			n++
		}
	}
	return n
}

// stated are the figures that each message of its wording has.
func (o *OOM) stated() []*int64 {
	switch o.Wording {
	case Native, Old:
		return []*int64{o.Request, o.Total, o.Free, o.Allocated, o.Unallocated}
	case Async:
		return []*int64{o.Request, o.Total, o.Free, o.Allocated}
	case Metal:
		return []*int64{o.Request, o.Reserved, o.Others}
	}
	return nil
}

// A parser reads messages, and has room for those to come.
type parser struct {
	spare   *OOM
	figures []int64 // of the last messages
}

// parse reads a message from text without white space that begins with its head,
// or in which that is cut off. It returns nil if the text contains no figure.
func (p *parser) parse(h head, text []byte) *OOM {
	o := p.spare
	if p.spare = nil; o == nil {
		o = &OOM{}
	}
	if *o = (OOM{}); p.read(o, &h, text) {
		return o
	}
	p.spare = o
	return nil
}

// keep returns where a figure is kept.
func (p *parser) keep(n int64) *int64 {
	const room = 32
	if len(p.figures) == cap(p.figures) {
		p.figures = make([]int64, 0, room)
	}
	p.figures = append(p.figures, n)
	return &p.figures[len(p.figures)-1]
}

// read reads a message, and reports whether it contains a figure or needs none.
func (p *parser) read(o *OOM, h *head, line []byte) bool {
	o.Wording, o.Backend, o.Device, o.Request = h.wording, h.backend, h.device, h.request
	if h.wording.bare() {
		return true
	}
	some := false
	for i := 0; i < len(line); i++ {
		if !text.Digit(line[i]) {
			continue
		}
		n, length := size(line[i:])
		if length > 0 {
			some = p.take(o, h, n, line[:i], line[i+length:]) || some
			i += length - 1
			continue
		}
		digits := text.Digits(line[i:])
		o.number(digits, line[:i], line[i+len(digits):])
		i += len(digits) - 1
	}
	if !some && o.Processes == nil {
		return false
	}
	o.complete()
	return true
}

// take takes a figure, if it is one of the message and the first of its kind.
func (p *parser) take(o *OOM, h *head, n int64, before, behind []byte) bool {
	var last, first byte
	if len(before) > 0 {
		last = before[len(before)-1]
	}
	if len(behind) > 0 {
		first = behind[0]
	}
	for some := phrasesByByte.last[last] | phrasesByByte.first[first]; some != 0; some &= some - 1 {
		f := &phrases[bits.TrailingZeros32(some)]
		if h.known && (f.wording == Async || f.wording == Metal || h.wording != Native) && f.wording != h.wording || !f.surrounds(before, behind) {
			continue
		}
		field := f.field(o)
		if n < 0 || *field != nil {
			return false
		}
		*field = p.keep(n)
		if o.Wording == Native && f.wording != Native {
			o.Wording = f.wording
		}
		return true
	}
	if n >= 0 && text.HasPrefix(behind, "memoryinuse") && text.HasSuffix(before, "has") {
		before = before[:len(before)-len("has")]
		digits := text.LastDigits(before)
		if pid, err := strconv.ParseInt(string(digits), 10, 64); err == nil && text.HasSuffix(before[:len(before)-len(digits)], "Process") {
			o.Processes = append(o.Processes, Process{pid, n})
			return true
		}
	}
	return false
}

// number reads a number without a unit, if it is the device's: "(GPU 1; …",
// "GPU 1 has a total …", "Allocation on device 1 …".
func (o *OOM) number(digits, before, behind []byte) {
	named := len(before) > 0 && text.Capital(before[len(before)-1])
	opened := named && text.HasSuffix(before[:len(before)-len(lastCapitals(before))], "(")
	if o.Device != nil || !(named && text.HasPrefix(behind, "hasatotal") || opened && text.HasPrefix(behind, ";") || text.HasSuffix(before, "Allocationondevice")) {
		return
	}
	if n, err := strconv.Atoi(string(digits)); err == nil {
		o.Device = &n
	}
}

// complete adds the figures that follow from others. PyTorch's "allocated in
// private pools" are their free blocks, which it adds to what is in use, and takes
// from what is not (CUDACachingAllocator.cpp, allocated_in_private_pools).
func (o *OOM) complete() {
	switch {
	case o.Allocated == nil:
	case o.Reserved == nil && o.Unallocated != nil:
		n := *o.Allocated + *o.Unallocated
		o.Reserved = &n
	case o.Unallocated == nil && o.Reserved != nil && *o.Reserved >= *o.Allocated:
		n := *o.Reserved - *o.Allocated
		o.Unallocated = &n
	}
	if o.Private != nil && o.Allocated != nil && *o.Private <= *o.Allocated {
		*o.Allocated -= *o.Private
		if o.Unallocated != nil {
			*o.Unallocated += *o.Private
		}
	}
}

// size is a number and its unit at the beginning of a text, in bytes, and their
// length, 0 if they are missing. It is negative for an impossible size: PyTorch
// prints 17179869184.00 GiB where it does not know how much a process uses. Units that
// are written with and without i are binary ones. A decimal comma is read too.
func size(line []byte) (n int64, length int) {
	i := 0
	for i < len(line) && text.Digit(line[i]) {
		i++
	}
	if i == 0 {
		return -1, 0
	}
	whole, places, known := line[:i], line[:0], true
	if j := i + 1; j < len(line) && (line[i] == '.' || line[i] == ',') && text.Digit(line[j]) {
		places = text.Digits(line[j:])
		known = line[i] == '.' || len(places) != 3 // else a comma between thousands, or a decimal one
		i = j + len(places)
	}
	factor, unit := unitAt(line[i:])
	if unit == 0 {
		return -1, 0
	}
	x := decimal(whole, places) * factor
	if !known || x >= 1<<53 {
		return -1, i + unit
	}
	return int64(math.Round(x)), i + unit
}

// decimal is the value of digits before and behind a point.
func decimal(whole, places []byte) float64 {
	const exact = 15 // digits of which the value is a float64 without rounding
	if len(whole)+len(places) > exact {
		x, err := strconv.ParseFloat(string(whole)+"."+string(places), 64)
		if err != nil {
			return math.Inf(1)
		}
		return x
	}
	n, power := int64(0), int64(1)
	for _, c := range whole {
		n = 10*n + int64(c-'0')
	}
	for _, c := range places {
		n, power = 10*n+int64(c-'0'), 10*power
	}
	return float64(n) / float64(power)
}

// unitAt is the unit at the beginning of a text: KiB, KB and so on, or bytes.
func unitAt(line []byte) (factor float64, length int) {
	if len(line) < 2 {
		return 0, 0
	}
	switch c := line[0]; c {
	case 'b', 'B':
		for _, word := range []string{"bytes", "byte", "Bytes", "Byte"} {
			if text.HasPrefix(line, word) {
				return 1, len(word)
			}
		}
	case 'K', 'M', 'G', 'T':
		factor = float64(int64(1) << (10 * (1 + strings.IndexByte("KMGT", c))))
		switch {
		case line[1] == 'B':
			return factor, 2
		case text.HasPrefix(line[1:], "iB"):
			return factor, 3
		}
	}
	return 0, 0
}
