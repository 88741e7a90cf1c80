package samples

import (
	"fmt"
	"strings"

	"strandline/finding"
	"strandline/host/sampling/sample"
)

// An About is what a finding is about. What does not apply is nil or empty.
type About struct {
	Process *sample.Process
	Device  *sample.Device
	Group   string // the name of a control group
	Figure  string // which figure of it was judged, such as "allocated"
	Ended   bool   // the process has ended
}

const groupPrefix = "the control group "

// About returns what a finding that was made of the last sample is about.
func (w *Watch) About(f *finding.Finding) (a About) {
	if w.last == nil {
		return a
	}
	if f.Process != "" {
		a.Ended = true
		for i := range w.last.Processes {
			if p := &w.last.Processes[i]; name(p) == f.Process {
				a.Process, a.Ended = p, false
			}
		}
	}
	if f.Device != nil {
		for i := range w.last.Devices {
			if d := &w.last.Devices[i]; d.Index == *f.Device && a.Device == nil {
				a.Device = d
			}
		}
	}
	e, ok := f.Evidence.(*finding.LevelsEvidence)
	switch {
	case !ok:
	case f.Process != "" && f.Device != nil:
		a.Figure = strings.TrimPrefix(e.Column, fmt.Sprintf("device %d ", *f.Device))
	case f.Process != "":
		a.Figure = e.Column
	default:
		a.Group, _ = strings.CutPrefix(e.Column, groupPrefix)
		if a.Device != nil {
			a.Group = ""
		}
		a.Figure = string(used)
	}
	return a
}
