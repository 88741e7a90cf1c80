// Package nvsmi reads, with the tool nvidia-smi, what the driver of NVIDIA's GPUs
// counts: how much memory of each device is used, and by which processes.
//
// It explains no figure. Note that what the driver does not report is nil, and never 0;
// in a container it can name processes by their pids on the host.
package nvsmi

import (
	"errors"
	"fmt"
	"iter"
	"strconv"
	"strings"
)

// A Reading is what the driver counts at one moment. What it does not report is nil: it
// prints [N/A] if a device shares the host's memory or is partitioned, and if a process
// may not be examined.
type Reading struct {
	Devices   []Device `json:"devices"`
	Processes []Use    `json:"processes"` // those that use the device for computing
	// Given states that the figure comes from a person, not from the tool.
	Given bool `json:"given,omitempty"`
}

// A Device is one GPU.
type Device struct {
	Index string `json:"index"` // in the tool's numbering, which can differ from CUDA's
	UUID  string `json:"uuid"`
	Used  *int64 `json:"used_bytes"`
	Total *int64 `json:"total_bytes"`
}

// A Use is what a process holds of a device. PID is the number that the driver knows:
// the host's, even if the tool runs in a container.
type Use struct {
	PID  int    `json:"pid"`
	UUID string `json:"uuid"` // of the device
	Used *int64 `json:"used_bytes"`
}

func parse(devices, processes string) (*Reading, error) {
	r := &Reading{Devices: []Device{}, Processes: []Use{}}
	for line, cells := range rows(devices) {
		if len(cells) != 4 {
			return nil, strange(line)
		}
		d := Device{Index: cells[0], UUID: cells[1]}
		var err error
		if d.Used, err = size(cells[2]); err == nil {
			d.Total, err = size(cells[3])
		}
		if err != nil {
			return nil, strange(line)
		}
		r.Devices = append(r.Devices, d)
	}
	for line, cells := range rows(processes) {
		if len(cells) != 3 {
			return nil, strange(line)
		}
		pid, err := strconv.Atoi(cells[1])
		if err != nil {
			continue // of a process that may not be examined
		}
		used, err := size(cells[2])
		if err != nil {
			return nil, strange(line)
		}
		r.Processes = append(r.Processes, Use{PID: pid, UUID: cells[0], Used: used})
	}
	if len(r.Devices) == 0 {
		return nil, errors.New("nvidia-smi knows of no device")
	}
	return r, nil
}

func strange(line string) error {
	const maxQuoted = 80
	return fmt.Errorf("nvidia-smi says %q, which is not understood", line[:min(len(line), maxQuoted)])
}

// rows yields the lines that are not empty, and their cells.
func rows(text string) iter.Seq2[string, []string] {
	return func(yield func(string, []string) bool) {
		for line := range strings.Lines(text) {
			if line = strings.TrimSpace(line); line == "" {
				continue
			}
			cells := strings.Split(line, ",")
			for i := range cells {
				cells[i] = strings.TrimSpace(cells[i])
			}
			if !yield(line, cells) {
				return
			}
		}
	}
}

// size reads a size such as "185 MiB", in bytes; nil if it is not reported, as in
// "[N/A]".
func size(text string) (*int64, error) {
	if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		return nil, nil
	}
	n, err := strconv.ParseInt(strings.TrimSuffix(text, " MiB"), 10, 64)
	const largest = 1 << 40 // MiB
	if err != nil || n < 0 || n > largest || !strings.HasSuffix(text, " MiB") {
		return nil, errors.New("no size")
	}
	n <<= 20
	return &n, nil
}
