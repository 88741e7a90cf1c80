package trace

import (
	"time"

	"strandline/face/report"
	"strandline/host/store/recording"
)

// keep writes the current state to the recording, and a judgment too: every five seconds
// at first, then less and less often.
func (w *Session) keep() {
	w.keepHandOvers()
	if w.options.Out == nil {
		return
	}
	s, doc := w.sums, w.current()
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
	w.keepJudgment(doc)
}

// keepHandOvers writes which memory of devices changed hands since the last time.
func (w *Session) keepHandOvers() {
	if w.gpu == nil {
		return
	}
	handOvers := w.gpu.driver.HandOvers()
	for i := range handOvers {
		w.record(func(to *recording.Writer) error { return to.HandOver(&handOvers[i]) })
	}
}

// keepJudgment writes a judgment to the recording, if there is one.
func (w *Session) keepJudgment(doc *report.Trace) {
	w.keepHandOvers()
	w.record(func(to *recording.Writer) error {
		if w.gpu != nil {
			if err := to.GPU(w.gpu.state()); err != nil {
				return err
			}
		}
		return to.Document(&doc.Document)
	})
}

// record writes to the recording. If that fails, for example because the disk is full,
// the trace continues without it.
func (w *Session) record(write func(to *recording.Writer) error) {
	if w.options.Out == nil || w.lost != nil {
		return
	}
	if w.lost = write(w.options.Out); w.lost != nil {
		w.options.Warn("the recording ends here, but the trace continues: %v", w.lost)
	}
}
