package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"strandline/face/api"
	"strandline/face/report"
	"strandline/judge/diagnosis"
	"strandline/record"
	"strandline/units"
)

// recordProgress prints lines on what is recorded while a command runs.
type recordProgress struct {
	g         *globals
	on        bool
	began     time.Time
	next      time.Time
	processes map[int]bool
	ooms      int
}

// show prints what is new, and a summary after a minute, two, four and so on.
func (p *recordProgress) show(m *record.Manifest) {
	if !p.on {
		return
	}
	if p.processes == nil {
		p.processes = map[int]bool{}
		p.next = p.began.Add(time.Minute)
	}
	for i := range m.Processes {
		q := &m.Processes[i]
		if !p.processes[q.PID] {
			p.processes[q.PID] = true
			p.g.warn("recording %s since %s: %s", q.DisplayName(), q.Since.Local().Format(time.TimeOnly), q.Command)
		}
	}
	if n := m.Failures(); n > p.ooms {
		p.ooms = n
		p.g.warn("memory ran out; a snapshot was taken")
	}
	if now := time.Now(); now.After(p.next) && len(m.Processes) > 0 {
		p.next = now.Add(now.Sub(p.began))
		p.g.warn("%s", recordedSummary(m))
	}
}

// recordedSummary states in a line what a recording holds.
func recordedSummary(m *record.Manifest) string {
	var snapshots, bytes, events int64
	for _, p := range m.Processes {
		for _, d := range p.Dumps {
			snapshots++
			bytes += d.Bytes
		}
		if n := len(p.Dumps); n > 0 {
			events += p.Dumps[n-1].Events
		}
	}
	return fmt.Sprintf("recorded %s, %s (%s) with %s in the newest",
		units.Plural(int64(len(m.Processes)), "process"), units.Plural(snapshots, "snapshot"), units.Bytes(bytes), units.Plural(events, "event"))
}

// recorded prints what was recorded, and judges it.
func (g *globals) recorded(ctx context.Context, dir string, m *record.Manifest) {
	if g.json {
		report.JSONLine(g.env.stderr, m)
		return
	}
	notes := m.NoteTexts()
	switch {
	case len(m.Processes) > 0:
		g.warn("%s: %s", dir, recordedSummary(m))
	case len(notes) > 0: // they state why
		g.warn("nothing was recorded")
	default:
		g.warn("nothing was recorded: %s", m.Unrecorded())
	}
	if !slices.ContainsFunc(m.Processes, func(p record.Process) bool { return len(p.Dumps) > 0 }) {
		g.notes(notes)
		return
	}
	env := *g.env
	env.stdout, env.stdoutTerminal, env.args = g.env.stderr, g.env.stderrTerminal, nil
	if err := (&globals{env: &env, printing: g.printing}).diagnose(ctx, diagnosis.Options{}, []string{dir}, onProblem); err != nil {
		if _, reported := err.(exit); !reported {
			g.warn("it cannot be judged: %v", err)
		}
	}
}

// notes prints what could not be recorded.
func (g *globals) notes(notes []string) {
	const maxNotes = 12
	for _, n := range notes[:min(maxNotes, len(notes))] {
		g.warn("%s", n)
	}
	if more := len(notes) - maxNotes; more > 0 {
		g.warn("and %s in %s", units.Plural(int64(more), "more note"), record.ManifestName)
	}
}

// recordingStatus is what the recording in a folder has so far, also of processes that ended.
func recordingStatus(dir string) (*api.RecordStatus, error) {
	m, err := record.ReadManifest(dir)
	if err != nil {
		return nil, fmt.Errorf("%s does not hold a recording: %w", dir, err)
	}
	doc := &api.RecordStatus{Schema: api.RecordStatusSchema, Processes: []record.Status{}, Notes: m.NoteTexts()}
	for _, p := range m.Processes {
		s := record.Status{PID: p.PID, Role: p.Role, Rank: p.Rank, Steps: p.Steps, Dumps: len(p.Dumps), Folder: dir, Ended: p.Ended || m.Ended != nil}
		for _, d := range p.Dumps {
			if d.Step != nil {
				s.Steps = max(s.Steps, *d.Step)
			}
		}
		doc.Processes = append(doc.Processes, s)
	}
	return doc, nil
}

