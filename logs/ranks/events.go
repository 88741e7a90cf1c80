package ranks

import (
	"bytes"
	"math"
	"strconv"
	"strings"

	"strandline/internal/lazyregexp"
	"strandline/logs/failure"
	"strandline/logs/text"
)

// read takes what a line is about.
func (t *reader) read(v *voice, l lineOf) {
	if t.table.line(t, v, l) {
		return
	}
	if l.has&ofStep != 0 && !ofLauncher.Match(l.rest) {
		t.progress(v, l)
	}
	if l.has&ofWorld != 0 {
		t.layout(l)
	}
	if l.has&ofCapacity != 0 {
		t.capacity(v, l)
	}
	traced := v.trace.line(t, v, l)
	if traced {
		return
	}
	if l.has&ofRestart != 0 {
		t.restart(v, l)
	}
	switch {
	case l.has&ofOOM != 0 && t.oom(v, l):
		return
	case l.has&(ofExit|ofKernel|ofFailure) != 0 && t.launcher(v, l):
		return
	case l.has&ofError != 0 && t.message(v, l):
		return
	case l.has&ofSlow != 0 && slow.Match(l.rest):
		t.event(v, l, Event{Kind: Slow})
	}
	if l.has&ofLoad != 0 && l.has&ofLength != 0 {
		t.lengths(v.Loads, l)
	} else if l.has&ofLength != 0 {
		t.lengths(v.Lengths, l)
	}
	if l.has&ofMemory != 0 && l.has&ofCapacity == 0 {
		t.sizes(v, l)
	}
	if l.has&ofSaving != 0 && saving.Match(l.rest) {
		t.out.Saving = moments(t.out.Saving, t.moment(l))
	}
	if l.has&ofEnd != 0 && ended.Match(l.rest) {
		t.out.Lived = moments(t.out.Lived, t.moment(l))
	}
}

var (
	// ofLauncher are lines of launchers and of wandb, whose steps are not those of training.
	ofLauncher = lazyregexp.New(`^(?:srun|slurmstepd|jsrun|mpirun|prterun|wandb)\b`)

	slow   = lazyregexp.New(`(?i)\b(?:is|are|seems?|very|too|running) (?:\w+ )?(?:slow|stuck|hung|stalled)|\b(?:stuck|stalled|hung|waiting) (?:for|in|at|on)\b.*\b\d+ ?(?:s|sec|seconds|min)\b|\bslow\b.*\(\d+`)
	saving = lazyregexp.New(`(?i)\b(?:sav|writ|dump|stag|serializ)(?:ing|e)\b.*(?:checkpoint|ckpt|model|state|shard|weights)|checkpoint.*\b(?:sav|writ)(?:ing|e)\b`)
	ended  = lazyregexp.New(`(?i)training (?:is )?(?:completed?|finished|done)|\b(?:done|completed|end of) training\b|'?train_runtime'?\b|exits successfully|finished training|100%\|[^|]*\| *(\d+)/\d+|final validation|.trainer\.fit. stopped|completed successfully|job (?:completed|succeeded)|training (?:time|took)\b|exited with code 0\b|\bsucceeded\b`)
)

const maxMoments = 64

// moments appends to some, of which the first and the last are kept.
func moments(to []Moment, m Moment) []Moment {
	if len(to) == maxMoments {
		to[maxMoments-1] = m
		return to
	}
	return append(to, m)
}

func (t *reader) moment(l lineOf) Moment {
	return Moment{At: t.at, Line: l.number, Step: t.step, Quote: quoted(l.rest)}
}

func quoted(b []byte) string { return strings.TrimSpace(string(b[:min(len(b), maxQuote)])) }

// event keeps an event of a voice.
func (t *reader) event(v *voice, l lineOf, e Event) {
	e.Line, e.At, e.Step, e.Timed = l.number, l.at, t.step, l.timed
	if e.Quote == "" {
		e.Quote = quoted(l.rest)
	}
	if math.IsNaN(e.At) {
		e.At = t.at
	}
	if n := len(v.Events); n == maxEvents {
		v.Events = append(v.Events[:maxEvents/2], v.Events[maxEvents/2+1:]...)
	}
	v.Events = append(v.Events, e)
	if e.Ends() {
		t.fail(v)
	}
}

