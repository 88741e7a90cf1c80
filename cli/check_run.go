package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"strandline/face/api"
	"strandline/face/ci"
	"strandline/face/report"
	"strandline/finding"
	"strandline/internal/safefile"
	"strandline/internal/secret"
	"strandline/judge/gate"
	"strandline/judge/snapshots"
	"strandline/run/check"
)

// A checkCase is one command to run.
type checkCase struct {
	name    string
	command []string
	env     []string
}

// cases are the commands of the options, in order.
func (o *checkOptions) cases() (out []checkCase) {
	env := os.Environ()
	for _, c := range o.named {
		name, command, _ := strings.Cut(c, "=")
		out = append(out, checkCase{name, []string{"sh", "-c", command}, env})
	}
	if len(o.command) == 0 {
		return out
	}
	if o.ab == "" {
		return append(out, checkCase{"", o.command, env})
	}
	name, _, _ := strings.Cut(o.ab, "=")
	var without []string
	for _, e := range env {
		if !strings.HasPrefix(e, name+"=") {
			without = append(without, e)
		}
	}
	return append(out, checkCase{"without " + secret.Text(o.ab), o.command, without}, checkCase{"with " + secret.Text(o.ab), o.command, append(without[:len(without):len(without)], o.ab)})
}

func runCheck(ctx context.Context, g *globals, o *checkOptions) error {
	g.concludes.Store(true) // an interrupt is the command's own matter
	base, err := o.readBaseline(g)
	if err != nil {
		return err
	}
	var runs []api.CheckRun
	for _, c := range o.cases() {
		run, machine, err := o.one(ctx, g, c)
		if err != nil {
			return err
		}
		switch {
		case o.update:
			if err := base.Update(run, machine); err != nil {
				g.warn("%v", err)
			}
		case base != nil:
			base.Compare(run, machine)
		}
		runs = append(runs, *run)
		if ctx.Err() != nil {
			break
		}
	}
	doc := report.NewLeakCheck(runs)
	if o.ab != "" && len(runs) == 2 {
		doc.Cured(check.Cure(secret.Text(o.ab), &runs[0], &runs[1]))
	}
	if g.json || len(runs) > 1 || !runs[0].Unstarted { // standard error has all of it
		if err := g.print(doc, func(w io.Writer, s report.Style) { doc.Text(w, s) }); err != nil {
			return err
		}
	}
	if doc.Cure != nil && fails(runs[0].Verdict) && !failedAlone(&runs[0]) {
		runs = runs[1:] // that it leaks without the remedy was to be expected
	}
	failed := o.write(ctx, g, doc, runs, base)
	status := error(exit(exitInterrupted))
	if ctx.Err() == nil {
		status = o.exit(g, runs)
	}
	if failed != nil && status != nil { // which says more than that a file is missing
		g.warn("%s", describe(failed))
		return status
	}
	return cmp.Or(failed, status)
}

// readBaseline reads the baseline, nil if none is asked for.
func (o *checkOptions) readBaseline(g *globals) (*check.Baseline, error) {
	if o.baseline == "" {
		return nil, nil
	}
	f, err := g.openInput(o.baseline)
	switch {
	case o.update && errors.Is(err, fs.ErrNotExist):
		return check.NewBaseline(), nil
	case errors.Is(err, fs.ErrNotExist):
		return nil, fmt.Errorf("%w; --update-baseline makes it", err)
	case err != nil:
		return nil, err
	}
	defer f.Close()
	return check.ReadBaseline(f, o.baseline)
}

// write writes what the options ask for besides the report. The build rests on the given
// runs of it.
func (o *checkOptions) write(ctx context.Context, g *globals, doc *report.LeakCheck, runs []api.CheckRun, base *check.Baseline) error {
	var failed error
	if o.update {
		_, failed = g.create(ctx, o.baseline, base.Write)
	}
	cases, verdict := checkCases(runs), report.NewLeakCheck(runs).Verdict
	text := strings.ToUpper(string(verdict))
	if !fails(verdict) && slices.ContainsFunc(cases, func(c ci.Case) bool { return c.Failed != "" }) {
		text = "FAILED"
	}
	if doc.Cure != nil {
		text = report.CureText(doc.Cure)
	}
	return cmp.Or(failed, o.ciOutput.write(ctx, g, "strandline check", text, cases, checkCases(doc.Runs)))
}

