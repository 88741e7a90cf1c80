package secret

import "strings"

// url masks the password of an address, "://" of which is at a place. Secrets among its
// parameters are found by their names.
func (t *scan) url(i int) int {
	text := t.text
	from := i + len("://")
	if from >= t.address.to {
		end := from
		for end < len(text) && !ends(text[end]) && text[end] != '?' && text[end] != '#' {
			end++
		}
		t.address = span{strings.LastIndexByte(text[from:end], '@') + from, end}
	}
	end, last := t.address.to, t.address.from-from // where the last "@" is
	if last < 0 {
		return from
	}
	authority, _, _ := strings.Cut(text[from:end], "/")
	at := last
	if last >= len(authority) {
		at = strings.LastIndexByte(authority, '@')
	}
	if at < 0 { // a password can have a slash that should be written %2F; a port is a number
		_, after, ok := strings.Cut(authority, ":")
		if !ok || strings.Trim(after, "0123456789") == "" || strings.HasPrefix(authority, "[") {
			return from
		}
		at = last
	}
	user := text[from : from+at]
	scheme := i
	for scheme > 0 && i-scheme < 6 && isLetter(text[scheme-1]) {
		scheme--
	}
	alone := bare[strings.ToLower(text[scheme:i])]
	name, word, given := strings.Cut(user, ":")
	switch {
	case given && (word == "" || word == "x-oauth-basic" || word == Mask && name == Mask):
		if alone && name != "" {
			return t.mask(from, from+at)
		}
	case given && !reference(word):
		if isKey(name) {
			return t.mask(from, from+at)
		}
		return t.mask(from+len(name)+1, from+at)
	case !given && (alone || isKey(name)) && !isDigest(text[from+at+1:]) && !reference(name): // nobody gives a name alone
		return t.mask(from, from+at)
	}
	return from + at
}

// isKey reports whether a name is a key rather than that of a person or a program.
func isKey(name string) bool {
	return len(name) >= 20 && strings.ContainsAny(name, "0123456789") && strings.Trim(name, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_") == ""
}

// isDigest reports whether a container's digest begins a text.
func isDigest(text string) bool {
	return strings.HasPrefix(text, "sha256:") || strings.HasPrefix(text, "sha512:")
}

// at masks the password of name:password@host without a scheme. A container's image has a
// digest after its "@", and a place in a file a number before it.
func (t *scan) at(i int) int {
	text := t.text
	rest := text[i+1:]
	for k := 0; k < len(rest) && !ends(rest[k]) && rest[k] != '/'; k++ {
		if rest[k] == '@' { // the password contains one
			return i + 1
		}
	}
	from := i
	for from > t.done && !ends(text[from-1]) && text[from-1] != '/' && text[from-1] != '=' {
		from--
	}
	user := text[from:i]
	colon := strings.IndexByte(user, ':')
	if colon < 1 || colon+1 == len(user) || strings.Trim(user[colon+1:], "0123456789") == "" || user[:colon] == "mailto" || reference(user[colon+1:]) {
		return i + 1
	}
	if rest == "" || !isLetter(rest[0]) && !isDigit(rest[0]) && rest[0] != '[' || isDigest(rest) {
		return i + 1
	}
	t.mask(from+colon+1, i)
	return i + 1
}
