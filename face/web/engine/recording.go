package engine

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"strandline/face/api"
	"strandline/face/api/page"
	"strandline/finding"
	"strandline/host/code/symbolize"
	"strandline/host/store/recording"
	"strandline/input"
	"strandline/internal/sorts"
	"strandline/judge/diagnosis"
	"strandline/judge/processes"
	"strandline/stack"
	"strandline/torch/tile"
)

// A Recording answers the page of a recording of `strandline trace`: how memory
// grew, and what the calls with each stack held.
type Recording struct {
	path     string
	run      *recording.Run
	moments  []instant
	stacks   []*traced // those shown separately, the largest first
	others   int       // smaller stacks, which are summed as one
	rest     []held    // what these hold together, by moment
	owners   []*owner
	blamed   map[int]bool // stacks of findings
	verdict  finding.Verdict
	findings []page.RecordedFinding
	code     func(path string) ([]byte, error) // reads source code, if not nil
}

// An instant is a mark of the recording, or its last judgment.
type instant struct {
	seconds            float64
	rss                int64
	anon, file, shared int64 // growth since the recording began
	drops              uint64
	live               float64 // bytes that all stacks hold
}

// held is the memory held at a moment. Sums of what a file claims may be larger than
// any integer.
type held struct{ bytes, count float64 }

// A change is the memory held from a moment on.
type change struct {
	moment int
	held
}

// A traced stack is what the calls with it held over time.
type traced struct {
	recording.Stack
	changes []change
	peak    float64
}

// An owner is what a library's calls hold of the GPU driver's memory.
type owner struct {
	name, memory string
	changes      []change
}

const (
	// maxStacks are shown separately; the smaller ones beyond are summed as one.
	maxStacks = 200
	// maxMoments are in an answer; of more, those are that show the most.
	maxMoments = 1200
	// maxFrames of a stack are shown, so many bytes of their names, and maxFindings.
	maxFrames, longestName, maxFindings = 512, 1000, 1000
	// longestTime is the longest recording that is accepted, in seconds, and the most that a
	// stack holds: 8 PiB, up to where JSON's numbers are exact.
	longestTime, maxHeld = 1e9, 1 << 53
)

// NewRecording judges a recording that was read, and makes an engine of it. It takes the
// marks out of it: their courses are kept.
func NewRecording(files *input.Files, in *input.Trace) *Recording {
	s := diagnosis.New(files, diagnosis.Options{})
	s.AddTrace(in)
	return newRecording(in.Origin().Path, in.Run, s.Judge().Verdict)
}

func newRecording(path string, run *recording.Run, verdict finding.Verdict) *Recording {
	r := &Recording{path: path, run: run, verdict: verdict}
	stacks := r.follow()
	r.judge(stacks)
	sorts.By(stacks, func(a, b *traced) int {
		return cmp.Or(cmp.Compare(b.peak, a.peak), cmp.Compare(a.ID, b.ID))
	})
	sorts.StableBy(stacks, func(a, b *traced) int { return cmp.Compare(r.weight(b), r.weight(a)) })
	r.stacks = stacks[:min(maxStacks, len(stacks))]
	r.mergeSmall(stacks[len(r.stacks):])
	sorts.StableBy(r.stacks, func(a, b *traced) int { return cmp.Compare(b.peak, a.peak) })
	run.Samples = nil
	return r
}

// weight puts the stacks of findings before others that hold more.
func (r *Recording) weight(t *traced) int {
	if r.blamed[t.ID] {
		return 1
	}
	return 0
}

