package diagnosis

import (
	"context"
	"slices"
	"strconv"

	"strandline/finding"
	"strandline/input"
	"strandline/internal/lazyregexp"
	"strandline/judge/jobs"
	"strandline/judge/snapshots"
	"strandline/judge/texts"
	"strandline/logs/ranks"
	"strandline/torch/flight"
)

// rankOf is how a process of snapshots is named after its rank.
var rankOf = lazyregexp.New(`^(?i:rank)[ _-]?(\d+)$`)

// A Job is the texts of the processes of a job, and the dumps of their flight recorders.
type Job struct {
	texts []*ranks.Text
	dumps []*flight.Dump
	alone *jobs.Job // the verdict on them, whatever else is found
	many  bool
	again map[string]bool // names of texts of many that are read as logs, too
}

// NewJob reads the texts among files as those of a job of several ranks, nil if they are not.
func NewJob(ctx context.Context, files *input.Files) *Job {
	const minMany, maxAgain = 32, 32
	texts := files.Ranks(ctx)
	dumps := files.Dumps(ctx)
	if len(texts) == 0 && len(dumps) == 0 {
		return nil
	}
	alone := jobs.Judge(texts, jobs.Evidence{Dumps: dumps})
	if alone == nil {
		return nil
	}
	j := &Job{texts: texts, dumps: dumps, alone: alone, many: len(texts) >= minMany, again: map[string]bool{}}
	for _, t := range texts {
		if j.many && len(j.again) < maxAgain && t.OfMemory() {
			j.again[t.Name] = true
		}
	}
	return j
}

// Has reports whether the texts of the job have all that a file tells. Of many texts, those in
// which no memory ran out are not read again as logs.
func (j *Job) Has(f *input.File) bool {
	return j != nil && (f.IsDump() || j.many && f.Told() && !j.again[f.Path])
}

// Rest are the files of which the job does not have all: they are read one by one, too.
func (j *Job) Rest(files *input.Files) *input.Files {
	left := *files
	left.List = slices.DeleteFunc(slices.Clone(files.List), j.Has)
	return &left
}

// Holds reports whether a file is a text of the job.
func (j *Job) Holds(f *input.File) bool { return j != nil && (f.Told() || f.IsDump()) }

// Judge judges the job with what else was found in its files. It is nil of no job. Where the job
// lived, its texts state no problem: what ran out in them was recovered from, or came after its end.
func (j *Job) Judge(a *Answer) *jobs.Job {
	if j == nil {
		return nil
	}
	job := j.judge(a)
	if a == nil || job == nil || job.Cause != jobs.None {
		return job
	}
	for i := range a.Findings {
		f := &a.Findings[i]
		if e, ok := f.Evidence.(*finding.OOMEvidence); ok && e.Outcome != "" && f.Severity == finding.Problem {
			f.Severity = finding.Warning
		}
	}
	if a.Verdict == finding.RanOut && !slices.ContainsFunc(a.Findings, func(f finding.Finding) bool { return f.Severity == finding.Problem }) {
		a.Verdict = finding.OK
	}
	return job
}

func (j *Job) judge(a *Answer) *jobs.Job {
	more := jobs.Evidence{Dumps: j.dumps}
	if a != nil {
		more.Grew = map[int]string{}
		for _, f := range a.Findings {
			m := rankOf.FindStringSubmatch(f.Process)
			if m == nil || f.Kind != finding.Leak && f.Kind != finding.AutogradGraph || f.Site == nil {
				continue
			}
			if n, err := strconv.Atoi(m[1]); err == nil && more.Grew[n] == "" {
				more.Grew[n] = f.Site.File + ":" + strconv.FormatInt(f.Site.Line, 10)
			}
		}
	}
	if len(more.Grew) == 0 {
		return j.alone
	}
	return jobs.Judge(j.texts, more)
}

// Nothing is the answer on files in which nothing is about memory.
func Nothing() *Answer {
	return &Answer{Verdict: finding.Unknown, Findings: []finding.Finding{}, Snapshots: &snapshots.Answer{}, Texts: &texts.Answer{}}
}
