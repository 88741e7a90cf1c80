package api

import "strandline/judge/jobs"

// Job is the verdict on a job of many ranks.
type Job struct {
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
	Site       string   `json:"site,omitempty"` // the line of the user's program
	Fix        string   `json:"fix,omitempty"`  // what to do
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
	out := &Job{
		WorldSize: j.World, First: JobFirst{Confidence: j.First.Confidence}, Cause: string(j.Cause), Confidence: j.Confidence, Followers: j.Followers,
		Missing: append([]int{}, j.Missing...), Restart: string(j.Restart), Attempts: j.Attempts, Why: j.Why, Text: j.Text, Line: j.Line, Quote: j.Quote, Site: j.Site, Fix: j.Fix,
	}
	if j.First.Rank >= 0 {
		out.First.Rank = &j.First.Rank
	}
	if j.First.Node != "" {
		out.First.Node = &j.First.Node
	}
	return out
}
