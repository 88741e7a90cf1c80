package record

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
)

// A StepLevel is what a process held at the end of one of its steps.
type StepLevel struct {
	PID  int     `json:"pid"`
	By   string  `json:"by"` // call, optimizer, annotation or function
	Step int     `json:"step"`
	Time float64 `json:"time"` // Unix seconds
	// Host is memory not backed by a file, in bytes; nil where that is unknown.
	Host *int64 `json:"host"`
	// Heap is what of it is in use, as far as malloc and Python know; nil where that is
	// unknown.
	Heap    *int64      `json:"heap"`
	Devices []StepUsage `json:"devices,omitempty"`
}

// A StepUsage is what PyTorch's allocator had of a device at the end of a step.
type StepUsage struct {
	Usage
	Peak int64 `json:"peak_reserved_bytes"`
}

// Levels reads what the processes noted at the end of their steps, by process, each in
// the order of its steps. A process that counted its own steps, by strandline.step, has
// only those.
func (s *Session) Levels() (out [][]StepLevel) {
	names, _ := filepath.Glob(filepath.Join(s.Options.Dir, journals, "levels", "*.jsonl"))
	slices.Sort(names)
	for _, name := range names {
		if levels := readLevels(name); len(levels) > 0 {
			out = append(out, levels)
		}
	}
	return out
}

func readLevels(name string) (out []StepLevel) {
	f, err := os.Open(name)
	if err != nil {
		return nil
	}
	defer f.Close()
	own := false
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		var l StepLevel
		if json.Unmarshal(lines.Bytes(), &l) != nil {
			continue // the end of a process that was killed
		}
		if l.By == "call" && !own {
			own, out = true, nil
		}
		out = append(out, l)
	}
	return out
}
