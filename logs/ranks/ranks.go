// Package ranks reads the texts of a job of many processes. In goes the log of one rank, of a
// node, or of a whole job. Out comes a [Text]: its voices, which are what one process wrote, with
// their events, steps, sizes of memory and lengths of samples; and what launchers and kernels
// state about processes. It does not judge: package judge/jobs knows which voices are a rank.
package ranks

import (
	"math"
	"slices"

	"strandline/logs/failure"
	"strandline/logs/text"
)

// A Text is what a text shows of a job.
type Text struct {
	Name  string
	Lines int64
	Shape text.Shape // of its beginning
	// Broken reports whether the last line has no end.
	Broken bool
	Voices []*Voice
	Exits  []Exit
	Kills  []Kill
	// Restarts are the moments at which a launcher began another attempt.
	Restarts []Moment
	Ended    []Moment    // a scheduler or a user ended the job: preempted, canceled
	Lived    []Moment    // statements that the work is complete
	Saving   []Moment    // statements that a checkpoint is written
	Local    bool        // the tags "[rank3]:" are local ranks
	World    map[int]int // sizes of the world that are stated, with how often
	Layout   Layout
	Planned  int64             // steps; 0 if it is not stated
	Slices   []float64         // sizes of MIG slices, in GB, as their names say
	Children []int             // processes that a launcher started or ended, by local rank
	Aborted  bool              // a launcher ended the others, as one had failed
	Task     string            // the name of the host that a kernel's log is of
	Hosts    map[string]string // by address, as lines of the same process state both
}

// A Layout is how ranks are divided; 0 is not stated.
type Layout struct{ Tensor, Pipeline, Data, Expert, Context int }

// A Moment is a line and its time.
type Moment struct {
	At    float64 // seconds, as [Voice] has them; NaN if unknown
	Line  int64
	Step  int64 // the last one that was named before; -1 if there is none
	Quote string
}

// A Voice is what a text has from one process.
type Voice struct {
	text.Speaker
	Attempt int
	Ranks   map[int]int // ranks that its lines name as their writer, by count
	Locals  map[int]int // local ranks or devices, likewise
	Bases   map[int]int // rank minus local rank, where a line states both
	Host    string      // that its lines name
	PIDs    map[int]int
	Lines   int64
	// Prefixed is how many lines have PyTorch's own prefix.
	Prefixed int64
	First    float64 // times of its first and its last line in seconds since 1970, or since 2000 without year; NaN if unknown
	Last     float64
	Number   int64 // of the last line
	Step     int64 // the last that its own lines name; -1
	Steps    []StepAt
	Said     []Saying
	Events   []Event
	Sizes    map[string]*Series // of memory in bytes, by label
	Lengths  map[string]*Series // of samples in tokens
	Loads    map[string]*Series // of experts in tokens
	GPU      int64              // bytes of its device, as it states; 0 if unknown
	Slice    bool               // the device is a MIG slice
	Again    int                // how often the process began anew after a failure, which is left out
	Quote    string             // the last line
}

// A StepAt is a step and when it was named.
type StepAt struct {
	Step int64
	At   float64
}

// A Saying is a line that others write likewise at the same moment, without its digits.
type Saying struct {
	Hash uint64
	At   float64
}

// A Kind is what happened to a process.
type Kind int

// The kinds of events.
const (
	Nothing  Kind = iota
	RanOut        // of the device's memory
	Host          // of the host's
	Device        // the GPU failed
	Disk          // full
	Raised        // another exception, or a crash
	Lost          // a peer is gone
	Waited        // for a peer, in vain
	Signaled      // to write down what it waits for
	Stopped       // by a signal of a launcher or scheduler
	Slow          // it reports that something takes long
	Driver        // an error of another process, reported
)

// Own reports whether such an event is a failure of the process itself.
func (k Kind) Own() bool { return k >= RanOut && k <= Raised }

// An Event is what happened to a process, as it states.
type Event struct {
	Kind  Kind
	Line  int64
	At    float64 // seconds; NaN if unknown
	Timed bool    // the line has the time; else it is that of the last line before that has one
	Step  int64   // the last one named before it in the text; -1
	Quote string
	Site  string // the line of the user's program, of a traceback
	OOM   *failure.OOM
	// Chained reports whether it happened while another one was handled.
	Chained bool
	// Caught reports whether it is a line of a logger, not a traceback's end.
	Caught  bool
	Phase   string // of a traceback: forward, backward, optimizer, model, save
	Seq     int64  // of the collective, -1
	Enqueue int64  // the last enqueued, -1
	PID     int    // of the process that is reported
	IP      string
}

// An Exit is how a process ended, as a launcher states it.
type Exit struct {
	Ranks   []int // or tasks
	Task    bool  // the numbers are of tasks, which may be nodes
	Local   int   // -1
	Host    string
	PID     int
	Code    int    // of the exit; minus the signal
	State   string // in words
	At      float64
	Line    int64
	Attempt int
	Kind    Kind // of the message that is quoted for it
	Message string
	OOM     *failure.OOM
	Root    bool // the launcher calls it the first
	After   bool // the launcher was ending the others by then
}

// A Kill is a process ended for the host's memory.
type Kill struct {
	Host    string
	PID     int
	At      float64
	Line    int64
	Attempt int
	Rank    int // -1
	Quote   string
	Source  failure.Source
}

// A Series is numbers that a voice states again and again.
type Series struct {
	Points []Point
	Last   Point
	every  int
	skip   int
}

// A Point is a number at a step.
type Point struct {
	Step  int64 // -1 if unknown
	At    float64
	Value float64
}

const maxPoints = 256

// add keeps a point; of many, each second one.
func (s *Series) add(p Point) {
	s.Last = p
	if s.skip > 0 {
		s.skip--
		return
	}
	if len(s.Points) == maxPoints {
		for i := range maxPoints / 2 {
			s.Points[i] = s.Points[2*i]
		}
		s.Points = s.Points[:maxPoints/2]
		s.every = 2*s.every + 1
	}
	s.Points = append(s.Points, p)
	s.skip = s.every
}

// Values are the numbers in their order, with the last.
func (s *Series) Values() (out []float64) {
	for _, p := range s.Points {
		out = append(out, p.Value)
	}
	if n := len(s.Points); n == 0 || s.Points[n-1] != s.Last {
		out = append(out, s.Last.Value)
	}
	return out
}

func newVoice(s text.Speaker, attempt int) *Voice {
	return &Voice{
		Speaker: s, Attempt: attempt, Ranks: map[int]int{}, Locals: map[int]int{}, Bases: map[int]int{}, PIDs: map[int]int{},
		First: math.NaN(), Last: math.NaN(), Step: -1,
		Sizes: map[string]*Series{}, Lengths: map[string]*Series{}, Loads: map[string]*Series{},
	}
}

// OfMemory reports whether the text states that memory ran out, of a device or of the host.
func (t *Text) OfMemory() bool {
	return len(t.Kills) > 0 || slices.ContainsFunc(t.Voices, func(v *Voice) bool {
		return slices.ContainsFunc(v.Events, func(e Event) bool { return e.Kind == RanOut || e.Kind == Host })
	})
}
