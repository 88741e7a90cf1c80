// Package pauses judges memory that was paused: what of a device stays behind, whether a
// resume will fit, and what keeps memory from being given back.
package pauses

import (
	"fmt"
	"slices"
	"strings"

	"strandline/finding"
	"strandline/internal/sorts"
	"strandline/pausable/state"
	"strandline/units"
)

// A Process is what is known of a process with pausable memory.
type Process struct {
	Name   string
	PID    int
	Status *state.Status
	// Stays are what was found of the processes of its job, beside what is judged here.
	Stays []finding.Finding
	// Seen are its devices, in any order; those of which nothing is known may be absent.
	Seen []Usage
	// Environ are its variables; nil if they cannot be read.
	Environ map[string]string
}

// Usage is what a process has of a device. Sizes are bytes, nil if unknown.
type Usage struct {
	Device    int    // as CUDA counts in the process
	Used      *int64 // by the driver's count
	Allocated *int64 // by PyTorch's tensors, also those that are paused
	Reserved  *int64 // by PyTorch's allocator, also what is paused
	Outside   *state.Outside
}

// Judge finds what is noteworthy now, the weightiest first.
func Judge(p *Process) []finding.Finding {
	out := []finding.Finding{}
	for i := range p.Status.Devices {
		d := &p.Status.Devices[i]
		if f, ok := p.residue(d); ok {
			out = append(out, f)
		}
		if f, ok := p.short(d); ok {
			out = append(out, f)
		}
		if f, ok := p.pools(d); ok {
			out = append(out, f)
		}
	}
	if f, ok := p.expandable(); ok {
		out = append(out, f)
	}
	sorts.StableBy(out, func(a, b finding.Finding) int { return b.Severity.Rank() - a.Severity.Rank() })
	return out
}

// minAdvised is too little to advise on.
const minAdvised = 64 << 20

func graphs() finding.Remedy {
	return finding.CodeChange("capture graphs within `torch_memory_saver.cuda_graph(…, tag=…)`, with the library preloaded; SGLang: `SGLANG_MEMORY_SAVER_CUDA_GRAPH=true`")
}

// pools are those of CUDA graphs that no pause reaches, where the residue does not state them.
func (p *Process) pools(d *state.Device) (f finding.Finding, ok bool) {
	i := slices.IndexFunc(p.Seen, func(s Usage) bool { return s.Device == d.Index })
	if i < 0 || p.Seen[i].Outside == nil || p.Seen[i].Outside.Pools < minAdvised || len(p.Status.Tags) == 0 || p.Status.Idle() && p.Seen[i].Used != nil {
		return f, false
	}
	n := p.Seen[i].Outside.Pools
	return finding.Finding{
		Kind: finding.Unpausable, Severity: finding.Warning, Confidence: 1, Device: &d.Index, Process: p.Name, Bytes: &n,
		Title: fmt.Sprintf("%s has %s of device %d in CUDA graph pools, or its own, outside regions: a pause leaves them", p.Name, units.Bytes(n), d.Index),
		Basis: "the segments of PyTorch's allocator, beside the library's blocks", Remedies: []finding.Remedy{graphs()},
	}, true
}

// usual is what a process has of a device whatever it does: its context and kernels.
const usual = 1 << 30

// residue is what a process still has of a device though all its tags are paused.
func (p *Process) residue(d *state.Device) (f finding.Finding, ok bool) {
	i := slices.IndexFunc(p.Seen, func(s Usage) bool { return s.Device == d.Index })
	if i < 0 || p.Seen[i].Used == nil || !p.Status.Idle() {
		return f, false
	}
	seen := &p.Seen[i]
	e := &finding.ResidueEvidence{UsedBytes: *seen.Used, PausedBytes: p.Status.Paused(d.Index), HeldBytes: p.Status.Held(d.Index)}
	rest := e.UsedBytes - e.HeldBytes
	f = finding.Finding{
		Kind: finding.Residue, Severity: finding.Info, Confidence: 1, Device: &d.Index, Process: p.Name, Bytes: &e.UsedBytes, Evidence: e,
		Title: fmt.Sprintf("%s holds %s of device %d while all its tags are paused", p.Name, units.Bytes(e.UsedBytes), d.Index),
		Basis: "the driver's count of the process",
	}
	// warn makes it a warning for what stays in a pool, unless a finding names that.
	warn := func(pool finding.Pool) {
		if !slices.ContainsFunc(p.Stays, func(f finding.Finding) bool {
			return f.Evidence.(*finding.StayEvidence).Explains(p.PID, d.Index, pool)
		}) {
			f.Severity = finding.Warning
		}
	}
	if e.HeldBytes > 0 {
		f.Severity = finding.Warning
		f.Detail = append(f.Detail, fmt.Sprintf("%s belong to paused tags: the driver refused to release them; the next pause tries again", units.Bytes(e.HeldBytes)))
	}
	if o := seen.Outside; o != nil {
		n := o.Total()
		e.PyTorchBytes, rest = &n, max(rest-n, 0)
		for i, part := range []struct {
			bytes  int64
			pool   finding.Pool
			name   string
			remedy finding.Remedy
		}{
			{o.Tensors + o.Split, finding.TensorPool, "tensors in no region, with the rest of their segments", finding.CodeChange("allocate memory that can leave the device within `torch_memory_saver.region(tag)`")},
			{o.Cache - o.Split, finding.CachePool, "PyTorch's cache, which no tensor uses", finding.CodeChange("before the pause: `torch.cuda.empty_cache()`")},
			{o.Pools, finding.GraphPool, "pools of CUDA graphs, or of the program's own", graphs()},
			{o.Expandable, "", "expandable segments", finding.Remedy{}}, // which have a finding
		} {
			if part.bytes > 0 {
				f.Detail = append(f.Detail, fmt.Sprintf("%s: %s", units.Bytes(part.bytes), part.name))
			}
			if part.bytes >= minAdvised && part.remedy.Text != "" {
				if i > 0 { // tensors may be meant to stay, as a trainer's
					warn(part.pool)
				}
				f.Remedies = append(f.Remedies, part.remedy)
			}
		}
	} else if seen.Reserved != nil {
		// What PyTorch still has: its figures count what is paused too.
		own := max(*seen.Reserved-e.PausedBytes-e.HeldBytes, 0)
		e.PyTorchBytes, rest = &own, max(rest-own, 0)
		if own > 0 {
			text := fmt.Sprintf("%s is in segments of PyTorch's allocator outside of regions", units.Bytes(own))
			if own >= minAdvised {
				warn(finding.DriverPool) // which is all of it where PyTorch's part is not told apart
				f.Remedies = append(f.Remedies,
					finding.CodeChange("before the pause: `torch.cuda.empty_cache()` gives segments back that no tensor uses"),
					finding.CodeChange("allocate memory that can leave the device within `torch_memory_saver.region(tag)`, and CUDA graphs within `torch_memory_saver.cuda_graph`. Preload the library"))
			}
			f.Detail = append(f.Detail, text)
		}
	}
	e.OtherBytes = rest
	if rest > 0 {
		f.Detail = append(f.Detail, units.Bytes(rest)+": the CUDA context, kernels, and driver memory of libraries such as NCCL and cuBLAS")
		if rest > usual && seen.Reserved != nil {
			warn(finding.DriverPool)
			f.Remedies = append(f.Remedies, finding.CodeChange("find its allocations: `strandline trace --gpu`; NCCL's buffers go with its process groups (`torch.distributed.destroy_process_group`)"))
		}
	}
	return f, true
}

