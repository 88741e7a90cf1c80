// Package engine answers the questions of the page: a name and parameters in,
// bytes out. It knows neither HTTP nor files, so that the same code can run
// behind a server and inside a browser. What it answers is written down in
// ui/WIRE.md.
package engine

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"strandline/face/api/page"
	"strandline/input"
	"strandline/judge/diagnosis"
	"strandline/judge/snapshots"
	"strandline/stack"
	"strandline/torch/compare"
	"strandline/torch/digest"
	"strandline/torch/purpose"
	"strandline/torch/replay"
	"strandline/torch/snapshot"
	"strandline/torch/tile"
	"strandline/torch/timeline"
)

// A Source is a snapshot to be read.
type Source struct {
	Path string
	Size int64 // bytes, 0 if unknown
	// Changed is when it was written to last, zero if unknown.
	Changed time.Time
	// Named marks a file that the user named; another that is not a snapshot
	// is skipped.
	Named bool
	// Read reads it for a session and calls progress with the bytes read so far. Shown is drawn,
	// and nil for an input that is judged without a picture. Beside are the inputs that are
	// judged in the place of a snapshot.
	Read func(ctx context.Context, of *diagnosis.Session, progress func(read int64)) (shown *snapshot.Snapshot, beside []input.Input, err error)
	// Lines, if not nil, are lines of a text, from 1 on.
	Lines func(ctx context.Context, from, to int) ([]string, error)
}

// The states of a file and of the findings.
const (
	waiting = "waiting"
	reading = "reading"
	pairing = "pairing"
	totals  = "totals" // what is live is known, but not yet by band
	working = "working"
	ready   = "ready"
	failed  = "failed"
	unknown = "unknown"
	skipped = "skipped" // nothing of it can be judged, and it was not named
	judged  = "judged"  // it is judged, and there is no picture of it
)

// An Engine holds files and answers questions about them. It is safe for
// concurrent use.
type Engine struct {
	// Pause, if not nil, is called between the steps of Load: on a single thread
	// it lets questions be answered.
	Pause func()

	from    *input.Files
	ofJob   bool // they are known to be of a job of several ranks
	mu      sync.Mutex
	version int
	changed chan struct{} // closed when the version rises
	files   []*file
	others  []page.Skipped // files that are not snapshots
	order   []int
	running chan struct{} // holds one while a run is simulated

	readable chan struct{}                     // closed when a file was read
	code     func(path string) ([]byte, error) // reads source code, if not nil

	findingsState string
	judgment      *judgment

	live, replaced bool // more files are to come, or a page of more has taken the place of this one
}

// A file is one snapshot and what is computed of it.
type file struct {
	ambiguous bool // others have its name, too: it is shown with its folder
	Source
	// Guarded by Engine.mu.
	state    string
	read     int64
	err      error
	process  string
	blocks   string    // whether their sizes are known: waiting, working, ready, unknown
	stamp    time.Time // of the last report of progress
	*content           // from state totals on
	whole    bool      // content is all that was read of it
}

// content is a file that was read. It does not change.
type content struct {
	snap        *snapshot.Snapshot
	fingerprint string
	facts       *timeline.Facts
	devices     []*device
}

// A device is one device's part of a file.
type device struct {
	frames   *frameDocs
	events   *tile.Axis
	time     func() *tile.Axis
	steps    func() []page.Scope
	marks    func() marks
	purposes func() []purpose.Purpose // by allocation

	requested *measured
	reserved  func() *measured         // segments in the place of allocations
	replayed  atomic.Pointer[replayed] // nil until the history was replayed
}

// measured is a device whose bytes are measured in one way.
type measured struct {
	*device
	h        *tile.History
	segments bool // h is of what the driver gave

	mu    sync.Mutex
	bands []*tile.Bands // the groupings asked for last, the last one first
}

// replayed is the result of a replay of a device through the allocator.
type replayed struct {
	exact     *replay.Result // nil if there is no history
	sizes     []int64        // of the allocations' blocks, nil if they are not known
	allocated func() *measured
	why       string // they are not
}

// judgment holds what was found in all files.
type judgment struct {
	answer    *diagnosis.Answer
	book      *digest.Book
	processes []*compare.Process // of the snapshots
}

// New makes an engine that is to read the sources, which are made of files.
func New(files *input.Files, sources []Source) *Engine {
	e := &Engine{from: files, changed: make(chan struct{}), others: []page.Skipped{}, order: []int{}, running: make(chan struct{}, 1), readable: make(chan struct{}), findingsState: waiting}
	named := map[string]int{}
	for _, s := range sources {
		e.files = append(e.files, &file{Source: s, state: waiting, blocks: waiting})
		named[filepath.Base(s.Path)]++
	}
	for _, f := range e.files {
		f.ambiguous = named[filepath.Base(f.Path)] > 1
	}
	return e
}

func (e *Engine) pause() {
	if e.Pause != nil {
		e.Pause()
	}
}

// change changes the session under its lock, and notifies those who wait.
func (e *Engine) change(f func()) {
	e.mu.Lock()
	defer e.mu.Unlock()
	f()
	e.version++
	close(e.changed)
	e.changed = make(chan struct{})
}

