package tables

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"strandline/finding"
	"strandline/internal/lazyregexp"
	"strandline/internal/sorts"
	"strandline/profiles"
	"strandline/units"
)

// oneReading reports whether each column has one level: who holds the memory, and no course.
func oneReading(columns []profiles.Column) bool {
	return !slices.ContainsFunc(columns, func(c profiles.Column) bool { return len(c.Bytes) != 1 || c.Percent || c.Cache || c.Evicts })
}

// A holder is the processes of one command.
type holder struct {
	command string
	bytes   int64
	limit   *int64
	count   int64
}

// ofPID is the process ID that a listing puts before a command.
var ofPID = lazyregexp.New(`^pid \d+ ?`)

// heldNow states who holds the most, for each kind of size.
func heldNow(columns []profiles.Column) (out []finding.Finding) {
	byName := map[string][]*holder{}
	var names []string
	for i := range columns {
		c := &columns[i]
		if !(c.Bytes[0] >= 0) {
			continue
		}
		if byName[c.Name] == nil {
			names = append(names, c.Name)
		}
		command := ofPID.ReplaceAllString(c.Process, "")
		k := slices.IndexFunc(byName[c.Name], func(h *holder) bool { return h.command == command })
		if k < 0 {
			k = len(byName[c.Name])
			byName[c.Name] = append(byName[c.Name], &holder{command: command, limit: c.Limit})
		}
		h := byName[c.Name][k]
		h.bytes, h.count = units.Sum(h.bytes, int64(c.Bytes[0])), h.count+1
	}
	for _, name := range names {
		out = append(out, holders(name, byName[name]))
	}
	return out
}

// holders is the finding on one kind of size.
func holders(name string, all []*holder) finding.Finding {
	sorts.StableBy(all, func(a, b *holder) int { return cmp.Compare(b.bytes, a.bytes) })
	first := all[0]
	var sum, count int64
	for _, h := range all {
		sum, count = units.Sum(sum, h.bytes), count+h.count
	}
	title := name + ": " + units.Bytes(first.bytes)
	if first.limit != nil {
		title += " of " + units.Bytes(*first.limit)
	}
	if first.command != "" {
		title = fmt.Sprintf("%s holds the most: %s", first.command, strings.TrimPrefix(title, name+": "))
		if first.count > 1 {
			title += fmt.Sprintf(" in %s processes", units.Count(first.count))
		}
	}
	if len(all) > 1 {
		title += fmt.Sprintf("; %s in all %s", units.Bytes(sum), units.Count(count))
	}
	f := finding.Finding{
		Kind: finding.Usage, Severity: finding.Info, Bytes: &first.bytes, Title: title,
		Evidence: &finding.LevelsEvidence{Column: name, Verdict: "unknown", Samples: 1, LevelBytes: &first.bytes, LimitBytes: first.limit},
	}
	const reading = "1 reading shows the holder, not growth"
	f.Brief = finding.Brief{Fact: fmt.Sprintf("%s (%s), 1 reading: %s", name, kindOf(&profiles.Column{Name: name}), strings.TrimPrefix(title, name+": ")), Why: reading}
	const maxListed = 4
	for _, h := range all[1:min(len(all), maxListed)] {
		f.Detail = append(f.Detail, fmt.Sprintf("%s: %s", cmp.Or(h.command, name), units.Bytes(h.bytes)))
	}
	f.Detail = append(f.Detail, "one reading shows the holder, not growth: a leak cannot be told from it")
	return f
}

// shares states how much of a cgroup's memory the kernel can take back.
func shares(h *profiles.Host) (text string) {
	if h == nil || h.Anonymous == nil || h.Cache == nil || *h.Anonymous+*h.Cache == 0 {
		return ""
	}
	whole := float64(*h.Anonymous + *h.Cache)
	if cache := float64(*h.Cache) / whole; cache >= 0.5 {
		return fmt.Sprintf("%s is page cache, which the kernel takes back when memory is short: not a leak", units.Percent(cache))
	}
	return fmt.Sprintf("%s is anonymous: memory of programs, not page cache", units.Percent(float64(*h.Anonymous)/whole))
}