// short is a resume that would not fit now.
func (p *Process) short(d *state.Device) (f finding.Finding, ok bool) {
	away := p.Status.Paused(d.Index)
	free := max(d.Free-p.Status.Margin, 0)
	if away <= free {
		return f, false
	}
	e := &finding.ResumeEvidence{AvailableBytes: free, NeededBytes: away}
	f = finding.Finding{
		Kind: finding.ResumeShort, Severity: finding.Info, Confidence: 1, Device: &d.Index, Process: p.Name, Bytes: finding.Int(away - free), Evidence: e,
		Title:  fmt.Sprintf("the paused memory of %s does not fit on device %d now: %s is needed and %s is free", p.Name, d.Index, units.Bytes(away), units.Bytes(free)),
		Detail: []string{"a resume of all is refused until others give memory back; tags that fit can be resumed one by one"},
		Basis:  "the driver's count of free memory",
	}
	return f, true
}

// expandable is memory, or a setting, with which PyTorch passes regions by.
func (p *Process) expandable() (f finding.Finding, ok bool) {
	off := "turn them off while regions are open: `torch.cuda.memory._set_allocator_settings(\"expandable_segments:False\")`"
	name, ok := Expandable(p.Environ)
	remedy := finding.CodeChange(off)
	if ok {
		remedy = finding.SettingChange(name+"="+withoutExpandable(p.Environ[name]), "start it without expandable_segments, or "+off)
	}
	var n int64
	for i := range p.Seen {
		if o := p.Seen[i].Outside; o != nil {
			n += o.Expandable
		}
	}
	if n > 0 {
		return finding.Finding{
			Kind: finding.Unpausable, Severity: finding.Warning, Confidence: 1, Process: p.Name, Bytes: &n,
			Title: fmt.Sprintf("%s has %s in expandable segments, which PyTorch takes past regions: a pause leaves them", p.Name, units.Bytes(n)),
			Basis: "the segments of PyTorch's allocator", Remedies: []finding.Remedy{remedy},
		}, true
	}
	if !ok {
		return f, false
	}
	return finding.Finding{
		Kind: finding.Unpausable, Severity: finding.Warning, Confidence: 0.9, Process: p.Name,
		Title:    fmt.Sprintf("%s has expandable_segments:True, with which PyTorch takes memory past regions", p.Name),
		Basis:    "the variable " + name + " of its environment; the program may have changed the setting since",
		Remedies: []finding.Remedy{remedy},
	}, true
}

// variables are those that set PyTorch's allocator, the newer name first.
var variables = []string{"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF"}

// Expandable returns the variable by which a process has expandable segments.
func Expandable(environ map[string]string) (name string, ok bool) {
	for _, name := range variables {
		for option := range strings.SplitSeq(environ[name], ",") {
			key, value, _ := strings.Cut(option, ":")
			if strings.TrimSpace(key) == "expandable_segments" && strings.EqualFold(strings.TrimSpace(value), "true") {
				return name, true
			}
		}
	}
	return "", false
}

// withoutExpandable is a setting of PyTorch's allocator without expandable segments.
func withoutExpandable(conf string) string {
	options := strings.Split(conf, ",")
	options = slices.DeleteFunc(options, func(o string) bool { return strings.HasPrefix(strings.TrimSpace(o), "expandable_segments") })
	return strings.Join(options, ",")
}