// follow makes the courses of all stacks and owners.
func (r *Recording) follow() (stacks []*traced) {
	known, owners := map[int]*traced{}, map[[2]string]*owner{}
	of := func(id int) *traced {
		t := known[id]
		if t == nil {
			s := r.run.Stacks[id]
			s.ID = id
			t = &traced{Stack: s}
			known[id] = t
			stacks = append(stacks, t)
		}
		return t
	}
	for i := range r.run.Samples {
		m := &r.run.Samples[i]
		for _, h := range m.Stacks {
			of(h.ID).set(i, h.Bytes, h.Count)
		}
		for _, o := range m.GPU {
			r.own(owners, o).set(i, o.LiveBytes, o.LiveCount)
		}
		r.add(m.Seconds, instant{rss: m.RSS, anon: m.Anonymous, file: m.File, shared: m.Shared, drops: m.Drops})
	}
	r.end(known, of, owners)
	for _, t := range stacks {
		was := 0.0
		for _, c := range t.changes {
			t.peak = max(t.peak, c.bytes)
			r.moments[c.moment].live += c.bytes - was
			was = c.bytes
		}
	}
	for k := 1; k < len(r.moments); k++ {
		r.moments[k].live += r.moments[k-1].live
	}
	return stacks
}

// add adds a moment. Time that runs backwards is taken to stand still.
func (r *Recording) add(seconds float64, m instant) {
	m.seconds = min(max(seconds, 0), longestTime)
	if n := len(r.moments); n > 0 {
		m.seconds = max(m.seconds, r.moments[n-1].seconds)
	}
	r.moments = append(r.moments, m)
}

// end adds the last judgment: its figures of stacks and, if it is of the end,
// later than the last mark, what each stack holds, as `diagnose` prints it.
func (r *Recording) end(known map[int]*traced, of func(int) *traced, owners map[[2]string]*owner) {
	if !r.run.Judged {
		return
	}
	d, k := r.run.Document, len(r.moments)
	last := k == 0 || d.Duration >= r.moments[k-1].seconds
	sums := map[int]recording.StackBytes{}
	for i := range d.Stacks {
		s := &d.Stacks[i]
		sum := sums[s.ID]
		sums[s.ID] = recording.StackBytes{ID: s.ID, Bytes: sum.Bytes + believed(s.LiveBytes), Count: sum.Count + believed(s.LiveCount)}
		if last {
			of(s.ID)
		}
		if t := known[s.ID]; t != nil && s.ID > 0 {
			t.Stack = *s
		}
	}
	if !last {
		return
	}
	for id, t := range known {
		t.set(k, sums[id].Bytes, sums[id].Count)
	}
	if d.GPU != nil {
		now := map[[2]string]recording.GPUOwner{}
		for _, o := range d.GPU.Owners {
			now[[2]string{o.Owner, o.Memory}] = o
			r.own(owners, o)
		}
		for key, o := range owners {
			o.set(k, now[key].LiveBytes, now[key].LiveCount)
		}
	}
	r.add(d.Duration, instant{rss: d.RSS, anon: d.Growth.Anonymous, file: d.Growth.File, shared: d.Growth.Shared, drops: d.Drops})
}

func (r *Recording) own(owners map[[2]string]*owner, o recording.GPUOwner) *owner {
	key := [2]string{o.Owner, o.Memory}
	if owners[key] == nil {
		owners[key] = &owner{name: o.Owner, memory: o.Memory}
		r.owners = append(r.owners, owners[key])
	}
	return owners[key]
}

func believed(n int64) int64 { return min(max(n, 0), maxHeld) }

func set(changes []change, k int, bytes, count int64) []change {
	now := change{k, held{float64(believed(bytes)), float64(believed(count))}}
	n := len(changes)
	switch {
	case n > 0 && changes[n-1].moment == k:
		changes[n-1] = now
	case n == 0 || changes[n-1].held != now.held:
		changes = append(changes, now)
	}
	return changes
}

func (t *traced) set(k int, bytes, count int64) { t.changes = set(t.changes, k, bytes, count) }
func (o *owner) set(k int, bytes, count int64)  { o.changes = set(o.changes, k, bytes, count) }

