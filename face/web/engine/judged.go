package engine

import (
	"cmp"
	"slices"
	"sort"
	"strconv"

	"strandline/face/api"
	"strandline/face/api/page"
	"strandline/finding"
	"strandline/internal/sorts"
	"strandline/stack"
	"strandline/torch/compare"
	"strandline/torch/digest"
	"strandline/torch/tile"
)

func sortBy[T any, N cmp.Ordered](list []T, by func(*T) N) {
	sorts.StableBy(list, func(a, b T) int { return cmp.Compare(by(&a), by(&b)) })
}

// judged is the judgment, once there is one.
func (e *Engine) judged() (*judgment, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.judgment == nil {
		return nil, &refusal{409, "the files have not been judged yet"}
	}
	return e.judgment, nil
}

func (q *question) findings() (any, error) { return q.e.Findings() }

// Findings are the findings of all files, each with the place that shows it. It fails
// while the files are not judged.
func (e *Engine) Findings() (page.Findings, error) {
	j, err := e.judged()
	if err != nil {
		return page.Findings{}, err
	}
	all := j.answer.Findings
	doc := page.Findings{Verdict: j.answer.Verdict, Findings: []page.Finding{}}
	names := api.NamesOf(all)
	for i := range all {
		f := &all[i]
		d := page.Finding{Finding: *f, Card: api.NewCard(f, names), Origins: []string{}, Where: e.whereIs(j, f)}
		for _, frame := range f.Stack {
			d.Origins = append(d.Origins, origins[stack.OriginOf(stack.Frame(frame))])
		}
		doc.Findings = append(doc.Findings, d)
	}
	switch job := j.answer.Job; {
	case job != nil && job.Failed:
		doc.Card = api.JobCard(job)
	case len(api.Asking(all)) > 0:
		doc.Card = api.NewCard(api.Asking(all)[0], names)
	default:
		doc.Card = calm(j)
	}
	return doc, nil
}

// job is the verdict on the job of which the files are.
func (q *question) job() (any, error) {
	j, err := q.e.judged()
	switch {
	case err != nil:
		return nil, err
	case j.answer.Job == nil:
		return nil, absent("the files are not of a job of several ranks")
	}
	return api.NewJob(j.answer.Job), nil
}

// calm is the card of a judgment that asks for nothing.
func calm(j *judgment) api.Card {
	files, all := 0, j.judged()
	for _, p := range all {
		files += p.files
	}
	return api.CalmCard(j.answer.Verdict, api.Over(files, len(all), "file"), j.answer.Findings)
}

// A judgedProcess is one that has snapshots, texts or other files.
type judgedProcess struct {
	name   string
	newest string // the path of its newest file
	files  int
}

// judged are all processes, those with snapshots first.
func (j *judgment) judged() (out []judgedProcess) {
	if of := j.answer.Snapshots; of != nil {
		for _, p := range of.Processes {
			out = append(out, judgedProcess{p.Name, p.Newest().Name, len(p.Files)})
		}
	}
	if of := j.answer.Texts; of != nil {
		for _, p := range of.Processes {
			out = append(out, judgedProcess{p.Name, p.Files[len(p.Files)-1].Name, len(p.Files)})
		}
	}
	for _, s := range j.answer.Series {
		out = append(out, judgedProcess{s.Process, s.Files[len(s.Files)-1].Name, len(s.Files)})
	}
	for i := range j.answer.Paused {
		out = append(out, judgedProcess{j.answer.Paused[i].Name, j.answer.Paused[i].File, 1})
	}
	return out
}

// whereIs points to a finding: in the newest file of its process, its lines, and
// the event that its evidence names.
func (e *Engine) whereIs(j *judgment, f *finding.Finding) *page.Where {
	path, _ := Evident(f)
	at := e.indexOfPath(path)
	if of := j.answer.Snapshots; of != nil && at < 0 {
		for _, p := range of.Processes {
			if p.Name == f.Process {
				at = e.indexOf(p.Newest())
			}
		}
	}
	if at < 0 || e.files[at].content == nil { // there is no picture
		return nil
	}
	out := &page.Where{F: at, D: f.Device, G: tile.ByLine, Keys: []string{}, Places: []string{}}
	sites := []finding.Site{}
	if f.Site != nil {
		sites = append(sites, *f.Site)
	}
	for _, s := range f.Sites {
		sites = append(sites, s.Site)
	}
	for _, s := range sites {
		if place := s.File + ":" + strconv.FormatInt(s.Line, 10); freeable[f.Kind] && s.Line > 0 && !slices.Contains(out.Places, place) {
			out.Places = append(out.Places, place)
		}
		if key := tile.KeyOfSite(stack.Site(s)).String(); !slices.Contains(out.Keys, key) {
			out.Keys = append(out.Keys, key)
		}
	}
	if out.Event = eventOf(f.Evidence); out.Event == nil && f.Kind == finding.Fragmentation {
		out.Event = e.files[out.F].mostReserved(f.Device)
	}
	return out
}