// ErrNothing is the error when none of the files can be judged.
var ErrNothing = errors.New("no snapshot among the files")

// Load reads the files, one after another, and judges them. It returns when all
// is done; questions can be asked from the start. Problems with single files are
// recorded in the session; the error is that of the last file if none could be read.
func (e *Engine) Load(ctx context.Context) error {
	read := 0
	var last error
	s := diagnosis.Begin(ctx, e.from, diagnosis.Options{})
	e.change(func() { e.ofJob = s.OfJob() })
	for _, f := range e.files {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := e.load(ctx, f, s); err != nil {
			last = err
			continue
		}
		if read++; read == 1 {
			close(e.readable)
		}
	}
	if read == 0 {
		if len(e.files) == 1 && e.files[0].Named && last != nil {
			return last
		}
		return ErrNothing
	}
	e.judge(ctx, s)
	e.pause()
	for _, f := range e.files {
		if f.content != nil && ctx.Err() == nil {
			e.replay(f)
		}
	}
	return ctx.Err()
}

// replay finds the sizes of blocks by running the history through the allocator.
func (e *Engine) replay(f *file) {
	e.change(func() { f.blocks = working })
	exact := true
	for _, d := range f.devices {
		r := d.replayed.Load()
		if r == nil {
			r = d.replay()
		}
		exact = exact && r.sizes != nil
		d.replayed.Store(r)
		e.pause()
	}
	e.change(func() {
		if f.blocks = unknown; exact {
			f.blocks = ready
		}
	})
}

// replay runs the history of a device through the allocator. Its sizes count if
// all of it is reproduced.
func (d *device) replay() *replayed {
	h := d.requested.h
	if h.Events() == 0 {
		return &replayed{why: "there are no events"}
	}
	if h.Device == snapshot.Host { // its events state the sizes of blocks
		sizes := make([]int64, len(h.Allocs))
		for i := range sizes {
			sizes[i] = h.Size(i)
		}
		return &replayed{why: "settings of devices do not change pinned host memory", sizes: sizes, allocated: sync.OnceValue(func() *measured {
			return &measured{device: d, h: h.Measured(sizes)}
		})}
	}
	x := replay.NewRecording(h.Timeline).Replay()
	if x.Difference != nil {
		return &replayed{exact: x, why: "the replay diverges from the recording: " + x.Difference.String()}
	}
	if i := slices.Index(x.Sizes, 0); i >= 0 {
		return &replayed{exact: x, why: fmt.Sprintf("the block of allocation %d is unknown", i)}
	}
	return &replayed{exact: x, sizes: x.Sizes, allocated: sync.OnceValue(func() *measured {
		return &measured{device: d, h: h.Measured(x.Sizes)}
	})}
}

// load reads one file.
func (e *Engine) load(ctx context.Context, f *file, to *diagnosis.Session) error {
	if f.whole { // it was read for another page
		e.change(func() { f.state = ready })
		return nil
	}
	e.change(func() { f.state = reading })
	s, inputs, err := f.Read(ctx, to, func(n int64) { e.progress(f, n) })
	if err == nil && s == nil {
		e.change(func() { f.state, f.blocks = judged, unknown })
		e.pause()
		return add(ctx, to, inputs)
	}
	if err != nil {
		e.change(func() {
			if f.state, f.err = failed, err; !f.Named && errors.Is(err, snapshot.ErrNotSnapshot) {
				f.state = skipped
				e.others = append(e.others, page.Skipped{Path: f.Path, Why: "not a snapshot"})
			}
		})
		return err
	}
	if err := add(ctx, to, inputs); err != nil {
		return err
	}
	e.change(func() { f.state = pairing })
	c := newContent(s)
	e.change(func() { f.content, f.state = c, totals })
	e.pause()
	for _, d := range c.devices {
		_, _ = d.requested.grouped(tile.ByLine) // the page asks for it first
	}
	e.change(func() { f.state, f.whole = ready, len(inputs) == 0 })
	e.pause()
	return nil
}

// add gives inputs to a session.
func add(ctx context.Context, to *diagnosis.Session, inputs []input.Input) error {
	for _, in := range inputs {
		if err := to.Add(ctx, in); err != nil {
			return err
		}
	}
	return nil
}

// progress reports how far reading is, a few times a second.
func (e *Engine) progress(f *file, n int64) {
	const interval = 80 * time.Millisecond
	e.mu.Lock()
	soon := time.Since(f.stamp) < interval
	e.mu.Unlock()
	if !soon {
		e.change(func() { f.read, f.stamp = n, time.Now() })
	}
}

