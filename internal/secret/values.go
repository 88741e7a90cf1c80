package secret

import "strings"

// begins are the first bytes of forms.
var begins = func() (out [256]bool) {
	for _, f := range forms {
		out[f.prefix[0]] = true
	}
	return out
}()

// formed is how many bytes at the beginning of a text, where a word begins, are a secret
// by their form; 0 for none.
func formed(text string) int {
	if !begins[text[0]] {
		return 0
	}
	for _, f := range forms {
		rest, ok := strings.CutPrefix(text, f.prefix)
		if !ok {
			continue
		}
		n := 0
		mixed := false // a name of several words has no digits and capitals
		for n < len(rest) && (isLetter(rest[n]) || isDigit(rest[n]) || strings.IndexByte(f.also, rest[n]) >= 0) {
			mixed = mixed || isDigit(rest[n]) || 'A' <= rest[n] && rest[n] <= 'Z'
			n++
		}
		if n >= f.min && (mixed || n >= 2*f.min) && (f.prefix != "sk-" || longRun(rest[:n])) {
			return len(f.prefix) + n
		}
	}
	return 0
}

// longRun reports whether a text has many letters and digits in a row, as names of
// several words do not.
func longRun(text string) bool {
	const long = 10
	run, digits := 0, false
	for i := range len(text) {
		if text[i] == '-' || text[i] == '_' {
			run, digits = 0, false
			continue
		}
		run++
		digits = digits || !('a' <= text[i] && text[i] <= 'z')
		if run >= long && digits {
			return true
		}
	}
	return false
}

// values returns the parts of a text that are secrets by their form, by a name before them,
// or by their place in an address.
func values(text string) []span {
	t := scan{text: text}
	for i := 0; i < len(text); {
		i = t.step(i)
	}
	return t.out
}

// interesting are the bytes at which a secret can be found, besides those at which forms
// begin.
var interesting = func() (out [256]bool) {
	out = begins
	for _, c := range []byte("=:@-,Bb") {
		out[c] = true
	}
	return out
}()

// A scan goes through a text once.
type scan struct {
	text    string
	out     []span
	done    int  // where the last part of out ends
	address span // what lies between "://" and the end of the last address
}

// mask adds a part of the text, and returns where it ends.
func (t *scan) mask(from, to int) int {
	if from >= t.done && t.text[from:to] != Mask {
		t.out, t.done = append(t.out, span{from, to}), to
	}
	return to
}

// step looks at one place, and returns the next.
func (t *scan) step(i int) int {
	text := t.text
	c := text[i]
	if !interesting[c] {
		return i + 1
	}
	switch c {
	case '=':
		if i+1 < len(text) && text[i+1] == '=' { // a comparison, or the end of base64
			return i + 2
		}
		return t.value(i)
	case '@':
		return t.at(i)
	case ',':
		return t.parameter(i)
	case ':':
		if strings.HasPrefix(text[i:], "://") {
			return t.url(i)
		}
		return t.value(i)
	}
	if i > 0 && (isLetter(text[i-1]) || isDigit(text[i-1]) || text[i-1] == '_' || text[i-1] == '-') {
		return i + 1
	}
	if c == '-' {
		return t.flag(i)
	}
	if n := formed(text[i:]); n > 0 {
		return t.mask(i, i+n)
	}
	if (c == 'B' || c == 'b') && len(text) > i+7 && strings.EqualFold(text[i:i+7], "bearer ") {
		end := i + 7
		digits := false
		for end < len(text) && !ends(text[end]) {
			digits = digits || isDigit(text[end])
			end++
		}
		if digits && end-i-7 >= 8 {
			return t.mask(i+7, end)
		}
	}
	return i + 1
}

// flag looks at a flag in the middle of a text: --api-key VALUE. Others are read at the
// "=" that follows.
func (t *scan) flag(i int) int {
	if !strings.HasPrefix(t.text[i:], "--") {
		return i + 1
	}
	from := i + 2
	end := from
	for end < len(t.text) && inName(t.text[end]) {
		end++
	}
	if end == from {
		return i + 2
	}
	start := t.blanks(end)
	if start == end || start == len(t.text) {
		return end
	}
	name := t.text[i:end]
	k := kindOf(name)
	if k == none || isSwitch(name) {
		return end
	}
	next := start
	for next < len(t.text) && !isSpace(t.text[next]) {
		next++
	}
	if looksLikeFlag(t.text[start:next]) {
		return next
	}
	return t.span(k, start)
}

