package figures

import (
	"slices"
	"strings"

	"strandline/internal/lazyregexp"
)

var (
	pidIn = lazyregexp.New(`\(?([A-Za-z][\w.:]*) pid=(\d+)[^)]*\)?|\[?[Rr]ank ?(\d+)|\b(Node [A-Z0-9]+)\b|\bTP(\d+)\b|/physical_device:([A-Z]+:\d+)|\b(CPU)\b`)
	// deviceIn is a device that a line is about, as in "device=3" or "cuda:3".
	deviceIn = lazyregexp.New(`(?i)\b(?:device|gpu|cuda)(?:_id)? ?[ =:#]?'?(\d{1,4})\b[^%]`)
)

// processIn is the process, rank or device that a line names, "" if it does not.
func processIn(text string) string {
	for _, word := range []string{"pid=", "ank", "Node ", "TP", "physical_device", "CPU"} {
		if strings.Contains(text, word) {
			if m := pidIn.FindStringSubmatch(text); m != nil {
				return strings.TrimSpace(strings.Join(m[1:], " "))
			}
			return ""
		}
	}
	for _, word := range []string{"evice", "GPU", "gpu", "cuda"} {
		if numbered(text, word) {
			return deviceOf(text)
		}
	}
	return ""
}

// numbered reports whether a digit follows shortly behind a word of a line.
func numbered(line, word string) bool {
	const maxDistance = len("_id ='")
	for {
		i := strings.Index(line, word)
		if i < 0 {
			return false
		}
		line = line[i+len(word):]
		if strings.ContainsAny(line[:min(len(line), maxDistance+1)], "0123456789") {
			return true
		}
	}
}

// deviceOf is the device that a line is about, "" if it names none.
func deviceOf(line string) string {
	device := ""
	for _, m := range deviceIn.FindAllStringSubmatch(line, -1) {
		if device != "" && device != m[1] {
			return severalDevices
		}
		device = m[1]
	}
	if device == "" {
		return ""
	}
	return devicePrefix + device
}

// A statement is a line of which the sizes are read. What holds for all of them is found once, if
// one of them asks for it.
type statement struct {
	text    string
	process *string
	devices [][]int // where devices are named
	memory  *bool
	above   *float64
}

// about is the process, rank or device of a size that begins at a byte.
func (s *statement) about(from int) string {
	if s.process == nil {
		s.process = new(processIn(s.text))
		if *s.process == severalDevices {
			s.devices = deviceIn.FindAllStringSubmatchIndex(s.text, -1)
		}
	}
	if *s.process != severalDevices {
		return *s.process
	}
	device := ""
	n, _ := slices.BinarySearchFunc(s.devices, from+1, func(m []int, end int) int { return m[1] - end })
	if n > 0 {
		device = devicePrefix + s.text[s.devices[n-1][2]:s.devices[n-1][3]]
	}
	return device
}

// ofMemory reports whether the line has a word of memory.
func (s *statement) ofMemory() bool {
	if s.memory == nil {
		s.memory = new(memory.MatchString(s.text))
	}
	return *s.memory
}

// factor is the unit that the beginning of the line states for all its figures, 0 if none.
func (s *statement) factor() float64 {
	if s.above == nil {
		s.above = new(float64)
		if m := unitAbove.FindStringSubmatch(s.text); m != nil {
			*s.above = factors[lower(m[1][0])]
		}
	}
	return *s.above
}

const (
	devicePrefix   = "device "          // begins the name of a process that is a device
	severalDevices = "device by figure" // of a line: each figure is about another
)

// dropOnlyDevice leaves out a device that all lines are about.
func (t *reader) dropOnlyDevice() {
	only := ""
	for _, s := range t.order {
		if strings.HasPrefix(s.process, devicePrefix) {
			if only != "" && only != s.process {
				return
			}
			only = s.process
		}
	}
	for _, s := range t.order {
		if s.process == only && t.byKey[key{"", s.name}] == nil {
			s.process = ""
		}
	}
}
