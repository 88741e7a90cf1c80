package secret

import (
	"path"
	"strings"
)

// forms are how the secrets of known services begin, and how many bytes follow at least.
// A form is found where a word begins.
var forms = []struct {
	prefix string
	min    int
	also   string // bytes that may follow besides letters and digits
}{
	{"sk-", 16, "-_"}, {"sk_live_", 10, ""}, {"sk_test_", 10, ""}, {"rk_live_", 10, ""}, // OpenAI, Anthropic, OpenRouter, Stripe
	{"hf_", 16, ""}, {"api_org_", 16, ""}, // Hugging Face
	{"ghp_", 16, ""}, {"gho_", 16, ""}, {"ghu_", 16, ""}, {"ghs_", 16, ""}, {"ghr_", 16, ""}, {"github_pat_", 16, "_"}, {"glpat-", 16, "-_."},
	{"xoxb-", 10, "-"}, {"xoxp-", 10, "-"}, {"xoxa-", 10, "-"}, {"xoxs-", 10, "-"}, {"xapp-", 10, "-"},
	{"AKIA", 16, ""}, {"ASIA", 16, ""}, // Amazon
	{"AIza", 30, "-_"}, {"ya29.", 20, "-_"}, // Google
	{"nvapi-", 20, "-_"}, {"gsk_", 20, ""}, {"r8_", 20, ""}, {"pplx-", 20, ""}, {"xai-", 20, ""}, {"tvly-", 16, "-_"},
	{"wandb_v1_", 16, "_-"}, {"dckr_pat_", 16, "_-"}, {"npm_", 30, ""}, {"pypi-", 30, "-_"}, {"dop_v1_", 30, ""}, {"lsv2_", 16, "_"},
	{"eyJ", 30, "-_."},                       // a JSON web token
	{"hooks.slack.com/services/", 10, "/"},   // whoever knows the address may post
	{"discord.com/api/webhooks/", 10, "/-_"}, // likewise
}

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

// plain reports whether a value is no secret of the kind that its name says.
func plain(k kind, value string) bool {
	switch value {
	case "", Mask, "None", "none", "null", "nil", "True", "true", "False", "false", "undefined", "NULL", "...", "…", "-", "=":
		return true
	}
	switch k {
	case token:
		number := strings.Trim(value, "0123456789.-+") == "" && len(value) < 10
		special := value[0] == '<' && value[len(value)-1] == '>' || value[0] == '[' && value[len(value)-1] == ']'
		return number || special
	case file:
		switch path.Ext(value) {
		case ".pem", ".key", ".json", ".crt", ".yaml", ".yml", ".txt":
			return true
		}
		return value[0] == '/' || strings.HasPrefix(value, "./") || strings.HasPrefix(value, "~/")
	case login:
		return strings.Trim(value, "0123456789:") == "" || strings.IndexByte(value, ':') < 0 || strings.HasSuffix(value, ":"+Mask)
	}
	return false
}

// reference reports whether a value in the text of a shell is the name of a variable.
func reference(value string) bool {
	name, ok := strings.CutPrefix(value, "$")
	if !ok {
		return false
	}
	name = strings.TrimSuffix(strings.TrimPrefix(name, "{"), "}")
	for i := range len(name) {
		if !isLetter(name[i]) && name[i] != '_' && !isDigit(name[i]) {
			return false
		}
	}
	return name != "" && !isDigit(name[0])
}

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

// Text masks what is a secret in any text: a line of a log, an argument, an address, a
// variable and its value. It returns the same text if there is none.
func Text(text string) string {
	t := scan{text: text}
	for i := 0; i < len(text); {
		i = t.step(i)
	}
	if t.out == nil {
		return text
	}
	return string(append(t.out, text[t.done:]...))
}

// interesting are the bytes at which a secret can be found, besides those at which forms
// begin.
var interesting = func() (out [256]bool) {
	out = begins
	for _, c := range []byte("=:@-Bb") {
		out[c] = true
	}
	return out
}()

// A scan goes through a text once.
type scan struct {
	text string
	out  []byte
	done int // how much of the text is in out
}