// recordingNow is what the recorders of this machine's processes answer.
func recordingNow(ctx context.Context) *api.RecordStatus {
	doc := &api.RecordStatus{Schema: api.RecordStatusSchema, Processes: []record.Status{}}
	pids := record.Running()
	answers := make([]func(), len(pids))
	var wait sync.WaitGroup
	for i, pid := range pids {
		wait.Go(func() {
			s, err := recorderStatus(ctx, pid)
			answers[i] = func() {
				if err != nil {
					doc.Notes = append(doc.Notes, fmt.Sprintf("process %d: %v", pid, err))
					return
				}
				s.PID = pid // as it is seen here
				doc.Processes = append(doc.Processes, s)
			}
		})
	}
	wait.Wait()
	for _, answer := range answers {
		answer()
	}
	return doc
}

func recorderStatus(ctx context.Context, pid int) (record.Status, error) {
	c, err := record.Dial(ctx, pid)
	if err != nil {
		return record.Status{}, err
	}
	defer c.Close()
	return c.Status()
}

// recordStatus lists the processes of this machine that are recorded, or those of the
// recordings in some folders.
func recordStatus(ctx context.Context, g *globals, dirs []string) error {
	doc := &api.RecordStatus{Schema: api.RecordStatusSchema, Processes: []record.Status{}, Notes: []string{}}
	if len(dirs) == 0 {
		doc = recordingNow(ctx)
	}
	for _, dir := range dirs {
		of, err := recordingStatus(dir)
		if err != nil {
			return err
		}
		doc.Processes, doc.Notes = append(doc.Processes, of.Processes...), append(doc.Notes, of.Notes...)
	}
	return g.print(doc, func(w io.Writer, _ report.Style) {
		defer g.notes(doc.Notes)
		switch {
		case len(doc.Processes) == 0 && len(dirs) > 0:
			fmt.Fprintln(w, "no process has been recorded")
			return
		case len(doc.Processes) == 0:
			fmt.Fprintln(w, "no process is being recorded")
			return
		}
		t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
		fmt.Fprintln(t, "pid\trank\trole\tsteps\tsnapshots\tstate\tfolder")
		for _, s := range doc.Processes {
			rank := "-"
			if s.Rank != nil {
				rank = fmt.Sprint(*s.Rank)
			}
			state := "recording"
			if s.Ended {
				state = "ended"
			}
			fmt.Fprintf(t, "%d\t%s\t%s\t%d\t%d\t%s\t%s\n", s.PID, rank, report.Line(s.Role), s.Steps, s.Dumps, state, report.Line(s.Folder))
		}
		t.Flush()
	})
}

func newSnapshot(g *globals) *cobra.Command {
	pid, within := 0, record.SnapshotTime
	c := &cobra.Command{
		Use:   "snapshot --pid N",
		Short: "Take a snapshot of a recorded process now",
		Long: `Take a snapshot of a process that ` + "`" + `strandline record -- CMD` + "`" + ` records, and print
its path. If the process is in a container, so is the path. No other process can
answer: the kernel identifies the sender, and the path lies in the folder of the
recording.`,
		Example: "  strandline snapshot --pid 4242\n  strandline inspect -- \"$(strandline snapshot --pid 4242)\"",
		Args:    noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if _, err := reachable(pid); err != nil {
				return err
			}
			control, err := record.Dial(c.Context(), pid)
			if errors.Is(err, record.ErrNotRecorded) {
				return fmt.Errorf("%w; start it by `strandline record -- CMD`", err)
			}
			if err != nil {
				return err
			}
			defer control.Close()
			path, err := control.Snapshot("call", within)
			if err != nil {
				return fmt.Errorf("process %d: %w", pid, err)
			}
			doc := api.Snapshot{Schema: api.SnapshotSchema, Path: path}
			return g.print(doc, func(w io.Writer, _ report.Style) { fmt.Fprintln(w, path) })
		},
	}
	c.Flags().IntVar(&pid, "pid", 0, "the process `N`")
	c.Flags().DurationVar(&within, "timeout", within, "wait no longer than `TIME`")
	c.MarkFlagRequired("pid")
	return c
}
