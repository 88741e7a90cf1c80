package check

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"

	"strandline/face/api"
	"strandline/finding"
	"strandline/internal/budget"
	"strandline/judge/gate"
	"strandline/units"
)

// baselineSchema is the form of a [Baseline].
const baselineSchema = "strandline.check-baseline/1"

// A Baseline is what runs measured when they were accepted. It is a file that is
// committed with the code.
type Baseline struct {
	Schema string `json:"schema"`
	// Machine is what memory depends on besides the code. Runs on a different machine
	// are not compared.
	Machine map[string]string `json:"machine"`
	// Runs are the figures of each run, by the run's name ("" for a single run) and
	// then by the figure's name.
	Runs map[string]map[string]*gate.Measure `json:"runs"`
}

// largestBaseline is the size of a file, in bytes, above which it cannot be a baseline.
const largestBaseline = 16 << 20

// ReadBaseline reads a baseline, the file of that name.
func ReadBaseline(f io.Reader, name string) (*Baseline, error) {
	data, err := io.ReadAll(io.LimitReader(f, largestBaseline+1))
	if err != nil {
		return nil, err
	}
	if len(data) > largestBaseline {
		return nil, fmt.Errorf("%s is not a baseline of strandline check: it is larger than %s", name, units.Bytes(largestBaseline))
	}
	if err := budget.Of(int64(len(data)), budget.Plain).Spend(budget.JSON(data), "figures"); err != nil {
		return nil, fmt.Errorf("%s is not a baseline of strandline check: %w", name, err)
	}
	b := &Baseline{}
	if err := json.Unmarshal(data, b); err != nil {
		if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) {
			err = fmt.Errorf("there is %s in the place of an object or a number (byte %d)", wrong.Value, wrong.Offset)
		}
		return nil, fmt.Errorf("%s is not a baseline of strandline check: %w", name, err)
	}
	for run, figures := range b.Runs {
		for figure, m := range figures {
			if m == nil || m.Bytes < 0 || slices.ContainsFunc(m.Runs, func(b int64) bool { return b < 0 }) {
				return nil, fmt.Errorf("%s is not a baseline of strandline check: the %s of run %q is no measurement", name, figure, run)
			}
		}
	}
	if b.Schema != baselineSchema {
		return nil, fmt.Errorf("%s is not a baseline that can be read here: its schema is %q, want %q", name, b.Schema, baselineSchema)
	}
	return b, nil
}

// NewBaseline returns an empty baseline.
func NewBaseline() *Baseline {
	return &Baseline{Schema: baselineSchema, Machine: map[string]string{}, Runs: map[string]map[string]*gate.Measure{}}
}

// Write writes the baseline as JSON that shows changes clearly in a diff.
func (b *Baseline) Write(w io.Writer) error {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetIndent("", "  ")
	if err := e.Encode(b); err != nil {
		return err
	}
	_, err := w.Write(out.Bytes())
	return err
}

// Machine is what the memory of a run depends on besides the code.
func Machine(r *Run) map[string]string {
	m := map[string]string{
		"system": runtime.GOOS + "/" + runtime.GOARCH, "processors": strconv.Itoa(runtime.NumCPU()), "page_size": strconv.Itoa(os.Getpagesize()),
	}
	if text, err := os.ReadFile("/sys/kernel/mm/transparent_hugepage/enabled"); err == nil {
		if _, rest, ok := strings.Cut(string(text), "["); ok {
			m["huge_pages"], _, _ = strings.Cut(rest, "]")
		}
	}
	if steps := r.stepping(); steps != nil {
		m["python"], m["libc"] = steps[0].Python, steps[0].Libc
	}
	if len(r.Manifest.Processes) > 0 {
		p := &r.Manifest.Processes[0]
		m["python"], m["torch"] = p.Python, p.Torch
		if len(p.Devices) > 0 {
			m["device"] = p.Devices[0].Name
		}
	}
	return m
}

// differs states how a machine differs from that of the baseline; it is empty if it does
// not.
func (b *Baseline) differs(machine map[string]string) string {
	var parts []string
	for _, name := range []string{"system", "processors", "page_size", "huge_pages", "python", "libc", "torch", "device"} {
		was, is := b.Machine[name], machine[name]
		if _, known := b.Machine[name]; !known && (name == "python" || name == "libc") {
			continue // of a baseline that is older than this version's
		}
		if was != is {
			parts = append(parts, fmt.Sprintf("%s %q, here %q", strings.ReplaceAll(name, "_", " "), was, is))
		}
	}
	return strings.Join(parts, "; ")
}

// figures are the measurements of a run that a baseline holds, by name.
func figures(run *api.CheckRun) map[string]int64 {
	out := map[string]int64{}
	if p := run.Peak.HostBytes; p != nil {
		out["peak of the host's memory"] = *p
	}
	if p := run.Peak.DeviceBytes; p != nil {
		out["peak of the device's memory"] = *p
	}
	for _, f := range run.Findings {
		if e, ok := f.Evidence.(*finding.StepGrowthEvidence); ok && e.Unit == gate.Step && f.Severity != finding.Problem {
			out["level of the "+e.Metric+"'s memory at the end of a step"] += e.LevelBytes
		}
	}
	return out
}

// Compare adds to a run what differs from the baseline.
func (b *Baseline) Compare(run *api.CheckRun, machine map[string]string) {
	known := b.Runs[run.Name]
	switch why := b.differs(machine); {
	case why != "":
		run.Cannot("the baseline was measured on another machine: " + why + "; --update-baseline measures it again")
		return
	case known == nil:
		run.Cannot("the baseline has no run of this name; --update-baseline adds it")
		return
	}
	figures := figures(run)
	for _, name := range slices.Sorted(maps.Keys(known)) {
		bytes, ok := figures[name]
		if !ok {
			run.Cannot("the baseline holds the " + name + ", which this run did not measure")
			continue
		}
		f := known[name].Against("the "+name, bytes)
		if f == nil {
			continue
		}
		run.Findings = append([]finding.Finding{*f}, run.Findings...)
		if f.Severity == finding.Problem && run.Verdict != finding.Leaking {
			run.Verdict = finding.Over
		}
	}
}

// Update accepts what a run measured, and notes what that changes. A different machine
// starts a new baseline.
func (b *Baseline) Update(run *api.CheckRun, machine map[string]string) error {
	if run.Failed != "" || run.Verdict == finding.Leaking {
		return errors.New("the baseline is left as it is: a run that fails or leaks cannot be one")
	}
	if why := b.differs(machine); why != "" {
		if len(b.Runs) > 0 {
			run.Notes = append(run.Notes, "the baseline is a new one, since the old one was measured on another machine: "+why)
		}
		*b = *NewBaseline()
		b.Machine = machine
	}
	known := map[string]*gate.Measure{}
	measured := figures(run)
	for _, name := range slices.Sorted(maps.Keys(measured)) {
		was := b.Runs[run.Name][name]
		if was == nil {
			was = &gate.Measure{}
		}
		known[name] = was
		before := was.Bytes
		if was.Update(measured[name]) && before > 0 {
			run.Notes = append(run.Notes, fmt.Sprintf("the baseline accepts a new %s: %s, was %s", name, units.Bytes(was.Bytes), units.Bytes(before)))
		}
	}
	b.Runs[run.Name] = known
	return nil
}