// mergeSmall sums up the smaller stacks.
func (r *Recording) mergeSmall(small []*traced) {
	r.others, r.rest = len(small), make([]held, len(r.moments))
	for _, t := range small {
		was := held{}
		for _, c := range t.changes {
			r.rest[c.moment].bytes += c.bytes - was.bytes
			r.rest[c.moment].count += c.count - was.count
			was = c.held
		}
	}
	for k := 1; k < len(r.rest); k++ {
		r.rest[k].bytes += r.rest[k-1].bytes
		r.rest[k].count += r.rest[k-1].count
	}
}

// judge finds the stacks of the findings: their evidence names them, otherwise
// there is one with the same frames.
func (r *Recording) judge(stacks []*traced) {
	r.blamed, r.findings = map[int]bool{}, []page.RecordedFinding{}
	byFrames := sync.OnceValue(func() map[string]int {
		out := map[string]int{}
		for _, t := range stacks {
			out[fmt.Sprint(tracedFrames(&t.Stack))] = t.ID
		}
		if g := r.run.Document.GPU; g != nil {
			for i := range g.Stacks {
				out[fmt.Sprint(tracedFrames(&g.Stacks[i].Stack))] = g.Stacks[i].ID
			}
		}
		return out
	})
	names := api.NamesOf(r.run.Document.Findings)
	for _, f := range r.run.Document.Findings {
		d := page.RecordedFinding{Finding: f, Card: api.NewCard(&f, names), Origins: []string{}, Stacks: []int{}}
		for _, frame := range f.Stack {
			d.Origins = append(d.Origins, origins[stack.OriginOf(stack.Frame(frame))])
		}
		e, _ := f.Evidence.(*finding.RecordedEvidence)
		named := e != nil && e.Stacks != nil
		if named {
			for _, n := range e.Stacks {
				if n > 0 && n < maxHeld {
					d.Stacks = append(d.Stacks, int(n))
				}
			}
		}
		if !named && len(f.Stack) > 0 {
			if id, ok := byFrames()[fmt.Sprint(f.Stack)]; ok {
				d.Stacks = append(d.Stacks, id)
			}
		}
		if f.Severity != finding.Info && f.Kind != finding.DriverLeak {
			for _, id := range d.Stacks {
				r.blamed[id] = true
			}
		}
		r.findings = append(r.findings, d)
	}
}

// tracedFrames are the frames of a stack as findings have them: of native code the
// file is the object that holds it.
func tracedFrames(s *recording.Stack) (out []finding.Frame) {
	for _, f := range processes.Frames(s) {
		out = append(out, finding.Frame{File: cmp.Or(f.File, f.Object), Line: f.Line, Function: f.Function})
	}
	return out
}

// Ask answers a question of the page.
func (r *Recording) Ask(ctx context.Context, name string, params url.Values) Answer {
	q := &question{ctx: ctx, q: params, used: map[string]bool{}}
	var doc any
	var err error
	switch name {
	case "recording":
		doc = r.document()
	case "window":
		doc, err = r.window(q)
	case "lines":
		doc, err = q.codeLines(r.code, namedByFinding(r.run.Document.Findings, q.text("path", "")))
	default:
		err = absent("there is no request %q", name)
	}
	return q.reply(doc, err, true)
}

