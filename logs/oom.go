// Package logs finds statements about memory in text that people paste: a terminal, a
// log of one rank or of many, the kernel's messages.
//
// [Scan] reads it once. PyTorch's own message is read by message.go, head.go and
// oom.go, tables of memory_summary() by series.go and summary.go, and every other
// program by its family: families.go lists them, a file family_*.go each group.
// [ScanEngine] reads the start-up figures of inference engines and trainers. It only
// reads; judge/logs names causes.
package logs

import (
	"math"
	"strconv"
	"strings"
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

// A Process holds memory on the device, as the message tells. In a container the
// program that failed can be among them, under a number it does not know.
type Process struct {
	PID   int64
	Bytes int64
}

// A Wording is who speaks in a message, and how.
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

// bare tells wordings that state no figure but the request.
func (w Wording) bare() bool { return w >= Absurd }

// Bare tells a message of a wording that states no figure but the request.
func (o *OOM) Bare() bool { return o.Wording.bare() }

// A phrase is what stands beside a figure of a message, white space taken out: so
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

// beside tells whether a figure stands in a phrase. The words behind it may be cut
// off where the text ends, if those before it are enough.
func (p *phrase) beside(before, behind []byte) bool {
	const enough = 2
	return hasSuffix(before, p.before) && (hasPrefix(behind, p.after) || len(p.before) >= enough && strings.HasPrefix(p.after, string(behind)))
}

func hasPrefix(text []byte, words string) bool {
	return len(text) >= len(words) && string(text[:len(words)]) == words
}

func hasSuffix(text []byte, words string) bool {
	return len(text) >= len(words) && string(text[len(text)-len(words):]) == words
}

// Lacks counts the figures that a message of its wording states and this one does
// not: it was cut off, or lines of others stand in it.
func (o *OOM) Lacks() (n int) {
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

// parse reads a message from text without white space that begins with its head,
// or in which that is cut off. It is nil if there is no figure in it.
func parse(h head, text []byte) *OOM {
	o := &OOM{Wording: h.wording, Backend: h.backend, Device: h.device, Request: h.request}
	if h.wording.bare() {
		return o
	}
	some := false
	for i := 0; i < len(text); i++ {
		if !digit(text[i]) {
			continue
		}
		n, length := size(text[i:])
		if length > 0 {
			some = o.take(&h, n, text[:i], text[i+length:]) || some
			i += length - 1
			continue
		}
		digits := leading(text[i:], digit)
		o.number(digits, text[:i], text[i+len(digits):])
		i += len(digits) - 1
	}
	if !some && o.Processes == nil {
		return nil
	}
	o.complete()
	return o
}

// take takes a figure, if it is one of the message and the first of its kind.
func (o *OOM) take(h *head, n *int64, before, behind []byte) bool {
	var last, first byte
	if len(before) > 0 {
		last = before[len(before)-1]
	}
	if len(behind) > 0 {
		first = behind[0]
	}
	for i := range phrases {
		p := &phrases[i]
		if n := len(p.before); n > 0 && p.before[n-1] != last || n == 0 && p.after[0] != first {
			continue // as most do
		}
		if h.known && (p.wording == Async || p.wording == Metal || h.wording != Native) && p.wording != h.wording || !p.beside(before, behind) {
			continue
		}
		field := p.field(o)
		if n == nil || *field != nil {
			return false
		}
		*field = n
		if o.Wording == Native && p.wording != Native {
			o.Wording = p.wording
		}
		return true
	}
	if n != nil && hasPrefix(behind, "memoryinuse") && hasSuffix(before, "has") {
		before = before[:len(before)-len("has")]
		digits := trailing(before, digit)
		if pid, err := strconv.ParseInt(string(digits), 10, 64); err == nil && hasSuffix(before[:len(before)-len(digits)], "Process") {
			o.Processes = append(o.Processes, Process{pid, *n})
			return true
		}
	}
	return false
}

// number takes a number without a unit, if it is that of the device: "(GPU 1; …",
// "GPU 1 has a total …", "Allocation on device 1 …".
func (o *OOM) number(digits, before, behind []byte) {
	named := len(before) > 0 && capital(before[len(before)-1])
	opened := named && hasSuffix(before[:len(before)-len(trailing(before, capital))], "(")
	if o.Device != nil || !(named && hasPrefix(behind, "hasatotal") || opened && hasPrefix(behind, ";") || hasSuffix(before, "Allocationondevice")) {
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

// size is a number and its unit at the beginning of a text, and their length, 0
// if they do not stand there. It is nil for what no device has: PyTorch prints
// 17179869184.00 GiB where it could not tell how much a process uses. Units that
// are written with and without i are binary ones. A decimal comma is read too.
func size(text []byte) (n *int64, length int) {
	i := 0
	for i < len(text) && digit(text[i]) {
		i++
	}
	if i == 0 {
		return nil, 0
	}
	number := string(text[:i])
	if j := i + 1; j < len(text) && (text[i] == '.' || text[i] == ',') && digit(text[j]) {
		places := leading(text[j:], digit)
		switch {
		case text[i] == '.':
			number = string(text[:j+len(places)])
		case len(places) == 3:
			number = "" // a comma between thousands, or a decimal one
		default:
			number += "." + string(places)
		}
		i = j + len(places)
	}
	factor, unit := unitAt(text[i:])
	if unit == 0 {
		return nil, 0
	}
	x, err := strconv.ParseFloat(number, 64)
	if x *= factor; err != nil || x >= 1<<53 {
		return nil, i + unit
	}
	rounded := int64(math.Round(x))
	return &rounded, i + unit
}

// unitAt is the unit at the beginning of a text: KiB, KB and so on, or bytes.
func unitAt(text []byte) (factor float64, length int) {
	for _, word := range []string{"bytes", "byte", "Bytes", "Byte"} {
		if len(text) > 0 && text[0]|0x20 == 'b' && hasPrefix(text, word) {
			return 1, len(word)
		}
	}
	for i, c := range []byte("KMGT") {
		switch {
		case len(text) < 2 || text[0] != c:
		case text[1] == 'B':
			return float64(int64(1) << (10 * (i + 1))), 2
		case len(text) > 2 && text[1] == 'i' && text[2] == 'B':
			return float64(int64(1) << (10 * (i + 1))), 3
		}
	}
	return 0, 0
}

func digit(c byte) bool { return c >= '0' && c <= '9' }

func capital(c byte) bool { return c >= 'A' && c <= 'Z' }
