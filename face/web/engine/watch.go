package engine

import (
	"cmp"
	"context"
	"net/url"
	"strings"
	"sync"
	"time"

	"strandline/face/api"
	"strandline/face/api/page"
	"strandline/finding"
	"strandline/host/sampling/sample"
	"strandline/internal/sorts"
	"strandline/judge/samples"
)

const (
	// maxSubjects are in an answer, and maxKept of them are kept of those that have ended.
	maxSubjects, maxKept = 1000, 2000
	// brokenOff is how much longer than usual two samples are apart where the watch was not
	// running between them.
	brokenOff = 10
	// maxFits is how many findings have their curve in an answer.
	maxFits = 200
)

// A Watch answers the page of a recording of `strandline watch`: what each process,
// container and device held over time, and how that was judged. Samples can be added
// while it answers.
type Watch struct {
	path      string
	following bool

	mu       sync.Mutex
	judge    *samples.Watch
	subjects map[subjectID]*subject
	groups   map[string]*subject // the container of a control group
	mapped   map[sample.ID]*mapped
	load     *subject // nil if no engine was asked
	began    time.Time
	start    float64 // the time of the first sample
	last     float64
	usual    float64 // between two samples
	samples  int
	reading  bool
	partial  error
	note     string

	version  int
	changed  chan struct{} // closed when the version changes
	found    []samples.Found
	foundAt  int       // the version that the findings are of
	complete bool      // all series were judged by it
	due      time.Time // when all may be judged again
}

// NewWatch makes an engine of a recording without samples. following states that more will
// come when all was read.
func NewWatch(path string, following bool) *Watch {
	w := &Watch{path: path, following: following, changed: make(chan struct{})}
	w.Begin()
	return w
}

// Begin forgets all samples: they come again.
func (w *Watch) Begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge, w.subjects, w.groups = samples.New(), map[subjectID]*subject{}, map[string]*subject{}
	w.mapped, w.load = map[sample.ID]*mapped{}, nil
	w.samples, w.reading, w.partial = 0, true, nil
	w.change()
}

// Take adds a sample, which comes after those before it.
func (w *Watch) Take(s *sample.Sample) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.Over != nil { // the processes have ended
		w.judge.Add(s)
		w.change()
		return nil
	}
	gap := false
	if w.samples == 0 {
		w.began, w.start = s.Time, s.Seconds
	} else if d := s.Seconds - w.last; w.samples == 1 || w.usual == 0 {
		w.usual = d
	} else if gap = d > brokenOff*w.usual; !gap {
		w.usual += (d - w.usual) / 8
	}
	w.samples++
	w.last, w.note = s.Seconds, s.DevicesNote
	w.judge.Add(s)
	at := *s
	at.Seconds -= w.start
	w.processes(&at, gap)
	w.containers(&at, gap)
	w.devices(&at, gap)
	w.machine(&at, gap)
	w.mappings(&at, gap)
	w.engine(&at, gap)
	w.forget()
	w.change()
	return nil
}

// Unreadable notes why a part of the recording is left out.
func (w *Watch) Unreadable(why error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.partial = cmp.Or(w.partial, why)
}

// Partial is why a part of the recording was left out; nil if none was.
func (w *Watch) Partial() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.partial
}

// Rest states that all was read that is there.
func (w *Watch) Rest() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reading {
		w.reading = false
		w.change()
	}
}

// change makes those who wait look again.
func (w *Watch) change() {
	w.version++
	close(w.changed)
	w.changed = make(chan struct{})
}

// forget drops the smallest of the processes that have ended, where there are too many.
func (w *Watch) forget() {
	if len(w.subjects) <= 2*maxKept {
		return
	}
	var ended []*subject
	for _, s := range w.subjects {
		if s.seen != w.samples {
			ended = append(ended, s)
		}
	}
	sorts.By(ended, func(a, b *subject) int { return cmp.Compare(b.peak, a.peak) })
	for _, s := range ended[min(len(ended), maxKept):] {
		delete(w.subjects, s.id)
		delete(w.mapped, s.id.process)
	}
}