func (r *Recording) document() page.Recording {
	run := r.run
	doc := page.Recording{
		File: r.path, PID: run.PID, Name: run.Name, Backend: run.Backend, Began: run.BeganUS, Moments: len(r.moments), Verdict: r.verdict,
		Findings: r.findings[:min(maxFindings, len(r.findings))], Stacks: []page.Stack{}, Others: r.others, Owners: []page.Owner{}, GPU: []page.GPUStack{},
	}
	doc.LeftOut = len(r.findings) - len(doc.Findings)
	doc.Card = api.Card{Word: strings.ToUpper(string(r.verdict)), Title: api.Grown(run.Document)}
	for i := range doc.Findings {
		if f := &doc.Findings[i]; f.Severity != finding.Info {
			doc.Card = f.Card
			break
		}
	}
	d := run.Document
	doc.Summary = page.Summary{RSS: d.RSS, Grown: d.RSSGrowth, Growth: d.Growth, Explained: d.Explained, Drops: d.Drops, StackDrops: d.StackDrops, Paired: d.Paired, PairedBytes: d.PairedBytes}
	if run.Partial != nil {
		why := run.Partial.Error()
		doc.Partial = &why
	}
	if run.Judged {
		doc.Judged = &run.Document.Duration
	}
	hold := make([]*recording.Stack, len(r.stacks))
	for i, t := range r.stacks {
		hold[i] = &t.Stack
	}
	for i, s := range newStackDocs(hold, processes.HostSite) {
		t := r.stacks[i]
		s.Grows, s.Peak = r.blamed[t.ID], t.peak
		s.First, s.Last = r.seen(t.changes)
		doc.Stacks = append(doc.Stacks, s)
	}
	for _, o := range r.owners {
		doc.Owners = append(doc.Owners, page.Owner{Owner: o.name, Memory: o.memory})
	}
	if g := run.Document.GPU; g != nil {
		doc.Summary.GPU = &page.Devices{Libraries: g.Libraries, Devices: g.Devices}
		taken := g.Stacks[:min(maxStacks, len(g.Stacks))]
		hold := make([]*recording.Stack, len(taken))
		for i := range taken {
			hold[i] = &taken[i].Stack
		}
		for i, s := range newStackDocs(hold, processes.DriverSite) { // in colors of their own: it is another table
			t := &taken[i]
			doc.GPU = append(doc.GPU, page.GPUStack{Stack: s, Owner: page.Owner{Owner: t.Owner, Memory: t.Memory}, Bytes: t.LiveBytes, Count: t.LiveCount, Trend: t.Trend})
		}
	}
	return doc
}

// newStackDocs are stacks as the page lists them, those of one place in one color.
func newStackDocs(list []*recording.Stack, siteOf func([]symbolize.Frame) *finding.Site) []page.Stack {
	docs := make([]page.Stack, len(list))
	var keys []tile.Key
	at := make([]tile.Key, len(list))
	for i, s := range list {
		site := siteOf(processes.Frames(s))
		docs[i] = newStackDoc(s, &site)
		if site == nil {
			continue
		}
		at[i] = tile.KeyOfSite(stack.Site(*site))
		docs[i].Key, docs[i].Label = at[i].String(), placeName(site)
		if !slices.Contains(keys, at[i]) {
			keys = append(keys, at[i])
		}
	}
	slots := colored(keys)
	for i := range docs {
		if docs[i].Key != "" {
			docs[i].Slot = slotOf(slots, at[i])
		}
	}
	return docs
}

// newStackDoc is a stack without its place, which it sets where it is of the C library alone.
func newStackDoc(s *recording.Stack, site **finding.Site) page.Stack {
	frames := tracedFrames(s)
	doc := page.Stack{
		ID: s.ID, Call: s.Call, Complete: s.Complete, Resident: s.ResidentBytes, Assumed: s.AssumedBytes, Made: s.MadeBytes, Calls: s.Calls,
		Label: "stack not captured", Slot: neutral, Frames: []page.Frame{},
	}
	if *site == nil && len(frames) > 0 {
		*site = &frames[0]
	}
	shown := frames[:min(maxFrames, len(frames))]
	for _, f := range shown {
		d := newFrameDoc(stack.Frame(f))
		d.File, d.Function = cut(d.File), cut(d.Function)
		doc.Frames = append(doc.Frames, d)
	}
	doc.LeftOut = len(frames) - len(shown)
	return doc
}

// placeName is a place on one line. Native code without a name is called by its
// place in the object.
func placeName(s *finding.Site) string {
	file := filepath.Base(s.File)
	switch {
	case s.File == "", strings.HasPrefix(s.Function, file+"+"):
		return cut(s.Function)
	case s.Line > 0:
		return cut(fmt.Sprintf("%s:%d %s", file, s.Line, s.Function))
	}
	return cut(file + " " + s.Function)
}