// exit is the exit status of some runs, nil for 0.
func (o *checkOptions) exit(g *globals, runs []api.CheckRun) error {
	has := map[int]bool{}
	for i := range runs {
		has[g.exitOf(&runs[i])] = true
	}
	for _, code := range []int{exitProblem, exitCommand, exitCannotJudge} {
		switch {
		case has[code] && code == exitCommand && o.skipFailures:
			return exit(exitCannotJudge)
		case has[code]:
			return exit(code)
		}
	}
	return nil
}

// failedAlone reports whether a run failed by itself, and not because its leak made memory
// run out.
func failedAlone(r *api.CheckRun) bool {
	return r.Failed != "" && (!fails(r.Verdict) || !r.OutOfMemory)
}

// exitOf is the exit status that a run stands for.
func (g *globals) exitOf(r *api.CheckRun) int {
	name := ""
	if r.Name != "" {
		name = r.Name + ": "
	}
	switch {
	case r.Unstarted:
		g.warn("%s%s %s", name, r.Command[0], r.Failed)
		return exitCommand
	case failedAlone(r):
		g.warn("%s%s failed by itself: %s", name, r.Command[0], r.Failed)
		return exitCommand
	case fails(r.Verdict):
		return exitProblem
	case r.Verdict == finding.Unknown:
		for _, m := range r.Missing {
			g.warn("%scannot be judged: %s", name, m)
		}
		return exitCannotJudge
	}
	return exitOK
}

// one runs a command and judges it.
func (o *checkOptions) one(ctx context.Context, g *globals, c checkCase) (*api.CheckRun, map[string]string, error) {
	dir, remove, err := o.folder(c.name)
	if err != nil {
		return nil, nil, err
	}
	defer remove()
	progress := checkProgress{g: g, o: o}
	_, device := o.limits[gate.Device]
	var lines check.Limits
	if _, ok := o.limits[gate.Host]; ok {
		lines = o.limits
	}
	r, err := check.Do(context.WithoutCancel(ctx), check.Options{
		Command: c.command, Env: c.env, Dir: dir, Device: device, Lines: lines, Steps: o.stepsNoted, Line: o.pattern, Only: o.only,
		Stdout: g.outputOfCommand(), Manifest: manifestOf(c.command), Look: progress.look, Most: o.most,
		Interrupted: func() {
			g.warn("interrupted: waiting for %s to end, which got the signal, too; a second signal kills it", c.command[0])
		},
	})
	if err != nil {
		return nil, nil, err
	}
	if err := ctx.Err(); err != nil && len(r.Samples.Samples) == 0 {
		return nil, nil, err
	}
	var answer *snapshots.Answer
	for _, p := range r.Manifest.Processes {
		if len(p.Dumps) > 0 {
			answer, err = g.judgeFolder(ctx, dir)
			break
		}
	}
	out := check.Judge(r, o.limits, answer)
	out.Name, out.Command = c.name, secret.Args(c.command)
	if err != nil {
		out.Notes = append(out.Notes, "the snapshots cannot be judged: "+err.Error())
	}
	for _, n := range r.Manifest.Notes {
		out.Notes = append(out.Notes, r.Manifest.NoteText(n))
	}
	if o.dir == "" {
		dropRecordingAdvice(out.Findings, dir)
	}
	out.Failed, out.Unstarted = failureOf(r), r.Error != nil
	out.Interrupted = r.Interrupted
	out.OutOfMemory = r.Status == 128+int(syscall.SIGKILL) && !r.Killed || r.Manifest.Failures() > 0 || r.Manifest.MemoryErrors > 0
	if out.Verdict == finding.OK && failedAlone(out) {
		out.Cannot("the command failed by itself: " + out.Failed)
	}
	return out, check.Machine(r), nil
}