// oom reads PyTorch's message in a line.
func (t *reader) oom(v *voice, l lineOf) bool {
	o := t.oomIn(l)
	if o == nil {
		return false
	}
	t.event(v, l, Event{Kind: RanOut, OOM: o, Caught: !bareError.Match(l.rest)})
	return true
}

// bareError is how the last line of a traceback begins.
var bareError = lazyregexp.New(`^\W{0,4}(?:[A-Za-z_][\w.]*(?:Error|Exception)\b|terminate called|what\(\))`)

func (t *reader) oomIn(l lineOf) *failure.OOM {
	var hits []text.Hit
	for _, h := range l.hits {
		if w := int(h.Word); w >= t.ooms && w < t.others {
			hits = append(hits, text.Hit{Word: h.Word - int32(t.ooms), End: h.End})
		}
	}
	if len(hits) == 0 {
		return nil
	}
	r := failure.NewOOMReader()
	r.Line(1, l.whole, hits)
	found := r.Found()
	return found.Last()
}

// statement is what another program than PyTorch states in a line about memory, or nil.
func (t *reader) statement(l lineOf) *failure.Failure {
	var hits []text.Hit
	for _, h := range l.hits {
		if w := int(h.Word) - t.others; w >= 0 && failure.States(w) {
			hits = append(hits, text.Hit{Word: int32(w), End: h.End})
		}
	}
	if len(hits) == 0 {
		return nil
	}
	f := failure.NewFinder()
	f.Line(1, l.whole, hits)
	if all := f.Failures(); len(all) > 0 {
		return &all[0]
	}
	return nil
}

var (
	stepped = []*lazyregexp.Regexp{
		lazyregexp.New(`(?i)\bglobal_?steps?\b"?'?[ :=]{1,3}(\d+)()(\.\d)?`),
		lazyregexp.New(`(?i)(?:^|[^\w-])(?:step|iteration|iter|train_step|training step|optimizer step)\b"?'?\s{0,2}[:=#\[]?\s{0,9}(\d+)(?:\s{0,3}(?:/|of)\s{0,9}(\d+))?(\.\d)?`),
		lazyregexp.New(`\bafter (\d+) iterations\b`),
		lazyregexp.New(`\| *(\d+)/(\d+) \[`),
		lazyregexp.New(`^\d+\|(\d+)\|Loss:`),
		lazyregexp.New(`\[batch=(\d+)/(\d+)\]`),
	}
	lossLine = lazyregexp.New(`(?i)\bloss\b`)
)

// progress reads the step that a line names.
func (t *reader) progress(v *voice, l lineOf) {
	line := l.rest[:min(len(l.rest), 400)]
	low := bytes.ToLower(line)
	for i, re := range stepped {
		from := mayStep(i, low)
		if from < 0 {
			continue
		}
		m := re.FindSubmatch(line[from:])
		if m == nil {
			continue
		}
		if len(m) > 3 && len(m[3]) > 0 { // a number with parts
			continue
		}
		step, err := strconv.ParseInt(string(m[1]), 10, 64)
		if err != nil || step > 1<<40 {
			continue
		}
		if len(m) > 2 && len(m[2]) > 0 {
			total, _ := strconv.ParseInt(string(m[2]), 10, 64)
			if total < step {
				continue
			}
			if i != 3 || t.out.Planned == 0 || total == t.out.Planned {
				t.out.Planned = total
			} else if !bytes.Contains(line, []byte("it")) {
				continue // a bar of something else
			}
			if i == 3 && loading.Match(line) {
				return
			}
		}
		if l.has&(ofOOM|ofError|ofSaving) != 0 && !lossLine.Match(line) && l.has&ofMemory == 0 {
			return // it tells of a step, not that one is done
		}
		t.step = step
		if step != v.Step {
			v.Step = step
			v.Steps = stepsAt(v.Steps, StepAt{step, l.at})
		}
		return
	}
}

