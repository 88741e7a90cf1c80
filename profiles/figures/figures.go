// Package figures reads the memory that programs print while they run, in whatever words: lines
// that state the same thing again and again, such as `memory: 6814` or `RSS ~= 234.1 GiB`, and
// the tables that people make of them. In goes a text, out come levels over time.
package figures

import (
	"bufio"
	"bytes"
	"io"
	"math"
	"slices"
	"strings"

	"strandline/internal/lazyregexp"
	"strandline/logs/text"
	"strandline/profiles"
	"strandline/times"
)

const (
	longest    = 16 << 10 // bytes that are read of a line
	maxLevels  = 1_000_000
	maxColumns = 512
	maxQuote   = 2 << 10 // bytes that are kept of a line
	// An excerpt has so few lines that two levels are taken for a series.
	maxExcerpt = 40
)

// fails are words of a text that is read for its failure.
var fails = lazyregexp.New(`(?i)out ?of ?memory|oom[-_]kill|killed process|resource_exhausted|(?:cannot|could not|failed to|unable to) alloc`)

// Is reports whether a text that begins with head states levels.
func Is(head []byte) bool {
	if !text.IsText(head[:min(len(head), 1024)]) || fails.Match(head) || page(head) {
		return false
	}
	t := newReader()
	for line := range bytes.Lines(head) {
		t.line(line)
	}
	return len(t.columns()) > 0
}

// page reports whether a text is documentation, whose figures are examples.
func page(head []byte) bool {
	const minMarkup = 2
	var shape text.Shape
	number := int64(0)
	for line := range bytes.Lines(head) {
		number++
		shape.Line(number, bytes.TrimRight(line, "\r\n"), nil)
	}
	return shape.Markup >= minMarkup
}

// Read reads a text. One that states no level repeatedly is [profiles.ErrOther].
func Read(r io.Reader) (*profiles.File, error) {
	in := bufio.NewReaderSize(r, longest)
	t := newReader()
	f := &profiles.File{Format: profiles.Levels}
	for {
		text, err := in.ReadSlice('\n')
		t.line(text)
		for err == bufio.ErrBufferFull { // the rest of the line
			_, err = in.ReadSlice('\n')
		}
		if err != nil {
			if err != io.EOF {
				f.Partial = err
			}
			break
		}
	}
	if f.Columns = t.columns(); len(f.Columns) == 0 {
		return nil, profiles.ErrOther
	}
	return f, nil
}

// A reading is a level in a line.
type reading struct {
	at, step float64 // seconds, and the step that was named last; NaN if there was none
	bytes    float64
	phase    string // "after offload", "" if no line named one
	line     string
	number   int // of that line; 0 of a table
}

// key identifies what a figure is about.
type key struct{ process, name string }

// A reader takes the lines of a text.
type reader struct {
	clock times.Clock
	now   float64 // of the last line with a time; NaN before
	step  float64 // that the last lines named; NaN before
	count int     // of lines
	// number is that of the line that is read, 0 in a table.
	number int
	kept   int
	phase  string // that the last line with one named
	known  map[string]meaning
	byKey  map[key]*series
	order  []*series
	table  *table // that is being read
	// take, if not nil, is called with each size instead of keeping it.
	take func(name string, bytes float64)
}

type series struct {
	key
	readings []reading
	lines    [2]string // of the first and the last reading
	peak     bool
	cells    bool // of a table
	phase    string
}

func newReader() *reader {
	return &reader{now: math.NaN(), step: math.NaN(), byKey: map[key]*series{}}
}

