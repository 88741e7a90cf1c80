package ranks

import (
	"bytes"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"

	"strandline/logs/failure"
	"strandline/logs/text"
	"strandline/times"
)

// A flag is what the words of a line may be about.
type flag uint32

const (
	ofTrace flag = 1 << iota
	ofFrame
	ofStep
	ofLength
	ofMemory
	ofLoad
	ofRank
	ofError
	ofExit
	ofKernel
	ofSaving
	ofEnd
	ofWorld
	ofRestart
	ofSlow
	ofCapacity
	ofNCCL
	ofOOM
	ofFailure
	// What follows tells which expressions of launchers can match.
	ofAborting
	ofChild
	ofCode
	ofTask
	ofXid
	ofEnding
)

var words = []struct {
	word string
	flag flag
}{
	{"traceback(mostrecentcalllast)", ofTrace},
	{`file"`, ofFrame},
	{"step", ofStep}, {"iteration", ofStep}, {"it/s", ofStep}, {"s/it", ofStep}, {"|loss:", ofStep}, {"[batch=", ofStep},
	{"tokens", ofLength}, {"len", ofLength}, {"input_ids", ofLength}, {"padded", ofLength}, {"seq", ofLength}, {"longest", ofLength},
	{"alloc", ofMemory}, {"memory", ofMemory}, {"reserved", ofMemory}, {"mem", ofMemory}, {"vram", ofMemory},
	{"expert", ofLoad}, {"moe", ofLoad}, {"router", ofLoad}, {"dispatch", ofLoad},
	{"rank", ofRank}, {"cudadev", ofRank},
	{"processgroup", ofError}, {"what():", ofError}, {"connectionclosed", ofError}, {"connectionreset", ofError}, {"remoteprocess", ofError},
	{"brokenpipe", ofError}, {"timedout", ofError}, {"timeout", ofError}, {"nospaceleft", ofError}, {"diskquota", ofError}, {"cudaerror", ofError}, {"eccerror", ofError},
	{"hiperror", ofError}, {"fatalpythonerror", ofError}, {"segmentationfault", ofError}, {"buserror", ofError}, {"raytaskerror", ofError}, {"cannotallocatememory", ofError},
	{"actordied", ofError}, {"workercrashed", ofError}, {"fallenoffthebus", ofError}, {"illegalmemory", ofError}, {"socketerror", ofError}, {"peer", ofError},
	{"killingsubprocess", ofExit | ofAborting | ofChild}, {"spawnedwith", ofExit | ofChild}, {"abort", ofExit | ofAborting}, {"stoppingworker", ofExit | ofAborting}, {"requeu", ofExit | ofEnding}, {"drain", ofExit | ofEnding},
	{"exit", ofExit | ofCode}, {"task", ofExit | ofTask}, {"pid", ofExit}, {"rank:", ofExit}, {"host:", ofExit}, {"time:", ofExit}, {"traceback:", ofExit}, {"killed", ofExit}, {"processname", ofAborting},
	{"signal", ofExit | ofAborting | ofEnding}, {"terminat", ofExit | ofAborting}, {"cancelled", ofExit | ofEnding}, {"preempt", ofExit | ofEnding}, {"evicted", ofExit | ofEnding}, {"failures:", ofExit}, {"rootcause", ofExit}, {"failed", ofExit}, {"sigterm", ofExit | ofAborting | ofEnding}, {"====", ofExit}, {"----", ofExit},
	{"timelimit", ofEnding}, {"term_runlimit", ofEnding}, {"term_owner", ofEnding}, {"interruption", ofEnding},
	{"xid", ofKernel | ofXid}, {"kernel:", ofKernel},
	{"saving", ofSaving}, {"savecheckpoint", ofSaving}, {"writingcheckpoint", ofSaving}, {"savedcheckpoint", ofSaving}, {"savedmodel", ofSaving}, {"checkpoint", ofSaving},
	{"trainingcompleted", ofEnd}, {"trainingcomplete", ofEnd}, {"trainingfinished", ofEnd}, {"trainingisdone", ofEnd}, {"train_runtime", ofEnd}, {"exitssuccessfully", ofEnd}, {"finishedtraining", ofEnd}, {"donetraining", ofEnd}, {"completedtraining", ofEnd}, {"endoftraining", ofEnd},
	{"trainingdone", ofEnd}, {"100%|", ofEnd}, {"finalvalidation", ofEnd}, {"`trainer.fit`stopped", ofEnd}, {"exitedwithcode0", ofEnd}, {"jobcompleted", ofEnd}, {"succeeded", ofEnd}, {"trainingtime", ofEnd}, {"completedsuccessfully", ofEnd}, {"trainingtook", ofEnd},
	{"world", ofWorld}, {"nranks", ofWorld}, {"parallel", ofWorld}, {"devicemesh", ofWorld}, {"processes", ofWorld}, {"member:", ofWorld}, {"totalsteps", ofWorld}, {"totaltrainingsteps", ofWorld},
	{"totaloptimizationsteps", ofWorld}, {"max_steps", ofWorld}, {"nnodes", ofWorld}, {"--tp", ofWorld}, {"--pp", ofWorld}, {"tp=", ofWorld}, {"pp=", ofWorld},
	{"restart", ofRestart}, {"rendezvouscomplete", ofRestart}, {"attempt", ofRestart},
	{"slow", ofSlow}, {"stuck", ofSlow}, {"stalled", ofSlow}, {"waitingfor", ofSlow}, {"hung", ofSlow},
	{"capacity", ofCapacity}, {"mig", ofCapacity},
	{"ncclinfo", ofNCCL}, {"ncclwarn", ofNCCL},
}