// mayStep is where an expression of [stepped] can match at the earliest in a line of small
// letters, -1 if nowhere.
func mayStep(i int, low []byte) int {
	const before = 20 // bytes: more than "optimizer " and what stands before it
	first := func(words ...string) int {
		at := -1
		for _, w := range words {
			if x := bytes.Index(low, []byte(w)); x >= 0 && (at < 0 || x < at) {
				at = x
			}
		}
		return at
	}
	switch i {
	case 0:
		return min(first("global"), 0)
	case 1:
		if at := first("step", "iter"); at >= 0 {
			return max(0, at-before)
		}
		return -1
	case 2:
		return min(first("after"), 0)
	case 3:
		return min(first("|"), 0)
	case 5:
		return min(first("[batch="), 0)
	}
	return min(first("|loss:"), 0)
}

// loading is a bar that is not of training.
var loading = lazyregexp.New(`(?i)\b(?:load|download|map|tokeniz|generat|filter|fetch|process|eval|rollout|captur|prefetch|packing|group)\w*`)

// stepsAt appends a step; of many, each second one is kept.
func stepsAt(to []StepAt, s StepAt) []StepAt {
	const maxSteps = 512
	if len(to) == maxSteps {
		for i := range maxSteps / 2 {
			to[i] = to[2*i+1]
		}
		to = to[:maxSteps/2]
	}
	return append(to, s)
}

// lengths keeps the largest number of tokens that a line states by each label.
func (t *reader) lengths(to map[string]*Series, l lineOf) {
	const maxSeries = 8
	line := l.rest[:min(len(l.rest), 400)]
	for n, end := 0, 0; n < 8; n++ {
		var start int
		if start, end = nextLength(line, end); start < 0 {
			break
		}
		label, numbers := line[start:end], line[start:end]
		if i := bytes.IndexAny(label, "0123456789[("); i >= 0 {
			label, numbers = label[:i], numbers[i:]
		}
		if bytes.Contains(bytes.ToLower(label), []byte("torch.size")) {
			label = label[:bytes.IndexByte(label, ' ')]
		}
		most := 0.0
		for _, f := range bytes.FieldsFunc(numbers, func(r rune) bool { return r < '0' || r > '9' }) {
			if x, err := strconv.ParseFloat(string(f), 64); err == nil && x > most {
				most = x
			}
		}
		if most < 8 {
			continue
		}
		name := strings.ToLower(strings.Trim(string(label), " :=([_"))
		s := to[name]
		if s == nil {
			if len(to) == maxSeries {
				continue
			}
			s = &Series{}
			to[name] = s
		}
		s.add(Point{t.step, l.at, most})
		if longer := warned.FindSubmatch(l.rest); longer != nil {
			x, _ := strconv.ParseFloat(string(longer[1]), 64)
			limit, _ := strconv.ParseFloat(string(longer[2]), 64)
			s.add(Point{t.step, l.at, limit})
			s.add(Point{t.step, l.at, x})
		}
	}
}

// warned is the tokenizer's warning of a sequence beyond the model's length.
var warned = lazyregexp.New(`\((\d+) > (\d+)\)`)

// A trace is a traceback of Python that is being read.
type trace struct {
	open    bool
	chained bool
	lines   int
	site    string
	file    string
	phase   string
}

var (
	frame  = lazyregexp.New(`File "([^"]{1,400})", line (\d+), in (\S+)`)
	closes = lazyregexp.New(`^((?:[A-Za-z_]\w*\.)*[A-Z_a-z]\w*)(?:: (.*)|:?)$`)
)