var (
	// number is a size in a cell of a table, with its unit.
	number = lazyregexp.New(`(\d[\d,]*(?:\.\d+)?) ?((?:[KMGTkmgt]i?[Bb]|[KMGT]i?)\b)?`)
	// memory are words by which a label is of memory.
	memory = lazyregexp.New(`(?i)\bmem(?:ory)?\b|memory|_mem\b|\bmem_|\brss\b|vmrss|vmhwm|max_?rss|\bvram\b|\bram\b|\balloc|reserved|\bcached?\b|\bheap\b|\bswap\b|\bgtt\b|_alloc|\bMA\b|\bCA\b|\bMax_[MC]A\b|in use|footprint|hbm`)
	// unitIn is a unit that a label states.
	unitIn = lazyregexp.New(`(?i)[\[(_ ]([kmgt])i?b[\])]*\W*$`)
	stepIn = lazyregexp.New(`(?i)\b(?:step|iter(?:ation)?s?|it|loop|epoch|batch|global_step)\b[ :=#\[]*(\d+)`)
	// excluded are figures that are not levels: among them what a model needs, as Ollama states for each that it loads.
	excluded = lazyregexp.New(`(?i)^free\b|^avail|^[KV] \(|\bmemory\.(?:weights|graph|required)\b|\b(?:total|limits?|capacity|free|freed|avail(?:able)?|expected|size|delta|excess|took|read|wrote|downloa\w*|upload\w*|checkpoint size|file|model size|param\w*|weights? file|percent|vocab|batch|bandwidth|speed|rate|loss|lr|eta|time|buffer size|shared|buff)\W*$`)
	// needs are figures that something needs, needless those beside a remark that it does not.
	needs    = lazyregexp.New(`(?i)(?:\b|_)(?:(?:required|needed)(?:[ _](?:gpu|device|host|system|memory|mem|vram|ram|bytes|[kmgt]i?b))*(?: (?:by|for) \w+)?|requires(?: (?:about|approximately|around|at least))?)\W*$`)
	needless = lazyregexp.New(`(?i)\b(?:not|no longer) (?:required|needed)\W*$`)
	peaks    = lazyregexp.New(`(?i)\bmax|peak|hwm|high.?water`)
)

// unitAbove is the unit that the beginning of a line states for all its figures: "memory (MB) | ".
var unitAbove = lazyregexp.New(`(?i)\bmem(?:ory)?\b[^|]{0,24}[(\[]([kmgt])i?b[)\]] ?\|`)

// factors are bytes of units; those who print MB of memory mean MiB.
var factors = map[byte]float64{'k': 1 << 10, 'm': 1 << 20, 'g': 1 << 30, 't': 1 << 40}

// line takes a line.
func (t *reader) line(raw []byte) {
	t.count++
	said := strings.TrimRight(string(raw[:min(len(raw), longest)]), "\r\n")
	if t.markdown(said) {
		return
	}
	t.number = t.count
	if times.Likely([]byte(said)) {
		if at, rest, ok := t.timed(said); ok {
			t.now, said = at, rest
		}
	}
	if stepped(said) {
		if m := stepIn.FindStringSubmatch(said); m != nil {
			t.step = numberOf(m[1])
		}
	}
	if moments(said) {
		if m := momentIn.FindStringSubmatch(said); m != nil && !stepped(m[0][len("after "):]) {
			t.phase = strings.ToLower(strings.TrimSpace(digitsOf.ReplaceAllString(m[0], "")))
		}
	}
	t.levels(said)
}

// Sizes returns a function for the lines of one text: it calls take with the label and the bytes
// of each size of memory that a line states.
func Sizes() func(line string, take func(name string, bytes float64)) {
	var t reader
	return func(line string, take func(name string, bytes float64)) {
		t.take = take
		if strings.ContainsAny(line, ":-/") { // of times and dates
			line = clockText.ReplaceAllString(line, "")
		}
		t.levels(line)
	}
}

// maxAround is how many bytes on each side of a number are read for what it is.
const maxAround = 400

// levels takes the sizes in a line.
func (t *reader) levels(said string) {
	last, line := 0, statement{text: said}
	for at := 0; at < len(said); {
		if !text.Digit(said[at]) {
			at++
			continue
		}
		from := at
		for at < len(said) && (text.Digit(said[at]) || (said[at] == '.' || said[at] == ',') && at+1 < len(said) && text.Digit(said[at+1])) {
			at++
		}
		to := at
		unit := unitAt(said[to:])
		if at += unit.length; from > 0 && (text.Wordly(said[from-1]) || said[from-1] == '.' || said[from-1] == '-') {
			continue
		}
		before, after := said[max(last, from-maxAround):from], said[at:min(len(said), at+maxAround)]
		if strings.HasPrefix(after, "/s") {
			continue
		}
		if strings.HasPrefix(strings.TrimSpace(before), "/") && last > 0 { // "66.48 GB / 79.10 GB": of so much
			last = at
			continue
		}
		if unit.name != "" || hinted(before) {
			t.figure(&line, from, before, after, said[from:to], unit.name)
		}
		if unit.name != "" || strings.ContainsAny(before, ",;:=") {
			last = at
		}
	}
}

// A unit is what follows a number, and how many bytes it takes with the blank before.
type unit struct {
	name   string
	length int
}

func unitAt(said string) unit {
	blank := 0
	if strings.HasPrefix(said, " ") {
		blank = 1
	}
	word := said[blank:]
	n := 0
	for n < len(word) && text.Wordly(word[n]) {
		n++
	}
	switch word = word[:n]; {
	case n == 0 || n > 3 || factors[lower(word[0])] == 0:
		return unit{}
	case n == 1 && word[0] >= 'A' && word[0] <= 'Z' && blank == 0,
		n == 2 && (lower(word[1]) == 'b' || word[1] == 'i' && word[0] <= 'Z'),
		n == 3 && word[1] == 'i' && lower(word[2]) == 'b':
		return unit{word, blank + n}
	}
	return unit{}
}

