// Package diagnosis judges what package input opened, so that files have one verdict whoever
// asks: a command, the page, or the static site. In go inputs, one after another. Out comes
// an [Answer]: a verdict, the findings, and the parts that a face renders.
//
// Which package judges depends on the kind of the inputs alone: judge/snapshots has snapshots,
// judge/texts has logs, judge/tables has what other programs wrote, judge/samples has the recording of a
// watch, and judge/processes has that of a trace, with the snapshots beside it.
package diagnosis

import (
	"context"
	"regexp"
	"slices"
	"sync"

	"strandline/finding"
	"strandline/host/gpu/gpuaccount"
	"strandline/host/sampling/sample"
	"strandline/host/store/recording"
	"strandline/input"
	"strandline/judge/jobs"
	"strandline/judge/processes"
	"strandline/judge/samples"
	"strandline/judge/snapshots"
	"strandline/judge/tables"
	"strandline/judge/texts"
	"strandline/judge/verdict"
	"strandline/logs"
	"strandline/torch/compare"
	"strandline/torch/digest"
	"strandline/torch/snapshot"
	"strandline/torch/timeline"
)

// Options are what the user knows beyond the files.
type Options struct {
	Group    *regexp.Regexp // matches a process in the path of a file; nil if the files tell
	Capacity *int64         // bytes of memory of each device, nil if unknown
	Limit    *int64         // bytes that the levels of tables must not reach, nil if there is none
}

// A Session collects inputs, and judges them together.
type Session struct {
	Book    *digest.Book
	all     *input.Files // also those of which a job has all
	files   *input.Files // the others
	job     *Job         // that they are of, nil if they are of none
	options Options
	// ofTables reports whether the files are tables, which looks at each of them once.
	ofTables func() bool

	snapshots []*digest.File
	logs      []*logs.File
	tables    []*input.Table
	trace     *input.Trace
	watch     *Watched
	paused    []*input.Pauses
	reserved  []gpuaccount.Reserved // by snapshot, where the devices were traced
	untraced  []string
	skipped   []string
}

// Watched is what the recording of a watch shows.
type Watched struct {
	Last    *sample.Sample // nil if there is none
	Samples int
	Partial error // why it was read in part, nil if it was not

	findings []finding.Finding
}

// An Answer is what was found in the files of a session. One of Snapshots, Series, Trace and
// Watch is not nil.
type Answer struct {
	Verdict  finding.Verdict
	Findings []finding.Finding

	Snapshots *snapshots.Answer
	Texts     *texts.Answer // beside snapshots, or alone
	Paused    []Paused      // beside snapshots
	Series    []tables.Series
	Trace     *recording.Run
	Watch     *Watched
	Job       *jobs.Job // of several ranks, beside any of these; nil if the files are not of one

	// Skipped are the paths of files that are of another kind than those that were judged.
	Skipped []string
	// Untraced are sentences on snapshots beside a trace that are of other processes.
	Untraced []string
	// Partial reports whether a file that was judged was read in part.
	Partial bool
}

// New begins a session of some files.
func New(files *input.Files, o Options) *Session {
	return &Session{Book: digest.NewBook(), all: files, files: files, ofTables: sync.OnceValue(files.Tables), options: o}
}

// Add takes an input. The trace comes before the snapshots beside it. The error is that of
// reading the samples of a watch.
func (s *Session) Add(ctx context.Context, in input.Input) error {
	switch in := in.(type) {
	case *input.Snapshot:
		s.AddSnapshot(in.Origin().Path, in.Snapshot)
	case *input.Log:
		s.logs = append(s.logs, asText(in))
	case *input.Pauses:
		s.paused = append(s.paused, in)
	case *input.Table:
		s.tables = append(s.tables, in)
	case *input.Trace:
		s.AddTrace(in)
	case *input.Watch:
		return s.follow(ctx, in)
	}
	return nil
}

// AddTrace takes the recording of a trace.
func (s *Session) AddTrace(in *input.Trace) { s.trace = in }

func asText(l *input.Log) *logs.File {
	return &logs.File{Text: l.Text, Name: l.Origin().Path, Partial: l.Partial != nil}
}

// AddSnapshot takes a snapshot that was read from a path, and returns its digest. One that was
// taken at the exit shows the program before it let go of what it held.
func (s *Session) AddSnapshot(path string, of *snapshot.Snapshot) *digest.File {
	if s.files.AtExit(path) {
		of = timeline.BeforeTeardown(of)
	}
	d := s.Book.Digest(of)
	d.Name = path
	s.snapshots = append(s.snapshots, d)
	if s.trace != nil && s.trace.GPU != nil && s.trace.Document.GPU != nil {
		r := processes.Reserved(of)
		r.Name, r.PID = path, s.files.PIDOf(path)
		s.reserved = append(s.reserved, r)
	}
	return d
}

// follow reads the recording of a watch.
func (s *Session) follow(ctx context.Context, in *input.Watch) (err error) {
	w := samples.New()
	s.watch = &Watched{}
	s.watch.Partial, err = in.Samples(ctx, func(now *sample.Sample) error {
		w.Add(now)
		if now.Over == nil {
			s.watch.Last = now
			s.watch.Samples++
		}
		return nil
	})
	s.watch.findings = w.Findings()
	return err
}

// SnapshotProcesses are the snapshots by process.
func (s *Session) SnapshotProcesses() []*compare.Process {
	return s.files.Processes(s.snapshots, s.options.Group)
}

// OfJob reports whether the files are of a job of several ranks.
func (s *Session) OfJob() bool { return s.job != nil }

// Judge judges all that was added.
func (s *Session) Judge() *Answer {
	answer := s.judge()
	answer.Job = s.job.Judge(answer)
	return answer
}

func (s *Session) judge() *Answer {
	switch {
	case s.watch != nil:
		found := s.watch.findings
		return &Answer{Verdict: samples.Verdict(found, s.watch.Samples), Findings: found, Watch: s.watch, Partial: s.watch.Partial != nil}
	case s.trace != nil:
		return s.judgeTrace()
	}
	if files := s.kept(); len(files) > 0 {
		return s.judgeTables(files)
	}
	return s.judgeFiles()
}

// judgeFiles judges snapshots, and texts beside them.
func (s *Session) judgeFiles() *Answer {
	printed := input.LogProcesses(s.logs, s.options.Group, len(s.snapshots) == 0)
	stated := texts.Statements(printed)
	ofFiles := snapshots.Files(s.Book, s.SnapshotProcesses(), snapshots.Options{Capacity: s.options.Capacity, Texts: stated})
	ofTexts := texts.Judge(printed, stated, texts.Options{Capacity: s.options.Capacity, Limit: s.options.Limit})
	out := &Answer{Findings: slices.Concat(ofFiles.Findings, ofTexts.Findings), Snapshots: &ofFiles, Texts: &ofTexts, Skipped: s.skipped, Partial: s.partial()}
	judged := slices.Concat(ofFiles.Judged, ofTexts.Judged)
	out.judgePauses(s.paused, &judged)
	out.Verdict = verdict.Of(judged, ofFiles.Doubtful, out.Findings)
	return out
}

// partial reports whether a snapshot or a log was read in part.
func (s *Session) partial() bool {
	return slices.ContainsFunc(s.snapshots, func(f *digest.File) bool { return f.Partial != nil }) ||
		slices.ContainsFunc(s.logs, func(f *logs.File) bool { return f.Partial })
}
