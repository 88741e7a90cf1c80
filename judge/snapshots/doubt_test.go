package snapshots

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"strandline/finding"
	"strandline/judge/shortage"
)

// TestImpossible judges files that lack figures or hold some that cannot be: what
// is not known is not stated, and the error is quoted.
func TestImpossible(t *testing.T) {
	const (
		frames  = `"frames": [{"filename": "train.py", "line": 3, "name": "step"}], "stream": 0`
		segment = `{"device": 0, "address": 1048576, "total_size": 20971520, "allocated_size": 10485760, "active_size": 10485760,
			"requested_size": 10485760, "stream": 0, "segment_type": "large", "segment_pool_id": [0, 0], "is_expandable": false, "frames": []`
		blocks = `, "blocks": [{"address": 1048576, "size": 10485760, "requested_size": 10485760, "state": "active_allocated", "frames": []},
			{"address": 11534336, "size": 10485760, "requested_size": 0, "state": "inactive", "frames": []}]`
		taken  = `{"action": "segment_alloc", "addr": 1048576, "size": 20971520, ` + frames + `}`
		alloc  = `{"action": "alloc", "addr": 1048576, "size": %s, ` + frames + `}`
		failed = `{"action": "oom", %s%s` + frames + `}`
	)
	for _, c := range []struct {
		name, segments, alloc, free, request string
		cause                                string
		missing                              func(e *finding.OOMEvidence) []*int64 // figures that are unknown then
		quoted                               string
	}{
		{"a good one", segment + blocks + "}", "10485760", `"device_free": 4194304, `, `"size": 13631488, `, shortage.Fragmented, nil, ""},
		{"no segments", "", "10485760", `"device_free": 4194304, `, `"size": 13631488, `, "", func(e *finding.OOMEvidence) []*int64 { return []*int64{e.ReservedBytes, e.ActiveBytes} }, "more from the driver"},
		{"no blocks", segment + "}", "10485760", `"device_free": 4194304, `, `"size": 13631488, `, "", func(e *finding.OOMEvidence) []*int64 { return []*int64{e.ActiveBytes, e.LargestFreeBytes} }, "neither freed"},
		{"no device_free", segment + blocks + "}", "10485760", "", `"size": 13631488, `, "", func(e *finding.OOMEvidence) []*int64 { return []*int64{e.DeviceFreeBytes} }, ""},
		{"no size", segment + blocks + "}", "10485760", `"device_free": 4194304, `, "", "", func(e *finding.OOMEvidence) []*int64 { return []*int64{e.RequestBytes, e.LargestFreeBytes} }, ""},
		{"a negative size", segment + blocks + "}", "-10485760", `"device_free": 4194304, `, `"size": 13631488, `, shortage.Fragmented, nil, "below zero"},
		{"a size of 2^62", segment + blocks + "}", "4611686018427387904", `"device_free": 4194304, `, `"size": 13631488, `, shortage.Fragmented, nil, "larger than any memory"},
		{"a segment of 2^62", strings.Replace(segment, "20971520", "4611686018427387904", 1) + blocks + "}", "10485760", `"device_free": 4194304, `, `"size": 13631488, `,
			"", func(e *finding.OOMEvidence) []*int64 { return []*int64{e.ReservedBytes, e.ActiveBytes} }, "larger than any memory"},
		{"more free than there can be", segment + blocks + "}", "10485760", `"device_free": 4611686018427387904, `, `"size": 13631488, `, "", func(e *finding.OOMEvidence) []*int64 { return []*int64{e.DeviceFreeBytes} }, ""},
		{"less free than nothing", segment + blocks + "}", "10485760", `"device_free": -7, `, `"size": 13631488, `, "", func(e *finding.OOMEvidence) []*int64 { return []*int64{e.DeviceFreeBytes} }, ""},
	} {
		text := fmt.Sprintf(`{"segments": [%s], "device_traces": [[%s, %s, %s]]}`, c.segments, taken, fmt.Sprintf(alloc, c.alloc), fmt.Sprintf(failed, c.free, c.request))
		file := filepath.Join(t.TempDir(), "oom.json")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, f := range judge(t, file).Findings {
			detail := strings.Join(f.Detail, "\n")
			for _, line := range append(f.Detail, f.Title) {
				if strings.Contains(line, "TiB") || strings.Contains(strings.ReplaceAll(line, "-4", ""), " -") && !strings.Contains(line, "contradicts") {
					t.Errorf("%s: %s", c.name, line)
				}
			}
			if f.Kind == finding.History {
				continue
			}
			if quoted := strings.Contains(detail, "contradicts itself"); quoted != (c.quoted != "") || quoted && f.Confidence > 0.5 {
				t.Errorf("%s: %s, %v sure: %s", c.name, f.Kind, f.Confidence, detail)
			}
			if !strings.Contains(detail, c.quoted) {
				t.Errorf("%s: %s does not say %q: %s", c.name, f.Kind, c.quoted, detail)
			}
			if f.Kind != finding.OutOfMemory {
				continue
			}
			e := f.Evidence.(*finding.OOMEvidence)
			if e.Cause != c.cause || c.cause == "" && f.Confidence > 0.5 {
				t.Errorf("%s: cause %q, want %q, %v sure", c.name, e.Cause, c.cause, f.Confidence)
			}
			if c.missing == nil {
				continue
			}
			for i, n := range c.missing(e) {
				if n != nil {
					t.Errorf("%s: figure %d is %d", c.name, i, *n)
				}
			}
		}
	}
}
