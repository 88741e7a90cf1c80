package diagnosis

import (
	"cmp"
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"strandline/input"
	"strandline/internal/lazyregexp"
	"strandline/internal/sorts"
	"strandline/judge/tables"
	"strandline/profiles"
	"strandline/torch/compare"
)

// wants reports whether a file is to be read: beside tables nothing else is judged.
func (s *Session) wants(f *input.File) bool {
	if f.Kind() == input.TableOrProfile || !slices.ContainsFunc(s.tables, judgedAsTable) || !s.ofTables() {
		return true
	}
	s.skipped = append(s.skipped, f.Path)
	return false
}

// judgedAsTable reports whether a table is judged as one. One that also states that memory
// ran out is a log: the failure is to be explained.
func judgedAsTable(t *input.Table) bool { return t.Failure == nil }

// kept returns the tables that are judged, none where snapshots are. What is of another kind
// is skipped, or judged as a log.
func (s *Session) kept() (out []*input.Table) {
	for _, t := range s.tables {
		if judgedAsTable(t) {
			out = append(out, t)
		} else {
			s.logs = append(s.logs, asText(t.Failure))
		}
	}
	if s.ofTables() && len(out) > 0 {
		for _, f := range s.snapshots {
			s.skipped = append(s.skipped, f.Name)
		}
		for _, f := range s.logs {
			s.skipped = append(s.skipped, f.Name)
		}
		return out
	}
	for _, t := range out {
		s.skipped = append(s.skipped, t.Name)
	}
	return nil
}

// judgeTables judges tables as series.
func (s *Session) judgeTables(files []*input.Table) *Answer {
	out := OfSeries(s.series(files), s.options.Limit)
	out.Skipped = s.skipped
	return out
}

// OfSeries judges series, whose levels must not reach a limit in bytes, nil if there is none.
func OfSeries(all []tables.Series, limit *int64) *Answer {
	out := &Answer{Series: all}
	for i := range all {
		all[i].Limit = limit
		out.Partial = out.Partial || slices.ContainsFunc(all[i].Files, func(f *profiles.File) bool { return f.Partial != nil })
	}
	answer := tables.Judge(all)
	out.Verdict, out.Findings = answer.Verdict, answer.Findings
	return out
}

// Series are the tables that are judged, by process and kind, and those of each by time.
func (s *Session) Series() []tables.Series { return s.series(s.tables) }

func (s *Session) series(files []*input.Table) (out []tables.Series) {
	byKind := map[string][]*input.Table{}
	var kinds []string
	for _, f := range files {
		if byKind[f.Format] == nil {
			kinds = append(kinds, f.Format)
		}
		byKind[f.Format] = append(byKind[f.Format], f)
	}
	for _, kind := range kinds {
		if kind == profiles.Levels { // each is a series
			for _, f := range byKind[kind] {
				one := tables.Series{Files: []*profiles.File{f.File}}
				if len(files) > 1 {
					one.Process = filepath.Base(f.Name)
				}
				out = append(out, one)
			}
			continue
		}
		byProcess := seriesOfKind(byKind[kind], s.options.Group)
		if len(byProcess) == 1 && len(kinds) > 1 {
			byProcess[0].Process = kind
		}
		out = append(out, byProcess...)
	}
	return out
}

// seriesOfKind sorts files of one kind by process.
func seriesOfKind(files []*input.Table, group *regexp.Regexp) (out []tables.Series) {
	byPath := map[string]*input.Table{}
	var paths []string
	for _, f := range files {
		byPath[f.Name] = f
		paths = append(paths, f.Name)
	}
	names, groups := compare.Group(paths, group)
	for _, name := range names {
		one := tables.Series{Process: name}
		var list []*input.Table
		for _, path := range groups[name] {
			list = append(list, byPath[path])
		}
		one.By = sortByTime(list)
		for _, f := range list {
			one.Files = append(one.Files, f.File)
		}
		out = append(out, one)
	}
	return out
}

// sortByTime sorts files by the numbers in their names, or, where these do not distinguish
// them, by the time of their last change, and returns which. These files hold no time.
func sortByTime(files []*input.Table) (by string) {
	numbers := map[*input.Table][]int{}
	seen := map[string]bool{}
	for _, f := range files {
		for _, digits := range digitsIn.FindAllString(filepath.Base(f.Name), -1) {
			n, _ := strconv.Atoi(digits)
			numbers[f] = append(numbers[f], n)
		}
		seen[fmt.Sprint(numbers[f])] = true
	}
	if len(seen) == len(files) {
		sorts.StableBy(files, func(a, b *input.Table) int { return slices.Compare(numbers[a], numbers[b]) })
		return "the numbers in their names"
	}
	sorts.StableBy(files, func(a, b *input.Table) int {
		return cmp.Or(a.Origin().Changed.Compare(b.Origin().Changed), strings.Compare(a.Name, b.Name))
	})
	return "their last change"
}

var digitsIn = lazyregexp.New(`\d{1,9}`)
