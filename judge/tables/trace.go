package tables

import (
	"fmt"
	"slices"
	"strings"

	"strandline/finding"
	"strandline/profiles"
	"strandline/stack"
	"strandline/trend"
	"strandline/units"
)

// steps judges what a trace keeps from one step to the next, by device.
func steps(f *profiles.File) (out []finding.Finding) {
	n := len(f.Checkpoints)
	if n <= minMoments {
		return nil
	}
	spans := f.Spans
	pops := map[string]*trend.Population{}
	var devices []string
	for _, s := range spans {
		if pops[s.Device] == nil {
			pops[s.Device] = trend.NewPopulation(n)
			devices = append(devices, s.Device)
		}
		pops[s.Device].Add(trend.Span{First: s.Born, Last: s.Died - 1, Bytes: s.Bytes})
	}
	slices.Sort(devices)
	for _, device := range devices {
		pop := pops[device]
		if v := trend.Judge(pop, trend.Past{}); v.Class == trend.Leak {
			f := keptFinding(device, pop, v)
			blame(&f, device, n, spans)
			out = append(out, f)
		}
	}
	return out
}

// blame names the place that made most of what a device keeps from its steps, if the
// trace shows it.
func blame(f *finding.Finding, device string, marks int, spans []profiles.Span) {
	sums := map[stack.Frame]int64{}
	var all, most int64
	for _, s := range spans {
		if s.Device != device || s.Died < marks || s.Born == 0 || s.Born == marks {
			continue
		}
		all = units.Sum(all, s.Bytes)
		place := placeOf(s.Stack)
		if sums[place] = units.Sum(sums[place], s.Bytes); place == (stack.Frame{}) || sums[place] <= most {
			continue
		}
		most = sums[place]
		site := finding.Site(place)
		f.Site, f.Stack = &site, nil
		for _, x := range s.Stack {
			f.Stack = append(f.Stack, finding.Frame(x))
		}
	}
	if f.Site != nil {
		f.Detail = append(f.Detail, fmt.Sprintf("%s of the %s that steps left are allocated at %s", units.Bytes(most), units.Bytes(all), at(*f.Site)))
	}
}

// keptFinding is the finding of device memory that stays from step to step.
func keptFinding(device string, pop *trend.Population, v trend.Verdict) finding.Finding {
	n := pop.Checkpoints() - 1
	bytes, count := pop.Final[n], pop.Count[n]
	rate := (bytes - pop.Final[0]) / int64(n)
	f := finding.Finding{
		Kind: finding.Leak, Severity: finding.Problem, Confidence: v.Confidence, Basis: v.Basis(), Device: index(device),
		Title: fmt.Sprintf("memory of %s is kept from step to step: %s in %s, %s more each step", device, units.Bytes(bytes), units.Plural(count, "allocation"), units.Bytes(rate)),
		Bytes: &bytes, Count: &count, BytesPerStep: &rate, Trend: pop.Final, Evidence: evidence(pop, v),
		Remedies: []finding.Remedy{finding.CodeChange("record a snapshot: strandline record -- python TRAIN.py. A trace does not show the line that keeps it, a snapshot does")},
	}
	if f.Confidence < problemConfidence {
		f.Severity, f.Title = finding.Warning, "maybe a leak: "+f.Title
	}
	return f
}

// outOfMemory is what calls of CUDA return when memory ran out.
const outOfMemory = 2

// failed is the finding of driver calls that returned an out-of-memory error.
func failed(f *profiles.File) (out finding.Finding, ok bool) {
	if len(f.Failed) == 0 || f.Failed[0].Status != outOfMemory {
		return out, false
	}
	c := f.Failed[0]
	of := "device"
	for _, part := range []string{"Host", "Pinned"} {
		if strings.Contains(c.Name, part) {
			of = "host"
		}
	}
	out = finding.Finding{
		Kind: finding.OutOfMemory, Severity: finding.Problem, Confidence: 1, Count: &c.Count,
		Basis:    "the value that the call returned, as it was recorded",
		Title:    fmt.Sprintf("memory of the device ran out: %s returned %d (out of memory)%s", c.Name, c.Status, repeated(c.Count)),
		Detail:   []string{"the size requested is not in the file: a failed call is not a memory event"},
		Evidence: &finding.OOMEvidence{Of: of, Source: "cuda-driver", FailedCalls: len(f.Failed)},
		Remedies: []finding.Remedy{finding.CodeChange("allocate less at once, or free more before this call. The levels in this file show the live memory")},
	}
	if of == "host" {
		out.Title = fmt.Sprintf("pinned memory of the host ran out: %s returned %d (out of memory)%s", c.Name, c.Status, repeated(c.Count))
		out.Remedies = []finding.Remedy{finding.CodeChange("pin less of the host's memory at once (smaller, reused staging buffers). It is limited by `ulimit -l` and the container, not by the GPU")}
	}
	for _, other := range f.Failed[1:] {
		out.Detail = append(out.Detail, fmt.Sprintf("%s also returned %d%s", other.Name, other.Status, repeated(other.Count)))
	}
	return out, true
}

func repeated(n int64) string {
	if n == 1 {
		return ""
	}
	return fmt.Sprintf(", %s times", units.Count(n))
}
