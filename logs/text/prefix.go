package text

import (
	"bytes"
	"strings"

	"strandline/internal/lazyregexp"
)

// SourceOf returns how a line begins that one of several ranks or workers wrote:
// "[rank3]:", "[default0]:", "[3]", "(worker pid=77, ip=10.0.0.1)", "Rank 3:".
// It is empty of other lines.
func SourceOf(line []byte) []byte {
	at := 0
	for at < len(line) && (line[at] == ' ' || line[at] == '\t') {
		at++
	}
	n := 0
	switch text := line[at:]; {
	case len(text) == 0:
	case text[0] == '[':
		n = bracketed(text)
	case text[0] == '(':
		n = parenthesised(text)
	case text[0]|0x20 == 'r':
		n = numbered(text)
	}
	if n == 0 {
		return nil
	}
	return line[:at+n]
}

// bracketed is the length of "[rank3]:".
func bracketed(text []byte) int {
	at := 1
	for _, word := range []string{"rank", "default", "worker"} {
		if bytes.HasPrefix(text[at:], []byte(word)) {
			at += len(word)
			break
		}
	}
	if at < len(text) && (text[at] == ' ' || text[at] == '\t') {
		at++
	}
	digits := len(Digits(text[at:]))
	if at += digits; digits == 0 || at == len(text) || text[at] != ']' {
		return 0
	}
	if at++; at < len(text) && text[at] == ':' {
		at++
	}
	return at
}

// parenthesised is the length of "(RayWorker pid=77, ip=10.0.0.1)".
func parenthesised(text []byte) int {
	const maxLen = 128
	end := bytes.IndexByte(text[:min(len(text), maxLen)], ')')
	if end < 0 {
		return 0
	}
	for _, key := range []string{"pid=", "rank=", "ip="} {
		if i := bytes.Index(text[:end], []byte(key)); i > 0 && !Letter(text[i-1]) {
			return end + 1
		}
	}
	return 0
}

// numbered is the length of "rank 3:".
func numbered(text []byte) int {
	const word = len("rank")
	if len(text) < word || !strings.Contains("rank Rank RANK", string(text[:word])) {
		return 0
	}
	at := word
	if at < len(text) && strings.IndexByte(" _:", text[at]) >= 0 {
		at++
	}
	digits := 0
	for at+digits < len(text) && Digit(text[at+digits]) {
		digits++
	}
	if at += digits; digits == 0 || at < len(text) && (Letter(text[at]) || text[at] == '_') {
		return 0
	}
	if at < len(text) && text[at] == ':' {
		at++
	}
	return at
}

// RankOf is the rank or worker of a source, or the rank that the beginning of a
// line names: "rank3", "worker pid=77"; "" if there is none.
func RankOf(source string, prefix []byte) string {
	name := strings.Trim(source, " \t:")
	if inside := strings.Trim(name, "[]()"); strings.Trim(inside, "0123456789") != "" {
		name = inside
	}
	if name != "" {
		return name
	}
	if !bytes.Contains(prefix, []byte("ank")) && !bytes.Contains(prefix, []byte("ANK")) {
		return ""
	}
	if rank := rankIn.FindSubmatch(prefix); rank != nil {
		return "rank" + string(rank[1])
	}
	return ""
}

// rankIn is how a line names the rank that wrote it.
var rankIn = lazyregexp.New(`(?i)\brank[ _:=#-]{0,2}(\d{1,6})\b`)

// CommonPrefix returns how many bytes of a line are those of a prefix except for digits: times
// differ in these. It is the whole prefix, or as many of its words.
func CommonPrefix(line, prefix []byte) int {
	words := 0
	for i, c := range prefix {
		if i == len(line) || line[i] != c && !(Digit(line[i]) && Digit(c)) {
			return words
		}
		if c == ' ' || c == '\t' || c == '"' || c == '>' {
			words = i + 1
		}
	}
	return len(prefix)
}

