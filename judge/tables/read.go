package tables

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"strandline/finding"
	"strandline/internal/lazyregexp"
	"strandline/profiles"
	"strandline/trend"
	"strandline/units"
)

// What a text was read as, and why that gives no verdict: [finding.Brief.Fact] and
// [finding.Brief.Why] of levels whose growth is not judged.

// ofHost are names of the host's memory.
var ofHost = lazyregexp.New(`(?i)\b(?:(?:max)?rss|ram|host|cpu|swap|shm|uss|pss|vms|vsz|free|mem usage)\b|rss|--cache-ram`)

// kindOf is which memory a column is of, as far as its name tells.
func kindOf(c *profiles.Column) string {
	switch {
	case c.Cache:
		return "the engine's KV cache"
	case ofHost.MatchString(c.Name):
		return "host memory"
	case OfDevice(c):
		return "GPU memory"
	}
	return "GPU or host: not said"
}

// plainName is the name of a column without the prefixes of its lines.
func plainName(c *profiles.Column) string {
	name := strings.TrimSpace(c.Name[strings.LastIndex(c.Name, "]")+1:])
	if name = strings.Trim(name, ":- "); name == "" {
		name = "memory"
	}
	if c.Process != "" {
		if name += " of "; strings.Trim(c.Process, "0123456789") == "" {
			name += "process "
		}
		name += c.Process
	}
	return name
}

// unjudged states what was read of a column, and why its growth is not judged.
func unjudged(f *finding.Finding, c *profiles.Column, v *trend.Course) {
	what := fmt.Sprintf("%s (%s), %s", plainName(c), kindOf(c), units.Plural(int64(v.Samples), "figure"))
	if v.Unit == "" && v.Seconds > 0 {
		what += " over " + units.Seconds(v.Seconds)
	}
	ends := endsOf(c)
	switch {
	case v.Samples == 0:
		what = fmt.Sprintf("%s (%s): every figure is missing", plainName(c), kindOf(c))
	case ends != "":
		what += ": " + ends
	case c.Percent:
		what += fmt.Sprintf(": %s at first, %s at the end", units.Percent(first(c.Bytes)/100), units.Percent(last(c.Bytes)/100))
	default:
		what += ": " + units.Bytes(int64(last(c.Bytes))) + " at the end"
	}
	f.Brief = finding.Brief{Fact: what, Why: v.Doubt()}
}

// ProcessOf is the process ID that a file names; "PID" if it names none, or several.
func ProcessOf(f *profiles.File) string {
	seen := map[string]bool{}
	if f.Host != nil && f.Host.PID != 0 {
		seen[strconv.Itoa(f.Host.PID)] = true
	}
	for i := range f.Columns {
		if m := pidIn.FindStringSubmatch(f.Columns[i].Process); m != nil {
			seen[m[1]] = true
		}
	}
	if len(seen) != 1 {
		return "PID"
	}
	for pid := range seen {
		return pid
	}
	return "PID"
}

func known(x float64) bool { return !math.IsNaN(x) }

// first and last are the ends of the levels that are known; 0 if none is.
func first(levels []float64) float64 {
	if i := slices.IndexFunc(levels, known); i >= 0 {
		return levels[i]
	}
	return 0
}

func last(levels []float64) float64 {
	for _, x := range slices.Backward(levels) {
		if known(x) {
			return x
		}
	}
	return 0
}

// readings states what was read of texts that are too few.
func readings(f *finding.Finding, s Series) {
	n := int64(len(s.Files))
	if hosts := hostsOf(s.Files); len(hosts) > 0 {
		n = int64(len(hosts))
		f.Brief.Fact = "host memory, " + units.Plural(n, "reading") + ": " + strings.TrimPrefix(f.Title, filepath.Base(s.Files[len(s.Files)-1].Name)+": ")
	} else {
		f.Brief.Fact = strings.TrimPrefix(f.Title, filepath.Base(s.Files[len(s.Files)-1].Name)+": ")
	}
	if f.Brief.Why = fmt.Sprintf("%s; %d are needed", units.Plural(n, "reading"), minMoments); n >= minMoments {
		f.Brief.Why = "these files hold totals, not single allocations"
	}
}
