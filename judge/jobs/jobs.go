// Package jobs judges a job of many processes by the texts that it left: which rank fell first
// and why, who only followed, which texts are missing, and whether a restart will help. In go
// texts of package logs/ranks. Out comes a [Job], or nil for texts that are not of several ranks.
//
// It decides in four steps: who wrote what (identity.go), when that was (clock.go), what
// happened to each rank (falls.go), and why the first one fell (verdict.go; cause.go compares the
// memory of ranks).
package jobs

import (
	"fmt"
	"slices"
	"strings"

	"strandline/internal/secret"
	"strandline/internal/sorts"
	"strandline/logs/ranks"
	"strandline/torch/flight"
)

// A Cause is why a job ended.
type Cause string

// The causes.
const (
	Leak          Cause = "leak"
	LongInput     Cause = "long-input"
	Imbalance     Cause = "imbalance"
	TooLarge      Cause = "too-large"
	Fragmentation Cause = "fragmentation"
	OtherProcess  Cause = "other-process"
	Limit         Cause = "limit"
	HostMemory    Cause = "host-memory"
	NotMemory     Cause = "not-memory"
	None          Cause = "none"
	Unknown       Cause = "unknown"
)

// A Restart is what the same job does when it is started again from its last checkpoint.
type Restart string

// What a restart does.
const (
	Helps    Restart = "helps"
	Repeats  Restart = "repeats"
	NotKnown Restart = "unknown"
)

// A Job is the verdict on a job.
type Job struct {
	World      int // ranks
	First      First
	Cause      Cause
	Confidence float64 // of the cause
	Followers  int
	Missing    []int
	Restart    Restart
	Attempts   int // 1 and more

	// Failed reports whether the job ended before its end, for whatever reason.
	Failed bool
	// Rows are the ends of the ranks, at most 8,192: the first one first, then by time.
	Rows []Row
	// Differs is how the memory of the first rank differs from that of its peers, nil if it is
	// not known to.
	Differs *Difference

	Why   string // a sentence
	Text  string // the name of the text that shows it, "" if several do
	Line  int64
	Quote string
	Site  string // the line of the user's program
	Fix   string
}

// First is who fell first, by itself.
type First struct {
	Rank       int // -1 if unknown
	Node       string
	Confidence float64
}

// Evidence is what other files than texts show of the ranks.
type Evidence struct {
	// Grew are the places that keep memory in the snapshots of a rank.
	Grew map[int]string
	// Dumps are those of flight recorders.
	Dumps []*flight.Dump
}

// Judge judges the texts of a folder, or a single text. It is nil if they are not those of a
// job of several ranks.
func Judge(texts []*ranks.Text, more Evidence) *Job {
	texts = slices.Clone(texts)
	sorts.By(texts, byContent)
	j := &job{texts: texts, more: more, ranks: map[int]*rank{}, hosts: map[string]*node{}, unnamed: map[*ranks.Text]*node{}, named: map[*ranks.Text]hosts{}}
	j.identify()
	dumps := j.dumps()
	if j.recorded = record(dumps); j.world < 2 {
		j.world = worldOfDumps(dumps)
	}
	if len(j.ranks) < 2 && j.world < 2 || len(j.ranks) == 0 && len(dumps) < 2 {
		return nil
	}
	if two := j.mixed(); two != nil {
		return &Job{
			World: j.world, First: First{Rank: -1}, Cause: Unknown, Restart: NotKnown, Attempts: 1, Failed: true,
			Why: fmt.Sprintf("the texts are of two jobs at the same time: %s and %s are of one rank. Name the folder of one job", two[0].Name, two[1].Name),
		}
	}
	j.setClocks()
	j.fall()
	v := j.verdict()
	if v.Cause == Unknown && len(texts) == 1 && len(dumps) == 0 && j.stated < 2 {
		return nil // its numbers need not be ranks
	}
	v.Fix = v.fix()
	v.Failed = v.Cause != None && (v.Cause != Unknown || j.fell())
	v.Rows = j.rows(v)
	if j.former > 0 {
		v.Why += fmt.Sprintf("; texts of an earlier run are left out: %d", j.former)
	}
	if n := len(more.Dumps) - len(dumps); n > 0 {
		v.Why += fmt.Sprintf("; dumps of ranks that have several are left out: %d", n)
	}
	v.Quote = secret.Text(strings.ToValidUTF8(v.Quote, "?"))
	return v
}

// fell reports whether anything shows that a rank ended before its end.
func (j *job) fell() bool {
	return len(j.kills) > 0 || slices.ContainsFunc(j.exits, func(e exit) bool { return e.Code != 0 }) ||
		slices.ContainsFunc(j.order, func(r *rank) bool { return r.fall != nil && !r.fall.Caught })
}

// job is a job that is being judged.
type job struct {
	texts []*ranks.Text
	more  Evidence
	ranks map[int]*rank
	order []*rank // by number
	hosts map[string]*node
	// unnamed are the nodes of consoles that do not name theirs.
	unnamed map[*ranks.Text]*node
	named   map[*ranks.Text]hosts
	nodes   []*node
	nodeAt  map[int]*node // of ranks, nil until all nodes are known
	world   int
	stated  int // the world that texts state, 0 if none does
	layout  ranks.Layout
	// attempts is how often the job was started; the last one counts.
	attempts int
	began    float64 // of the last attempt; -Inf if there is one

	recorded recorded
	former   int // texts of earlier runs, which are left out

	loose   []loose // events of no known rank
	exits   []exit
	kills   []kill
	ended   []float64
	steps   []ranks.StepAt // of all ranks, by time
	courses courses
	maxStep int64
	planned int64
}

// rank is one process of the job.
type rank struct {
	n      int
	node   *node
	voices []heard
	events []event
	fall   *event // what ended it, nil if nothing is stated
	killed *kill
	exit   *exit
	pids   map[int]bool
}

// heard is a voice and its text.
type heard struct {
	*ranks.Voice
	text *ranks.Text
}

// event is an event of a rank, its time by the job's clock.
type event struct {
	ranks.Event
	text *ranks.Text
	at   float64
	rank int
}

// loose is an event whose rank the text does not tell.
type loose struct {
	event
	node   *node
	device int // -1
}

type exit struct {
	ranks.Exit
	text *ranks.Text
	at   float64
}

type kill struct {
	ranks.Kill
	text *ranks.Text
	at   float64
	rank int // -1
	node *node
}

// node is a host.
type node struct {
	names  []string
	ranks  map[int]bool
	base   int // the rank of local rank 0; -1 if unknown
	offset float64
}

// name is what the node is called.
func (n *node) name() string {
	if n == nil || len(n.names) == 0 {
		return ""
	}
	return n.names[0]
}

// byContent orders texts by what is in them, so that names do not matter.
func byContent(a, b *ranks.Text) int {
	if a.Lines != b.Lines {
		return int(a.Lines - b.Lines)
	}
	return slices.CompareFunc(a.Voices, b.Voices, func(v, w *ranks.Voice) int { return strings.Compare(v.Quote, w.Quote) })
}