// afterQuote is what follows a string that is the value of a key: nothing, another key, or
// the end of the object.
var afterQuote = lazyregexp.New(`^(?:\s*$|\s*\}|\s+[\w.]{1,64}=|\s*,\s*"[\w.]{1,64}"\s*:)`)

// UntilQuote is the rest of such a string whose beginning is before the text: msg="…" level=info.
func UntilQuote(text []byte) []byte {
	const maxLen = 256 // of what follows
	for at := 0; ; at++ {
		i := bytes.IndexByte(text[at:], '"')
		if i < 0 {
			return text
		}
		at += i
		if rest := text[at+1:]; (at == 0 || text[at-1] != '\\') && afterQuote.Match(rest[:min(len(rest), maxLen)]) {
			return text[:at]
		}
	}
}

// margin is what may precede a line of a comment, a quotation or a table.
const margin = " \t#>|*\""

var marginal = func() (is [256]bool) {
	for _, c := range []byte(margin) {
		is[c] = true
	}
	return is
}()

// PastMargin is a line without what precedes it.
func PastMargin(line []byte) []byte {
	for len(line) > 0 && marginal[line[0]] {
		line = line[1:]
	}
	return line
}

// compact appends a line without white space, control characters and their
// escapes in a quoted text, \n, with what ends a quoted line there and
// begins the next.
func Compact(to, line []byte) []byte {
	for {
		at := bytes.IndexByte(line, '\\')
		part := line
		if at >= 0 {
			part = line[:at]
		}
		to = visible(to, part)
		if at < 0 {
			return to
		}
		if line = line[at+1:]; len(line) == 0 {
			return to
		}
		switch line[0] {
		case 'n':
			line = PastMargin(nextQuoted(line[1:]))
			if len(to) > 0 && Digit(to[len(to)-1]) && len(line) > 0 && Digit(line[0]) {
				line = line[len(LogPrefix.Find(line)):] // a time is not part of a number
			}
		case 'r', 't':
			line = line[1:]
		}
	}
}

// nextQuoted returns what follows a quoted line: in a list of lines the next one ("a\n",
// "b\n"), in an object nothing ({"log": "a\n", "time": "12:00"}).
func nextQuoted(text []byte) []byte {
	if len(text) < 2 || !Quotation(text[0]) || text[1] != ',' {
		return text
	}
	quote := text[0]
	rest := bytes.TrimLeft(text[2:], " ")
	if len(rest) == 0 || rest[0] != quote {
		return text
	}
	rest = rest[1:]
	if end := bytes.IndexByte(rest, quote); end >= 0 && HasPrefix(rest[end+1:], ":") {
		return nil
	}
	return rest
}

// visible appends what is not white space.
func visible(to, text []byte) []byte {
	n := len(to)
	to = append(to, text...)
	for _, c := range text {
		to[n] = c
		if c > ' ' && c != 0x7f {
			n++
		}
	}
	return to[:n]
}

// LogPrefix is what a log writes before a line.
var LogPrefix = lazyregexp.New(`^\s*(?:(?:` + SyslogPrefix + `|\([^()]{1,80}pid=[^()]{1,60}\)|\[[^\[\]]{1,60}\]:?|\d{4}-\d\d-\d\d[T :][\d:.,]+Z?|\d\d-\d\d \d\d:\d\d:\d\d|\d\d:\d\d:\d\d(?:[.,]\d+)?|(?:ERROR|WARNING|INFO|DEBUG|CRITICAL|FATAL|stderr|stdout)\b(?: [FP]\b)?:?|\{"(?:log|msg|message)": ?"|\d+\.\d\d\.\d{3}\.\d{3} [A-Z]\b|[|│>]|\d{1,5}:\s|\d{1,3}%\|[^|]{0,80}\|[^\[\]]{0,60}\[[^\[\]]{0,80}\])\s*)+`)

// SyslogPrefix is how syslog and journald begin a line: time, host, program.
const SyslogPrefix = `[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d [\w.-]{1,64} [\w.@/-]{1,64}(?:\[\d{1,10}\])?:`