func newContent(s *snapshot.Snapshot) *content {
	// What the snapshot computes on demand is computed now: later several
	// questions look at it at once.
	for id := range s.Stacks.Len() {
		s.Stacks.Site(stack.ID(id))
	}
	s.StringID("small")
	s.StringID("large")
	c := &content{snap: s, facts: timeline.FactsOf(s)}
	frames := &frameDocs{}
	for _, t := range c.facts.Lines {
		h := tile.NewHistory(t)
		d := &device{
			frames: frames, events: h.EventAxis(), time: sync.OnceValue(h.TimeAxis),
			steps:    sync.OnceValue(func() []page.Scope { return scopesOf(h) }),
			marks:    sync.OnceValue(func() marks { return marksOf(h) }),
			purposes: sync.OnceValue(func() []purpose.Purpose { return purpose.Each(t) }),
		}
		d.requested = &measured{device: d, h: h}
		d.reserved = sync.OnceValue(func() *measured { return &measured{device: d, h: tile.DriverHistory(t), segments: true} })
		c.devices = append(c.devices, d)
	}
	c.fingerprint = fingerprint(s)
	return c
}

// fingerprint distinguishes snapshots by some of their content.
func fingerprint(s *snapshot.Snapshot) string {
	h := fnv.New64a()
	for i := range s.Traces {
		t := &s.Traces[i]
		fmt.Fprint(h, t.Device, t.Len())
		step := max(t.Len()/64, 1)
		for k := 0; k < t.Len(); k += step {
			fmt.Fprint(h, t.Action[k], t.Addr[k], t.Size[k], " ")
			if t.Time != nil {
				fmt.Fprint(h, t.Time[k])
			}
		}
	}
	for i := range s.Segments {
		g := &s.Segments[i]
		fmt.Fprint(h, g.Addr, g.TotalSize, len(g.Blocks), g.RequestedSize, " ")
	}
	return fmt.Sprintf("%016x", h.Sum64())
}

// groupings are those in which the device can be shown.
func (d *measured) groupings() []tile.Grouping {
	if d.segments {
		return []tile.Grouping{tile.ByLine, tile.ByFunction, tile.ByFile, tile.ByStack, tile.BySize}
	}
	return d.h.Groupings()
}

// maxGroupings is how many groupings of a device are kept.
const maxGroupings = 3

// grouped is the device in bands.
func (d *measured) grouped(g tile.Grouping) (*tile.Bands, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for i, b := range d.bands {
		if b.Grouping == g {
			copy(d.bands[1:i+1], d.bands[:i])
			d.bands[0] = b
			return b, nil
		}
	}
	if d.segments && !slices.Contains(d.groupings(), g) {
		return nil, fmt.Errorf("segments are not grouped by %s", g)
	}
	b, err := tile.NewBands(d.h, g)
	if err != nil {
		return nil, err
	}
	d.bands = append([]*tile.Bands{b}, d.bands[:min(len(d.bands), maxGroupings-1)]...)
	return b, nil
}

// judge judges all files together, of which the session has those that are no snapshots.
func (e *Engine) judge(ctx context.Context, s *diagnosis.Session) {
	e.change(func() { e.findingsState = working })
	index := map[*digest.File]int{}
	for i, f := range e.files {
		if ctx.Err() != nil {
			return
		}
		if f.content != nil {
			index[s.AddSnapshot(f.Path, f.snap)] = i
		}
	}
	e.pause()
	j := &judgment{answer: s.Judge(), book: s.Book, processes: s.SnapshotProcesses()}
	order, processOf := []int{}, map[int]string{}
	for _, p := range j.processes {
		for _, d := range p.Files {
			order = append(order, index[d])
			processOf[index[d]] = p.Name
		}
	}
	for i, f := range e.files {
		if f.content == nil {
			continue
		}
		for _, d := range f.devices {
			d.requested.h.SetLeaking(snapshots.Leaking(j.answer.Findings, processOf[i], d.requested.h.Device))
		}
	}
	e.change(func() {
		e.judgment, e.order, e.findingsState = j, order, ready
		for i, name := range processOf {
			e.files[i].process = name
		}
		for _, f := range e.files {
			if f.state == judged && j.answer.Job == nil && slices.Contains(j.answer.Skipped, f.Path) {
				f.state = skipped
				e.others = append(e.others, page.Skipped{Path: f.Path, Why: ErrOtherKind.Error()})
			}
		}
	})
}

const (
	colors  = 10
	neutral = -1
)

// colored gives the first keys of a list, the largest, a slot each. A key asks for one and
// gets it or the next that is free, in the order of the keys: so a file has the same colors
// whatever else is open, and files of one program, whose largest lines are the same, too.
func colored(keys []tile.Key) map[tile.Key]int {
	some := slices.Clone(keys[:min(colors, len(keys))])
	slices.Sort(some)
	slots, taken := map[tile.Key]int{}, [colors]bool{}
	for _, key := range some {
		slot := int(uint64(key) % colors)
		for taken[slot] {
			slot = (slot + 1) % colors
		}
		slots[key], taken[slot] = slot, true
	}
	return slots
}

// slotOf is the slot of a key, neutral if it has none.
func slotOf(slots map[tile.Key]int, key tile.Key) int {
	if slot, ok := slots[key]; ok {
		return slot
	}
	return neutral
}

func (f *file) name() string {
	switch {
	case f.Path == "-":
		return "standard input"
	case f.ambiguous:
		return filepath.Join(filepath.Base(filepath.Dir(f.Path)), filepath.Base(f.Path))
	}
	return filepath.Base(f.Path)
}

// none means "not there" in numbers that the page reads.
const none = -1
