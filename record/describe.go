package record

import (
	"fmt"
	"slices"
	"time"

	"strandline/internal/shell"
)

// DisplayName names the process in findings and messages.
func (p *Process) DisplayName() string {
	name := fmt.Sprintf("pid%d", p.PID)
	if p.Rank != nil {
		name = fmt.Sprintf("rank%d %s", *p.Rank, name)
	}
	if p.Role != "" {
		name += " (" + p.Role + ")"
	}
	return name
}

// NoteTexts are the notes as sentences, each once.
func (m *Manifest) NoteTexts() []string {
	notes := []string{}
	for _, n := range m.Notes {
		if text := m.NoteText(n); !slices.Contains(notes, text) {
			notes = append(notes, text)
		}
	}
	return notes
}

// NoteText is a note as a sentence.
func (m *Manifest) NoteText(n Note) string {
	switch p := m.Find(n.PID); {
	case p != nil:
		return p.DisplayName() + ": " + n.Why
	case n.Command != "":
		command := n.Command
		if r := []rune(command); len(r) > 80 {
			command = string(r[:79]) + "…"
		}
		return fmt.Sprintf("pid%d (%s): %s", n.PID, command, n.Why)
	}
	return n.Why
}

// Unrecorded says why a recording without notes has no process, and which command judges the
// other memory of what ran.
func (m *Manifest) Unrecorded() string {
	text := "no process that loads the recorder used PyTorch for a second or longer"
	if len(m.Command) > 0 {
		text += "; this judges their other memory: strandline check -- " + shell.Line(m.Command...)
	}
	return text
}

// Again shows how to record a process so that it can be judged, in the way in which it was
// recorded: with more snapshots or a longer time, and with a ring of so many entries, 0 where
// it was large enough.
func (m *Manifest) Again(p *Process, entries int64) string {
	const snapshots = 10 // about as many of a run of the same length
	end := p.Since
	for _, d := range p.Dumps {
		end = d.Time
	}
	if m.Ended != nil {
		end = *m.Ended
	}
	recorded := end.Sub(p.Since)
	every, longer := fmt.Sprintf("%dsteps", max(1, p.Steps/snapshots)), "# let it run through ten steps or more"
	if p.Steps == 0 {
		every = max(time.Second, (recorded / snapshots).Truncate(time.Second)).String()
		longer = "# let it run through ten requests, batches or steps; --steps MODULE:FUNCTION counts the calls of a function as steps"
	}
	flag, argument := "", ""
	if entries > 0 {
		flag, argument = fmt.Sprintf(" --entries %d", entries), fmt.Sprintf(", entries=%d", entries)
	}
	switch {
	case len(p.Dumps) > 0 && p.Dumps[0].Reason == "outside" && p.Dumps[0].Events == 0 && len(p.Dumps[0].Devices) == 0:
		return fmt.Sprintf("sudo strandline trace --pid %d --duration 60s", p.PID)
	case len(p.Dumps) > 0 && p.Dumps[0].Reason == "outside":
		duration := max(time.Minute, (4 * recorded).Round(time.Second))
		return fmt.Sprintf("sudo strandline record --pid %d --duration %s%s\n# long enough for ten steps or more; strandline record -- CMD… knows from the start what allocated the memory", p.PID, duration, flag)
	case m.Strandline == "": // by a call in the program
		if p.Steps == 0 {
			longer = "# call strandline.step() after each request, batch or step, and let it run through ten of them"
		}
		return fmt.Sprintf("import strandline\nstrandline.start(\"recording\", every=\"%s\"%s)  # before the model is created\n%s", every, argument, longer)
	}
	return fmt.Sprintf("strandline record --every %s%s -- %s\n%s", every, flag, shell.Line(m.Command...), longer)
}

// FreedAtExit reports whether the process held less at its exit than in the snapshot
// before: what it kept until then would look as if nothing was kept.
func (p *Process) FreedAtExit() bool {
	var before, now int64
	for _, d := range p.Dumps {
		before, now = now, 0
		for _, u := range d.Devices {
			now += u.Allocated
		}
	}
	return now < before
}