// Ask answers a question of the page.
func (w *Watch) Ask(ctx context.Context, name string, params url.Values) Answer {
	q := &question{ctx: ctx, q: params, used: map[string]bool{}}
	var doc any
	var err error
	switch name {
	case "watch":
		doc, err = w.whole(q)
	case "levels":
		doc, err = w.levels(q)
	default:
		err = absent("there is no request %q", name)
	}
	return q.reply(doc, err, false)
}

// levels is the course of a subject, or a part of it.
func (w *Watch) levels(q *question) (any, error) {
	const longest = 1 << 40 // seconds
	from, err := q.number("from", 0, 0, longest)
	if err != nil {
		return nil, err
	}
	to, err := q.number("to", longest, from, longest)
	if err != nil {
		return nil, err
	}
	key := q.text("s", "")
	w.mu.Lock()
	defer w.mu.Unlock()
	if s := w.named(key); s != nil {
		return s.levels(key, float64(from), float64(to)), nil
	}
	return nil, absent("there is no %q in this recording", key)
}

// named is what has a course under a key; nil if there is none.
func (w *Watch) named(key string) *subject {
	if w.load != nil && key == loadKey {
		return w.load
	}
	for _, s := range w.subjects {
		if s.key == key {
			return s
		}
	}
	for _, x := range w.mapped {
		if x.key == key {
			return &x.subject
		}
	}
	return nil
}

// whole is the recording but for its courses. With since it waits until there is more.
func (w *Watch) whole(q *question) (any, error) {
	since, err := q.number("since", -1, -1, 1<<62)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	version, changed := w.version, w.changed
	w.mu.Unlock()
	if int64(version) == since {
		select {
		case <-changed:
		case <-time.After(patience):
		case <-q.ctx.Done():
		}
	}
	return w.doc(), nil
}

// Weightiest are the keys of the courses of so many subjects, in the order in which these
// are listed, and of what is known beside them.
func (w *Watch) Weightiest(maxKeys int) (keys []string) {
	doc := w.doc()
	if doc.Load != nil {
		keys = append(keys, loadKey)
	}
	for _, s := range doc.Subjects[:min(maxKeys, len(doc.Subjects))] {
		keys = append(keys, s.Key)
		if s.Mappings != nil {
			keys = append(keys, *s.Mappings)
		}
	}
	return keys
}

func (w *Watch) doc() page.Watch {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judgeAll()
	doc := page.Watch{
		File: w.path, Version: w.version, Reading: w.reading, Following: w.following, Seconds: millis(w.last - w.start), Samples: w.samples,
		Note: w.note, Findings: []page.WatchFinding{}, Subjects: []page.Subject{},
	}
	if w.samples > 0 {
		doc.Began = w.began.UnixMicro()
	}
	if w.partial != nil {
		why := w.partial.Error()
		doc.Partial = &why
	}
	if w.load != nil {
		doc.Load = &page.WatchLoad{Engine: w.load.label, Key: loadKey, Note: w.load.facts[0][1]}
	}
	w.describe(&doc)
	return doc
}

// judgeAll judges the samples by now. While they are read, what was judged as they came
// has to do; while they come, judging all takes a small part of the time.
func (w *Watch) judgeAll() {
	const share, minPause = 30, 3 * time.Second
	switch began := time.Now(); {
	case w.foundAt == w.version && w.complete:
	case w.reading || began.Before(w.due):
		w.found, w.complete = w.judge.FoundSoFar(), false
	default:
		w.found, w.complete = w.judge.Found(), true
		w.due = time.Now().Add(max(minPause, share*time.Since(began)))
	}
	w.foundAt = w.version
}

