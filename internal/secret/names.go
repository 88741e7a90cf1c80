package secret

import (
	"bytes"
	"path"
	"strings"
)

// maxName is how much of a name is looked at, from its end, in bytes.
const maxName = 64

// kindOf is what a name says of its value: a flag with or without dashes, a variable, a
// key of a configuration.
func kindOf(name string) kind {
	if !mayName(name) {
		return none
	}
	var buffer [2 * maxName]byte
	w, rest := lastWord(split(name, buffer[:0]))
	for len(w) > 0 && len(rest) > 0 && (qualifiers[string(w)] || len(bytes.TrimRight(w, "0123456789")) == 0) { // API_KEY_1
		w, rest = lastWord(rest)
	}
	w = bytes.TrimRight(w, "0123456789")
	before, _ := lastWord(rest)
	switch string(w) {
	case "key", "keys":
		switch {
		case string(before) == "private":
			return file
		case keys[string(before)]:
			return key
		case len(before) > 0 && ofEnvironment(name) && !columns[string(before)]:
			return file
		}
		return none
	case "id":
		if bytes.HasSuffix(append([]byte("-"), rest...), []byte("-access-key")) { // half of a pair of Amazon's
			return key
		}
		return none
	case "token":
		if texts[string(before)] {
			return none
		}
	case "pat":
		if accounts[string(before)] || len(rest) == 0 && ofEnvironment(name) {
			return token
		}
		return none
	case "pass":
		if len(before) > 0 && !accounts[string(before)] {
			return none
		}
	case "tokens":
		if accounts[string(before)] {
			return password
		}
		return none
	case "pwd":
		if len(rest) > 0 && !accounts[string(before)] {
			return none
		}
		if len(rest) > 0 {
			return password
		}
	}
	if k, ok := last[string(w)]; ok {
		return k
	}
	for _, end := range glued {
		if len(w) > len(end) && string(w[len(w)-len(end):]) == end {
			return password
		}
	}
	return none
}

// ofEnvironment reports whether a name is written as those of the environment are.
func ofEnvironment(name string) bool {
	for i := range len(name) {
		if c := name[i]; 'a' <= c && c <= 'z' || c == '-' || c == '.' {
			return false
		}
	}
	return true
}

// mayName is a cheap condition that every name of a secret meets: it ends, but for
// digits, in a letter in which such names end.
func mayName(name string) bool {
	i := len(name)
	for i > 0 && (name[i-1] <= '9' || name[i-1] == '_') {
		i--
	}
	if i < 2 {
		return false
	}
	switch name[i-1] | 0x20 {
	case 'b', 'd', 'e', 'g', 'h', 'k', 'l', 'n', 'r', 's', 't', 'v', 'w', 'y':
		return true
	}
	return false
}

// isChange reports whether a subcommand changes a secret, which follows it.
func isChange(name string) bool {
	var buffer [2 * maxName]byte
	first, rest, _ := bytes.Cut(split(name, buffer[:0]), []byte("-"))
	return len(rest) > 0 && changes[string(first)] && isName(name) && kindOf(name) != none
}

// isSwitch reports whether a flag says by its first word that no secret follows.
func isSwitch(name string) bool {
	var buffer [2 * maxName]byte
	first, _, _ := bytes.Cut(split(name, buffer[:0]), []byte("-"))
	return switches[string(first)]
}

// split writes the words of a name in small letters, with dashes between: "API_KEY",
// "api.key" and "apiKey" become "api-key", and so does Java's "-Dapi.key".
func split(name string, out []byte) []byte {
	name = strings.TrimPrefix(name, "-D")
	if len(name) > maxName {
		name = name[len(name)-maxName:]
	}
	for i := range len(name) {
		c := name[i]
		upper := 'A' <= c && c <= 'Z'
		switch {
		case upper:
			small := i > 0 && 'a' <= name[i-1] && name[i-1] <= 'z'
			ends := i > 0 && 'A' <= name[i-1] && name[i-1] <= 'Z' && i+1 < len(name) && 'a' <= name[i+1] && name[i+1] <= 'z' // the K of APIKey
			if small || ends && name[i+1:] != "s" {
				out = append(out, '-')
			}
			out = append(out, c|0x20)
		case isLetter(c) || '0' <= c && c <= '9':
			out = append(out, c)
		case len(out) > 0 && out[len(out)-1] != '-':
			out = append(out, '-')
		}
	}
	return bytes.TrimRight(out, "-")
}

// lastWord separates the last word of words.
func lastWord(words []byte) (word, rest []byte) {
	i := bytes.LastIndexByte(words, '-')
	return words[i+1:], words[:max(i, 0)]
}

func isLetter(c byte) bool { return 'a' <= c|0x20 && c|0x20 <= 'z' }

func isDigit(c byte) bool { return '0' <= c && c <= '9' }

func isSpace(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

func inName(c byte) bool {
	return isLetter(c) || isDigit(c) || c == '_' || c == '-' || c == '.'
}

// isName reports whether a text can be the name of a flag, a variable or a setting.
func isName(text string) bool {
	for i := range len(text) {
		if c := text[i]; !inName(c) && c != '+' && c != '/' && c != ':' {
			return false
		}
	}
	return text != "" && !strings.Contains(text, "://")
}

// compound reports whether a name of several words is that of a value, of which "name:value"
// can be written without a space. A secret by name, as in my-secret:latest, has a version there.
func compound(name string) bool {
	return strings.ContainsAny(name, "_-") && !strings.HasSuffix(strings.TrimRight(strings.ToLower(name), "s"), "secret")
}

// plain reports whether a value is no secret of the kind that its name says.
func plain(k kind, value string) bool {
	switch value {
	case "", "None", "none", "null", "nil", "True", "true", "False", "false", "undefined", "NULL", "...", "…", "-", "=", "$":
		return true
	}
	if strings.HasPrefix(strings.TrimLeft(value, "\"'`\\"), Mask) {
		return true
	}
	switch k {
	case token:
		special := value[0] == '<' && value[len(value)-1] == '>' || value[0] == '[' && value[len(value)-1] == ']'
		return isNumber(value) || special && !strings.ContainsAny(value, "= \t\n")
	case file:
		return isNumber(value) || isPath(value)
	case maybe:
		return isNumber(value) || isPath(value) || strings.Contains(value, "://") || strings.Contains(value, Mask) || len(value) < 24 && strings.Trim(value, "abcdefghijklmnopqrstuvwxyz-_./,=") == ""
	case login:
		return strings.Trim(value, "0123456789:") == "" || !strings.ContainsAny(value, ":%,") || strings.HasSuffix(value, ":"+Mask)
	}
	return false
}

func isNumber(value string) bool {
	return strings.Trim(value, "0123456789.-+") == "" && len(value) < 10
}

func isPath(value string) bool {
	switch path.Ext(value) {
	case ".pem", ".key", ".json", ".crt", ".yaml", ".yml", ".txt":
		return true
	}
	return value[0] == '/' || strings.HasPrefix(value, "./") || strings.HasPrefix(value, "~/")
}

// reference reports whether a value in the text of a shell is the name of a variable, or
// a command whose output is the value.
func reference(value string) bool {
	if len(value) > 2 && (value[0] == '`' && value[len(value)-1] == '`' || strings.HasPrefix(value, "$(") && value[len(value)-1] == ')') {
		return true
	}
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
