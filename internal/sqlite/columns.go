package sqlite

import (
	"slices"
	"strings"
)

// columnsOf reads a CREATE TABLE statement: the columns in the order of records, "" for one
// that is computed, and which of them is the number of the row, -1 for none. Tables WITHOUT
// ROWID are not read.
func columnsOf(statement string) (columns []string, key int, ok bool) {
	items, rest := itemsOf(wordsOf(statement))
	for i, w := range rest {
		if w.is("without") && i+1 < len(rest) && rest[i+1].is("rowid") {
			return nil, 0, false
		}
	}
	key = -1
	var integer []bool
	for _, item := range items {
		i := slices.IndexFunc(item, func(w word) bool { return w.is("primary") })
		if item[0].is("constraint", "primary", "unique", "check", "foreign") {
			// PRIMARY KEY (column)
			if i >= 0 && i+4 < len(item) && item[i+4].is(")") {
				if k := slices.IndexFunc(columns, func(c string) bool { return strings.EqualFold(c, item[i+3].text) }); k >= 0 && integer[k] {
					key = k
				}
			}
			continue
		}
		name, computed := item[0].text, slices.IndexFunc(item[1:], func(w word) bool { return w.is("as") })
		if computed >= 0 && computed+2 < len(item) && item[computed+2].is("(") {
			if !slices.ContainsFunc(item, func(w word) bool { return w.is("stored") }) {
				continue
			}
			name = ""
		}
		plain := len(item) > 1 && strings.EqualFold(item[1].text, "integer") &&
			(len(item) == 2 || item[2].is("constraint", "primary", "not", "null", "unique", "check", "default", "collate", "references"))
		if plain && i > 0 && !(i+2 < len(item) && item[i+2].is("desc")) {
			key = len(columns)
		}
		columns, integer = append(columns, name), append(integer, plain)
	}
	return columns, key, len(columns) > 0
}

// A word is one of a statement.
type word struct {
	text   string
	quoted bool
}

// is reports whether it is one of some keywords or signs.
func (w word) is(keywords ...string) bool {
	return !w.quoted && slices.ContainsFunc(keywords, func(k string) bool { return strings.EqualFold(k, w.text) })
}

// itemsOf splits what the first brackets hold at its commas, and returns the words behind them.
func itemsOf(words []word) (items [][]word, rest []word) {
	depth := 0
	var item []word
	for i, w := range words {
		switch {
		case w.is("("):
			depth++
			if depth == 1 {
				continue
			}
		case w.is(")"):
			depth--
		}
		if depth == 0 && !w.is(")") {
			continue // before the brackets
		}
		if depth > 1 || depth == 1 && !w.is(",") {
			item = append(item, w)
			continue
		}
		if len(item) > 0 {
			items = append(items, item)
		}
		item = nil
		if depth == 0 {
			return items, words[i+1:]
		}
	}
	return items, nil
}

// wordsOf splits a statement. Comments are left out.
func wordsOf(s string) (out []word) {
	const space, signs = " \t\r\n\f", "(),"
	closing := map[byte]byte{'"': '"', '\'': '\'', '`': '`', '[': ']'}
	for s = strings.TrimLeft(s, space); s != ""; s = strings.TrimLeft(s, space) {
		end, quoted := closing[s[0]]
		switch {
		case strings.HasPrefix(s, "--"):
			_, s, _ = strings.Cut(s, "\n")
		case strings.HasPrefix(s, "/*"):
			_, s, _ = strings.Cut(s, "*/")
		case quoted:
			var text strings.Builder
			for s = s[1:]; s != ""; s = s[1:] {
				i := strings.IndexByte(s, end)
				if i < 0 {
					i = len(s) - 1
				}
				text.WriteString(s[:i])
				s = s[i+1:]
				if end == ']' || s == "" || s[0] != end {
					break
				}
				text.WriteByte(end)
			}
			out = append(out, word{text.String(), true})
		case strings.IndexByte(signs, s[0]) >= 0:
			out, s = append(out, word{s[:1], false}), s[1:]
		default:
			n := strings.IndexAny(s, space+signs+"\"'`[")
			if n < 0 {
				n = len(s)
			}
			out, s = append(out, word{s[:n], false}), s[n:]
		}
	}
	return out
}
