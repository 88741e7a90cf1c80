package pauses

import (
	"fmt"
	"strings"
	"testing"

	"strandline/finding"
	"strandline/pausable/state"
)

// TestJudge judges states of a process.
func TestJudge(t *testing.T) {
	const gib = 1 << 30
	n := func(x int64) *int64 { return &x }
	status := func(held, free, margin int64) *state.Status {
		s := &state.Status{Devices: []state.Device{{Index: 0, Free: free, Total: 80 * gib}}, Margin: margin}
		tag := state.Tag{Name: "weights", Bytes: 10 * gib, Held: held, State: state.Active, Devices: []state.Share{{Device: 0, Bytes: 10 * gib, Held: held}}}
		if held < tag.Bytes {
			tag.State = state.Paused
		}
		s.Tags = []state.Tag{tag}
		return s
	}
	for _, c := range []struct {
		name    string
		process Process
		want    string // kinds and severities
		text    string // in the first
		remedy  string
	}{
		{"active", Process{Status: status(10*gib, gib, 0), Seen: []Usage{{0, n(12 * gib), n(0), n(10 * gib), nil}}}, "", "", ""},
		{"nothing of it known", Process{Status: status(0, 20*gib, 0)}, "", "", ""},
		{"only the context", Process{Status: status(0, 20*gib, 0), Seen: []Usage{{0, n(gib / 2), n(10 * gib), n(10 * gib), nil}}}, "residue info", "512 MiB: the CUDA context", ""},
		{"a cache", Process{Status: status(0, 20*gib, 0), Seen: []Usage{{0, n(4 * gib), n(10 * gib), n(13 * gib), nil}}}, "residue warning", "3 GiB is in segments of PyTorch's allocator", "empty_cache"},
		{"libraries", Process{Status: status(0, 20*gib, 0), Seen: []Usage{{0, n(4 * gib), n(10 * gib), n(10 * gib), nil}}}, "residue warning", "4 GiB: the CUDA context", "trace --gpu"},
		{"owners", Process{Status: status(0, 20*gib, 0), Seen: []Usage{{0, n(4 * gib), n(10 * gib), n(13 * gib), &state.Outside{Tensors: gib / 2, Cache: gib/2 + 1<<20, Split: gib / 2, Pools: gib}}}}, "residue warning",
			"1 GiB: tensors in no region, with the rest of their segments; 1 MiB: PyTorch's cache, which no tensor uses; 1 GiB: pools of CUDA graphs, or of the program's own; 2 GiB: the CUDA context", "cuda_graph"},
		{"tensors that may be meant", Process{Status: status(0, 20*gib, 0), Seen: []Usage{{Device: 0, Used: n(4 * gib), Outside: &state.Outside{Tensors: gib, Cache: gib, Split: gib}}}}, "residue info", "2 GiB: tensors in no region", "region(tag)"},
		{"a pool of a graph", Process{Status: status(10*gib, gib, 0), Seen: []Usage{{Device: 0, Outside: &state.Outside{Pools: gib}}}}, "unpausable warning", "", "cuda_graph"},
		{"a pool of a graph, and no count of the driver", Process{Status: status(0, 20*gib, 0), Seen: []Usage{{Device: 0, Outside: &state.Outside{Pools: gib}}}}, "unpausable warning", "", "cuda_graph"},
		{"a small pool", Process{Status: status(10*gib, gib, 0), Seen: []Usage{{Device: 0, Outside: &state.Outside{Pools: 2 << 20}}}}, "", "", ""},
		{"expandable segments", Process{Status: status(10*gib, gib, 0), Seen: []Usage{{Device: 0, Outside: &state.Outside{Expandable: 2 << 20}}}}, "unpausable warning", "", "expandable_segments:False"},
		{"no split", Process{Status: status(0, 20*gib, 0), Seen: []Usage{{Device: 0, Used: n(4 * gib)}}}, "residue info", "4 GiB: ", ""},
		{"not released", Process{Status: status(2*gib, 20*gib, 0), Seen: []Usage{{Device: 0, Used: n(3 * gib)}}}, "residue warning", "2 GiB belong to paused tags", ""},
		{"no room", Process{Status: status(0, 9*gib, 0)}, "resume-short info", "a resume of all is refused", ""},
		{"no room for the margin", Process{Status: status(0, 11*gib, 2*gib)}, "resume-short info", "", ""},
		{"room", Process{Status: status(0, 12*gib, 2*gib)}, "", "", ""},
		{"expandable", Process{Status: status(10*gib, gib, 0), Environ: map[string]string{"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:64, expandable_segments:TRUE"}},
			"unpausable warning", "", "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:64"},
		{"not expandable", Process{Status: status(10*gib, gib, 0), Environ: map[string]string{"PYTORCH_ALLOC_CONF": "expandable_segments:False"}}, "", "", ""},
	} {
		c.process.Name = "pid 7"
		var got []string
		out := Judge(&c.process)
		for _, f := range out {
			got = append(got, fmt.Sprintf("%s %s", f.Kind, f.Severity))
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %v", c.name, got)
			continue
		}
		if len(out) > 0 && !strings.Contains(strings.Join(out[0].Detail, "; "), c.text) {
			t.Errorf("%s: %q", c.name, out[0].Detail)
		}
		if remedies := fmt.Sprint(all(out)); !strings.Contains(remedies, c.remedy) {
			t.Errorf("%s: %s", c.name, remedies)
		}
	}
}

// TestNamed takes a residue for a note where a finding names the memory of this process on this device.
func TestNamed(t *testing.T) {
	const gib = 1 << 30
	used := int64(4 * gib)
	for _, c := range []struct {
		outside state.Outside
		pool    finding.Pool
		holder  finding.Holder
		want    finding.Severity
	}{
		{state.Outside{Cache: gib}, finding.CachePool, finding.Holder{PID: 7}, finding.Info},
		{state.Outside{Pools: gib}, finding.GraphPool, finding.Holder{PID: 7}, finding.Info},
		{state.Outside{Cache: gib}, finding.TagPool, finding.Holder{PID: 7}, finding.Warning},
		{state.Outside{Cache: gib, Pools: gib}, finding.CachePool, finding.Holder{PID: 7}, finding.Warning},
		{state.Outside{Cache: gib}, finding.CachePool, finding.Holder{PID: 8}, finding.Warning},
		{state.Outside{Cache: gib}, finding.CachePool, finding.Holder{Device: 1, PID: 7}, finding.Warning},
	} {
		p := &Process{Name: "process 7", PID: 7, Seen: []Usage{{Used: &used, Outside: &c.outside}},
			Status: &state.Status{Devices: []state.Device{{Free: 40 * gib, Total: 80 * gib}}, Tags: []state.Tag{{Name: "weights", Bytes: gib, State: state.Paused, Devices: []state.Share{{Bytes: gib}}}}},
			Stays:  []finding.Finding{{Evidence: &finding.StayEvidence{Pool: c.pool, Processes: []string{"rank 0"}, Holders: []finding.Holder{c.holder}}}},
		}
		if got := Judge(p); len(got) != 1 || got[0].Severity != c.want {
			t.Errorf("%+v beside %s of %+v: %+v", c.outside, c.pool, c.holder, got)
		}
	}
}

func all(out []finding.Finding) (texts []string) {
	for i := range out {
		for _, r := range out[i].Remedies {
			texts = append(texts, r.Setting, r.Text)
		}
	}
	return texts
}
