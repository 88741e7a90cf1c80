package record

import (
	"bufio"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"strandline/internal/safefile"
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
	// Python and Libc are versions, of the first step of a process.
	Python string `json:"python,omitempty"`
	Libc   string `json:"libc,omitempty"`
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
	for _, name := range s.levelFiles(".jsonl") {
		if levels := readLevels(name); len(levels) > 0 {
			out = append(out, levels)
		}
	}
	return out
}

// A Growing is what Python objects of a process grew by in steps that it traced, or in a
// time if it counts none.
type Growing struct {
	PID   int `json:"pid"`
	Steps int `json:"steps"`
	// Seconds is how long that was in a process without steps, and Grew what the process
	// grew by in it, in bytes.
	Seconds float64       `json:"seconds"`
	Grew    int64         `json:"grew"`
	Lines   []GrowingLine `json:"lines"` // by bytes, most first
}

// A GrowingLine is what was allocated at one place and stayed, more of it after each half
// of the steps or of the time.
type GrowingLine struct {
	Bytes  int64   `json:"bytes"`
	Count  int64   `json:"count"`
	Frames []Frame `json:"frames"` // innermost first
}

// A Frame is one level of a stack of Python.
type Frame struct {
	File string `json:"file"`
	Line int64  `json:"line"`
}

// AskForLines has the processes that count steps trace their allocations for some steps,
// once for each call. [Session.Growing] reads the result.
func (s *Session) AskForLines() error {
	f, err := s.folder.Append(filepath.Join(journals, "ask"))
	if err != nil {
		return err
	}
	_, err = f.WriteString("\n")
	return errors.Join(err, f.Close())
}

// Growing reads what processes found when they traced their allocations last.
func (s *Session) Growing() (out []Growing) {
	for _, name := range s.levelFiles(".lines") {
		var g Growing
		if data, err := safefile.ReadFile(name, maxFile); err == nil && json.Unmarshal(data, &g) == nil && (g.Steps > 0 || g.Seconds > 0) {
			out = append(out, g)
		}
	}
	return out
}

// Tracing returns since when a process without steps has been tracing its allocations, which
// takes memory that is not the program's own; the zero time if none is.
func (s *Session) Tracing() (since time.Time) {
	for _, name := range s.tracing(".lines~") {
		if info, err := os.Lstat(name); err == nil && (since.IsZero() || info.ModTime().Before(since)) {
			since = info.ModTime()
		}
	}
	return since
}

// TracesObjects reports whether a process traces its allocations now, in steps or in periods.
func (s *Session) TracesObjects() bool {
	return len(s.tracing(".lines+")) > 0 || len(s.tracing(".lines~")) > 0
}

// tracing are the files whose names end so, by which processes that run state that they trace.
func (s *Session) tracing(ending string) []string {
	return slices.DeleteFunc(s.levelFiles(ending), func(name string) bool {
		pid, err := strconv.Atoi(strings.TrimSuffix(filepath.Base(name), ending))
		return err != nil || !alive(pid)
	})
}

// levelFiles are the files of levels whose names end so, in order.
func (s *Session) levelFiles(ending string) []string {
	return filesIn(filepath.Join(s.Options.Dir, journals, "levels"), ending)
}

// filesIn are the regular files in a folder whose names end so, in order.
func filesIn(folder, ending string) (out []string) {
	entries, _ := os.ReadDir(folder)
	for _, e := range entries {
		if e.Type().IsRegular() && strings.HasSuffix(e.Name(), ending) {
			out = append(out, filepath.Join(folder, e.Name()))
		}
	}
	return out
}

func readLevels(name string) (out []StepLevel) {
	f, err := safefile.Open(name, maxFile)
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