// stepped reports whether a line may name a step.
func stepped(text string) bool {
	return slices.ContainsFunc([]string{"tep", "ter", "it ", "it:", "oop", "poch", "atch"}, func(word string) bool { return strings.Contains(text, word) })
}

// hinted reports whether the words before a number without a unit may be of memory.
func hinted(before string) bool {
	const maxDistance = 48
	before = strings.ToLower(before[max(0, len(before)-maxDistance):])
	for _, word := range []string{"mem", "rss", "ram", "alloc", "reserved", "cache", "heap", "swap", "gtt", "use", "current", "active", "peak", "hwm", "footprint"} {
		if strings.Contains(before, word) {
			return true
		}
	}
	return false
}

// timed cuts a time out of a line.
func (t *reader) timed(text string) (at float64, rest string, ok bool) {
	at, ok = t.clock.Read(text)
	if !ok {
		return 0, text, false
	}
	return at, clockText.ReplaceAllString(text, ""), true
}

// clockText are dates and times, whose digits are no figures.
var clockText = lazyregexp.New(`\d{2,4}[-/]\d\d[-/]\d{2,4}[T ,]*|(?:^|[\s\[(])\d\d[-/]\d\d(?:[ T,\])]|$)|\b\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d+)?(?: ?(?:Z|UTC|E[SD]T|P[SD]T))?`)

// figure takes a number of a line that begins at a byte, if it is a level.
func (t *reader) figure(line *statement, from int, before, after, digits, unit string) {
	name := label(before)
	about := t.about(name)
	if about.excluded {
		return
	}
	factor, ofMemory := 0.0, about.memory || about.inUse && line.ofMemory()
	if unit != "" {
		factor = factors[lower(unit[0])]
		binary := len(unit) == 3
		if !ofMemory {
			trailing := label(firstPart(after))
			if about := t.about(trailing); about.memory && !about.excluded {
				name, ofMemory = trailing, true
			}
		}
		if !ofMemory && !binary && !strings.Contains(line.text, " / ") || len(unit) == 1 && !ofMemory {
			return
		}
	} else {
		if !ofMemory {
			return
		}
		if factor = defaultUnit(name, digits); factor == 0 && strings.Contains(digits, ".") {
			factor = line.factor()
		}
	}
	if factor == 0 {
		return
	}
	if !ofMemory && strings.ContainsAny(before, "0123456789") && stepIn.MatchString(before) {
		name = "memory"
	}
	if name == "" {
		return
	}
	if t.about(name).moment {
		name = "memory in use"
	}
	process := ""
	if t.take == nil {
		process = line.about(from)
	}
	if strings.HasPrefix(process, devicePrefix) && deviceIn.MatchString(name+":") { // the label tells them apart
		process = ""
	}
	t.add(key{process, name}, numberOf(digits)*factor, line.text)
}

// A meaning is what a label says of its figure. One that is only of a moment does not say what it is.
type meaning struct{ excluded, memory, inUse, moment bool }

// about is the meaning of a label. Programs print few labels, again and again.
func (t *reader) about(name string) meaning {
	const maxKnown = 4096
	if m, ok := t.known[name]; ok {
		return m
	}
	phase := phaseIn.FindString(name)
	m := meaning{excluded.MatchString(name) || needs.MatchString(name) && !needless.MatchString(name), memory.MatchString(name), inUse.MatchString(name), phase != "" && !memory.MatchString(strings.TrimPrefix(name, phase))}
	if t.known == nil {
		t.known = map[string]meaning{}
	}
	if len(t.known) < maxKnown {
		t.known[strings.Clone(name)] = m
	}
	return m
}

// momentIn is a phase that a line names: up to six words behind before or after.
var momentIn = lazyregexp.New(`(?i)\b(?:before|after) [a-z_][\w./-]*(?: (?:[a-z_][\w./-]*)){0,5}`)

// moments reports whether a line may name a phase.
func moments(line string) bool {
	return strings.Contains(line, "efore ") || strings.Contains(line, "fter ")
}

// phaseIn is how loggers name a moment: "Before vllm offload in sharding manager".
var phaseIn = lazyregexp.New(`(?i)\b(?:before|after|during|at|around)\b.*`)

