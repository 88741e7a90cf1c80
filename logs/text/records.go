package text

import (
	"bytes"
	"slices"
)

// messageKeys are those under which records in JSON have the message that was logged.
var messageKeys = [][]byte{
	[]byte("log"), []byte("message"), []byte("msg"), []byte("line"), []byte("_line"), []byte("text"), []byte("event"), []byte("body"), []byte("content"),
	[]byte("textPayload"), []byte("@message"),
}

// keyed is the key of a line of an object that is written over several lines, and what is
// behind the colon.
func keyed(text []byte) (key, value []byte, ok bool) {
	if len(text) == 0 || text[0] != '"' {
		return nil, nil, false
	}
	key, value, ok = bytes.Cut(text[1:], []byte(`"`))
	if !ok || len(value) == 0 || value[0] != ':' {
		return nil, nil, false
	}
	return key, bytes.TrimLeft(value[1:], " "), true
}

// isMessage reports whether a key with a string as its value has the message of a record.
func isMessage(key, value []byte) bool {
	return len(value) > 0 && value[0] == '"' && slices.ContainsFunc(messageKeys, func(k []byte) bool { return len(k) == len(key) && bytes.EqualFold(k, key) })
}

// IsRecords reports whether a text that begins with some bytes is of records of a log in JSON:
// of objects, or a list of them, that have a message.
func IsRecords(head []byte) bool {
	text := bytes.TrimLeft(head, " \t\r\n\xef\xbb\xbf")
	if len(text) == 0 || text[0] != '{' && text[0] != '[' {
		return false
	}
	for {
		at := bytes.IndexByte(text, '"')
		if at < 0 {
			return false
		}
		if key, value, ok := keyed(text[at:]); ok && isMessage(key, value) {
			return true
		}
		text = text[at+1:]
	}
}

// recordsIn reports whether a text in JSON over several lines is a list of records of a log,
// by its beginning: each has a message; or what Loki answers.
func recordsIn(head []byte) bool {
	const some = 2
	if bytes.Contains(head, []byte(`"result": [`)) && bytes.Contains(head, []byte(`"stream": {`)) {
		return true
	}
	if text := bytes.TrimLeft(head, " \t\r\n\xef\xbb\xbf"); len(text) == 0 || text[0] != '[' {
		return false
	}
	records, messages, margin := 0, 0, -1
	for line := range bytes.Lines(head) {
		text := bytes.TrimSpace(line)
		switch indent := bytes.IndexByte(line, '{'); {
		case string(text) == "{" && (margin < 0 || indent == margin):
			records, margin = records+1, indent
		default:
			if key, value, ok := keyed(text); ok && isMessage(key, value) {
				messages++
			}
		}
	}
	return messages >= some && messages >= records-1
}

// passedLine is a line that readers only count.
const passedLine = "\x00\n"

// records takes what is not a message out of the lines of records, so that messages which
// follow each other do so in the text: braces, numbers and words such as a time or a level.
type records struct {
	within bool // a line has begun that stays
}

// maxWordLength is as long as a line can be that is taken out.
const maxWordLength = 96

func (j *records) longest() int { return maxWordLength }

func (j *records) rewrite(p []byte, last bool) (kept, taken int) {
	for i := 0; i < len(p); {
		rest := p[i:]
		n := bytes.IndexByte(rest, '\n') + 1
		if n == 0 {
			if n = len(rest); !j.within && n < maxWordLength && !last {
				return kept, i
			}
		}
		line := rest[:n]
		ends := line[n-1] == '\n'
		if !j.within && ends && n > len(passedLine) && n <= maxWordLength && noMessage(line) {
			kept += copy(p[kept:], passedLine)
		} else {
			kept += copy(p[kept:], line)
		}
		j.within, i = !ends, i+n
	}
	return kept, len(p)
}

// noMessage reports whether a line of a record has no message: it is of braces, a number, or
// a key with a number or one word.
func noMessage(line []byte) bool {
	text := withoutStructure(line)
	if len(text) > 0 && text[0] == '"' {
		if key, value, ok := keyed(text); ok {
			if isMessage(key, value) {
				return false
			}
			text = withoutStructure(value)
			word := bytes.Trim(text, `"`)
			return bytes.IndexByte(word, ' ') < 0 && len(text)-len(word) != 1
		}
	}
	return len(text) == 0 && len(bytes.TrimSpace(line)) > 0 || len(text) > 0 && len(Digits(text)) == len(text)
}

// structural is what is around the keys and values of a record.
var structural = [256]bool{'{': true, '}': true, '[': true, ']': true, ',': true, ' ': true, '\t': true, '\r': true, '\n': true}

// withoutStructure is a text without such bytes at its ends.
func withoutStructure(text []byte) []byte {
	for len(text) > 0 && structural[text[0]] {
		text = text[1:]
	}
	for len(text) > 0 && structural[text[len(text)-1]] {
		text = text[:len(text)-1]
	}
	return text
}