// cut leaves of a name what a page can show.
func cut(name string) string {
	if len(name) <= longestName {
		return name
	}
	return strings.ToValidUTF8(name[:longestName], "") + "…"
}

// seen returns the first and the last moment at which something is held.
func (r *Recording) seen(changes []change) (first, last *float64) {
	for i, c := range changes {
		if c.held == (held{}) {
			continue
		}
		until := len(r.moments)
		if i+1 < len(changes) {
			until = changes[i+1].moment
		}
		if first == nil {
			first = &r.moments[c.moment].seconds
		}
		last = &r.moments[until-1].seconds
	}
	return first, last
}

func (r *Recording) window(q *question) (any, error) {
	last := int64(len(r.moments)) - 1
	from, err := q.number("from", 0, 0, max(last, 0))
	if err != nil {
		return nil, err
	}
	to, err := q.number("to", max(last, 0), from, max(last, 0))
	if err != nil {
		return nil, err
	}
	doc := page.Window{
		From: int(from), To: int(to), Moment: r.choose(int(from), int(min(to, last))), Seconds: []float64{}, RSS: []int64{}, Anonymous: []int64{},
		File: []int64{}, Shared: []int64{}, Drops: []uint64{}, Live: []float64{}, Stacks: []page.Course{}, Owners: []page.Course{},
	}
	for _, k := range doc.Moment {
		m := &r.moments[k]
		doc.Seconds, doc.RSS, doc.Live = append(doc.Seconds, m.seconds), append(doc.RSS, m.rss), append(doc.Live, m.live)
		doc.Anonymous, doc.File, doc.Shared = append(doc.Anonymous, m.anon), append(doc.File, m.file), append(doc.Shared, m.shared)
		doc.Drops = append(doc.Drops, m.drops)
	}
	for _, t := range r.stacks {
		doc.Stacks = append(doc.Stacks, courseOf(t.changes, doc.Moment))
	}
	rest := newCourse()
	for c, k := range doc.Moment {
		addTo(&rest, c, r.rest[k])
	}
	doc.Stacks = append(doc.Stacks, rest)
	for _, o := range r.owners {
		doc.Owners = append(doc.Owners, courseOf(o.changes, doc.Moment))
	}
	return doc, nil
}

// choose returns the moments of a window to show: of too many, out of each run
// of them the one at which most was mapped and the one at which most was
// resident, so that no peak is lost.
func (r *Recording) choose(from, to int) []int {
	out := []int{}
	n := to - from + 1
	if n <= maxMoments {
		for k := from; k <= to; k++ {
			out = append(out, k)
		}
		return out
	}
	const runs = maxMoments/2 - 1
	out = append(out, from)
	for i := range runs {
		a, b := from+i*n/runs, from+(i+1)*n/runs
		mapped, resident := a, a
		for k := a; k < b; k++ {
			if r.moments[k].live > r.moments[mapped].live {
				mapped = k
			}
			if r.moments[k].rss > r.moments[resident].rss {
				resident = k
			}
		}
		out = append(out, min(mapped, resident), max(mapped, resident))
	}
	return slices.Compact(append(out, to))
}

func newCourse() page.Course { return page.Course{At: []int{}, Bytes: []float64{}, Count: []float64{}} }

// add notes what is held at a column, if that differs from before.
func addTo(c *page.Course, column int, h held) {
	was := held{}
	if n := len(c.At); n > 0 {
		was = held{c.Bytes[n-1], c.Count[n-1]}
	}
	if h != was {
		c.At, c.Bytes, c.Count = append(c.At, column), append(c.Bytes, h.bytes), append(c.Count, h.count)
	}
}

func courseOf(changes []change, moments []int) page.Course {
	out := newCourse()
	next, now := 0, held{}
	for c, k := range moments {
		for next < len(changes) && changes[next].moment <= k {
			now = changes[next].held
			next++
		}
		addTo(&out, c, now)
	}
	return out
}