// defaultUnit is the factor of a number without a unit, 0 if that does not show. MB is what Detectron,
// mmcv and Keras print; getrusage counts KiB.
func defaultUnit(name, digits string) float64 {
	x := numberOf(digits)
	if m := unitIn.FindStringSubmatch(name); m != nil {
		return factors[lower(m[1][0])]
	}
	switch {
	case x >= 1<<20 && inBytes.MatchString(name):
		return 1
	case strings.Contains(strings.ToLower(name), "maxrss"):
		return 1 << 10
	case x < 1<<11 && strings.Contains(digits, ".") && statsName.MatchString(name): // of torchtune, in GiB
		return 1 << 30
	case inUse.MatchString(name) && strings.Contains(digits, ".") && x < 1<<10: // as TensorFlow's get_memory_info in GiB
		return 1 << 30
	case x >= 64 && x < 1<<20 && !strings.Contains(digits, ".") && shortName.MatchString(name):
		return 1 << 20
	}
	return 0
}

// inBytes are functions and fields of PyTorch, and names that say so.
var inBytes = lazyregexp.New(`(?i)memory_(?:allocated|reserved)\b|(?:^|_)bytes$|_bytes\.`)

// inUse are labels that are of memory where the line is.
var inUse = lazyregexp.New(`(?i)^(?:current|used|active|peak|in use)$`)

// statsName are the labels of torchtune's metrics.
var statsName = lazyregexp.New(`(?i)^peak_memory_(?:active|alloc|reserved)$`)

// shortName are labels that are nothing but memory.
var shortName = lazyregexp.New(`(?i)^(?:max[_ ]?|gpu[_ ]?|cuda[_ ]?|peak[_ ]?)?(?:mem|memory)$`)

func (t *reader) add(k key, n float64, line string) {
	if t.take != nil {
		t.take(k.name, n)
		return
	}
	s := t.byKey[k]
	if s == nil {
		if len(t.order) >= maxColumns {
			return
		}
		s = &series{key: k, peak: peaks.MatchString(k.name), cells: t.number == 0}
		t.byKey[k] = s
		t.order = append(t.order, s)
	}
	if t.kept >= maxLevels {
		return
	}
	t.kept++
	if len(line) > maxQuote {
		line = strings.ToValidUTF8(line[:maxQuote], "")
	}
	if s.lines[1] = line; len(s.readings) == 0 {
		s.lines[0] = line
	}
	s.readings = append(s.readings, reading{t.now, t.step, n, t.phase, line, t.number})
}

// lasts reports whether a series has so many readings, of more than one line: but for rows of a table,
// those of one are of one moment.
func (s *series) lasts(minReadings int) bool {
	n := len(s.readings)
	return n >= minReadings && (s.readings[0].number == 0 || s.readings[0].number != s.readings[n-1].number)
}

// columns are the series that are long enough.
func (t *reader) columns() (out []profiles.Column) {
	t.endTable()
	t.dropOnlyDevice()
	minReadings := 3
	if t.count <= maxExcerpt {
		minReadings = 2
	}
	for _, whole := range t.order {
		for _, s := range whole.byPhase() {
			if s.lasts(minReadings) || stillHeld.MatchString(s.name) {
				out = append(out, s.column())
			}
		}
	}
	return out
}

// column is a series as others read it.
func (s *series) column() profiles.Column {
	c := profiles.Column{Process: s.process, Name: s.name, Peak: s.peak, Lines: s.lines, Phase: s.phase}
	if s.phase != "" {
		c.Name += " " + s.phase
	}
	c.Times, c.Unit = s.axis()
	c.Kept = s.unreleasedPhase()
	c.Died = deaths.MatchString(s.lines[1])
	c.Logged = !s.cells && digitsOf.ReplaceAllString(s.lines[0], "") == digitsOf.ReplaceAllString(s.lines[1], "") && !sweeps.MatchString(s.lines[0])
	for _, r := range s.readings {
		c.Bytes = append(c.Bytes, r.bytes)
	}
	return c
}

// byPhase takes a series apart by the phases that its lines name, where that makes each long
// enough to be judged, or all are too short as they are.
func (s *series) byPhase() (out []*series) {
	const minEach, minAll = 3, 13 // readings
	parts := map[string]*series{}
	for i := range s.readings {
		r := &s.readings[i]
		part := parts[r.phase]
		if part == nil {
			part = &series{key: s.key, peak: s.peak, cells: s.cells, phase: r.phase, lines: [2]string{r.line, r.line}}
			parts[r.phase] = part
			out = append(out, part)
		}
		part.readings, part.lines[1] = append(part.readings, *r), r.line
	}
	longest, shortest := 0, len(s.readings)
	for _, part := range out {
		longest, shortest = max(longest, len(part.readings)), min(shortest, len(part.readings))
	}
	if s.cells || longest < minEach || shortest < minAll && len(s.readings) >= minAll {
		return []*series{s}
	}
	return out
}

