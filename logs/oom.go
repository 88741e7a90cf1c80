// Package logs finds PyTorch's own words in text that people paste: a terminal,
// a log of one rank or of many.
package logs

import (
	"math"
	"regexp"
	"strconv"
)

// An OOM is the message of an out-of-memory error. What it does not state is
// nil: a message may be cut off, and the wordings state different things.
type OOM struct {
	Line    int64  // on which it begins, from 1
	Backend string // "CUDA", "HIP", "XPU", …; "" if it was cut off
	Old     bool   // of a wording before PyTorch 2.1

	Device      *int
	Request     *int64 // bytes, as they were asked of the driver
	Total       *int64 // the device's size
	Free        *int64 // what the driver had left
	Allowed     *int64 // the limit of this process, if one is set
	Allocated   *int64 // in use
	Reserved    *int64 // by PyTorch
	Unallocated *int64 // of what is reserved
	Private     *int64 // of what is in use: in private pools
	InUse       *int64 // by this process, with what is not PyTorch's
	Processes   []Process
}

// A Process holds memory on the device, as the message tells. In a container the
// program that failed can be among them, under a number it does not know.
type Process struct {
	PID   int64
	Bytes int64
}

// The parts of a message, with all white space taken out: where a line was
// broken does not matter then. PyTorch 2.1 writes "capacty".
const size = `(\d+(?:\.\d+)?)([KMGT]i?B|[Bb]ytes?)`

var (
	// A message has one head; of one whose head is cut off, the device comes first.
	head  = regexp.MustCompile(`([A-Z]{2,6}|Cuda)?outofmemory\.?Triedtoallocate`)
	start = regexp.MustCompile(head.String() + `|[(]GPU\d+;` + size + `totalcapacity|GPU\d+hasatotalcapaci?ty`)
	whole = regexp.MustCompile(`reservedintotalbyPyTorch\)|` + size + `cached\)|PyTorchbutunallocated`)

	old     = regexp.MustCompile(`totalcapacity;`)
	device  = regexp.MustCompile(`[(][A-Z]+(\d+);|[A-Z]+(\d+)hasatotal`)
	request = regexp.MustCompile(`Triedtoallocate` + size)
	process = regexp.MustCompile(`Process(\d+)has` + size + `memoryinuse`)
	figures = []struct {
		pattern *regexp.Regexp
		field   func(*OOM) **int64
	}{
		{request, func(o *OOM) **int64 { return &o.Request }},
		{regexp.MustCompile(`capaci?tyof` + size + `|` + size + `totalcapacity`), func(o *OOM) **int64 { return &o.Total }},
		{regexp.MustCompile(`ofwhich` + size + `isfree|;` + size + `free;`), func(o *OOM) **int64 { return &o.Free }},
		{regexp.MustCompile(size + `(?:is)?allowed`), func(o *OOM) **int64 { return &o.Allowed }},
		{regexp.MustCompile(`allocatedmemory` + size + `isallocated|` + size + `alreadyallocated`), func(o *OOM) **int64 { return &o.Allocated }},
		{regexp.MustCompile(size + `reservedintotal`), func(o *OOM) **int64 { return &o.Reserved }},
		{regexp.MustCompile(`and` + size + `isreservedbyPyTorchbut|` + size + `cached\)`), func(o *OOM) **int64 { return &o.Unallocated }},
		{regexp.MustCompile(`with` + size + `allocatedinprivatepools`), func(o *OOM) **int64 { return &o.Private }},
		{regexp.MustCompile(`thisprocesshas` + size + `memoryinuse`), func(o *OOM) **int64 { return &o.InUse }},
	}
)

// parse reads a message from text without white space that begins with it. It is
// nil if the text states no figure.
func parse(text string) *OOM {
	o := &OOM{Old: old.MatchString(text)}
	if m := start.FindStringSubmatch(text); m != nil {
		o.Backend = m[1]
	}
	if m := device.FindStringSubmatch(text); m != nil {
		if n, err := strconv.Atoi(m[1] + m[2]); err == nil {
			o.Device = &n
		}
	}
	some := false
	for _, f := range figures {
		if n := bytesOf(f.pattern.FindStringSubmatch(text)); n != nil {
			*f.field(o) = n
			some = true
		}
	}
	for _, m := range process.FindAllStringSubmatch(text, -1) {
		pid, err := strconv.ParseInt(m[1], 10, 64)
		if n := bytesOf([]string{m[0], m[2], m[3]}); n != nil && err == nil {
			o.Processes = append(o.Processes, Process{pid, *n})
		}
	}
	if !some {
		return nil
	}
	o.complete()
	return o
}

// complete adds the figures that follow from others.
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
}

// bytesOf is the number and the unit that a pattern matched, in one of its
// alternatives. It is nil if there is none, and for what no device has: PyTorch
// prints 17179869184.00 GiB where it could not tell how much a process uses.
func bytesOf(m []string) *int64 {
	for i := 1; i+1 < len(m); i += 2 {
		if m[i] == "" {
			continue
		}
		x, err := strconv.ParseFloat(m[i], 64)
		x *= factors[m[i+1][0]]
		if err != nil || x >= 1<<53 {
			return nil
		}
		n := int64(math.Round(x))
		return &n
	}
	return nil
}

// factors are the units that messages have, by their first letter. Those that
// are written with and without i are binary ones.
var factors = map[byte]float64{'B': 1, 'b': 1, 'K': 1 << 10, 'M': 1 << 20, 'G': 1 << 30, 'T': 1 << 40}
