package diagnosis

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"strandline/finding"
	"strandline/host/gpu/gpuaccount"
	"strandline/host/store/recording"
	"strandline/internal/sorts"
	"strandline/judge/processes"
	"strandline/judge/snapshots"
	"strandline/torch/compare"
)

// judgeTrace judges the recording of a trace, with the snapshots beside it.
func (s *Session) judgeTrace() *Answer {
	run := s.trace.Run
	doc := run.Document
	var found []finding.Finding
	if len(s.snapshots) > 0 {
		byProcess := s.files.Processes(s.snapshots, nil)
		found = s.besideTrace(byProcess)
		s.account(byProcess)
	}
	doc.Findings = append(doc.Findings, found...)
	sorts.StableBy(doc.Findings, bySeverity)
	partial := s.partial() || run.Partial != nil || len(run.Samples) == 0 && !run.Judged
	return &Answer{Verdict: processes.Recorded(run), Findings: doc.Findings, Trace: run, Untraced: s.untraced, Partial: partial}
}

// besideTrace finds what is wrong in the snapshots beside a trace, less what only informs.
func (s *Session) besideTrace(byProcess []*compare.Process) (out []finding.Finding) {
	for _, f := range snapshots.Files(s.Book, byProcess, snapshots.Options{}).Findings {
		if f.Severity == finding.Info {
			continue
		}
		for _, p := range byProcess {
			if p.Name == f.Process {
				f.Process = tracedName(s.trace.Document, p.Name, s.files.PIDOf(p.Newest().Name))
				break
			}
		}
		out = append(out, f)
	}
	return out
}

// tracedName is the name of a process with its pid and its command, if it was traced.
func tracedName(doc *recording.Document, name string, pid int) string {
	if pid != 0 && !strings.Contains(name, fmt.Sprintf("pid%d", pid)) {
		name = strings.TrimSpace(fmt.Sprintf("pid%d %s", pid, name))
	}
	for _, p := range doc.Processes {
		if p.PID == pid && p.Role != "" && !strings.Contains(name, "(") {
			name += " (" + p.Role + ")"
		}
		if p.PID == pid && p.Command != "" {
			return name + ": " + p.Command
		}
	}
	return name
}

// account splits what PyTorch took from the driver of the traced devices. Files that were
// named are of one process each, unless they name it; of those of folders the newest of each
// process states what PyTorch holds.
func (s *Session) account(byProcess []*compare.Process) {
	has := s.reserved
	if len(has) == 0 {
		return
	}
	if !s.files.AllNamed() {
		has = nil
		for _, p := range byProcess {
			i := slices.IndexFunc(s.reserved, func(r gpuaccount.Reserved) bool { return r.Name == p.Newest().Name })
			has = append(has, s.reserved[i])
		}
	}
	for i := range has {
		if pid := has[i].PID; pid != 0 && !slices.Contains(s.trace.GPU.PIDs, pid) {
			s.untraced = append(s.untraced, fmt.Sprintf("%s is of pid %d, which is not one of the traced processes that use the device (%v)", has[i].Name, pid, s.trace.GPU.PIDs))
		}
		has[i].Name = filepath.Base(has[i].Name)
	}
	account := processes.RecordedDevices(s.trace.Run, has)
	processes.SetDevices(s.trace.Document, account.Devices, account.Reserved)
	s.trace.Document.Findings = account.Findings
}

// bySeverity orders problems before warnings before information.
func bySeverity(a, b finding.Finding) int {
	return cmp.Compare(b.Severity.Rank(), a.Severity.Rank())
}
