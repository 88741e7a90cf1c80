package logs

import (
	"bytes"
	"regexp"
	"strings"
)

// sourceOf is how a line begins that one of several ranks or workers wrote:
// "[rank3]:", "[default0]:", "[3]", "(worker pid=77, ip=10.0.0.1)", "Rank 3:".
// It is empty of other lines.
func sourceOf(line []byte) []byte {
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
	digits := len(leading(text[at:], digit))
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
	const most = 128
	end := bytes.IndexByte(text[:min(len(text), most)], ')')
	if end < 0 {
		return 0
	}
	for _, key := range []string{"pid=", "rank=", "ip="} {
		if i := bytes.Index(text[:end], []byte(key)); i > 0 && !letter(text[i-1]) {
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
	for at+digits < len(text) && digit(text[at+digits]) {
		digits++
	}
	if at += digits; digits == 0 || at < len(text) && (letter(text[at]) || text[at] == '_') {
		return 0
	}
	if at < len(text) && text[at] == ':' {
		at++
	}
	return at
}

func letter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

// nameOf is the rank or worker of a source, or the rank that the beginning of a
// line names: "rank3", "worker pid=77"; "" if there is none.
func nameOf(source string, prefix []byte) string {
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
var rankIn = regexp.MustCompile(`(?i)\brank[ _:=#-]{0,2}(\d{1,6})\b`)

// paint is what colours text in a terminal.
var paint = regexp.MustCompile("\x1b\\[[0-9;?]*[A-Za-z]")

// nameAt is where the name of the error begins in a line, and the prefix of the
// log ends; -1 if it is not there.
func nameAt(line []byte) int {
	name := bytes.Index(line, []byte(" out of memory"))
	i := name
	if i < 0 {
		return -1
	}
	word := func(c byte) bool { return c == '.' || c == '_' || digit(c) || letter(c) }
	back := func() {
		for i > 0 && word(line[i-1]) {
			i--
		}
	}
	if back(); i == name { // "error: out of memory" has none
		return -1
	}
	if string(line[i:name]) == "backend" && i > 0 { // MPS backend
		i--
		back()
	}
	if class := bytes.TrimSuffix(line[:i], []byte("Error: ")); len(class) < i {
		i = len(class)
		back() // torch.OutOfMemory
	}
	return i
}

// alike tells whether two prefixes differ in digits alone: times do.
func alike(a, b []byte) bool {
	for i := range a {
		if a[i] != b[i] && !(digit(a[i]) && digit(b[i])) {
			return false
		}
	}
	return true
}

// compact appends a line without white space, control characters and the marks
// that stand for them in a quoted text: \n.
func compact(to, line []byte) []byte {
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
		if line = line[at+1:]; len(line) > 0 && (line[0] == 'n' || line[0] == 'r' || line[0] == 't') {
			line = line[1:]
		}
	}
}

// visible appends what is no white space.
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