// mask replaces a part of the text, and returns where it ends.
func (t *scan) mask(from, to int) int {
	if from < t.done || t.text[from:to] == Mask {
		return to
	}
	t.out = append(append(t.out, t.text[t.done:from]...), Mask...)
	t.done = to
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
	case ':':
		if strings.HasPrefix(text[i:], "://") {
			return t.address(i)
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
	if end == len(t.text) || t.text[end] != ' ' {
		return end
	}
	name := t.text[i:end]
	k := kindOf(name)
	if k == none || isSwitch(name) {
		return end
	}
	for end < len(t.text) && t.text[end] == ' ' {
		end++
	}
	if next, _, _ := strings.Cut(t.text[end:], " "); next == "" || looksLikeFlag(next) {
		return end
	}
	return t.span(k, end)
}

// value looks at a name and its value, between which a "=" or ":" is.
func (t *scan) value(i int) int {
	text := t.text
	end := i
	for end > 0 && text[end-1] == ' ' {
		end--
	}
	quoted := false
	for end > 0 && strings.IndexByte("\"'`\\]", text[end-1]) >= 0 { // of JSON, of a Python dict or of os.environ["NAME"]
		end--
		quoted = true
	}
	from := end
	for from > 0 && end-from < maxName && inName(text[from-1]) {
		from--
	}
	if from == end {
		return i + 1
	}
	k := kindOf(text[from:end])
	if k == none {
		return i + 1
	}
	start := i + 1
	if start < len(text) && text[start] == '>' { // of Ruby and Rust
		start++
	}
	if text[i] == ':' {
		spaced := start < len(text) && (text[start] == ' ' || text[start] == '"' || text[start] == '\'')
		simple := strings.Trim(text[from:end], "abcdefghijklmnopqrstuvwxyz") == "" && k != password && k != header // "unexpected token: 5"
		if !quoted && (!spaced || simple) {
			return i + 1
		}
	}
	if text[i] == ':' || i > 0 && text[i-1] == ' ' || quoted {
		for start < len(text) && text[start] == ' ' {
			start++
		}
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
	if start >= end || plain(password, text[start:end]) || reference(text[start:end]) {
		return max(start, end)
	}
	return t.mask(start, end)
}

// span masks the value that begins at a place, and returns where it ends.
func (t *scan) span(k kind, start int) int {
	text := t.text
	if start >= len(text) {
		return start
	}
	if text[start] == '\\' && start+1 < len(text) {
		start++
	}
	if strings.HasPrefix(text[start:], "${") {
		if end := strings.IndexByte(text[start:], '}'); end > 0 && reference(text[start:start+end+1]) {
			return start + end + 1
		}
	}
	switch c := text[start]; c {
	case '[', '(', '{':
		return t.list(k, start)
	case '"', '\'', '`':
		from := start + 1
		end := from
		for end < len(text) && text[end] != c {
			if text[end] == '\\' && end+1 < len(text) && text[end+1] != c {
				end++
			}
			end++
		}
		end = min(end, len(text))
		if end > from && text[end-1] == '\\' {
			end--
		}
		return t.one(k, from, end)
	}
	end := start
	for end < len(text) && !ends(text[end]) {
		end++
	}
	return t.one(k, start, end)
}

// list masks what is in brackets after a name.
func (t *scan) list(k kind, start int) int {
	text := t.text
	closing := map[byte]byte{'[': ']', '(': ')', '{': '}'}[text[start]]
	end := start + 1
	for end < len(text) && text[end] != closing && text[end] != '\n' {
		end++
	}
	if inside := strings.Trim(text[start+1:end], "\"' ,\\"); plain(k, inside) || k == token && end < len(text) && plain(k, text[start:end+1]) && strings.IndexByte(inside, '\'') < 0 {
		return end
	}
	return t.mask(start+1, end)
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

// maxAddress bounds how far the password of an address is looked for, in bytes.
const maxAddress = 4 << 10

// address masks the password of an address, "://" of which is at a place. Secrets among
// its parameters are found by their names.
func (t *scan) address(i int) int {
	text := t.text
	from := i + len("://")
	end := from
	for end < len(text) && end-from < maxAddress && !ends(text[end]) && text[end] != '?' && text[end] != '#' {
		end++
	}
	authority, _, _ := strings.Cut(text[from:end], "/")
	at := strings.LastIndexByte(authority, '@')
	if at < 0 { // a password can have a slash that should be written %2F; a port is a number
		_, after, ok := strings.Cut(authority, ":")
		if !ok || strings.Trim(after, "0123456789") == "" || strings.HasPrefix(authority, "[") {
			return from
		}
		if at = strings.LastIndexByte(text[from:end], '@'); at < 0 {
			return from
		}
	}
	user := text[from : from+at]
	if colon := strings.IndexByte(user, ':'); colon >= 0 {
		if colon+1 == len(user) || reference(user[colon+1:]) {
			return from + at
		}
		return t.mask(from+colon+1, from+at)
	}
	scheme := text[max(i-5, 0):i]
	if strings.HasSuffix(scheme, "http") || strings.HasSuffix(scheme, "https") { // a token: nobody gives a name alone
		return t.mask(from, from+at)
	}
	return from + at
}

// at masks the password of name:password@host without a scheme. A container's image has a
// digest after its "@", and a place in a file a number before it.
func (t *scan) at(i int) int {
	text := t.text
	from := i
	for from > t.done && !ends(text[from-1]) && text[from-1] != '/' && text[from-1] != '=' {
		from--
	}
	user, rest := text[from:i], text[i+1:]
	for k := 0; k < len(rest) && !ends(rest[k]) && rest[k] != '/'; k++ {
		if rest[k] == '@' { // the password contains one
			return i + 1
		}
	}
	colon := strings.IndexByte(user, ':')
	if colon < 1 || colon+1 == len(user) || strings.Trim(user[colon+1:], "0123456789") == "" || user[:colon] == "mailto" || reference(user[colon+1:]) {
		return i + 1
	}
	if rest == "" || !isLetter(rest[0]) && !isDigit(rest[0]) && rest[0] != '[' || strings.HasPrefix(rest, "sha256:") || strings.HasPrefix(rest, "sha512:") {
		return i + 1
	}
	t.mask(from+colon+1, i)
	return i + 1
}
