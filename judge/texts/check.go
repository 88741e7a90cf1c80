package texts

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"strandline/finding"
	"strandline/internal/lazyregexp"
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
	if !ok || e.Of != "device" {
		return
	}
	boundShares(f, e)
	if e.RequestBytes == nil {
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
	case "", shortage.OthersHold, shortage.Refused, shortage.Fragmented:
		e.Cause = shortage.TooBig
		f.Title = fmt.Sprintf("a request of %s failed: %s", units.Bytes(*e.RequestBytes), than)
		f.Confidence = max(f.Confidence, 0.9)
	}
	f.Remedies = slices.DeleteFunc(f.Remedies, func(r finding.Remedy) bool {
		return strings.Contains(r.Text, "other process") || strings.Contains(r.Setting, "GROWTH=")
	})
	f.Remedies = append([]finding.Remedy{finding.CodeChange("look at the shapes at this line: " + units.Bytes(*e.RequestBytes) + " at once is " + than + "; a mask, a batch or an input is larger than intended, or must be computed in parts")}, f.Remedies...)
}

// share is a fraction of a device in a setting or a sentence.
var share = lazyregexp.New(`(?i)((?:utilization|mem-fraction-static|fraction|cache_fraction)(?: of at most)?[ =]+)(0?\.\d+|1(?:\.0)?)\b`)

// boundShares lowers each share of the device that a remedy sets to what the program can have:
// what is free, and what it holds itself. A remedy whose share would be useless is left out.
func boundShares(f *finding.Finding, e *finding.OOMEvidence) {
	const useful = 0.3
	if e.DeviceFreeBytes == nil || e.CapacityBytes == nil || *e.CapacityBytes <= 0 {
		return
	}
	var own int64
	for _, n := range []*int64{e.ReservedBytes, e.ActiveBytes, e.ProcessBytes} {
		if n != nil {
			own = max(own, *n)
		}
	}
	most := min(math.Floor(float64(*e.DeviceFreeBytes+own)/float64(*e.CapacityBytes)*100)/100, 1)
	var kept []finding.Remedy
	for _, r := range f.Remedies {
		above := false
		lowered := func(text string) string {
			return share.ReplaceAllStringFunc(text, func(part string) string {
				m := share.FindStringSubmatch(part)
				if x, err := strconv.ParseFloat(m[2], 64); err != nil || x <= most {
					return part
				}
				above = true
				return m[1] + strconv.FormatFloat(most, 'f', 2, 64)
			})
		}
		if r.Setting, r.Text = lowered(r.Setting), lowered(r.Text); !above || most >= useful {
			kept = append(kept, r)
		}
	}
	if len(kept) > 0 {
		f.Remedies = kept
	}
}
