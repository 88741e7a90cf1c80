// Package nvsmi reads what the driver of NVIDIA's GPUs counts, from its tool
// nvidia-smi: how much memory of each device is used, and by which processes.
package nvsmi

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// A Reading is what the driver counts at one moment. What it does not tell is
// nil: it writes [N/A] where a device shares the memory of the host or is cut into
// parts, and where a process may not be looked at.
type Reading struct {
	Devices   []Device `json:"devices"`
	Processes []Use    `json:"processes"` // those that compute
	// Given says that a person gave the figure, and no tool.
	Given bool `json:"given,omitempty"`
}

// A Device is one GPU.
type Device struct {
	Index string `json:"index"` // as the tool counts, which need not be as CUDA does
	UUID  string `json:"uuid"`
	Used  *int64 `json:"used_bytes"`
	Total *int64 `json:"total_bytes"`
}

// A Use is what a process holds of a device. PID is that which the driver knows:
// of the host, also where the tool runs in a container.
type Use struct {
	PID  int    `json:"pid"`
	UUID string `json:"uuid"` // of the device
	Used *int64 `json:"used_bytes"`
}

// ErrNone says that the tool is not here.
var ErrNone = errors.New("nvidia-smi is not here")

// Read asks the tool.
func Read(ctx context.Context) (*Reading, error) {
	tool, err := exec.LookPath("nvidia-smi")
	if err != nil {
		return nil, ErrNone
	}
	devices, err := ask(ctx, tool, "--query-gpu=index,uuid,memory.used,memory.total")
	if err != nil {
		return nil, err
	}
	processes, err := ask(ctx, tool, "--query-compute-apps=gpu_uuid,pid,used_memory")
	if err != nil {
		return nil, err
	}
	return parse(devices, processes)
}

// most is more than the tool prints about the largest machine, bytes.
const most = 1 << 20

// ask runs the tool, which tells its errors on standard output.
func ask(ctx context.Context, tool, query string) (string, error) {
	c := exec.CommandContext(ctx, tool, query, "--format=csv,noheader")
	out := &bounded{}
	c.Stdout, c.Stderr = out, out
	c.WaitDelay = 100 * time.Millisecond
	err := c.Run()
	said, _, _ := strings.Cut(strings.TrimSpace(out.String()), "\n")
	switch {
	case ctx.Err() != nil:
		return "", errors.New("nvidia-smi did not answer in time")
	case err != nil && said != "":
		return "", fmt.Errorf("nvidia-smi says: %s", said)
	case err != nil:
		return "", fmt.Errorf("nvidia-smi: %w", err)
	case out.Len() > most:
		return "", errors.New("nvidia-smi says more than can be")
	}
	return out.String(), nil
}

// bounded keeps the beginning of what is written.
type bounded struct{ bytes.Buffer }

func (b *bounded) Write(p []byte) (int, error) {
	b.Buffer.Write(p[:min(len(p), max(most+1-b.Len(), 0))])
	return len(p), nil
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
			continue // of one that may not be looked at
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
	const enough = 80
	return fmt.Errorf("nvidia-smi says %q, which is not understood", line[:min(len(line), enough)])
}

// rows are the lines that hold something, and their cells.
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

// size reads a size such as "185 MiB", in bytes; nil where it is not told, as in
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