// blanks skips spaces, tabs and the ends of lines that go on.
func (t *scan) blanks(i int) int {
	for i < len(t.text) {
		switch {
		case t.text[i] == ' ' || t.text[i] == '\t':
			i++
		case strings.HasPrefix(t.text[i:], "\\\n"):
			i += 2
		default:
			return i
		}
	}
	return i
}

// name finds the name that ends at a place, in quotes or not.
func (t *scan) name(end int) (name span, quoted bool) {
	for end > 0 && (t.text[end-1] == ' ' || t.text[end-1] == '\t') {
		end--
	}
	for end > 0 && strings.IndexByte("\"'`\\]", t.text[end-1]) >= 0 { // of JSON, of a Python dict or of os.environ["NAME"]
		end--
		quoted = true
	}
	from := end
	for from > 0 && end-from < maxName && inName(t.text[from-1]) {
		from--
	}
	return span{from, end}, quoted
}

// value looks at a name and its value, between which a "=" or ":" is.
func (t *scan) value(i int) int {
	text := t.text
	before := i
	if text[i] == '=' && i > 0 && strings.IndexByte(":?+", text[i-1]) >= 0 { // assignments of make and others
		before--
	}
	at, quoted := t.name(before)
	if at.from == at.to {
		return i + 1
	}
	name := text[at.from:at.to]
	k := kindOf(name)
	if text[i] == '=' && at.from > 0 && strings.IndexByte("?&", text[at.from-1]) >= 0 && (k == none || k == login) {
		if small := strings.ToLower(name); parameters[small] || strings.HasSuffix(small, "signature") {
			k = maybe
		}
	}
	if k == none {
		return i + 1
	}
	start := i + 1
	if start < len(text) && text[start] == '>' { // of Ruby and Rust
		start++
	}
	if text[i] == ':' {
		spaced := start < len(text) && strings.IndexByte(" \t\"'", text[start]) >= 0
		simple := strings.Trim(name, "abcdefghijklmnopqrstuvwxyz") == "" && k != password && k != header // "unexpected token: 5"
		value, typed := t.typed(start)
		switch {
		case typed && value == 0:
			return i + 1
		case typed:
			start = value
		case !quoted && (spaced && simple || !spaced && !t.glued(k, name, start)):
			return i + 1
		}
	}
	if text[i] == ':' || before > at.to || quoted {
		start = t.blanks(start)
	}
	if k == header {
		return t.header(start)
	}
	return t.span(k, start)
}

// glued reports whether a ":" without a space is followed by the value of a name, rather
// than by a line's number or a version.
func (t *scan) glued(k kind, name string, start int) bool {
	if start >= len(t.text) || isDigit(t.text[start]) && isNumber(t.text[start:min(t.end(start), start+10)]) {
		return false
	}
	return k == header || compound(name) || k == password && compound("_"+name)
}

// typed looks for a type between a name and its value: password: str = "…". The value is 0
// if there is none.
func (t *scan) typed(start int) (value int, ok bool) {
	const maxLen = 64
	text := t.text
	start = t.blanks(start)
	end := start
	for end < len(text) && end-start < maxLen && (isLetter(text[end]) || isDigit(text[end]) || text[end] == '_' || text[end] == '.') {
		end++
	}
	name := text[start:end]
	if !types[strings.ToLower(name[strings.LastIndexByte(name, '.')+1:])] {
		return 0, false
	}
	for ; end < len(text) && end-start < maxLen; end++ {
		if c := text[end]; c == '=' {
			return t.blanks(end + 1), true
		} else if !isLetter(c) && strings.IndexByte(" \t[]._|,'\"", c) < 0 {
			break
		}
	}
	return 0, true
}

// parameter looks at a name and its value that are arguments of a function in code:
// setdefault("NAME", "value").
func (t *scan) parameter(i int) int {
	at, quoted := t.name(i)
	start := t.blanks(i + 1)
	first := start
	if first < len(t.text) && strings.IndexByte("\\bBrRuUfF", t.text[first]) >= 0 {
		first++
	}
	if !quoted || at.from == at.to || first >= len(t.text) || t.text[first] != '"' && t.text[first] != '\'' {
		return i + 1
	}
	name := t.text[at.from:at.to]
	before := strings.TrimRight(t.text[max(at.from-8, 0):at.from], "\"'`\\ brfu")
	k := kindOf(name)
	call := strings.HasSuffix(before, "(") || strings.Contains(t.text[max(at.from-32, 0):at.from], "setattr(")
	if k == none || name[0] == '-' || !call || !compound(name) && !ofEnvironment(name) {
		return i + 1
	}
	if k == header {
		return t.header(start)
	}
	return t.span(k, start)
}