// line takes a line of a traceback; it reports whether the line is part of one.
func (r *trace) line(t *reader, v *voice, l lineOf) bool {
	switch {
	case l.has&ofTrace != 0:
		r.open, r.lines, r.site, r.file, r.phase = true, 0, "", "", ""
		return true
	case !r.open:
		if len(bytes.TrimSpace(l.rest)) > 0 {
			if bytes.Contains(l.rest, []byte("exception was the direct cause")) || bytes.Contains(l.rest, []byte("another exception occurred")) {
				r.chained = true
				return true
			}
		}
		return false
	}
	if r.lines++; r.lines > 400 {
		r.open = false
		return false
	}
	if m := frame.FindSubmatch(l.rest); m != nil {
		r.frame(string(m[1]), string(m[2]), string(m[3]))
		return true
	}
	body := l.rest
	if len(body) == 0 || strings.ContainsAny(string(body[:1]), " \t") || text.HasPrefix(body, "│") || text.HasPrefix(body, "╭") || text.HasPrefix(body, "╰") || text.HasPrefix(body, "|") || text.HasPrefix(body, "+") {
		if v.Rank < 0 && text.HasPrefix(body, " ") && !text.HasPrefix(body, "  ") && closes.Match(bytes.TrimSpace(body)) && exceptional(string(bytes.TrimSpace(body))) {
			body = body[1:] // a launcher puts a blank behind its prefix
		} else {
			return true
		}
	}
	m := closes.FindSubmatch(body[:min(len(body), 4096)])
	if m == nil || !exceptional(string(m[1])) {
		if l.has&ofOOM == 0 {
			if r.lines > 2 && v.Speaker.Rank < 0 { // another process' line
				return false
			}
			return true
		}
	}
	r.open = false
	kind, seq := Raised, Event{Seq: -1, Enqueue: -1}
	seq.Quote = quoted(body)
	if o := t.oomIn(l); o != nil {
		kind, seq.OOM = RanOut, o
	} else {
		kind = KindOf(string(body[:min(len(body), 2048)]))
		if f := t.statement(l); f != nil && kind == Raised {
			if kind = RanOut; f.Host {
				kind = Host
			}
		}
	}
	seq.Kind, seq.Site, seq.Phase, seq.Chained = kind, r.site, r.phase, r.chained
	r.chained = false
	if kind != Nothing {
		if kind == Driver {
			seq.PID, seq.IP = processIn(body)
		}
		t.event(v, l, seq)
	}
	return true
}

// exceptional reports whether a word is the name of an exception.
func exceptional(s string) bool {
	s, _, _ = strings.Cut(s, ":")
	last := s[strings.LastIndexByte(s, '.')+1:]
	for _, end := range []string{"Error", "Exception", "Interrupt", "Exit", "Warning", "Failure", "Timeout", "Iteration", "Abort", "Errors", "Fault"} {
		if strings.HasSuffix(last, end) {
			return true
		}
	}
	return strings.Contains(s, ".") && last != "" && last[0] >= 'A' && last[0] <= 'Z' && !strings.ContainsAny(s, " /")
}

// phases are functions and files by which a traceback shows what was done.
var phases = []struct{ word, phase string }{
	{"checkpoint", "save"}, {"save", "save"}, {"backward", "backward"}, {"optimizer", "optimizer"}, {"optim/", "optimizer"}, {"adam", "optimizer"}, {"optim.", "optimizer"},
	{"init_model", "model"}, {"from_pretrained", "model"}, {"build_model", "model"}, {"setup_model", "model"}, {"get_model", "model"}, {"__init__", "model"}, {"_lazy_init", "model"}, {"to_empty", "model"}, {"forward", "forward"},
}

// frame takes a frame: the innermost of the user's own files, and the phase.
func (r *trace) frame(file, line, function string) {
	r.file = file
	if !strings.Contains(file, "site-packages") && !strings.Contains(file, "dist-packages") && !strings.HasPrefix(file, "<") && !strings.Contains(file, "/lib/python") {
		r.site = file + ":" + line
	}
	all := strings.ToLower(file + " " + function)
	for _, p := range phases {
		if strings.Contains(all, p.word) && !(p.word == "__init__" && r.phase != "") && !strings.Contains(all, "activation_checkpoint") && !strings.Contains(all, "torch/utils/checkpoint") && !strings.Contains(all, "errors/__init__") {
			if p.phase != "forward" || r.phase != "backward" {
				r.phase = p.phase
			}
			break
		}
	}
}