// vocabulary is the words of a [reader]: its own, then those of the messages of PyTorch, then
// those of all others.
var vocabulary = sync.OnceValue(func() *text.Vocabulary {
	var all []string
	for _, w := range words {
		all = append(all, w.word)
	}
	all = append(all, failure.OOMWords()...)
	return text.NewVocabulary(append(all, failure.Words()...), nil)
})

// A Sizer calls take with the label and the bytes of each size of memory that a line states.
type Sizer func(line string, take func(name string, bytes float64))

// Read reads a text to its end, or to the error that it returns with what came before.
func Read(r io.Reader, name string, sizes Sizer) (*Text, error) {
	in := &watched{Reader: unrecorded(r)}
	t := &reader{
		sizesIn: sizes,
		out:     &Text{Name: name, World: map[int]int{}, Hosts: map[string]string{}}, voices: map[speaking]*voice{}, failed: map[processKey][]*voice{}, noKills: map[uint64]int{},
		step: -1, at: math.NaN(), ooms: len(words), others: len(words) + len(failure.OOMWords()),
	}
	var err error
	t.out.Lines, err = text.Each(in, vocabulary(), t, &t.out.Shape)
	t.table.end(t)
	t.localTags()
	t.out.Broken = in.last != '\n' && in.last != 0
	for _, v := range t.order {
		v.close(t)
		t.out.Voices = append(t.out.Voices, v.Voice)
	}
	return t.out, err
}

// watched remembers the last byte of a text.
type watched struct {
	io.Reader
	last byte
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.Reader.Read(p)
	if n > 0 {
		w.last = p[n-1]
	}
	return n, err
}

// A reader takes the lines of a text.
type reader struct {
	out     *Text
	voices  map[speaking]*voice
	order   []*voice
	failed  map[processKey][]*voice
	last    *voice // that spoke last
	attempt int
	step    int64   // the last one named by anybody
	at      float64 // the time of the last line that has one
	table   table   // of elastic
	ooms    int     // the index of the first of these words
	others  int
	looked  int64          // the last line in which a kill was looked for
	noKills map[uint64]int // lines that state none, by their shape
	ending  bool           // a launcher ends processes
	// described is the pod that `kubectl describe` describes.
	described string
	sizesIn   Sizer
}

// speaking identifies a voice.
type speaking struct {
	text.Speaker
	named   int
	attempt int
}

const (
	maxVoices = 1 << 15
	maxEvents = 48
	maxRankNo = 1 << 20
)

// A voice is one that is being read.
type voice struct {
	*Voice
	trace trace
	// sized is how many lines state sizes of memory; unread is the last of them, if it was not
	// read: of many lines every eighth is.
	sized  int
	unread lineOf
	// begins is the shape of the line with which the process began, 0 if it names no rank.
	begins uint64
	failed bool // it is among the failed ones of the reader
}

// again takes a line with which a process begins. If it is the second one, and the process had
// failed, another attempt begins, and all before it counts no more.
func (t *reader) again(v *voice, l *lineOf) {
	const maxBegin = 5 // lines
	if l.has&(ofRank|ofWorld) == 0 || l.has&(ofTrace|ofFrame|ofStep|ofError|ofOOM|ofFailure|ofNCCL) != 0 {
		return
	}
	if v.begins == 0 {
		if v.Lines <= maxBegin {
			v.begins = shape(l.rest)
		}
		return
	}
	if shape(l.rest) != v.begins {
		return
	}
	for _, x := range t.failedBeside(v) {
		x.failed = false
		if !slices.ContainsFunc(x.Events, Event.Ends) { // it has had many others since
			continue
		}
		x.Events, x.Step, x.Steps = nil, -1, nil
		x.Sizes, x.Lengths, x.Loads = map[string]*Series{}, map[string]*Series{}, map[string]*Series{}
		x.Again++
		t.step = -1
	}
}

