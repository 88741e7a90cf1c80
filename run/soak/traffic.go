package soak

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"strandline/face/api"
	"strandline/finding"
	"strandline/host/proc/procfs"
	"strandline/run/soak/load"
	"strandline/units"
)

// The share by which an engine's count of requests exceeds what was sent, and the number,
// from which on something else sends requests, too.
const (
	foreignShare = 1.1
	minForeign   = 5
)

// foreign returns the requests that the engine finished since the wave before, and the
// tokens that it generated, NaN if it does not count them, if it finished more than were
// sent.
func (e *experiment) foreign(i int) (requests, tokens float64, ok bool) {
	w := &e.doc.Waves[i]
	if i <= e.life || w.Load == nil || w.Engine == nil || w.Engine.Requests == nil {
		return 0, 0, false
	}
	before := e.doc.Waves[i-1].Engine
	if before == nil || before.Requests == nil {
		return 0, 0, false
	}
	requests = float64(*w.Engine.Requests - *before.Requests)
	if requests < foreignShare*float64(w.Load.Requests)+minForeign {
		return 0, 0, false
	}
	tokens = math.NaN()
	if now, was := w.Engine.OutputTokens, before.OutputTokens; now != nil && was != nil {
		tokens = float64(*now - *was)
	}
	return requests, tokens, true
}

// work is how many requests of a wave the server answered, in full or until they were
// canceled, and how many tokens it generated; those of others included, as far as the
// engine counts them.
func (e *experiment) work(i int) (requests, tokens float64) {
	if requests, tokens, ok := e.foreign(i); ok {
		return requests, tokens
	}
	l := e.doc.Waves[i].Load
	return float64(l.Completed + l.Aborted), float64(l.OutputTokens)
}

// traffic notes what else the server was asked, and how it held back what was sent.
func (e *experiment) traffic() {
	d := e.doc
	var sent, finished int64
	for i := range d.Waves {
		if n, _, ok := e.foreign(i); ok {
			sent, finished = sent+d.Waves[i].Load.Requests, finished+int64(n)
		}
	}
	if finished > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("something else sends requests, too: the engine finished %s while %s were sent. Growth is per request of all of them; without other traffic it would be more certain", units.Plural(finished, "request"), units.Plural(sent, "request")))
	}
	if n := d.Load.Errors[string(load.RateLimited)]; n > 0 {
		d.Notes = append(d.Notes, fmt.Sprintf("the server asked %s to wait (status 429, rate limited): the waves took as long as it demanded", units.Plural(n, "time")))
	}
	if l := &d.Load; l.Completed > 0 && l.OutputTokens == 0 {
		d.Notes = append(d.Notes, "no answer has text or counts tokens: is this a server that generates any?")
	}
}

// A lookout looks, in the first waves, for connections of the server to others that
// listen on this machine: it could be a proxy, whose memory says nothing of the server
// behind it. Looks are close at first, since waves can be short.
type lookout struct {
	at    time.Duration // the pause until the next look
	looks int
	found bool
}

// The looks of a wave: the first pause, which doubles, how many there are, and in how many
// waves.
const (
	firstLook = 2 * time.Millisecond
	maxLooks  = 10
	lookWaves = 3
)

// next returns the channel of the next look; nil if there is none.
func (l *lookout) next(wave int) <-chan time.Time {
	if l.found || wave > lookWaves || l.looks == maxLooks {
		return nil
	}
	if l.at == 0 {
		l.at = firstLook
	}
	t := time.After(l.at)
	l.at, l.looks = 2*l.at, l.looks+1
	return t
}

// forwards looks once, and notes what it finds.
func (e *experiment) forwards() (found bool) {
	root := procfs.Process(e.server.root.PID)
	children, _ := root.Descendants()
	peers := procfs.Peers(append(children, root))
	if len(peers) == 0 {
		return false
	}
	var texts []string
	for _, p := range peers {
		text := fmt.Sprintf("%s at %s (--pid %d)", name(&api.SoakProcess{PID: int(p.Process), Command: p.Process.Command()}), p.Address, int(p.Process))
		texts = append(texts, text)
	}
	slices.Sort(texts)
	e.add(fmt.Sprintf("%s has connections to %s, whose memory is not judged. If it forwards the requests there, soak that process with its --pid",
		name(&api.SoakProcess{PID: int(root), Command: root.Command()}), strings.Join(texts, ", ")))
	return true
}

// elsewhere takes back that nothing leaks if the requests may have been answered by
// processes that are not judged, unless the one that is was given.
func (e *experiment) elsewhere() {
	d := e.doc
	if e.o.PID != 0 || d.Verdict != finding.OK {
		return
	}
	switch {
	case e.forwarding:
		d.Missing = append(d.Missing, "the judged processes do not grow, but may forward the requests to others (see the note). Give the one that answers with --pid, which can also be a judged one")
	case e.server.note != "":
		d.Missing = append(d.Missing, "the judged processes do not grow, but may not answer all requests (see the note): give the process with --pid")
	default:
		return
	}
	d.Verdict, d.Stopped = finding.Unknown, false
}

// add adds a note, once.
func (e *experiment) add(text string) {
	if text != "" && !slices.Contains(e.doc.Notes, text) {
		e.doc.Notes = append(e.doc.Notes, text)
	}
}
