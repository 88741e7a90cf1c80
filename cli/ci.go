package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"strandline/face/api"
	"strandline/face/ci"
	"strandline/face/report"
	"strandline/finding"
	"strandline/internal/safefile"
)

// ciOutput is what a gate writes for the systems that run it.
type ciOutput struct {
	junit, format, summary string
}

func (o *ciOutput) flags(f *pflag.FlagSet) {
	f.StringVar(&o.junit, "junit", "", "write the verdicts as JUnit XML to `FILE`")
	f.StringVar(&o.format, "format", "auto", "in `FORMAT` github, also print the annotations of GitHub Actions; text, or auto: github in its jobs")
	f.StringVar(&o.summary, "summary", "", "append a Markdown summary to `FILE` (default for github: $GITHUB_STEP_SUMMARY)")
}

func (o *ciOutput) check() error {
	switch o.format {
	case "auto", "text", "github":
	default:
		return fmt.Errorf("--format %s: want text, github or auto", o.format)
	}
	return cmp.Or(canHold("--junit", o.junit, safefile.Check), canHold("--summary", o.summary, safefile.CheckAppend))
}

// canHold returns an error if a file cannot be written where it is to be, which is better
// known before hours of work than after them.
func canHold(flag, file string, check func(string) error) error {
	if file == "" || file == "-" {
		return nil
	}
	if err := check(file); err != nil {
		return fmt.Errorf("%s %s", flag, describe(err))
	}
	return nil
}

// write writes the verdicts of a command. The summary has all of them; the cases are those
// that the build rests on.
func (o *ciOutput) write(ctx context.Context, g *globals, command, verdict string, cases, all []ci.Case) error {
	if ctx.Err() != nil {
		ctx = context.WithoutCancel(ctx) // an interrupt is reported, too
	}
	var failed error
	if o.junit != "" {
		_, failed = g.create(ctx, o.junit, func(w io.Writer) error { return ci.JUnit(w, command, cases) })
	}
	summary := o.summary
	if o.format == "github" || o.format == "auto" && g.env.getenv("GITHUB_ACTIONS") == "true" {
		w := g.env.stdout
		if g.json {
			w = g.env.stderr
		}
		ci.GitHub(w, g.env.getenv("GITHUB_WORKSPACE"), cases)
		summary = cmp.Or(summary, g.env.getenv("GITHUB_STEP_SUMMARY"))
	}
	if summary == "" {
		return failed
	}
	f, err := safefile.Append(ctx, summary) // other steps write to it, too
	if err != nil {
		return errors.Join(failed, err)
	}
	ci.Markdown(f, command+": "+verdict, all)
	return errors.Join(failed, f.Close())
}

// checkCases are runs as package ci writes them.
func checkCases(runs []api.CheckRun) (out []ci.Case) {
	for i := range runs {
		r := &runs[i]
		failed := ""
		if failedAlone(r) {
			failed = "the command failed by itself: " + r.Failed
		}
		if r.Interrupted {
			failed = "interrupted"
		}
		if r.Unstarted {
			failed = "the command " + r.Failed
		}
		out = append(out, ci.Case{
			Name: cmp.Or(r.Name, report.RunName(r)), Seconds: r.Seconds, Verdict: r.Verdict, Growth: report.RunGrowth(r), Peak: report.Peak(r.Peak),
			Basis: report.RunBasis(r), Failed: failed, Interrupted: r.Interrupted, Missing: r.Missing, Findings: r.Findings, Notes: r.Notes,
		})
	}
	return out
}

// soakCases is an experiment as package ci writes it.
func soakCases(d *report.Soak) []ci.Case {
	c := ci.Case{
		Name: d.URL + ", " + d.Model, Seconds: d.Seconds, Verdict: d.Verdict, Growth: d.GrowthText(), Peak: report.Peak(d.Peak),
		Basis: d.Basis(), Missing: d.Missing, Findings: d.Findings, Notes: d.Notes,
	}
	if !fails(d.Verdict) {
		c.Failed, c.Interrupted = d.Ended(), d.Failed == "" && d.Interrupted
	}
	return []ci.Case{c}
}

// fails reports whether a verdict fails a gate.
func fails(v finding.Verdict) bool { return v == finding.Leaking || v == finding.Over }
