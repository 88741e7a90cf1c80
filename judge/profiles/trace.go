package profiles

import (
	"fmt"
	"slices"
	"strings"

	"strandline/finding"
	"strandline/judge/trend"
	"strandline/profiles"
	"strandline/units"
)

// steps judges what a trace keeps from one step to the next, by device.
func steps(f *profiles.File) (out []finding.Finding) {
	n := len(f.Marks)
	if n <= enough {
		return nil
	}
	pops := map[string]*trend.Population{}
	var devices []string
	for _, s := range f.Spans {
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
			out = append(out, kept(device, pop, v))
		}
	}
	return out
}

// kept is the finding of memory of a device that stays from step to step.
func kept(device string, pop *trend.Population, v trend.Verdict) finding.Finding {
	n := pop.Marks() - 1
	bytes, count := pop.Final[n], pop.Count[n]
	rate := (bytes - pop.Final[0]) / int64(n)
	f := finding.Finding{
		Kind: finding.Leak, Severity: finding.Problem, Confidence: v.Confidence, Basis: v.Basis(), Device: index(device),
		Title: fmt.Sprintf("memory of %s is kept from step to step: %s in %s, %s more a step", device, units.Bytes(bytes), units.Plural(count, "allocation"), units.Bytes(rate)),
		Bytes: &bytes, Count: &count, BytesPerStep: &rate, Trend: pop.Final, Evidence: evidence(pop, v),
		Remedies: []finding.Remedy{finding.CodeChange("record a snapshot of PyTorch's allocator (torch.cuda.memory._record_memory_history, then _dump_snapshot): this trace does not tell which line keeps it, a snapshot does")},
	}
	if f.Confidence < surely {
		f.Severity, f.Title = finding.Warning, "maybe a leak: "+f.Title
	}
	return f
}

// failed is the finding of calls of the driver that returned an error of memory.
func failed(f *profiles.File) (out finding.Finding, ok bool) {
	if len(f.Failed) == 0 {
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
		Detail:   []string{"what was asked for is not in the file: a call that failed is no memory event"},
		Evidence: &finding.OOMEvidence{Of: of, Source: "cuda-driver", FailedCalls: len(f.Failed)},
		Remedies: []finding.Remedy{finding.CodeChange("allocate less at once, or free what is not used any more before this call; the levels of this file say what lived")},
	}
	if of == "host" {
		out.Title = fmt.Sprintf("pinned memory of the host ran out: %s returned %d (out of memory)%s", c.Name, c.Status, repeated(c.Count))
		out.Remedies = []finding.Remedy{finding.CodeChange("pin less of the host's memory at once (smaller staging buffers, used again); `ulimit -l` and the limit of the container bound it, not the GPU")}
	}
	for _, other := range f.Failed[1:] {
		out.Detail = append(out.Detail, fmt.Sprintf("%s returned %d too%s", other.Name, other.Status, repeated(other.Count)))
	}
	return out, true
}

func repeated(n int64) string {
	if n == 1 {
		return ""
	}
	return fmt.Sprintf(", %s times", units.Count(n))
}