// Ends reports whether an event ends its process.
func (e Event) Ends() bool { return !e.Caught && (e.Kind.Own() || e.Kind == Lost || e.Kind == Waited) }

// A processKey is a process of one attempt. It has a voice for the lines that name its rank, and
// one for the others.
type processKey struct {
	text.Speaker // the outer one, with the rank of the voice
	attempt      int
}

func (t *reader) fail(v *voice) {
	if !v.failed {
		p := processKey{v.Speaker, v.Attempt}
		t.failed[p] = append(t.failed[p], v)
		v.failed = true
	}
}

// failedBeside takes the voices of v's process that have failed.
func (t *reader) failedBeside(v *voice) (out []*voice) {
	take := func(rank int) {
		p := processKey{v.Speaker, v.Attempt}
		p.Rank = rank
		if x := t.failed[p]; x != nil {
			out = append(out, x...)
			delete(t.failed, p)
		}
	}
	if len(t.failed) == 0 {
		return nil
	}
	take(-1)
	for rank := range v.Ranks {
		take(rank)
	}
	return out
}

// Idle implements [text.Reader].
func (t *reader) Idle(int64) bool { return false }

// Line implements [text.Reader].
func (t *reader) Line(number int64, line []byte, hits []text.Hit) {
	var has flag
	for _, h := range hits {
		switch w := int(h.Word); {
		case w < t.ooms:
			has |= words[w].flag
		case w < t.others:
			has |= ofOOM
		default:
			has |= ofFailure
		}
	}
	who, rest, stamp := text.SpeakerOf(line)
	if len(rest) < len(line) && text.HasPrefix(rest, " ") {
		rest = rest[1:] // of the prefix
	}
	at, ok := math.NaN(), false
	if x, _, found := times.Dated(string(rest[:min(len(rest), 100)])); found {
		at, ok = x, true
	} else if x, _, found := times.Dated(string(stamp)); found {
		at, ok = x, true
	}
	if ok {
		t.at = at
	}
	named, local := -1, -1
	if has&ofRank != 0 {
		named, local = writer(rest)
	}
	if text.HasPrefix(rest, describes) {
		t.described = string(bytes.TrimSpace(rest[len(describes):]))
	}
	v := t.voice(who, named)
	v.note(number, at, rest, who, named, local)
	if has&ofNCCL != 0 {
		if m := ncclHost.FindSubmatch(rest); m != nil {
			v.Host = string(m[1])
			v.PIDs[atoi(m[2])]++
		}
	}
	l := lineOf{number, line, rest, hits, at, ok, has, 0}
	t.again(v, &l)
	t.read(v, l)
	t.last = v
}

// describes is how `kubectl describe` begins.
const describes = "Name:"

// lineOf is a line with all that was found in it.
type lineOf struct {
	number int64
	whole  []byte
	rest   []byte
	hits   []text.Hit
	at     float64
	timed  bool
	has    flag
	step   int64 // of an unread line
}

// voice is the voice that a line is of.
func (t *reader) voice(who text.Speaker, named int) *voice {
	key := speaking{who, named, t.attempt}
	if who.Rank >= 0 {
		key.named = -1
	}
	v := t.voices[key]
	if v == nil {
		if len(t.order) >= maxVoices {
			key = speaking{Speaker: text.Speaker{Rank: -1, Tag: -1, Label: -1}, named: -1}
			if v = t.voices[key]; v != nil {
				return v
			}
		}
		v = &voice{Voice: newVoice(who, t.attempt)}
		t.voices[key] = v
		t.order = append(t.order, v)
	}
	return v
}

// note keeps what any line shows of its voice.
func (v *voice) note(number int64, at float64, rest []byte, who text.Speaker, named, local int) {
	v.Lines++
	v.Number = number
	if !math.IsNaN(at) {
		if math.IsNaN(v.First) {
			v.First = at
		}
		v.Last = at
		if len(v.Said) < maxSaid {
			v.Said = append(v.Said, Saying{shape(rest), at})
		}
	}
	if named >= 0 && named < maxRankNo {
		v.Ranks[named]++
		if local >= 0 {
			v.Bases[named-local]++
		}
	}
	if who.Rank >= 0 && who.Rank < maxRankNo {
		v.Prefixed++
		if local >= 0 && named < 0 {
			v.Bases[who.Rank-local]++
		}
	}
	if local >= 0 {
		v.Locals[local]++
	}
	if len(rest) > 0 {
		v.Quote = string(rest[:min(len(rest), maxQuote)])
	}
}

const (
	maxSaid  = 40
	maxQuote = 400
)

