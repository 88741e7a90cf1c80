package texts

import (
	"regexp"
	"strconv"
	"strings"
	"testing"

	"strandline/finding"
	"strandline/logs"
	"strandline/logs/failure"
)

// shareSet is a fraction of a device in a setting.
var shareSet = regexp.MustCompile(`(?:utilization|mem-fraction-static|FRACTION|cache_fraction)[ =]+(0?\.\d+|1(?:\.0)?)`)

// TestFiguresAreSurvived gives each kind of failure figures, and holds its cause and remedies
// against them: they must not contradict any.
func TestFiguresAreSurvived(t *testing.T) {
	const gib = 1 << 30
	for _, c := range []struct {
		name    string
		figures map[failure.Figure]float64
		causes  string // that these figures refute
		never   string // in a remedy
	}{
		{"more than the device is asked for", map[failure.Figure]float64{failure.Request: 1100 * gib, failure.Capacity: 80 * gib, failure.Free: 20 * gib, failure.Reserved: 50 * gib, failure.Active: 40 * gib},
			"outside refused fragmented", "other process"},
		{"more than any device has", map[failure.Figure]float64{failure.Request: 1100 * gib}, "outside refused fragmented", "other process"},
		{"the device is full", map[failure.Figure]float64{failure.Request: gib, failure.Capacity: 80 * gib, failure.Free: gib / 8, failure.Reserved: 79 * gib, failure.Active: 79 * gib},
			"refused fragmented", ""},
		{"a part of the device is free", map[failure.Figure]float64{failure.Capacity: 80 * gib, failure.Free: 40 * gib, failure.Needed: 72 * gib, failure.Fraction: 0.9}, "", ""},
	} {
		for kind := range kinds {
			f := failure.Failure{Line: 3, Kind: kind, Source: failure.SourceProcess, Figures: c.figures, Words: map[string]string{}, Quote: "a line", Count: 1}
			s := Statement{Text: &logs.Text{Failures: []failure.Failure{f}}, File: "job.log"}
			found := s.Judge(Options{})[0]
			e, ok := found.Evidence.(*finding.OOMEvidence)
			if !ok || e.Of != "device" {
				continue
			}
			if e.Cause != "" && strings.Contains(c.causes, e.Cause) {
				t.Errorf("%s: %s: %s: %s", c.name, kind, e.Cause, found.Title)
			}
			for _, r := range found.Remedies {
				if c.never != "" && strings.Contains(r.Text, c.never) {
					t.Errorf("%s: %s: %q", c.name, kind, r.Text)
				}
				free, capacity := c.figures[failure.Free]+max(c.figures[failure.Reserved], c.figures[failure.Active]), c.figures[failure.Capacity]
				if m := shareSet.FindStringSubmatch(r.Setting + " " + r.Text); m != nil && free > 0 {
					if x, err := strconv.ParseFloat(m[1], 64); err == nil && x*capacity > free {
						t.Errorf("%s: %s: a share of %g, and %.2g is free: %q", c.name, kind, x, free/capacity, r.Setting)
					}
				}
			}
		}
	}
}
