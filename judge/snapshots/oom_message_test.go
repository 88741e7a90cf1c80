package snapshots

import (
	"strings"
	"testing"

	"strandline/finding"
	"strandline/judge/shortage"
	"strandline/judge/texts"
	"strandline/judge/verdict"
	"strandline/logs"
	"strandline/torch/digest"
)

// textAlone judges a text without a snapshot.
func textAlone(t *testing.T, text string, capacity *int64) finding.Finding {
	t.Helper()
	printed := []*logs.Process{textFile(t, "job.log", text)}
	a := texts.Judge(printed, texts.Statements(printed), texts.Options{Capacity: capacity})
	if len(a.Findings) != 1 || verdict.Of(a.Judged, false, a.Findings) != finding.RanOut {
		t.Fatalf("%s: %d findings", text, len(a.Findings))
	}
	return a.Findings[0]
}

func TestSizeThatWasGiven(t *testing.T) {
	const unused = "given with --capacity are not used"
	for _, c := range []struct {
		text     string
		capacity int64
		outside  *int64
		detail   string // "": it is not mentioned
	}{
		{messageOfW20, 2 << 30, size(1258291200), ""},
		{messageOfW20, 2<<30 + 1<<20, size(1258291200), ""},
		{messageOfW20, 80 << 30, size(1258291200), "the message names a device of 2 GiB: the 80 GiB " + unused},
		{strings.Replace(messageOfW20, "a total capacity of 2.00 GiB of which", "of which", 1), 3 << 30, size(1258291200 + 1<<30), ""},
		{strings.Replace(messageOfW20, "a total capacity of 2.00 GiB of which", "of which", 1), 512 << 20, nil, "the device cannot have 512 MiB"},
	} {
		f := textAlone(t, c.text, &c.capacity)
		text := strings.Join(f.Detail, "\n")
		e := f.Evidence.(*finding.OOMEvidence)
		if (c.outside == nil) != (e.OutsideBytes == nil) || c.outside != nil && *e.OutsideBytes != *c.outside || !strings.Contains(text, c.detail) || c.detail == "" && (strings.Contains(text, unused) || strings.Contains(text, "cannot have")) {
			t.Errorf("%d: %v outside\n%s", c.capacity, shortage.Amount(e.OutsideBytes), text)
		}
	}
	_, f := answer(t, "w20_driver_growth.full.oom.pickle", Options{Capacity: size(80 << 30)}, textFile(t, "job.log", messageOfW20))
	if text := strings.Join(f.Detail, "\n"); !strings.Contains(text, "the message names a device of 2 GiB: the 80 GiB "+unused) || !is(f.Evidence.(*finding.OOMEvidence).CapacityBytes, 2<<30) {
		t.Errorf("%+v\n%s", f.Evidence, text)
	}
}

// TestMessagesBesideASnapshot pairs those of its failure, wherever they are, and
// judges the others separately.
func TestMessagesBesideASnapshot(t *testing.T) {
	other := strings.Replace(messageOfW20, "1024.00 MiB", "64.00 MiB", 1) + "\n"
	a, f := answer(t, "w20_driver_growth.full.oom.pickle", Options{}, textFile(t, "job.log", other+messageOfW20+"\n"+messageOfW20+"\n"+other))
	if e := f.Evidence.(*finding.OOMEvidence); e.MessageFile != "job.log" || e.Line != 3 || e.Cause != shortage.OthersHold {
		t.Errorf("%+v", e)
	}
	if text := strings.Join(f.Detail, "\n"); !strings.Contains(text, "the message on line 3 of job.log, the last of 2, describes the same failure") {
		t.Error(text)
	}
	if a.Problems() != 2 || a.Findings[1].Evidence.(*finding.OOMEvidence).Line != 4 || !strings.Contains(strings.Join(a.Findings[1].Detail, "\n"), "the last of 2 such messages") {
		t.Errorf("%d problems: %v", a.Problems(), a.Findings[1])
	}
	// Of a text of several ranks it is those of the snapshot's own.
	text := texts.Statements([]*logs.Process{textFile(t, "job.log", "[rank0]: "+messageOfW20+"\n[rank1]: "+messageOfW20)})[0]
	failure := &digest.OOM{Request: 1 << 30, DeviceFree: 782 << 20}
	failure.Known.Request, failure.Known.DeviceFree = true, true
	for _, c := range []struct {
		process string
		line    int64
		count   int
	}{{"rank1", 2, 1}, {"rank2", 0, 0}, {"rank0", 1, 1}, {"", 0, 0}} {
		m, count := messagesOf(text, failure, c.process, 0)
		if count != c.count || count > 0 && m.Line != c.line {
			t.Errorf("%s: %d messages, %+v", c.process, count, m)
		}
	}
	// Of one that is cut off behind the request, that is enough.
	a, f = answer(t, "w20_driver_growth.full.oom.pickle", Options{}, textFile(t, "job.log", messageOfW20[:60]))
	if f.Evidence.(*finding.OOMEvidence).MessageFile != "job.log" || a.Problems() != 1 {
		t.Errorf("%v, %d problems", f.Evidence, a.Problems())
	}
}