// stillHeld are figures that say something alone: what an engine keeps while it sleeps.
var stillHeld = lazyregexp.New(`(?i)memory is still in use`)

// unreleasedPhase returns the phase, such as "after sleep", in which memory is to be given back, and at which
// next to nothing was; "" if there is none.
func (s *series) unreleasedPhase() string {
	const nearly = 0.95
	for i := 1; i < len(s.readings); i++ {
		before, r := s.readings[i-1], s.readings[i]
		if release.MatchString(r.phase) && r.phase != before.phase && r.bytes >= nearly*before.bytes && r.bytes > 0 {
			return r.phase
		}
	}
	return ""
}

// release are phases that give memory back.
var release = lazyregexp.New(`(?i)^after .*(?:sleep|offload|empty|release|unload|clean|\bdel\b|\bgc\b)`)

var (
	// deaths are words on the end of a program.
	deaths = lazyregexp.New(`(?i)\bOOM\b|\bdead\b|\bdied\b|\bkilled\b|\bcrash(?:es|ed)?\b|SIGKILL`)
	// digitsOf are the figures of a line.
	digitsOf = lazyregexp.New(`[\d.,]+`)
	// sweeps are words of lines whose levels rise by what they try, or load.
	sweeps = lazyregexp.New(`(?i)batch[ _]?size|\bbs ?=|seq(?:uence)?[ _]?len|context|tokens|resolution|shard|layers?\b|\bload|warm|\binit|\bnum_|frames`)
)

// axis are the times of the readings, else their steps, else their numbers.
func (s *series) axis() (at []float64, unit string) {
	rises := func(of func(i int) float64) bool {
		last := math.Inf(-1)
		for i := range s.readings {
			x := of(i)
			if math.IsNaN(x) || x <= last {
				return false
			}
			last = x
		}
		return true
	}
	time := func(i int) float64 { return s.readings[i].at - s.readings[0].at }
	step := func(i int) float64 { return s.readings[i].step }
	number := func(i int) float64 { return float64(i) }
	of, unit := number, "reading"
	switch {
	case rises(time):
		of, unit = time, ""
	case rises(step):
		of, unit = step, "step"
	}
	for i := range s.readings {
		at = append(at, of(i))
	}
	return at, unit
}

// label is the words next to a figure that say what it is.
func label(text string) string {
	const maxWords = 6
	if key := strings.TrimRight(text, "\"'[("); len(key) < len(text) && strings.HasSuffix(key, "=") { // key="[value]"
		return strings.Trim(key[strings.LastIndexByte(key, ' ')+1:], "\"'=")
	}
	if i := strings.LastIndexAny(text, ",;|`{["); i >= 0 {
		text = text[i+1:]
	}
	if i := strings.LastIndexByte(text, '('); i >= 0 && !strings.Contains(text[i:], ")") {
		text = text[i+1:]
	}
	if i := strings.LastIndex(text, "  "); i >= 0 && strings.Trim(text[i:], " :=") != "" {
		text = text[i+2:]
	}
	text = strings.Trim(text, " \t:=~*-_>\"'|`(")
	if i := strings.LastIndex(text, ": "); i >= 0 && memory.MatchString(text[i:]) {
		text = text[i+2:]
	}
	words := strings.Fields(text)
	for i := len(words) - 1; i >= 0; i-- { // "step 4 memory": the number is no part of the label
		if strings.Trim(words[i], "0123456789.,:)]") == "" {
			words = words[i+1:]
			break
		}
	}
	words = words[max(0, len(words)-maxWords):]
	return strings.Trim(strings.Join(words, " "), " :=~*\"'`")
}

// firstPart is a text up to its first delimiter.
func firstPart(text string) string {
	if i := strings.IndexAny(text, ",;|`)\"("); i >= 0 {
		text = text[:i]
	}
	if i := strings.Index(text, ". "); i >= 0 {
		text = text[:i]
	}
	return text
}

func numberOf(digits string) float64 {
	var x, scale float64
	for i := range len(digits) {
		switch c := digits[i]; {
		case c == '.':
			scale = 1
		case c >= '0' && c <= '9':
			x, scale = 10*x+float64(c-'0'), 10*scale
		}
	}
	if scale > 1 {
		return x / scale
	}
	return x
}

func lower(c byte) byte { return c | 0x20 }
