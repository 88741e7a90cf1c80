package figures

import (
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
		if strings.Contains(text, word) {
			return deviceOf(text)
		}
	}
	return ""
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

// deviceBefore is the device that a line names last before a figure, "" if it names none.
func deviceBefore(figure string) string {
	all := deviceIn.FindAllStringSubmatch(figure, -1)
	if len(all) == 0 {
		return ""
	}
	return devicePrefix + all[len(all)-1][1]
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
