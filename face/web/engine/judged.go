package engine

import (
	"cmp"
	"slices"
	"sort"

	"strandline/finding"

	"strandline/stack"
	"strandline/torch/compare"
	"strandline/torch/digest"
	"strandline/torch/tile"
)

func sortBy[T any, N cmp.Ordered](list []T, by func(*T) N) {
	slices.SortStableFunc(list, func(a, b T) int { return cmp.Compare(by(&a), by(&b)) })
}

// judged is the judgement, once there is one.
func (q *question) judged() (*judgement, error) {
	q.e.mu.Lock()
	defer q.e.mu.Unlock()
	if q.e.judgement == nil {
		return nil, &refusal{409, "the files are not judged yet"}
	}
	return q.e.judgement, nil
}

type findingsDoc struct {
	Verdict  finding.Verdict `json:"verdict"`
	Findings []findingDoc    `json:"findings"`
}

type findingDoc struct {
	finding.Finding
	Origins []string `json:"origins"` // of the frames of its stack
	Where   where    `json:"where"`
}

// where is the place in the page that shows a finding.
type where struct {
	F     int           `json:"f"`
	D     *int          `json:"d"`
	G     tile.Grouping `json:"g"`
	Keys  []string      `json:"keys"`
	Event *int          `json:"event"`
}

func (q *question) findings() (any, error) {
	j, err := q.judged()
	if err != nil {
		return nil, err
	}
	doc := findingsDoc{Verdict: j.answer.Verdict, Findings: []findingDoc{}}
	for i := range j.answer.Findings {
		f := &j.answer.Findings[i]
		d := findingDoc{*f, []string{}, q.e.whereIs(j, f)}
		for _, frame := range f.Stack {
			d.Origins = append(d.Origins, origins[stack.OriginOf(stack.Frame(frame))])
		}
		doc.Findings = append(doc.Findings, d)
	}
	return doc, nil
}

// whereIs points to a finding: in the newest file of its process, its lines, and
// the event that its evidence names.
func (e *Engine) whereIs(j *judgement, f *finding.Finding) where {
	out := where{D: f.Device, G: tile.ByLine, Keys: []string{}}
	for _, p := range j.answer.Processes {
		if p.Name == f.Process {
			out.F = e.indexOf(p.Newest())
		}
	}
	sites := []finding.Site{}
	if f.Site != nil {
		sites = append(sites, *f.Site)
	}
	for _, s := range f.Sites {
		sites = append(sites, s.Site)
	}
	for _, s := range sites {
		if key := tile.KeyOfSite(stack.Site(s)).String(); !slices.Contains(out.Keys, key) {
			out.Keys = append(out.Keys, key)
		}
	}
	out.Event = eventOf(f.Evidence)
	return out
}

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

func (e *Engine) indexOf(d *digest.File) int {
	return max(slices.IndexFunc(e.files, func(f *file) bool { return f.Path == d.Name }), 0)
}

type compareDoc struct {
	Groups []compareGroup `json:"groups"`
}

type compareGroup struct {
	Process *string       `json:"process"`
	Files   []compareFile `json:"files"`
	// Survivors are told for up to mostSurvivors files.
	Survivors []survivorsDoc `json:"survivors"`
	Sites     []compareSite  `json:"sites"`
}

type compareFile struct {
	F    int    `json:"f"`
	Path string `json:"path"`
}

// survivorsDoc tells, on a device, of each file and each later one the bytes
// that live in both, and the event of the later one that is the first behind the
// end of the earlier, null if that cannot be told.
type survivorsDoc struct {
	Device int       `json:"device"`
	Bytes  [][]int64 `json:"bytes"`
	Event  [][]*int  `json:"event"`
}

// mostSurvivors is for how many files of a process survivors are told: the rows
// of a picture.
const mostSurvivors = 24

func (q *question) survivors(p *compare.Process) []survivorsDoc {
	out := []survivorsDoc{}
	if len(p.Files) > mostSurvivors {
		return out
	}
	for _, index := range p.DeviceIndices() {
		doc := survivorsDoc{Device: index, Bytes: p.Survivors(index)}
		for i, old := range p.Files {
			row := make([]*int, len(p.Files))
			for j := i + 1; j < len(p.Files); j++ {
				row[j] = q.e.behind(p.Files[j], index, old.Device(index).End)
			}
			doc.Event = append(doc.Event, row)
		}
		out = append(out, doc)
	}
	return out
}

// behind is the first event of a file on a device that is later than a time in
// µs, nil if times are not known or it lies before the history.
func (e *Engine) behind(d *digest.File, device int, t int64) *int {
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

type compareSite struct {
	Key       string  `json:"key"`
	File      *string `json:"file"`
	Line      *int64  `json:"line"`
	Function  *string `json:"function"`
	Bytes     []int64 `json:"bytes"`
	Count     []int64 `json:"count"`
	Survivors int64   `json:"survivors"`
	PerStep   int64   `json:"bytes_per_step"`
}

func (q *question) compare() (any, error) {
	j, err := q.judged()
	if err != nil {
		return nil, err
	}
	doc := compareDoc{Groups: []compareGroup{}}
	for _, p := range j.processes {
		g := compareGroup{Sites: []compareSite{}, Survivors: q.survivors(p)}
		if p.Name != "" {
			g.Process = &p.Name
		}
		for _, d := range p.Files {
			g.Files = append(g.Files, compareFile{q.e.indexOf(d), d.Name})
		}
		for _, r := range p.Rows(j.book) {
			s := compareSite{Bytes: r.Bytes, Count: r.Count, Survivors: r.Survivors, PerStep: r.PerStep()}
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
