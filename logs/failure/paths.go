package failure

import (
	"bytes"
	"strings"

	"strandline/internal/lazyregexp"
)

// A path names a program by its last element, or by all of them where that is code: a model lies in
// folders of any name.
var (
	folders  = lazyregexp.New(`(^|[\s'"(=,\[])(?:~|\.{1,2}|[A-Za-z]:)?[/\\][^\s'"(),;=]*[/\\]`)
	codeFile = lazyregexp.New(`^[^\s'"(),;=/\\]*\.(?:py[cxd]?|go|c|cc|cpp|cu|cuh|h|hpp|rs|so|dll)\b`)
)

// withoutFolders leaves the folders of such paths out.
func withoutFolders(text string) string {
	var out strings.Builder
	last := 0
	for _, m := range folders.FindAllStringSubmatchIndex(text, -1) {
		if !codeFile.MatchString(text[m[1]:]) {
			out.WriteString(text[last:m[3]])
			last = m[1]
		}
	}
	return out.String() + text[last:]
}

// inFolder reports whether a word of a line, by its end, is in such a folder.
func inFolder(line []byte, end int) bool {
	const maxPath = 512
	if end >= len(line) || end <= 0 {
		return false
	}
	rest := line[end:min(len(line), end+maxPath)]
	if stop := bytes.IndexAny(rest, " \t'\"(),;="); stop >= 0 {
		rest = rest[:stop]
	}
	if !bytes.ContainsAny(rest, `/\`) {
		return false
	}
	from := max(0, end-maxPath)
	from += bytes.LastIndexAny(line[from:end], " \t'\"(=,[") + 1
	m := folders.FindIndex(line[from:min(len(line), end+maxPath)])
	return m != nil && m[0] == 0 && from+m[1] > end && !codeFile.Match(line[from+m[1]:])
}
