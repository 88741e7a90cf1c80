package secret

import (
	"bytes"
	"sort"
	"strings"
)

// Bounds of what is read as a shell does: deeper, texts have no commands.
const (
	maxDepth = 4  // texts in quotes within others
	maxOpen  = 32 // parentheses within others
)

// commands returns the parts of a text that are secrets: in any text, and in the commands
// that a shell would read in it. A text that is no shell's has words too, and loses
// nothing by being read so.
func commands(text string, depth int) []span {
	out := values(text)
	if depth > maxDepth || !several(text) {
		return out
	}
	inside := arguments{shell: true, depth: depth}
	a := inside
	var open []arguments
	backquoted := false
	r := reader{text: text}
	for redirected := false; r.read(); {
		if word := string(r.word); word != "" {
			var parts []span
			switch {
			case redirected: // the name of a file
				parts = a.text(word, 0)
			case r.end == '>' && strings.Trim(word, "0123456789") == "": // 2>
			case r.listed && len(r.quotes) == 0: // an expression
				a.kind = none
			default:
				parts = a.next(word)
			}
			for _, part := range parts {
				out = append(out, r.source(part))
			}
			redirected = false
		}
		redirected = redirected || r.end == '>'
		switch r.end {
		case ';':
			a = inside
		case '(', ')', '`':
			opens := r.end == '(' || r.end == '`' && !backquoted
			if r.end == '`' {
				backquoted = !backquoted
				a.kind = none // its value is what the command prints
			}
			switch {
			case opens && len(open) < maxOpen:
				open = append(open, a)
				a = inside
				if r.end == '(' { // the name of a function in code can be before it
					a.see(string(r.word[bytes.LastIndexByte(r.word, '.')+1:]) + "(")
				}
			case opens || len(open) == 0:
				a = inside
			default:
				a, open = open[len(open)-1], open[:len(open)-1]
			}
		}
	}
	return out
}

// several reports whether a text can have several words.
func several(text string) bool {
	return strings.ContainsAny(text, " \t\n") || strings.Contains(text, `","`) || strings.Contains(text, "','")
}

// A reader separates the words of a shell's text. A quote that is never closed is a
// character like any other, as in what people write.
type reader struct {
	text    string
	next    int       // where the rest begins
	word    []byte    // the word that was read, without quotes
	at      []span    // where each byte of the word is
	quotes  []span    // where its parts in quotes are, with the quotes
	end     byte      // what ended it: ';' for the end of a command, '>' for a redirection, '(', ')' or '`', 0 for anything else
	comment bool      // quotes are none until the line ends
	list    bool      // the words are a list of texts in code, as in ["curl", "-u"]
	listed  bool      // the word is of such a list
	open    [256]bool // which quotes are never closed
}

// read reads one word, which can be empty. It returns false at the end of the text.
func (r *reader) read() bool {
	r.word, r.at, r.quotes, r.end = r.word[:0], r.at[:0], r.quotes[:0], 0
	r.listed = r.list
	if r.next >= len(r.text) {
		return false
	}
	for r.next < len(r.text) {
		i, c := r.next, r.text[r.next]
		r.next++
		switch c {
		case ' ', '\t', '\r':
			return true
		case '<', '>':
			r.end = '>'
			return true
		case '\n', ';', '|':
			r.comment = r.comment && c != '\n'
			r.end = ';'
			return true
		case '&': // which stands in redirections too: 2>&1, &>
			if !(i > 0 && (r.text[i-1] == '>' || r.text[i-1] == '<') || r.next < len(r.text) && r.text[r.next] == '>') {
				r.end = ';'
			}
			return true
		case '(', ')', '`':
			r.list = c == '(' && r.begins(r.next)
			r.end = c
			return true
		case '[':
			if r.list = r.list || r.begins(r.next); r.list {
				return true
			}
			r.add(i, i+1)
		case ',', ']':
			if r.list && (len(r.quotes) > 0 || len(r.word) == 0) {
				r.list = c == ','
				return true
			}
			r.add(i, i+1)
		case '#':
			r.comment = r.comment || len(r.word) == 0
			r.add(i, i+1)
		case '\\':
			if r.next < len(r.text) {
				r.next++
			}
			if r.text[i+1:r.next] != "\n" {
				r.add(i, r.next)
			}
		case '\'', '"':
			r.quoted(i, i+1)
		case '$':
			if r.next < len(r.text) && r.text[r.next] == '\'' {
				r.next++
				r.quoted(i, i+2)
			} else {
				r.add(i, i+1)
			}
		default:
			r.add(i, i+1)
		}
	}
	return true
}

// begins reports whether a text in quotes begins at a place.
func (r *reader) begins(i int) bool {
	return i < len(r.text) && (r.text[i] == '"' || r.text[i] == '\'')
}

// add adds a byte to the word, the last one of a part of the text.
func (r *reader) add(from, to int) {
	r.word = append(r.word, r.text[to-1])
	r.at = append(r.at, span{from, to})
}

// quoted adds what is in quotes that begin at a place.
func (r *reader) quoted(from, inside int) {
	quote, raw := r.text[inside-1], r.text[from] == '\''
	word, at := len(r.word), len(r.at)
	for i := inside; i < len(r.text) && !r.comment && !r.open[r.text[from]]; i++ {
		switch c := r.text[i]; {
		case c == quote:
			r.quotes = append(r.quotes, span{from, i + 1})
			r.next = i + 1
			return
		case c == '\\' && !raw && i+1 < len(r.text) && r.text[i+1] == '\n':
			i++
		case c == '\\' && !raw && i+1 < len(r.text) && (quote == '\'' || strings.IndexByte("\"\\$`", r.text[i+1]) >= 0):
			r.add(i, i+2)
			i++
		default:
			r.add(i, i+1)
		}
	}
	r.word, r.at = r.word[:word], r.at[:at]
	r.open[r.text[from]] = r.open[r.text[from]] || !r.comment
	for i := from; i < inside; i++ {
		r.add(i, i+1)
	}
}

// source returns where a part of the word is in the text. Quotes that it cuts belong to it.
func (r *reader) source(part span) span {
	if part.from >= part.to {
		return span{}
	}
	out := span{r.at[part.from].from, r.at[part.to-1].to}
	first := sort.Search(len(r.quotes), func(i int) bool { return r.quotes[i].to > out.from })
	last := sort.Search(len(r.quotes), func(i int) bool { return r.quotes[i].from >= out.to }) - 1
	if first < last || first == last && (out.from < r.quotes[first].from || out.to > r.quotes[first].to) {
		out.from, out.to = min(out.from, r.quotes[first].from), max(out.to, r.quotes[last].to)
	}
	return out
}