// header masks the value of a header of HTTP but for the name of its scheme.
func (t *scan) header(start int) int {
	text := t.text
	stop := "\r\n\"'`"
	if start < len(text) && strings.IndexByte("\"'`", text[start]) >= 0 {
		start++
	}
	end := start
	for end < len(text) && strings.IndexByte(stop, text[end]) < 0 {
		end++
	}
	end = start + len(strings.TrimRight(text[start:end], " \\"))
	for _, scheme := range []string{"Bearer ", "Basic ", "Token ", "Digest ", "ApiKey "} {
		if n := len(scheme); end-start > n && strings.EqualFold(text[start:start+n], scheme) {
			start += n
			break
		}
	}
	return t.one(password, start, end)
}

// span masks the value that begins at a place, and returns where it ends.
func (t *scan) span(k kind, start int) int {
	text := t.text
	if start < len(text)-1 && text[start] == '\\' {
		start++
	}
	if strings.HasPrefix(text[min(start, len(text)):], "${") {
		if end := strings.IndexByte(text[start:min(start+maxName, len(text))], '}'); end > 0 && reference(text[start:start+end+1]) {
			return start + end + 1
		}
	}
	for n := range 3 { // quotes of a shell and of Python: $'…', rb"…"
		if at := start + n; at < len(text) && strings.IndexByte("\"'`", text[at]) >= 0 {
			return t.quoted(k, at)
		} else if at >= len(text) || strings.IndexByte("$bBrRuUfF", text[at]) < 0 {
			break
		}
	}
	if start < len(text) && strings.IndexByte("[({", text[start]) >= 0 {
		return t.list(k, start)
	}
	return t.one(k, start, t.end(start))
}

// end is where a value ends that is not in quotes: what a function makes of its arguments
// is one too.
func (t *scan) end(start int) int {
	const maxLen = 256
	text := t.text
	end := start
	for end < len(text) && !ends(text[end]) {
		end++
	}
	if end > start && end < len(text) && (text[end] == '(' || text[end] == '[') {
		line, _, _ := strings.Cut(text[end:min(end+maxLen, len(text))], "\n")
		if i := strings.IndexByte(line, closing(text[end])); i > 0 {
			return end + i + 1
		}
	}
	return end
}

// quoted masks what is in quotes.
func (t *scan) quoted(k kind, start int) int {
	text := t.text
	quote := text[start]
	from := start + 1
	end := from
	for end < len(text) && text[end] != quote {
		if text[end] == '\\' && end+1 < len(text) && text[end+1] != quote {
			end++
		}
		end++
	}
	end = min(end, len(text))
	if end > from && text[end-1] == '\\' {
		end--
	}
	if quote == '`' && strings.Contains(text[from:end], " ") { // a command
		return from
	}
	return t.one(k, from, end)
}

// list masks what is in brackets after a name.
func (t *scan) list(k kind, start int) int {
	text := t.text
	last := closing(text[start])
	end := start + 1
	for end < len(text) && text[end] != last && text[end] != '\n' {
		end++
	}
	if inside := strings.Trim(text[start+1:end], "\"' ,\\"); plain(k, inside) || k == token && end < len(text) && plain(k, text[start:end+1]) && strings.IndexByte(inside, '\'') < 0 {
		return end
	}
	return t.mask(start+1, end)
}

// closing is the bracket that closes another.
func closing(open byte) byte {
	if open == '(' {
		return ')'
	}
	return open + 2
}

// one masks one value.
func (t *scan) one(k kind, from, to int) int {
	if from >= to || plain(k, t.text[from:to]) || reference(t.text[from:to]) {
		return max(from, to)
	}
	return t.mask(from, to)
}

// ends reports whether a byte ends a value that is not in quotes.
func ends(c byte) bool {
	switch c {
	case ' ', '\t', '\n', '\r', '"', '\'', '`', ',', ';', '&', '|', '(', ')', '[', ']', '{', '}', '<', '>', '\\', 0:
		return true
	}
	return false
}
