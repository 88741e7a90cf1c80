package nvml

import (
	"fmt"
	"strconv"
	"strings"

	"strandline/host/sampling/sample"
)

// An answer collects the lines of the reader to one question; see c/reader.c for their
// form. The zero answer is ready.
type answer struct {
	devices []sample.Device
	asked   int // the index of the last whole device; of the parts too
	err     error
	done    bool
}

// codes of NVML's errors that are treated in their own way.
const (
	notSupported    = 3
	noPermission    = 4
	driverNotLoaded = 9
	gpuIsLost       = 15
	resetRequired   = 16
	versionMismatch = 18
)

// errorText is an error of NVML, by its code.
func errorText(code int) string {
	switch code {
	case notSupported:
		return "it does not support the question"
	case noPermission:
		return "this user may not ask; run strandline as root"
	case driverNotLoaded:
		return "the driver is not loaded; `modprobe nvidia` loads it"
	case gpuIsLost:
		return "the device is lost: it has fallen off the bus, or is otherwise not accessible; `dmesg` says why"
	case resetRequired:
		return "the device must be reset before it can be used again"
	case versionMismatch:
		return "the loaded driver and its library are of different versions: the driver was updated; reboot, or reload its modules"
	}
	return fmt.Sprintf("NVML error %d", code)
}

// add takes a line. The error states that it is not of the form.
func (a *answer) add(line string) error {
	word, rest, _ := strings.Cut(line, " ")
	if word == "done" {
		a.done = true
		return nil
	}
	switch word {
	case "device", "instance":
		n, err := strconv.ParseUint(rest, 10, 16)
		if err != nil {
			return fmt.Errorf("no number in %q", line)
		}
		return a.begin(word, int(n))
	case "error":
		return a.fail(rest)
	}
	if len(a.devices) == 0 {
		return fmt.Errorf("%q is of no device", line)
	}
	d := &a.devices[len(a.devices)-1]
	switch word {
	case "uuid":
		d.UUID = strings.ToValidUTF8(rest, "?")
	case "name":
		d.Name = strings.ToValidUTF8(rest, "?")
	case "parts":
		d.Divided = true
		d.Note = "it is divided into parts (MIG), each of which is a device"
	case "memory":
		return addMemory(d, strings.Fields(rest))
	case "process":
		return addProcess(d, strings.Fields(rest))
	default:
		return fmt.Errorf("%q is not understood", line)
	}
	return nil
}

func (a *answer) begin(word string, n int) error {
	d := sample.Device{Index: n, Processes: []sample.Holding{}}
	if word == "instance" {
		if len(a.devices) == 0 {
			return fmt.Errorf("instance %d is of no device", n)
		}
		whole := a.asked
		d.Index, d.Parent = sample.PartIndex(whole, n), &whole
	} else {
		a.asked = n
	}
	a.devices = append(a.devices, d)
	return nil
}

// fail takes an error of a question: "CODE WHAT".
func (a *answer) fail(rest string) error {
	number, what, _ := strings.Cut(rest, " ")
	code, err := strconv.Atoi(number)
	if err != nil {
		return fmt.Errorf("no error in %q", rest)
	}
	if what == "count" {
		a.err = fmt.Errorf("the driver does not say which devices there are: %s", errorText(code))
		return nil
	}
	if len(a.devices) == 0 {
		return fmt.Errorf("error %q is of no device", rest)
	}
	d := &a.devices[len(a.devices)-1]
	switch {
	case what == "memory" && code == notSupported && d.Parent == nil:
		shared(d)
	case what == "processes":
		// Which processes hold what is not known, so the remainder is not either.
		d.Processes = append(d.Processes, sample.Holding{})
		d.Note = "the driver does not say which processes use this device: " + errorText(code)
	default:
		if what == "device" {
			d.Processes = append(d.Processes, sample.Holding{})
		}
		d.Note = "the driver does not report the memory of this device: " + errorText(code)
	}
	return nil
}

// shared notes that a device has no memory of its own, as GB10 does.
func shared(d *sample.Device) {
	d.Unified = true
	d.Note = "the driver does not report the memory of this device, which shares that of the host; what processes hold of it is known"
}

func addMemory(d *sample.Device, fields []string) error {
	var n [4]*int64
	if len(fields) != len(n) {
		return fmt.Errorf("memory %q is not understood", fields)
	}
	for i := range n {
		var err error
		if n[i], err = size(fields[i]); err != nil {
			return err
		}
	}
	d.Total, d.Used, d.Free, d.Reserved = n[0], n[1], n[2], n[3]
	if d.Total == nil || *d.Total == 0 {
		d.Total, d.Used, d.Free, d.Reserved = nil, nil, nil, nil
		shared(d)
		return nil
	}
	if d.Used == nil {
		d.Note = "the driver does not report how much of this device is used"
	}
	return nil
}

// addProcess adds a process, which can be in several of the driver's lists.
func addProcess(d *sample.Device, fields []string) error {
	if len(fields) != 2 {
		return fmt.Errorf("process %q is not understood", fields)
	}
	pid, err := strconv.ParseUint(fields[0], 10, 31)
	if err != nil {
		return fmt.Errorf("no pid in %q", fields)
	}
	used, err := size(fields[1])
	if err != nil {
		return err
	}
	for i := range d.Processes {
		h := &d.Processes[i]
		if pid == 0 || h.PID != int(pid) { // 0 are processes that may not be seen, one or several
			continue
		}
		if h.Used == nil || used != nil && *used > *h.Used {
			h.Used = used
		}
		return nil
	}
	d.Processes = append(d.Processes, sample.Holding{PID: int(pid), Used: used})
	return nil
}

// size reads bytes; nil if "-" states that they are not reported.
func size(text string) (*int64, error) {
	if text == "-" {
		return nil, nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return nil, fmt.Errorf("%q is not a size", text)
	}
	return &n, nil
}
