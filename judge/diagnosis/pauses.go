package diagnosis

import (
	"strandline/input"
	"strandline/judge/pauses"
	"strandline/judge/verdict"
)

// Paused is a process whose log of pausable memory was judged.
type Paused struct {
	Name string
	PID  int
	Rank *int
	File string
	// Steps are its pauses and resumes.
	Steps int
}

// judgePauses judges the logs of processes of one job together.
func (a *Answer) judgePauses(logs []*input.Pauses, judged *[]verdict.Judged) {
	var courses []pauses.Course
	for _, log := range logs {
		name := pauses.Name(log.Rank, log.PID)
		a.Paused = append(a.Paused, Paused{Name: name, PID: log.PID, Rank: log.Rank, File: log.Origin().Path, Steps: len(log.Steps)})
		of := pauses.Logged(log.Log)
		for i := range of {
			*judged = append(*judged, verdict.Judged{Process: name, Device: of[i].Device, Enough: of[i].Cycles() >= pauses.MinCycles})
		}
		courses = append(courses, of...)
	}
	a.Findings = append(a.Findings, pauses.Stays(courses)...)
}