// mostReserved is the event at which most is reserved on a device, nil if none is.
func (c *content) mostReserved(device *int) *int {
	for _, d := range c.devices {
		if h := d.requested.h; device != nil && h.Device == *device && h.PeakReserved.Event >= 0 {
			return &h.PeakReserved.Event
		}
	}
	return nil
}

// freeable are the kinds of findings whose lines hold memory that could be freed.
var freeable = map[finding.Kind]bool{finding.Leak: true, finding.AutogradGraph: true, finding.Growth: true, finding.Spike: true}

// eventOf is the event at which a finding is to be looked at, nil if there is none.
func eventOf(e finding.Evidence) *int {
	switch e := e.(type) {
	case *finding.OOMEvidence:
		return e.Event
	case *finding.PeakEvidence:
		return e.Event
	case *finding.SpikeEvidence:
		return &e.Event
	case *finding.CopiesEvidence:
		return &e.Event
	case *finding.AutocastEvidence:
		return &e.Event
	case *finding.WaitingEvidence:
		return e.Event
	}
	return nil
}

func (e *Engine) indexOf(d *digest.File) int { return max(e.indexOfPath(d.Name), 0) }

// indexOfPath is the place of a file, -1 if it is not among those of the page.
func (e *Engine) indexOfPath(path string) int {
	return slices.IndexFunc(e.files, func(f *file) bool { return f.Path == path })
}

// maxSurvivors is the number of files of a process with survivors: the rows
// of a picture.
const maxSurvivors = 24

func (q *question) survivors(p *compare.Process) []page.Survivors {
	out := []page.Survivors{}
	if len(p.Files) > maxSurvivors {
		return out
	}
	for _, index := range p.DeviceIndices() {
		doc := page.Survivors{Device: index, Bytes: p.Survivors(index)}
		for i, old := range p.Files {
			row := make([]*int, len(p.Files))
			for j := i + 1; j < len(p.Files); j++ {
				row[j] = q.e.eventAfter(p.Files[j], index, old.Device(index).End)
			}
			doc.Event = append(doc.Event, row)
		}
		out = append(out, doc)
	}
	return out
}

// eventAfter is the first event of a file on a device that is later than a time in
// µs, nil if times are not known or that time is before the history.
func (e *Engine) eventAfter(d *digest.File, device int, t int64) *int {
	for _, x := range e.files[e.indexOf(d)].devices {
		times := x.requested.h.Trace.Time
		if x.requested.h.Device != device || t == 0 || len(times) == 0 || t < times[0] {
			continue
		}
		k := sort.Search(len(times), func(k int) bool { return times[k] > t })
		return &k
	}
	return nil
}

func (q *question) compare() (any, error) {
	j, err := q.e.judged()
	if err != nil {
		return nil, err
	}
	doc := page.Comparison{Groups: []page.Process{}}
	for _, p := range j.processes {
		g := page.Process{Sites: []page.Site{}, Survivors: q.survivors(p)}
		if p.Name != "" {
			g.Process = &p.Name
		}
		for _, d := range p.Files {
			g.Files = append(g.Files, page.ProcessFile{F: q.e.indexOf(d), Path: d.Name})
		}
		for _, r := range p.Rows(j.book) {
			s := page.Site{Key: tile.KeyOfMissing(r.Missing).String(), Missing: r.Missing, Bytes: r.Bytes, Count: r.Count, Survivors: r.Survivors, PerStep: r.PerStep()}
			if r.Site != (stack.Site{}) {
				s.Key = tile.KeyOfSite(r.Site).String()
				s.File, s.Line, s.Function = &r.Site.File, &r.Site.Line, &r.Site.Function
			}
			g.Sites = append(g.Sites, s)
		}
		doc.Groups = append(doc.Groups, g)
	}
	return doc, nil
}