// describe adds the findings and the subjects to an answer.
func (w *Watch) describe(doc *page.Watch) {
	worst := map[*subject]*samples.Found{}
	names := api.NamesOf(samples.Plain(w.found))
	for i := range w.found {
		f := &w.found[i]
		s, parts := w.subjectOf(f)
		d := page.WatchFinding{Finding: f.Finding, Card: api.NewCard(&f.Finding, names), Origins: []string{}, Parts: parts}
		if s != nil {
			d.Subject = &s.key
			if worst[s] == nil {
				worst[s] = f
			}
			if i < maxFits {
				d.Fit = w.fit(f)
			}
		}
		doc.Findings = append(doc.Findings, d)
	}
	doc.Verdict = samples.Verdict(samples.Plain(w.found), w.samples)
	doc.Card = api.Card{Word: strings.ToUpper(string(doc.Verdict)), Title: api.Watched(w.running(), doc.Seconds, w.samples)}
	if len(doc.Findings) > 0 && doc.Findings[0].Severity != finding.Info {
		doc.Card = doc.Findings[0].Card
	} else if doc.Verdict == finding.Unknown {
		doc.Card.Title = "too few samples to judge: " + doc.Card.Title
	}
	doc.LeftOut = max(len(doc.Findings)-maxFindings, 0)
	doc.Findings = doc.Findings[:len(doc.Findings)-doc.LeftOut]
	for _, s := range w.subjects {
		doc.Subjects = append(doc.Subjects, w.subjectDoc(s, worst[s]))
	}
	rank := func(s *page.Subject) int {
		if s.Severity == nil {
			return -1
		}
		return s.Severity.Rank()
	}
	sorts.By(doc.Subjects, func(a, b page.Subject) int {
		return cmp.Or(cmp.Compare(rank(&b), rank(&a)), cmp.Compare(b.Now, a.Now), cmp.Compare(b.Peak, a.Peak), cmp.Compare(a.Key, b.Key))
	})
	doc.Others = max(len(doc.Subjects)-maxSubjects, 0)
	doc.Subjects = doc.Subjects[:len(doc.Subjects)-doc.Others]
}

// running is how many processes the last sample has.
func (w *Watch) running() int {
	seen := map[sample.ID]bool{}
	for _, s := range w.subjects {
		if s.kind == "process" && s.seen == w.samples {
			seen[s.id.process] = true
		}
	}
	return len(seen)
}

func (w *Watch) subjectDoc(s *subject, worst *samples.Found) page.Subject {
	d := page.Subject{
		Key: s.key, Kind: s.kind, Label: s.label, Place: s.place, Facts: s.facts, First: millis(s.first), Last: millis(s.last),
		Ended: s.seen != w.samples, Now: s.now, Peak: s.peak, Limit: s.limit, Parts: []string{},
	}
	d.Split = s.split()
	if x := w.mapped[s.id.process]; x != nil && s.kind == "process" && s.id.device < 0 {
		d.Mappings = &x.key
	}
	w.total(s, &d)
	if worst != nil {
		d.Severity = &worst.Severity
		if words, left := worst.Words(); words != "" {
			d.Words, d.Left = words, left
		}
	}
	return d
}

// total adds the judgment of all that a device or a control group has in use.
func (w *Watch) total(s *subject, d *page.Subject) {
	device, group := s.id.device, ""
	switch {
	case s.kind == "device" && device >= 0:
	case s.kind == "container" && s.counted != "":
		group = s.counted
		d.Parts = []string{groupPart}
	default:
		return
	}
	c, until := w.judge.Total(device, group, !w.complete)
	if c == nil {
		return
	}
	d.Judged = c.Evidence("in use", s.limit)
	d.Fit = fitOf(c, d.Judged, until-w.start)
	d.Words, d.Left = samples.InWords(d.Judged)
}

// figureParts are the parts whose sum a figure is; of none it is the total.
var figureParts = map[string][]string{
	"anonymous": {anonymousPart}, "shared": {sharedPart}, "file": {filePart},
	"allocated": {allocatedPart}, "reserved": {allocatedPart, cachedPart}, "other": {otherPart},
}

// subjectOf is what a finding is drawn at, and the parts of it that were judged.
func (w *Watch) subjectOf(f *samples.Found) (s *subject, parts []string) {
	switch {
	case f.Process != (sample.ID{}):
		s = w.subjects[subjectID{process: f.Process, device: f.Device}]
		parts = figureParts[f.Figure]
	case f.Group != "":
		s, parts = w.groups[f.Group], []string{groupPart}
	case f.Device >= 0:
		s = w.subjects[subjectID{device: f.Device, group: "device"}]
	}
	if parts == nil {
		parts = []string{}
	}
	return s, parts
}

// fit is the curve of a finding: up to its last sample, and as far beyond as its limit or
// as long again.
func (w *Watch) fit(f *samples.Found) *page.Fit {
	e, ok := f.Evidence.(*finding.LevelsEvidence)
	if !ok || f.Course == nil {
		return nil
	}
	return fitOf(f.Course, e, f.Until-w.start)
}
