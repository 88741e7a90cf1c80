package handovers

import (
	"slices"
	"strings"
	"testing"

	"strandline/host/store/recording"
	"strandline/pausable"
)

// traced is a trace of the process of a log, in which a library takes some memory before
// each step that the log has.
func traced(t *testing.T, name string, each int64) (*Check, error) {
	t.Helper()
	log := read(t, name)
	began := log.Steps[0].Began
	run := &recording.Run{Header: recording.Header{PID: log.PID, BeganUS: began.UnixMicro()}}
	for i, s := range log.Steps {
		if each == 0 { // traced without --gpu
			break
		}
		run.Samples = append(run.Samples, recording.Sample{Seconds: s.Ended.Sub(began).Seconds(), GPU: []recording.GPUOwner{
			{Owner: "NCCL", Memory: "device", LiveBytes: int64(i+1) * each, LiveCount: 1},
			{Owner: "NCCL", Memory: "pinned", LiveBytes: 1 << 30, LiveCount: 1},
			{Owner: pausable.Name, Memory: "device", LiveBytes: 1 << 30, LiveCount: 1},
		}})
	}
	return New(phases(t), log, 0, nil, run)
}

// TestLibraries names whose the memory is that is not PyTorch's, and whose grows.
func TestLibraries(t *testing.T) {
	c, err := traced(t, "../../examples/pausable/untidy.pausable", mib)
	if err != nil {
		t.Fatal(err)
	}
	least := &c.Behind.Least
	if len(least.Libraries) != 1 || least.Libraries[0].Name != "NCCL" || least.Unnamed()+least.Libraries[0].Bytes != least.Rest {
		t.Errorf("%+v, of %d", least.Libraries, least.Rest)
	}
	named := false
	for _, f := range c.Findings {
		named = named || slices.ContainsFunc(f.Detail, func(s string) bool { return strings.HasSuffix(s, ": NCCL's") })
	}
	if !named {
		t.Errorf("%+v", c.Findings)
	}
	if c, err := traced(t, "testdata/tidy.pausable", 0); err == nil {
		t.Errorf("a trace without the driver is taken: %+v", c.Behind)
	}
}

// TestOtherTrace refuses the trace of another process.
func TestOtherTrace(t *testing.T) {
	log := read(t, "testdata/tidy.pausable")
	_, err := New(phases(t), log, 0, nil, &recording.Run{Header: recording.Header{PID: log.PID + 1}})
	if err == nil || !strings.Contains(err.Error(), "the trace is of process") {
		t.Error(err)
	}
}
