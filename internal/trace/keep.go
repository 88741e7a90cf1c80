package trace

import (
	"time"

	"strandline/face/report"
	"strandline/host/recording"
)

// keep writes how things stand to the recording, and a judgement at first every
// five seconds and then ever more seldom.
func (w *Session) keep() {
	if w.options.Out == nil {
		return
	}
	s, doc := w.sums, w.document(nil)
	w.record(func(to *recording.Writer) error {
		mark := recording.Sample{Seconds: doc.Duration, RSS: s.RSS, Anonymous: s.Anon, File: s.File, Shared: s.Shared, Drops: doc.Drops}
		if doc.GPU != nil {
			mark.GPU = doc.GPU.Owners
		}
		return to.Sample(mark, doc.Stacks)
	})
	const often, grows = 5 * time.Second, 4
	since := time.Since(w.began)
	if since < often || !w.judged.IsZero() && time.Since(w.judged) < max(often, since/grows) {
		return
	}
	w.judged = time.Now()
	w.keepJudgement(doc)
}

// keepJudgement writes a judgement to the recording, if there is one.
func (w *Session) keepJudgement(doc *report.Trace) {
	w.record(func(to *recording.Writer) error {
		if w.gpu != nil {
			if err := to.GPU(w.gpu.state()); err != nil {
				return err
			}
		}
		return to.Document(&doc.Document)
	})
}

// record writes to the recording. Where that fails, as on a full disk, the trace
// goes on without it.
func (w *Session) record(write func(to *recording.Writer) error) {
	if w.options.Out == nil || w.lost != nil {
		return
	}
	if w.lost = write(w.options.Out); w.lost != nil {
		w.options.Warn("the recording ends here, the trace goes on: %v", w.lost)
	}
}
