package detect

import (
	"fmt"
	"math"
	"strings"

	"strandline/compare"
	"strandline/finding"
	"strandline/logs"
	"strandline/timeline"
	"strandline/units"
)

// DumpAtFailure is how to get a snapshot of the moment at which memory runs out.
const DumpAtFailure = `torch.cuda.memory._record_memory_history(max_entries=1_000_000)  # first thing
torch._C._cuda_attach_out_of_memory_observer(
    lambda *_: torch.cuda.memory._dump_snapshot("oom.pickle"))`

// A statement is the last out-of-memory error that a text holds.
type statement struct {
	*logs.Found
	file, process string
	same          bool // a snapshot tells of the same failure
}

// statements are those of the files that are text.
func statements(processes []*compare.Process) (out []*statement) {
	for _, p := range processes {
		for _, f := range p.Files {
			if f.Said != nil && f.Said.OOM.Last != nil {
				out = append(out, &statement{Found: &f.Said.OOM, file: f.Name, process: p.Name})
			}
		}
	}
	return out
}

// of tells whether the statement is of a failure that a snapshot tells of: on
// that device, with as many bytes free, as far as they are printed.
func (t *statement) of(o *compare.OOM, device int) bool {
	m := t.Last
	if m.Free == nil || m.Request == nil || !o.Known.DeviceFree || !o.Known.Request || m.Device != nil && *m.Device != device {
		return false
	}
	const rounding = 0.01
	off := func(a, b int64) bool { return math.Abs(float64(a-b)) > rounding*float64(max(a, b)) }
	return !off(*m.Free, o.DeviceFree) && !off(*m.Request, timeline.DriverSize(o.Request, o.Expandable))
}

// judge judges the failure by the figures of the message alone.
func (t *statement) judge(known Options) []finding.Finding {
	if t.same {
		return nil
	}
	o, capacity := t.Last, known.Capacity
	if o.Total != nil {
		capacity = o.Total
	}
	s := &shortage{request: o.Request, driver: o.Request, free: o.Free, reserved: o.Reserved, active: o.Allocated, capacity: capacity}
	f := finding.Finding{
		Kind: finding.OutOfMemory, Severity: finding.Problem, Confidence: 1, Device: o.Device, Process: t.process,
		Basis:    "PyTorch's own figures, rounded as it prints them",
		Title:    s.title(),
		Evidence: map[string]any{"file": t.file, "line": o.Line, "messages": t.Count},
	}
	if n := s.outside(); n != nil && *n < 0 {
		s.capacity = nil
	}
	s.evidence(f.Evidence)
	for name, n := range map[string]*int64{
		"limit_bytes": o.Allowed, "private_bytes": o.Private, "process_bytes": o.InUse, "unallocated_bytes": o.Unallocated,
	} {
		if n != nil {
			f.Evidence[name] = *n
		}
	}
	if s.cause() == "" {
		f.Confidence = 0.5
		f.Detail = append(f.Detail, "the message is cut off: it does not hold the figures that tell why")
	}
	tellMessage(&f, s, o, t.Count)
	f.Remedies = append(append(saidRemedies(s, o), s.besides()...), finding.Remedy{Kind: "code", Setting: DumpAtFailure,
		Text: "the message does not say who holds the memory; a snapshot of that moment does, and strandline diagnose reads it"})
	return []finding.Finding{f}
}

// tellMessage says what the message states beside its title.
func tellMessage(f *finding.Finding, s *shortage, o *logs.OOM, messages int) {
	say := func(format string, args ...any) { f.Detail = append(f.Detail, fmt.Sprintf(format, args...)) }
	var known []string
	for _, x := range []struct {
		n    *int64
		what string
	}{
		{o.Total, "on the device"}, {o.Free, "free there"}, {o.Reserved, "reserved by PyTorch"}, {o.Allocated, "of it in use"},
		{o.Private, "of that in private pools"}, {o.Allowed, "allowed to this process"}, {o.InUse, "held by this process in all"},
	} {
		if x.n != nil {
			known = append(known, units.Bytes(*x.n)+" "+x.what)
		}
	}
	if len(known) > 0 {
		say("the message on line %s states: %s", units.Count(o.Line), strings.Join(known, ", "))
	}
	if n := s.outside(); n != nil {
		say("%s of the device was held outside PyTorch's allocator: the context, other libraries, other processes", units.Bytes(*n))
	}
	for _, p := range o.Processes {
		say("process %d holds %s (in a container this can be the program itself)", p.PID, units.Bytes(p.Bytes))
	}
	if s.cause() == causeLimit && o.Allowed == nil && o.Allocated != nil {
		say("the message names no limit that PyTorch was given: a quota of the driver (MIG, vGPU, WSL), or memory that came free right after the failure")
	}
	if messages > 1 {
		say("it is the last of %d such messages in this text", messages)
	}
}

// saidRemedies are those for a cause. The release of PyTorch is not known, but
// for the wording, and the backend has a variable of its own.
func saidRemedies(s *shortage, o *logs.OOM) []finding.Remedy {
	switch s.cause() {
	case causeLimit:
		return raiseLimit()
	case causeOutside:
		return findOthers()
	case causeFragmented:
		if o.Old {
			return []finding.Remedy{{Kind: "setting", Setting: "PYTORCH_CUDA_ALLOC_CONF=max_split_size_mb:128",
				Text: "keep large free blocks whole; better: PyTorch 2.1 or newer, and expandable_segments:True"}}
		}
		r := expandable("", nil)[0]
		if o.Backend == "HIP" {
			r.Setting = strings.Replace(r.Setting, "CUDA", "HIP", 1)
		}
		return []finding.Remedy{r}
	}
	return needLess()
}