// dropRecordingAdvice changes the advice to look into a recording that is not kept.
func dropRecordingAdvice(findings []finding.Finding, dir string) {
	for i := range findings {
		for k := range findings[i].Remedies {
			if r := &findings[i].Remedies[k]; strings.Contains(r.Setting, dir) {
				r.Setting = strings.ReplaceAll(r.Setting, dir, "DIR")
				r.Text = "with -o DIR, which keeps the snapshots: " + r.Text
			}
		}
	}
}

// folder is where the recording of a run goes, and how to remove it if it is not kept.
func (o *checkOptions) folder(name string) (string, func(), error) {
	if o.dir == "" {
		temp, err := safefile.MakeTemp("strandline-check")
		if err != nil {
			return "", nil, err
		}
		return temp.Path, func() { temp.Remove() }, nil
	}
	if name != "" { // a folder of one's own in one of another user is theirs to replace
		d, err := safefile.MakeFolder(o.dir)
		if err != nil {
			return "", nil, err
		}
		d.Close()
	}
	dir, err := filepath.Abs(filepath.Join(o.dir, strings.NewReplacer("/", "-", " ", "-").Replace(name)))
	return dir, func() {}, err
}

// failureOf states how a command failed, or nothing if it did not.
func failureOf(r *check.Run) string {
	switch {
	case r.Error != nil:
		why := r.Error
		for next := errors.Unwrap(why); next != nil; next = errors.Unwrap(why) {
			why = next // without the name of the program, and of the system call
		}
		return "cannot be run: " + why.Error()
	case r.Killed:
		return "killed, as it did not end when it was interrupted"
	case r.Stopped || r.Interrupted || r.Status == 0:
		return ""
	case r.Signaled:
		return fmt.Sprintf("ended by signal %d (%s)", r.Status-128, syscall.Signal(r.Status-128))
	}
	return fmt.Sprintf("exit status %d", r.Status)
}

// judgeFolder judges the snapshots of a recording.
func (g *globals) judgeFolder(ctx context.Context, dir string) (*snapshots.Answer, error) {
	s, _, err := g.snapshots(context.WithoutCancel(ctx), []string{dir}, nil)
	if err != nil {
		return nil, err
	}
	return s.Judge().Snapshots, nil
}

// checkProgress follows a command while it runs.
type checkProgress struct {
	g     *globals
	o     *checkOptions
	clear int // looks in succession at which the verdict was the same and clear
	since int // steps or samples at the first of them
	last  finding.Verdict
	next  time.Time
}

// When a verdict is clear: so many looks agree, and that nothing leaks, which a program
// that starts also shows, holds while the steps double, and over at least so many.
const (
	clearLooks   = 3
	stepsForOK   = 200
	samplesForOK = 1000 // without steps
)

// look judges what is known so far, and reports whether that is clear.
func (p *checkProgress) look(m *check.Measured) bool {
	if !p.o.untilVerdict || time.Now().Before(p.next) {
		return false
	}
	began := time.Now()
	run := check.Judge(&check.Run{Measured: *m}, p.o.limits, nil)
	p.next = time.Now().Add(10 * time.Since(began)) // at most a tenth of the time goes into it
	if p.g.progressTerminal() {
		p.g.warn("so far: %s, %s", report.RunProgress(run), run.Verdict)
	}
	n, _ := m.Steps()
	minSteps := stepsForOK
	if n == 0 {
		n, minSteps = len(m.Samples.Samples), samplesForOK
	}
	if run.Verdict != p.last || run.Verdict == finding.Unknown {
		p.clear, p.since = 0, n
	}
	p.last = run.Verdict
	p.clear++
	switch {
	case p.clear < clearLooks || run.Verdict == finding.Unknown:
		return false
	case run.Verdict == finding.OK:
		return n >= max(minSteps, 2*p.since)
	}
	return true
}
