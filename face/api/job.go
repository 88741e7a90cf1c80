package api

import (
	"fmt"
	"math"
	"strings"

	"strandline/judge/jobs"
	"strandline/units"
)

// Job is the verdict on a job of many ranks.
type Job struct {
	Word       string   `json:"word"`  // FAILED, OK or UNKNOWN
	Title      string   `json:"title"` // the verdict in a line
	WorldSize  int      `json:"world_size"`
	First      JobFirst `json:"first"`
	Cause      string   `json:"cause"`
	Confidence float64  `json:"confidence"`
	Followers  int      `json:"followers"`
	Missing    []int    `json:"missing"`
	Restart    string   `json:"restart"`
	Attempts   int      `json:"attempts"`
	Why        string   `json:"why"`
	Text       string   `json:"text,omitempty"` // the name of the file that shows it
	Line       int64    `json:"line,omitempty"`
	Quote      string   `json:"quote,omitempty"`
	Site       string   `json:"site,omitempty"`  // the line of the user's program
	Fix        string   `json:"fix,omitempty"`   // what to do
	Again      string   `json:"again,omitempty"` // what a restart does, a sentence
	Failed     bool     `json:"failed"`
	// Differs is how the memory of the first rank differs from that of its peers.
	Differs *JobDiffers `json:"differs,omitempty"`
	// Ranks are the ends of the ranks, at most 8,192: the first one first, then by time.
	Ranks []JobRank `json:"ranks"`
}

// JobDiffers is how the memory of a rank differs from that of its peers: the ranks of its
// pipeline stage, or, if Peers is 0, itself before it grew.
type JobDiffers struct {
	Figure    string `json:"figure"`     // as the texts call it
	SinceStep *int64 `json:"since_step"` // null if the layout explains it
	PerStep   int64  `json:"bytes_per_step"`
	Above     int64  `json:"above_bytes"` // at the end
	Peers     int    `json:"peers"`
}

// JobRank is the end of a rank.
type JobRank struct {
	Rank    int      `json:"rank"`
	Node    string   `json:"node,omitempty"`
	Role    string   `json:"role"`                 // first, failed, followed or silent
	End     string   `json:"end,omitempty"`        // in a word
	Seconds *float64 `json:"seconds"`              // after the first end of any rank
	Step    *int64   `json:"step"`                 // the last one that it names
	Peak    int64    `json:"peak_bytes,omitempty"` // that its texts state
	Text    string   `json:"text,omitempty"`       // the name of its file
	Line    int64    `json:"line,omitempty"`
	Quote   string   `json:"quote,omitempty"`
}

// JobFirst is who fell first, by itself.
type JobFirst struct {
	Rank       *int    `json:"rank"`
	Node       *string `json:"node"`
	Confidence float64 `json:"confidence"`
}

// NewJob is the document of a job, nil of none.
func NewJob(j *jobs.Job) *Job {
	if j == nil {
		return nil
	}
	out := withoutRanks(j)
	for i := range j.Rows {
		out.Ranks = append(out.Ranks, newRank(&j.Rows[i]))
	}
	return out
}

// JobCard is the verdict on a job as the header of a page has it.
func JobCard(j *jobs.Job) Card {
	head := withoutRanks(j)
	return Card{Word: head.Word, Title: head.Title, Why: head.Why, Fix: head.Fix}
}

func withoutRanks(j *jobs.Job) *Job {
	out := &Job{
		WorldSize: j.World, First: JobFirst{Confidence: j.First.Confidence}, Cause: string(j.Cause), Confidence: j.Confidence, Followers: j.Followers,
		Missing: append([]int{}, j.Missing...), Restart: string(j.Restart), Attempts: j.Attempts, Why: j.Why, Text: j.Text, Line: j.Line, Quote: j.Quote, Site: j.Site, Fix: j.Fix,
		Again: j.Again(), Failed: j.Failed, Ranks: make([]JobRank, 0, len(j.Rows)),
	}
	if d := j.Differs; d != nil {
		out.Differs = &JobDiffers{Figure: d.Label, PerStep: int64(d.PerStep), Above: int64(d.Above), Peers: d.Peers}
		if d.Since >= 0 {
			out.Differs.SinceStep = &d.Since
		}
	}
	if j.First.Rank >= 0 {
		out.First.Rank = &j.First.Rank
	}
	if j.First.Node != "" {
		out.First.Node = &j.First.Node
	}
	out.Title = out.title()
	switch j.Cause {
	case jobs.None:
		out.Word = "OK"
	case jobs.Unknown:
		out.Word = "UNKNOWN"
	default:
		out.Word = "FAILED"
	}
	return out
}

// title is the verdict in a line.
func (j *Job) title() string {
	of := "a job of " + units.Plural(int64(j.WorldSize), "rank")
	cause := strings.ReplaceAll(j.Cause, "-", " ")
	switch jobs.Cause(j.Cause) {
	case jobs.None:
		return of + " came to its end"
	case jobs.Unknown:
		cause = "the cause is unknown"
	case jobs.NotMemory:
		cause = "not out of memory"
	}
	const doubt = 0.5
	perhaps := ""
	if j.First.Confidence < doubt {
		perhaps = "perhaps "
	}
	who := "no rank fell first"
	switch f := j.First; {
	case f.Rank != nil && f.Node != nil:
		who = fmt.Sprintf("%srank %d on %s fell first", perhaps, *f.Rank, *f.Node)
	case f.Rank != nil:
		who = fmt.Sprintf("%srank %d fell first", perhaps, *f.Rank)
	case f.Node != nil:
		who = fmt.Sprintf("%snode %s fell first", perhaps, *f.Node)
	}
	return fmt.Sprintf("%s: %s; %s (%s)", of, who, cause, Sure(j.Confidence))
}

func newRank(w *jobs.Row) JobRank {
	out := JobRank{Rank: w.Rank, Node: w.Node, Role: string(w.Role), End: w.End, Peak: int64(w.Peak), Text: w.Text, Line: w.Line, Quote: w.Quote}
	if !math.IsNaN(w.Seconds) {
		s := math.Round(w.Seconds*1000) / 1000
		out.Seconds = &s
	}
	if w.Step >= 0 {
		out.Step = &w.Step
	}
	return out
}