// shape hashes a line without its digits.
func shape(line []byte) uint64 {
	h := uint64(14695981039346656037)
	for _, c := range line[:min(len(line), 120)] {
		if text.Digit(c) {
			continue
		}
		h = (h ^ uint64(c)) * 1099511628211
	}
	return h
}

// notWriter are words before "rank" by which it is another's, or of another kind.
var notWriter = []string{"local", "parallel", "from", "peer", "remote", "group", "node", "machine", "tensor", "pipeline", "expert", "src", "dst", "source", "root", "to", "of", "with", "lora", "r_", "role", "on", "for", "dp", "tp", "pp", "ep", "cp", "host", "last", "n"}

// writer returns the rank, and the local rank or device, that a line names as its writer's; -1
// where it names none.
func writer(line []byte) (rank, local int) {
	const maxLook = 160
	rank, local = -1, -1
	head := bytes.ToLower(line[:min(len(line), maxLook)])
	for from := 0; ; {
		i := bytes.Index(head[from:], []byte("rank"))
		if i < 0 {
			break
		}
		i += from
		from = i + len("rank")
		x, ok := numberAfter(head[from:])
		if !ok {
			continue
		}
		before := strings.TrimRight(string(head[:i]), " _-")
		word := before[strings.LastIndexAny(before, " ,;([_-=:|\"'")+1:]
		switch {
		case strings.HasSuffix(before, "local"):
			if local < 0 {
				local = x
			}
		case rank >= 0, word != "" && text.Letter(word[len(word)-1]) && other(word):
		default:
			rank = x
		}
	}
	for _, key := range []string{"cudadev ", "device: cuda:", "best-guess gpu ", "using gpu "} {
		if i := bytes.Index(head, []byte(key)); i >= 0 && local < 0 {
			if x, ok := numberAfter(head[i+len(key):]); ok {
				local = x
			}
		}
	}
	return rank, local
}

func other(word string) bool {
	return slices.Contains(notWriter, word)
}

// numberAfter reads the number behind a key: ": 7", "=7", " 7".
func numberAfter(s []byte) (int, bool) {
	n := text.Run(s, 3, func(c byte) bool { return c == ' ' || c == ':' || c == '=' || c == '_' || c == '#' || c == '-' })
	digits := text.Digits(s[n:])
	if len(digits) == 0 || len(digits) > 6 || n+len(digits) < len(s) && (text.Letter(s[n+len(digits)]) || s[n+len(digits)] == '_' || s[n+len(digits)] == '.' && n+len(digits)+1 < len(s) && text.Digit(s[n+len(digits)+1])) {
		return 0, false
	}
	x, err := strconv.Atoi(string(digits))
	return x, err == nil
}

// localTags finds out whether "[rank3]:" is the tag of a launcher, which is the local rank: then
// other lines have PyTorch's own prefix behind it, or name another rank as their writer.
func (t *reader) localTags() {
	local, equal := 0, 0
	for _, v := range t.order {
		switch {
		case v.Word == "rank" && v.Rank >= 0:
			if v.Tag != v.Rank {
				local++
			} else {
				equal++
			}
		case v.Rank >= 0 && v.Tag < 0:
			for r, n := range v.Ranks {
				if n > 1 && r != v.Rank {
					local++
				} else if r == v.Rank {
					equal++
				}
			}
		}
	}
	t.out.Local = local > equal
	for _, v := range t.order {
		if v.Rank >= 0 && v.Tag < 0 && t.out.Local {
			v.Tag, v.Word, v.Rank = v.Rank, "rank", -1
		}
		if v.Rank >= 0 {
			v.Ranks[v.Rank] += int(v.Prefixed)
		}
	}
}

// sizes keeps the sizes of memory that a line states, of many lines some and the last.
func (t *reader) sizes(v *voice, l lineOf) {
	const (
		maxSeries = 24
		all       = 128
		each      = 8
	)
	if v.sized++; v.sized > all && v.sized%each != 0 {
		rest := append(v.unread.rest[:0], l.rest...)
		v.unread = lineOf{rest: rest, at: l.at, step: t.step}
		return
	}
	v.unread.rest = v.unread.rest[:0]
	step := t.step
	if v.sized < 0 {
		step = l.step
	}
	t.sizesIn(string(l.rest[:min(len(l.rest), 1024)]), func(name string, n float64) {
		name = strings.ToLower(name)
		s := v.Sizes[name]
		if s == nil {
			if len(v.Sizes) == maxSeries {
				return
			}
			s = &Series{}
			v.Sizes[name] = s
		}
		s.add(Point{step, l.at, n})
	})
}

// close reads the last sizes of a voice.
func (v *voice) close(t *reader) {
	if len(v.unread.rest) > 0 {
		l := v.unread
		v.unread, v.sized = lineOf{}, math.MinInt/2
		t.sizes(v, l)
	}
}
