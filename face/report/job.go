package report

import (
	"strandline/face/api"
	"strandline/judge/jobs"
)

// SetJob adds the verdict on a job of several ranks.
func (d *Diagnosis) SetJob(j *jobs.Job) { d.Job = api.NewJob(j) }
