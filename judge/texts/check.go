package texts

import (
	"fmt"
	"slices"
	"strings"

	"strandline/finding"
	"strandline/judge/shortage"
	"strandline/logs/failure"
	"strandline/units"
)

// maxDevice is more bytes than any device has.
const maxDevice = 512 << 30

// check holds the cause and the remedies of a failure against its figures, in whatever words
// these were stated.
func (t *Statement) check(f *finding.Finding) {
	if t.Hints[failure.HintJetson] > 0 {
		f.Detail = append(f.Detail, "this is a Jetson: its GPU shares the host's memory, and `sudo tegrastats` shows both")
		for i := range f.Remedies { // there is no nvidia-smi, and the GPU's memory is the host's
			if r := &f.Remedies[i]; r.Setting == shortage.ListProcesses {
				r.Setting, r.Text = "sudo tegrastats", "look for other programs: the GPU shares the host's memory (free -h shows it; drop_caches returns the page cache)"
			}
		}
	}
	e, ok := f.Evidence.(*finding.OOMEvidence)
	if !ok || e.Of != "device" || e.RequestBytes == nil {
		return
	}
	whole := int64(maxDevice)
	if e.CapacityBytes != nil {
		whole = *e.CapacityBytes
	}
	const minAbsurd = 1 << 60
	if *e.RequestBytes <= whole || *e.RequestBytes >= minAbsurd {
		return
	}
	than := "more than any device has"
	if e.CapacityBytes != nil {
		than = fmt.Sprintf("more than the whole device, %s", units.Bytes(whole))
	}
	switch e.Cause {
	case "", causeOutside, causeRefused, causeFragmented:
		e.Cause = causeTooBig
		f.Title = fmt.Sprintf("a request of %s failed: %s", units.Bytes(*e.RequestBytes), than)
		f.Confidence = max(f.Confidence, 0.9)
	}
	f.Remedies = slices.DeleteFunc(f.Remedies, func(r finding.Remedy) bool {
		return strings.Contains(r.Text, "other process") || strings.Contains(r.Setting, "GROWTH=")
	})
	f.Remedies = append([]finding.Remedy{finding.CodeChange("look at the shapes at this line: " + units.Bytes(*e.RequestBytes) + " at once is " + than + "; a mask, a batch or an input is larger than intended, or must be computed in parts")}, f.Remedies...)
}
