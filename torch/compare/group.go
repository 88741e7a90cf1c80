package compare

import (
	"path/filepath"
	"regexp"
	"sort"
	"strconv"
	"strings"

	"strandline/internal/lazyregexp"
)

var (
	rankInName = lazyregexp.New(`(?i)(?:^|[^a-z])(rank)[-_ =]?(\d+)`)
	pidInName  = lazyregexp.New(`(?i)(?:^|[^a-z])(pid)[-_ =]?(\d+)`)
)

// ProcessOf is the name of the process that a file is of: rank<N> and pid<N> of
// its name, both if both occur, otherwise its folder. With group, it is what the
// expression matches (its first parenthesis, if it has one).
func ProcessOf(path string, group *regexp.Regexp) string {
	if group != nil {
		m := group.FindStringSubmatch(path)
		if m == nil {
			return ""
		}
		return m[min(1, len(m)-1)]
	}
	var parts []string
	base := filepath.Base(path)
	for _, re := range []*lazyregexp.Regexp{rankInName, pidInName} {
		if m := re.FindStringSubmatch(base); m != nil {
			parts = append(parts, strings.ToLower(m[1])+m[2])
		}
	}
	if len(parts) > 0 {
		return strings.Join(parts, " ")
	}
	return filepath.Dir(path)
}

// PIDOf is the process that the name of a file names (pid<N>), 0 if it names none.
func PIDOf(path string) int {
	m := pidInName.FindStringSubmatch(filepath.Base(path))
	if m == nil {
		return 0
	}
	pid, _ := strconv.Atoi(m[2]) // 0 if it cannot be one
	return pid
}

// Group sorts paths by process. Where all are of one, its name is "".
func Group(paths []string, group *regexp.Regexp) (names []string, files map[string][]string) {
	files = map[string][]string{}
	for _, p := range paths {
		name := ProcessOf(p, group)
		if files[name] == nil {
			names = append(names, name)
		}
		files[name] = append(files[name], p)
	}
	sort.Slice(names, func(i, j int) bool { return Natural(names[i], names[j]) })
	if len(names) == 1 {
		files = map[string][]string{"": files[names[0]]}
		names = []string{""}
	}
	return names, files
}

// Natural compares text with its numbers as numbers: step2 is before step10.
func Natural(a, b string) bool {
	for a != "" && b != "" {
		da, db := digits(a), digits(b)
		if da > 0 && db > 0 {
			na, nb := strings.TrimLeft(a[:da], "0"), strings.TrimLeft(b[:db], "0")
			if len(na) != len(nb) {
				return len(na) < len(nb)
			}
			if na != nb {
				return na < nb
			}
			a, b = a[da:], b[db:]
			continue
		}
		if a[0] != b[0] {
			return a[0] < b[0]
		}
		a, b = a[1:], b[1:]
	}
	return len(a) < len(b)
}

func digits(s string) int {
	n := 0
	for n < len(s) && s[n] >= '0' && s[n] <= '9' {
		n++
	}
	return n
}
