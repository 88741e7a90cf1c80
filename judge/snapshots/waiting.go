package snapshots

import (
	"fmt"
	"time"

	"strandline/finding"
	"strandline/torch/digest"
	"strandline/torch/timeline"
	"strandline/units"
)

// waiting finds memory that the program had freed but that was still waiting for another
// stream (record_stream, and collectives before PyTorch 2.8) when memory use was highest.
// Waiting at other times costs nothing: a batch in flight always waits.
func waiting(s *subject) []finding.Finding {
	p, device, d := s.process, s.device, s.newest
	w := &d.Waiting
	severity := severityOf(d.PeakRequested-w.Without, d.PeakRequested)
	if severity == "" {
		return nil
	}
	e := &finding.WaitingEvidence{
		WaitingBytes: w.Bytes, WaitingCount: w.Count, PeakWaitingBytes: w.Peak.Bytes,
		PeakBytes: d.PeakRequested, PeakWithoutBytes: w.Without,
	}
	f := finding.Finding{
		Kind: finding.Waiting, Severity: severity, Confidence: 1, Device: &device, Process: p.Name,
		Title: fmt.Sprintf("the peak of %s would be %s if freed memory had not waited for other streams", units.Bytes(d.PeakRequested), units.Bytes(w.Without)) +
			mostly(w.Sites),
		Basis: "the allocator records when a block is freed, and when other streams release it",
		Bytes: finding.Int(w.Bytes), Count: finding.Int(int64(w.Count)),
		Evidence: e,
	}
	f.Brief.Title = fmt.Sprintf("freed memory waits for other streams: without that, the peak of %s would be %s", units.Bytes(d.PeakRequested), units.Bytes(w.Without))
	addWaiting(&f, e, d)
	f.Remedies = []finding.Remedy{
		finding.CodeChange("replace record_stream: keep the tensor until its own stream has waited for the other (event.record(), stream.wait_event(), del)").
			Because("the memory can then be used again at once"),
		finding.CodeChange("synchronize once a step, where the wait is longest, so that the host does not run so far ahead"),
		finding.SettingChange("TORCH_NCCL_AVOID_RECORD_STREAMS=1",
			"let collectives record no streams (PyTorch before 2.8)").Because("later ones do not, and ignore the variable"),
	}
	return []finding.Finding{f}
}

// addWaiting states where the waiting memory was allocated, since when it waits, and how
// long.
func addWaiting(f *finding.Finding, e *finding.WaitingEvidence, d *digest.Device) {
	w := &d.Waiting
	say := func(format string, args ...any) { f.Detail = append(f.Detail, fmt.Sprintf(format, args...)) }
	if w.Peak.Event != timeline.Never {
		e.Event = &w.Peak.Event
		say("at most %s waited, at event %s of %s", units.Bytes(w.Peak.Bytes), units.Count(int64(w.Peak.Event)), units.Count(int64(d.Events)))
	}
	if w.Count > 0 {
		since := ""
		if w.Since != timeline.Never {
			e.WaitingSinceEvent = &w.Since
			since = ", the oldest since event " + units.Count(int64(w.Since))
		}
		say("at the end %s of %s wait%s", units.Plural(int64(w.Count), "block"), units.Bytes(w.Bytes), since)
	}
	if w.Frees > 0 && d.HasTime {
		mean := w.Total / int64(w.Frees)
		e.WaitedCount, e.MeanWaitUS, e.LongestWaitUS = &w.Frees, &mean, &w.Longest
		say("%s waited and completed, after %s on average and %s at most", units.Plural(int64(w.Frees), "free"), micros(mean), micros(w.Longest))
	}
	e.UnknownBytes = addSums(f, w.Sites)
}

func micros(n int64) string { return units.Duration(time.Duration(n) * time.Microsecond) }
