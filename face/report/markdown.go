package report

import (
	"fmt"
	"io"
	"strings"

	"strandline/internal/lazyregexp"
)

// markdown writes the table in Markdown; the first row is its header.
func (t *table) markdown(w io.Writer) {
	for i, r := range t.rows {
		for _, c := range r {
			fmt.Fprintf(w, "| %s ", cell(c))
		}
		fmt.Fprintln(w, "|")
		if i > 0 {
			continue
		}
		for j := range r {
			line := "---"
			if t.right[j] {
				line = "--:"
			}
			fmt.Fprintf(w, "| %s ", line)
		}
		fmt.Fprintln(w, "|")
	}
}

// Cell returns text for a table or a list in Markdown.
func Cell(text string) string { return cell(text) }

// cell returns text for a table or a list in Markdown: nothing in it is markup except
// for code between backticks, which our own sentences contain.
func cell(text string) string {
	parts := strings.Split(Line(text), "`")
	paired := len(parts)%2 == 1 && !strings.Contains(text, "``")
	for i := range parts {
		if paired && i%2 == 1 {
			parts[i] = strings.ReplaceAll(parts[i], "|", `\|`)
		} else {
			parts[i] = plain(parts[i])
		}
	}
	if paired {
		return strings.Join(parts, "`")
	}
	return strings.Join(parts, "\\`")
}

// plain returns text with escapes before what Markdown acts on, which an underscore
// between letters is not.
func plain(text string) string {
	text = active.ReplaceAllString(text, `\$0`)
	var out strings.Builder
	for i := range len(text) {
		if text[i] == '_' && !(i > 0 && i+1 < len(text) && letter(text[i-1]) && letter(text[i+1])) {
			out.WriteByte('\\')
		}
		out.WriteByte(text[i])
	}
	return out.String()
}

var active = lazyregexp.New(`[\\*\[\]<>|]|~~|&(?:#|\w+;)|^[#+-]`)

// letter reports whether a byte is a letter or a digit, or of a letter beyond ASCII.
func letter(b byte) bool {
	return b >= 0x80 || '0' <= b && b <= '9' || 'a' <= b|0x20 && b|0x20 <= 'z'
}

// code returns text as code of Markdown, whatever is in it.
func code(text string) string {
	text = Line(text)
	fence := "`"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	if len(fence) > 1 {
		return fence + " " + text + " " + fence
	}
	return fence + text + fence
}
